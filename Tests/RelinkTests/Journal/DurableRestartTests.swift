import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// What a session that was let go of leaves in its store, and what the next one makes of it.
@Suite struct DurableRestartTests {
  enum Tag: CaseIterable {
    case idempotent, nonIdempotent, verifiedByValue, verifiedByName, verifiedByApp

    var idempotency: Idempotency {
      switch self {
      case .idempotent: .idempotent
      case .nonIdempotent: .nonIdempotent
      case .verifiedByValue: .verified(by: .value(of: Scene.first, is: [1]))
      case .verifiedByName: .verified(by: .named("first is 1"))
      case .verifiedByApp: .verified(by: .app)
      }
    }
  }

  /// How far the operation had come when its session was let go of.
  enum Stage: CaseIterable {
    /// No link ever took it.
    case unsent
    /// Its mark is committed, and nothing left.
    case markedOnly
    /// The device had it, and did not carry it out.
    case notApplied
    /// The device carried it out, and nobody heard the answer.
    case applied
  }

  private func leave(_ world: JournalWorld, _ tag: Tag, _ stage: Stage, id: OperationID) throws {
    try world.life { session in
      switch stage {
      case .unsent: world.radio.setAdvertising(false, of: world.device)
      case .markedOnly: world.peripheral.react(to: .exchangeMTU, with: .swallow, times: 1)
      case .notApplied: world.peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      case .applied: world.peripheral.react(to: .write(Scene.first), with: .applyAndSayNothing, times: 1)
      }
      try world.submit(to: session, 1, tag.idempotency, id: id)
      world.executor.advance(by: .seconds(2))
      #expect(session.assumeIsolated { $0.openWork.unsettled } == 1)
    }
    let row = try #require(world.rows.first)
    #expect(row.outcome == nil)
    #expect((row.mark != nil) == (stage != .unsent))
    world.radio.setAdvertising(true, of: world.device)
    world.executor.advance(by: .seconds(5))
  }

  @Test("the next session goes on by the rules", arguments: Tag.allCases, Stage.allCases)
  func theNextSessionGoesOnByTheRules(_ tag: Tag, _ stage: Stage) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try leave(world, tag, stage, id: id)
      let wasApplied = stage == .applied ? 1 : 0
      #expect(world.peripheral.wr(0x0010) == wasApplied)
      let names: (inout Configuration) -> Void = {
        $0.probes["first is 1"] = { try await $0.read(Scene.first) == [1] ? .applied : .notApplied }
      }
      try world.life(over: nil, names) { session in
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(5))
        if tag == .verifiedByApp, stage != .unsent {
          #expect(recovered.all.isEmpty)
          let journal = try world.executor.drive { await session.journal }
          #expect(journal.map(\.state) == [.unresolved])
          #expect(journal.map(\.isRecovered) == [true])
          #expect(journal.map(\.id) == [id])
          try world.executor.drive {
            try await session.resolve(id, as: stage == .applied ? .applied : .notApplied, by: "Ada")
          }
          world.executor.advance(by: .seconds(5))
        }
        #expect(recovered.all.count == 1)
        let operation = try #require(recovered.all.first)
        #expect(operation.id == id)
        #expect(operation.request == .write(Scene.first, [1]))
        switch tag {
        case .idempotent:
          #expect(operation.outcome == .succeeded(.acknowledged))
          #expect(world.peripheral.wr(0x0010) == wasApplied + 1)
        case .nonIdempotent where stage == .unsent:
          #expect(operation.outcome == .succeeded(.acknowledged))
          #expect(world.peripheral.wr(0x0010) == 1)
        case .nonIdempotent:
          #expect(operation.outcome.doubt?.cause == .processEnded)
          #expect(world.peripheral.wr(0x0010) == wasApplied)
        case .verifiedByValue, .verifiedByName:
          #expect(operation.outcome == .succeeded(stage == .applied ? .probed : .acknowledged))
          #expect(world.peripheral.wr(0x0010) == 1)
        case .verifiedByApp:
          #expect(operation.outcome == .succeeded(stage == .applied ? .resolved : .acknowledged))
          #expect(world.peripheral.wr(0x0010) == 1)
        }
        recovered.cancel()
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.rows.map(\.isDelivered) == [true])
      let counts = world.peripheral.counters.applied.count
      // Told once is told: a third session has nothing to say and nothing to do.
      try world.life { session in
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(5))
        #expect(recovered.all.isEmpty)
        #expect(world.executor.now > .zero)
        recovered.cancel()
        world.executor.run()
      }
      #expect(world.peripheral.counters.applied.count == counts)
    }
  }

  @Test("an outcome that was told to nobody is told by the next session, once", arguments: [true, false])
  func anUndeliveredOutcomeIsToldByTheNextSession(_ isAskedByID: Bool) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try world.life { session in
        try world.submit(to: session, id: id)
        world.executor.advance(by: .seconds(2))
      }
      #expect(world.rows.map { $0.outcome != nil } == [true])
      #expect(world.rows.map(\.isDelivered) == [false])
      try world.life { session in
        world.executor.advance(by: .seconds(1))
        if isAskedByID {
          let handle = try world.executor.drive {
            try await session.submit(
              WriteRequest(
                [1], to: Scene.first, idempotency: .nonIdempotent, id: id,
                options: WriteOptions(durability: .durable)))
          }
          #expect(try world.executor.drive { await handle.outcome } == .succeeded(.acknowledged))
        }
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(1))
        #expect(recovered.all.map(\.outcome) == (isAskedByID ? [] : [.succeeded(.acknowledged)]))
        recovered.cancel()
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.rows.map(\.isDelivered) == [true])
      #expect(world.peripheral.wr(0x0010) == 1)
      #expect(world.peripheral.counters.links == 1)
    }
  }

  @Test("an outcome that nobody takes stays for the session after the next")
  func anOutcomeThatNobodyTakesStays() throws {
    try JournalWorld.play { world in
      try world.life { session in
        try world.submit(to: session)
        world.executor.advance(by: .seconds(2))
      }
      for _ in 0..<2 { try world.life { _ in _ = world.executor.advance(by: .seconds(2)) } }
      #expect(world.rows.map(\.isDelivered) == [false])
      try world.life { session in
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(1))
        #expect(recovered.all.map(\.outcome) == [.succeeded(.acknowledged)])
        recovered.cancel()
        world.executor.run()
      }
      #expect(world.peripheral.wr(0x0010) == 1)
    }
  }

  // MARK: The same ID after a restart

  @Test(
    "a command that is submitted again is not a second command", arguments: Stage.allCases, [true, false])
  func aCommandThatIsSubmittedAgainJoinsOrReturns(_ stage: Stage, _ isBeforeTheClaim: Bool) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try leave(world, .verifiedByValue, stage, id: id)
      world.radio.setAdvertising(false, of: world.device)
      try world.life { session in
        if !isBeforeTheClaim { world.executor.advance(by: .milliseconds(20)) }
        let callers = (0..<2).map { number in
          world.executor.spawn("caller \(number)") {
            try await session.write(
              [1], to: Scene.first, idempotency: Tag.verifiedByValue.idempotency, id: id,
              options: WriteOptions(durability: .durable))
          }
        }
        let other = world.executor.spawn("other") {
          try await session.write(
            [2], to: Scene.first, idempotency: .nonIdempotent, id: id,
            options: WriteOptions(durability: .durable))
        }
        world.executor.advance(by: .seconds(1))
        #expect(callers.allSatisfy { !$0.hasEnded })
        world.radio.setAdvertising(true, of: world.device)
        world.executor.advance(by: .seconds(10))
        for caller in callers {
          #expect(caller.hasEnded)
          #expect(caller.error == nil)
        }
        #expect(other.relinkError?.notSentReason == .conflictingID)
        let recovered = world.collect(from: session)
        world.executor.run()
        #expect(recovered.all.isEmpty)
        recovered.cancel()
        world.executor.run()
        #expect(session.assumeIsolated { $0.joinedCalls.isEmpty && $0.recordings.isEmpty })
      }
      #expect(world.rows.count == 1)
      #expect(world.rows.map(\.isDelivered) == [true])
      #expect(world.peripheral.counters.applied.map(\.value) == [[1]])
    }
  }

  @Test("an outcome that was told long ago is returned once more, by any later session")
  func anOldOutcomeIsReturnedOnceMore() throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      @Sendable func write(_ session: DeviceSession, _ value: UInt8) async throws {
        try await session.write(
          [value], to: Scene.first, idempotency: .nonIdempotent, id: id,
          options: WriteOptions(durability: .durable))
      }
      for _ in 0..<3 {
        try world.life { session in
          try world.executor.drive { try await write(session, 1) }
          let other = world.executor.spawn("other") { try await write(session, 2) }
          world.executor.advance(by: .seconds(1))
          #expect(other.relinkError?.notSentReason == .conflictingID)
        }
        world.executor.advance(by: .seconds(5))
      }
      #expect(world.peripheral.counters.applied.map(\.value) == [[1]])
      #expect(world.rows.count == 1)
    }
  }

  // MARK: Order

  @Test("what an earlier session left goes before new calls, in its order")
  func whatWasLeftGoesBeforeNewCalls() throws {
    try JournalWorld.play { world in
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        for value in 1...3 { try world.submit(to: session, UInt8(value)) }
      }
      world.radio.setAdvertising(true, of: world.device)
      try world.life { session in
        let new = world.executor.spawn("new") {
          try await session.write(
            [4], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(durability: .durable))
        }
        let read = world.executor.spawn("read") { try await session.read(Scene.first) }
        world.executor.advance(by: .seconds(5))
        #expect(new.error == nil)
        #expect(new.hasEnded)
        #expect(read.value == [4])
      }
      #expect(world.peripheral.counters.applied.map(\.value) == [[1], [2], [3], [4]])
    }
  }

  @Test("no write is sent before the claim has said what is there; reads are")
  func noWriteIsSentBeforeTheClaim() throws {
    try JournalWorld.play { world in
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        try world.submit(to: session)
      }
      world.radio.setAdvertising(true, of: world.device)
      world.store.hold()
      try world.life { session in
        let write = world.executor.spawn("write") {
          try await session.write([2], to: Scene.second, idempotency: .idempotent)
        }
        let read = world.executor.spawn("read") { try await session.read(Scene.first) }
        world.executor.advance(by: .seconds(5))
        #expect(session.snapshot().isReady)
        #expect(read.value == [0x0A])
        #expect(!write.hasEnded)
        #expect(world.peripheral.counters.applied.isEmpty)
        world.store.release()
        world.executor.advance(by: .seconds(1))
        #expect(write.hasEnded)
        #expect(write.error == nil)
        #expect(world.peripheral.wr(0x0010) == 1)
      }
    }
  }

  // MARK: Ends

  @Test("close() settles what is durable, so that the next session sends nothing")
  func closingLeavesNothingToTheNextSession() throws {
    try JournalWorld.play { world in
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        try world.submit(to: session)
        try world.executor.drive { await session.close() }
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.rows.map { $0.outcome != nil } == [true])
      world.radio.setAdvertising(true, of: world.device)
      try world.life { session in
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(10))
        #expect(recovered.all.map(\.outcome) == [.notSent(.ended)])
        recovered.cancel()
        world.executor.run()
      }
      #expect(world.peripheral.counters.links == 0)
    }
  }

  @Test("a session that was let go of leaves no timer behind", arguments: [true, false])
  func aSessionThatIsGoneLeavesNoTimer(_ isClosed: Bool) throws {
    try JournalWorld.play { world in
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        try world.submit(to: session)
        world.store.goDown()
        if isClosed { try world.executor.drive { await session.close() } }
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.executor.timerCount == 0)
      world.store.heal()
    }
  }

  @Test("a second claim ends what the first session may do with the journal")
  func aSecondClaimSupersedesTheFirstSession() throws {
    try JournalWorld.play { world in
      let elsewhere = VirtualRadio(on: world.executor)
      elsewhere.add(world.peripheral, as: world.device)
      world.radio.setAdvertising(false, of: world.device)
      let first = try world.open()
      let handle = try world.executor.drive {
        try await first.submit(
          WriteRequest(
            [1], to: Scene.first, idempotency: .nonIdempotent,
            options: WriteOptions(within: .seconds(600), durability: .durable)))
      }
      try world.life(over: elsewhere) { second in
        let recovered = world.collect(from: second)
        world.executor.advance(by: .seconds(5))
        #expect(recovered.all.map(\.outcome) == [.succeeded(.acknowledged)])
        recovered.cancel()
        world.executor.advance(by: .seconds(1))
      }
      world.executor.advance(by: .seconds(5))
      #expect(world.peripheral.wr(0x0010) == 1)
      // The first one does not know yet; its next word to the store tells it.
      world.radio.setAdvertising(true, of: world.device)
      world.executor.advance(by: .seconds(5))
      guard case .storeFailed(let error) = handle.outcomeIfSettled?.doubt?.cause else {
        Issue.record("\(String(describing: handle.outcomeIfSettled))")
        return
      }
      #expect(error.code == .superseded)
      let refused = world.executor.spawn("refused") {
        try await first.write(
          [2], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(durability: .durable))
      }
      world.executor.run()
      guard case .storeFailed(let refusal) = refused.relinkError?.notSentReason else {
        Issue.record("\(String(describing: refused.result))")
        return
      }
      #expect(refusal.code == .superseded)
      // What needs no store goes on.
      try world.executor.drive { try await first.write([3], to: Scene.first, idempotency: .idempotent) }
      #expect(world.peripheral.counters.applied.map(\.value) == [[1], [3]])
      #expect(world.store.epoch(of: world.device) == 2)
      try world.executor.drive { await first.close() }
    }
  }

  // MARK: Time

  enum Clock: CaseIterable { case sameBoot, otherBootWithRightClock, otherBootWithWrongClock }

  @Test("what became stale between two sessions is not offered", arguments: Clock.allCases, [true, false])
  func whatBecameStaleBetweenTwoSessionsIsNotOffered(_ clock: Clock, _ isStale: Bool) throws {
    try JournalWorld.play { world in
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        try world.submit(
          to: session, options: WriteOptions(within: .seconds(3600), offerBefore: .seconds(60)))
      }
      world.executor.suspend(for: .seconds(isStale ? 61 : 30))
      if clock != .sameBoot { world.executor.bootID = "boot 2" }
      // Nobody may trust what it says now.
      if clock == .otherBootWithWrongClock { world.executor.isWallClockRight = false }
      world.radio.setAdvertising(true, of: world.device)
      try world.life { session in
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(15))
        if clock == .otherBootWithWrongClock {
          #expect(recovered.all.isEmpty)
          #expect(world.peripheral.wr(0x0010) == 0)
          world.executor.isWallClockRight = true
          world.executor.advance(by: .seconds(12))
        }
        #expect(recovered.all.map(\.outcome) == [isStale ? .notSent(.expired) : .succeeded(.acknowledged)])
        recovered.cancel()
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.peripheral.wr(0x0010) == (isStale ? 0 : 1))
    }
  }

  // MARK: Secrets

  @Test("a sensitive value is gone from the store once it is settled, whichever session settles it")
  func aSensitiveValueIsErasedByTheNextSession() throws {
    let secret: UInt8 = 0xA5
    try JournalWorld.play { world in
      let id = try #require(OperationID("secret"))
      let options = WriteOptions(within: .seconds(600), isSensitive: true)
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        try world.submit(to: session, secret, .idempotent, id: id, options: options)
      }
      #expect(world.rows.first?.operation.contains(secret) == true)
      world.radio.setAdvertising(true, of: world.device)
      let audit = RecordingAuditSink()
      try world.life(over: nil, { $0.audit = audit }) { session in
        let recovered = world.collect(from: session)
        world.executor.advance(by: .seconds(5))
        #expect(recovered.all.map(\.request) == [.write(Scene.first, [])])
        recovered.cancel()
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.rows.first?.operation.contains(secret) == false)
      #expect(audit.records.first?.event.change == .recovered)
      #expect(audit.records.allSatisfy { $0.event.operation.request == .write(Scene.first, []) })
      // Asked for again, it is known by its name and its shape.
      try world.life { session in
        try world.submit(to: session, secret, .idempotent, id: id, options: options)
        world.executor.advance(by: .seconds(1))
      }
      #expect(world.peripheral.counters.applied.map(\.value) == [[secret]])
    }
  }
}
