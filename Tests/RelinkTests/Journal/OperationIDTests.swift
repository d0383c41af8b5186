import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// What an ID that the caller gives does for a session that lives on: the same ID is the same operation.
@Suite struct OperationIDTests {
  let peripheral = VirtualPeripheral.twoValues()

  private func name(_ text: String = "command 1") throws -> OperationID { try #require(OperationID(text)) }

  private func write(
    _ scene: Scene, _ id: OperationID, _ value: UInt8 = 1, _ tag: Idempotency = .nonIdempotent
  ) -> SpawnedTask<Void> {
    scene.spawn("write \(value)") { try await $0.write([value], to: Scene.first, idempotency: tag, id: id) }
  }

  @Test("two callers of one ID share one write, and one may be cancelled", arguments: [0, 1])
  func oneOfTwoCallersIsCancelledAndTheOtherIsServed(_ cancelled: Int) throws {
    let id = try name()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(2)), times: 1)
      let callers = [write(scene, id), write(scene, id)]
      scene.executor.advance(by: .seconds(1))
      #expect(scene.belongings.operations == 1)
      callers[cancelled].cancel()
      scene.executor.run()
      let error = try #require(callers[cancelled].relinkError)
      #expect(error.code == .cancelled)
      #expect(error.outcome == nil)
      #expect(error.operation == id)
      #expect(!callers[1 - cancelled].hasEnded)
      scene.executor.advance(by: .seconds(2))
      #expect(callers[1 - cancelled].hasEnded)
      #expect(callers[1 - cancelled].error == nil)
      #expect(scene.belongings.joinedCalls == 0)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test("the operation ends when the last of its callers is cancelled", arguments: [true, false])
  func whenAllCallersAreCancelledTheOperationEnds(_ wasOffered: Bool) throws {
    let id = try name()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if wasOffered {
        peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      } else {
        scene.radio.block(scene.device)
      }
      let callers = (0..<3).map { _ in write(scene, id) }
      scene.executor.run()
      for index in [1, 0, 2] {
        #expect(scene.belongings.operations == 1)
        callers[index].cancel()
        scene.executor.run()
      }
      #expect(callers[0].relinkError?.code == .cancelled)
      #expect(callers[1].relinkError?.code == .cancelled)
      if wasOffered {
        #expect(callers[2].relinkError?.doubt?.cause == .cancelled)
      } else {
        #expect(callers[2].relinkError?.notSentReason == .cancelled)
      }
      #expect(scene.belongings.operations == 0)
      #expect(scene.belongings.joinedCalls == 0)
      // The answer of the swallowed request is owed for 30 s.
      scene.executor.advance(by: .seconds(60))
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test(
    "the operation ends with the deadline of the last of its callers", arguments: [true, false],
    [true, false])
  func theDeadlineOfTheLastCallerEndsTheOperation(_ wasOffered: Bool, _ dropsLink: Bool) throws {
    let id = try name()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if wasOffered {
        peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      } else {
        scene.radio.block(scene.device)
      }
      let callers = [20, 5].map { seconds in
        scene.spawn("within \(seconds)") {
          let options = WriteOptions(within: .seconds(seconds), onExpiry: dropsLink ? .dropLink : .keepLink)
          try await $0.write([1], to: Scene.first, idempotency: .nonIdempotent, id: id, options: options)
        }
      }
      scene.executor.run()
      callers[0].cancel()
      scene.executor.advance(by: .milliseconds(4999))
      #expect(callers[0].relinkError?.code == .cancelled)
      #expect(!callers[1].hasEnded)
      scene.executor.advance(by: .milliseconds(1))
      if wasOffered {
        #expect(callers[1].relinkError?.doubt?.cause == .deadline)
      } else {
        #expect(callers[1].relinkError?.notSentReason == .deadline)
      }
      let isDropped = wasOffered && dropsLink
      #expect(scene.recorder.disconnections.map(\.reason) == (isDropped ? [.operationExpired] : []))
      #expect(scene.belongings.operations == 0)
      #expect(scene.belongings.joinedCalls == 0)
      scene.executor.advance(by: .seconds(60))
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("the kept outcome is returned, and nothing is sent")
  func theSameIDAfterSettlingReturnsTheOutcome() throws {
    let (done, refused, doubtful) = (try name("done"), try name("refused"), try name("doubtful"))
    try Scene.play(peripheral) { scene in
      try scene.connect()
      #expect(try scene.executor.complete(write(scene, done)).error == nil)
      peripheral.react(to: .write(Scene.first), with: .refuse(.writeNotPermitted), times: 1)
      let rejection = try #require(try scene.executor.complete(write(scene, refused, 2)).error)
      peripheral.react(to: .write(Scene.first), with: .applyAndDrop(), times: 1)
      let doubt = try #require(try scene.executor.complete(write(scene, doubtful, 3)).error)
      scene.executor.advance(by: .seconds(5))
      let sent = peripheral.counters.received[.writeRequest]
      let links = peripheral.counters.links
      #expect(try scene.executor.complete(write(scene, done)).error == nil)
      let second = [
        try scene.executor.complete(write(scene, refused, 2)).error,
        try scene.executor.complete(write(scene, doubtful, 3)).error,
      ]
      #expect(
        second.map { ($0 as? RelinkError)?.outcome }
          == [rejection, doubt].map { ($0 as? RelinkError)?.outcome })
      let handle = try scene.drive("submit") {
        try await $0.submit(WriteRequest([1], to: Scene.first, idempotency: .nonIdempotent, id: done))
      }
      #expect(handle.outcomeIfSettled == .succeeded(.acknowledged))
      // Also where nobody is going to bring a link.
      try scene.drive("disconnect") { await $0.disconnect() }
      #expect(try scene.executor.complete(write(scene, done)).error == nil)
      scene.executor.advance(by: .seconds(60))
      #expect(peripheral.counters.received[.writeRequest] == sent)
      #expect(peripheral.counters.links == links)
    }
    #expect(peripheral.wr(0x0010) == 2)
  }

  @Test("an outcome is kept for its time, and as many as the policy says")
  func keptOutcomesGoWithTimeAndWithTheirNumber() throws {
    let (first, second, third) = (try name("1"), try name("2"), try name("3"))
    let policy = JournalPolicy(outcomeRetention: .seconds(60), keptInMemory: 2)
    try Scene.play(peripheral, Configuration(journal: policy, seed: 1)) { scene in
      try scene.connect()
      for id in [first, second, third] { #expect(try scene.executor.complete(write(scene, id)).error == nil) }
      #expect(peripheral.wr(0x0010) == 3)
      #expect(try scene.executor.complete(write(scene, second)).error == nil)
      #expect(peripheral.wr(0x0010) == 3)
      #expect(try scene.executor.complete(write(scene, first)).error == nil)
      #expect(peripheral.wr(0x0010) == 4)
      scene.executor.advance(by: .seconds(61))
      #expect(try scene.executor.complete(write(scene, third)).error == nil)
      #expect(peripheral.wr(0x0010) == 5)
    }
  }

  enum Other: CaseIterable { case bytes, tag, target, kind }

  @Test("another write under the ID is refused, open or settled", arguments: Other.allCases, [true, false])
  func anotherWriteUnderTheIDIsRefused(_ other: Other, _ isOpen: Bool) throws {
    let id = try name()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if isOpen { peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(2)), times: 1) }
      let first = write(scene, id)
      scene.executor.run()
      #expect(first.hasEnded == !isOpen)
      let second = scene.spawn("other") { session in
        switch other {
        case .bytes: try await session.write([2], to: Scene.first, idempotency: .nonIdempotent, id: id)
        case .tag: try await session.write([1], to: Scene.first, idempotency: .idempotent, id: id)
        case .target: try await session.write([1], to: Scene.second, idempotency: .nonIdempotent, id: id)
        case .kind:
          try await session.writeWithoutResponse([1], to: Scene.first, idempotency: .nonIdempotent, id: id)
        }
      }
      scene.executor.run()
      #expect(second.relinkError?.notSentReason == .conflictingID)
      let submitted = scene.spawn("submit") {
        _ = try await $0.submit(WriteRequest([2], to: Scene.first, idempotency: .nonIdempotent, id: id))
      }
      scene.executor.run()
      #expect(submitted.relinkError?.notSentReason == .conflictingID)
      scene.executor.advance(by: .seconds(3))
      #expect(first.hasEnded)
      #expect(first.error == nil)
    }
    #expect(peripheral.counters.applied.count == 1)
  }

  @Test(
    "closures cannot be told apart: each call brings its own probe, and none outlives its operation",
    arguments: [true, false])
  func eachCallMayBringItsOwnProbe(_ isOpen: Bool) throws {
    let id = try name()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if isOpen { peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(2)), times: 1) }
      weak var held: Gate?
      do {
        let gate = Gate()
        held = gate
        let callers = (0..<2).map { number -> SpawnedTask<Void> in
          let caller = scene.spawn("caller \(number)") { session in
            let probe = Probe { _ in
              gate.open()
              return .unknown
            }
            try await session.write([1], to: Scene.first, idempotency: .verified(by: probe), id: id)
          }
          scene.executor.run()
          return caller
        }
        scene.executor.advance(by: .seconds(3))
        for caller in callers {
          #expect(caller.hasEnded)
          #expect(caller.error == nil)
        }
      }
      #expect(held == nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  // MARK: Handles

  @Test("a handle tells its outcome to everybody, any number of times, also after the end of the session")
  func aHandleTellsItsOutcomeAgainAndAgain() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(2)), times: 1)
      let handle = try scene.drive("submit") {
        try await $0.submit(WriteRequest([1], to: Scene.first, idempotency: .nonIdempotent))
      }
      #expect(handle.outcomeIfSettled == nil)
      let readers = (0..<3).map { number in
        scene.executor.spawn("reader \(number)") { await handle.outcome }
      }
      scene.executor.advance(by: .seconds(1))
      // Whoever is cancelled waits on: the operation is another's business.
      readers[1].cancel()
      scene.executor.run()
      #expect(readers.allSatisfy { !$0.hasEnded })
      scene.executor.advance(by: .seconds(2))
      #expect(readers.map(\.value) == Array(repeating: .succeeded(.acknowledged), count: 3))
      try scene.drive("close") { await $0.close() }
      #expect(try scene.executor.drive { await handle.outcome } == .succeeded(.acknowledged))
      #expect(handle.outcomeIfSettled == .succeeded(.acknowledged))
      handle.cancel()
      scene.executor.run()
      #expect(handle.outcomeIfSettled == .succeeded(.acknowledged))
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  enum End: CaseIterable { case cancel, close, disconnect, deadline }

  @Test("a handle ends its operation, or is told of its end", arguments: End.allCases, [true, false])
  func aHandleIsToldHowItsOperationEnded(_ end: End, _ wasOffered: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if wasOffered {
        peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      } else {
        scene.radio.block(scene.device)
      }
      let handle = try scene.drive("submit") { session in
        let options = WriteOptions(within: .seconds(5))
        return try await session.submit(
          WriteRequest([1], to: Scene.first, idempotency: .nonIdempotent, options: options))
      }
      let caller = scene.executor.spawn("outcome") { await handle.outcome }
      scene.executor.advance(by: .seconds(1))
      let expected: (NotSentReason, Doubt.Cause)
      switch end {
      case .cancel:
        handle.cancel()
        expected = (.cancelled, .cancelled)
      case .close:
        try scene.drive("close") { await $0.close() }
        expected = (.ended, .ended)
      case .disconnect:
        try scene.drive("disconnect") { await $0.disconnect() }
        expected = (.disconnected, .disconnected)
      case .deadline:
        scene.executor.advance(by: .seconds(4))
        expected = (.deadline, .deadline)
      }
      scene.executor.run()
      #expect(caller.value?.notSentReason == (wasOffered ? nil : expected.0))
      #expect(caller.value?.doubt?.cause == (wasOffered ? expected.1 : nil))
      scene.executor.advance(by: .seconds(60))
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("submit returns at once, write waits; both refuse what cannot be recorded")
  func submitRefusesWhatItCannotRecord() throws {
    try Scene.play(peripheral, Configuration(journal: JournalPolicy(capacity: 2), seed: 1)) { scene in
      scene.radio.setAdvertising(false, of: scene.device)
      let handles = try (0..<2).map { number in
        try scene.drive("submit") {
          try await $0.submit(WriteRequest([UInt8(number)], to: Scene.first, idempotency: .idempotent))
        }
      }
      #expect(scene.executor.now == .zero)
      #expect(handles[0].id != handles[1].id)
      func submit(_ options: WriteOptions) -> NotSentReason? {
        let task = scene.spawn("refused") {
          _ = try await $0.submit(
            WriteRequest([9], to: Scene.second, idempotency: .idempotent, options: options))
        }
        scene.executor.run()
        return task.relinkError?.notSentReason
      }
      #expect(submit(WriteOptions()) == .journalFull(limit: 2))
      handles[1].cancel()
      scene.executor.run()
      guard case .storeFailed(let error) = submit(WriteOptions(durability: .durable)) else {
        Issue.record("a durable write was taken without a store")
        return
      }
      #expect(error.code == .missing)
      handles[0].cancel()
      try scene.drive("disconnect") { await $0.disconnect() }
      #expect(submit(WriteOptions()) == .disconnected)
      try scene.drive("close") { await $0.close() }
      #expect(submit(WriteOptions()) == .ended)
    }
  }
}

extension Result {
  /// What it failed with.
  var error: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}
