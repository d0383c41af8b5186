import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// What ends an operation before the device has answered: time, an adapter that is away, a device that lost its state.
@Suite struct OperationLimitTests {
  let peripheral = VirtualPeripheral.twoValues()

  // MARK: Deadlines

  @Test(
    "a deadline that drops the link bounds the doubt; one that keeps it does not", arguments: [true, false])
  func aDeadlineThatDropsTheLinkStopsTheRequest(_ drops: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      scene.radio.hold([.towardsPeer])
      let options = WriteOptions(within: .seconds(5), onExpiry: drops ? .dropLink : .keepLink)
      let caller = scene.spawn("write") {
        try await $0.write([1], to: Scene.first, idempotency: .idempotent, options: options)
      }
      scene.executor.advance(by: .milliseconds(4999))
      #expect(!caller.hasEnded)
      scene.executor.advance(by: .milliseconds(1))
      let doubt = try #require(caller.relinkError?.doubt)
      #expect(doubt.cause == .deadline)
      #expect(doubt.offers == 1)
      // Not known to be gone yet, but the longest that a link can live which is ended is known.
      let end = scene.executor.now.advanced(by: .seconds(34))
      #expect(doubt.lastPossibleEffect == (drops ? end : nil))
      #expect(scene.session.snapshot().isReady != drops)
      scene.radio.hold([])
      // The old link goes first, which takes it two seconds; then the session comes back by itself.
      scene.executor.advance(by: .seconds(4))
      scene.radio.stopHolding()
      scene.executor.advance(by: .seconds(4))
      #expect(scene.session.snapshot().isReady)
      #expect(scene.recorder.disconnections.map(\.reason) == (drops ? [.operationExpired] : []))
      #expect(peripheral.counters.links == (drops ? 2 : 1))
      #expect(peripheral.wr(0x0010) == (drops ? 0 : 1))
      let next = scene.spawn("next") { try await $0.write([2], to: Scene.first, idempotency: .idempotent) }
      scene.executor.advance(by: .seconds(1))
      #expect(next.hasEnded)
      #expect(next.error == nil)
    }
  }

  @Test("a deadline that passes before the offer drops no link")
  func aDeadlineBeforeTheOfferDropsNoLink() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.second), with: .answerLate(.seconds(10)), times: 1)
      _ = scene.spawn("slow") { try await $0.write([1], to: Scene.second, idempotency: .idempotent) }
      let caller = scene.spawn("write") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(within: .seconds(5), onExpiry: .dropLink))
      }
      scene.executor.advance(by: .seconds(20))
      #expect(caller.relinkError?.notSentReason == .deadline)
      #expect(scene.recorder.disconnections.isEmpty)
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("nothing is handed over on a link that is about to be dropped")
  func nothingIsHandedOverOnALinkThatIsDropped() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      _ = scene.spawn("dropping") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .nonIdempotent,
          options: WriteOptions(within: .seconds(5), onExpiry: .dropLink))
      }
      scene.executor.run()
      let command = scene.spawn("command") {
        try await $0.writeWithoutResponse([2], to: Scene.first, idempotency: .nonIdempotent)
      }
      scene.executor.advance(by: .seconds(20))
      #expect(command.error == nil)
      #expect(command.hasEnded)
      #expect(scene.recorder.disconnections.map(\.unconfirmed) == [0])
      #expect(peripheral.counters.writes(at: 0x0010).map(\.link) == [2])
    }
  }

  @Test("a write that came too late is not offered, whatever its deadline")
  func aStaleWriteIsNotOffered() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      scene.radio.setAdvertising(false, of: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      let options = WriteOptions(within: .seconds(60), offerBefore: .seconds(10))
      let caller = scene.spawn("unlock") {
        try await $0.write([1], to: Scene.first, idempotency: .idempotent, options: options)
      }
      scene.executor.advance(by: .milliseconds(9999))
      #expect(!caller.hasEnded)
      scene.executor.advance(by: .milliseconds(1))
      #expect(caller.relinkError?.notSentReason == .expired)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(10))
      #expect(scene.session.snapshot().isReady)
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  // MARK: Suspend

  @Test(
    "time that the system is suspended counts: what is stale by then is not offered",
    arguments: [true, false])
  func timeOfSuspendCounts(_ isLinkUp: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if isLinkUp {
        scene.radio.block(scene.device)
      } else {
        scene.radio.setAdvertising(false, of: scene.device)
        scene.radio.lose(scene.device, .connectionTimeout)
        scene.executor.run()
      }
      let stale = scene.spawn("stale") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(within: .seconds(3600), offerBefore: .seconds(60)))
      }
      let overdue = scene.spawn("overdue") {
        try await $0.write([2], to: Scene.second, idempotency: .idempotent)
      }
      let patient = scene.spawn("patient") {
        try await $0.write(
          [3], to: Scene.first, idempotency: .idempotent, options: WriteOptions(within: .seconds(3600)))
      }
      scene.executor.run()
      scene.executor.suspend(for: .seconds(600))
      scene.radio.unblock(scene.device)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(5))
      #expect(stale.relinkError?.notSentReason == .expired)
      #expect(overdue.relinkError?.notSentReason == .deadline)
      #expect(patient.hasEnded)
      #expect(patient.error == nil)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[3]])
  }

  @Test("a call made after a suspend has its whole time", arguments: [true, false])
  func aCallAfterASuspendHasItsWholeTime(_ isLinkUp: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if !isLinkUp {
        scene.radio.setAdvertising(false, of: scene.device)
        scene.radio.lose(scene.device, .connectionTimeout)
        scene.executor.run()
      }
      scene.executor.suspend(for: .seconds(600))
      let caller = scene.spawn("write") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(within: .seconds(30), offerBefore: .seconds(20)))
      }
      scene.executor.advance(by: .seconds(10))
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(5))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  // MARK: Adapters that are away

  @Test(
    "an operation that is not to wait for an adapter settles at once",
    arguments: [AdapterState.off, .blocked, .suspended, .missing, .notPermitted], [true, false])
  func whatIsNotToWaitForAnAdapterFailsAtOnce(_ state: AdapterState, _ isAwayAtTheCall: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      scene.radio.setAdvertising(false, of: scene.device)
      if isAwayAtTheCall {
        scene.radio.setAdapter(state)
      } else {
        scene.radio.lose(scene.device, .connectionTimeout)
      }
      scene.executor.run()
      let hasty = scene.spawn("hasty") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .idempotent, options: WriteOptions(ifUnavailable: .fail))
      }
      let patient = scene.spawn("patient") {
        try await $0.write([2], to: Scene.first, idempotency: .idempotent)
      }
      scene.executor.run()
      #expect(hasty.hasEnded == isAwayAtTheCall)
      if !isAwayAtTheCall {
        scene.radio.setAdapter(state)
        scene.executor.run()
      }
      #expect(hasty.relinkError?.notSentReason == .adapterUnavailable(state))
      #expect(!patient.hasEnded)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.radio.setAdapter(.on)
      scene.executor.advance(by: .seconds(5))
      #expect(patient.error == nil)
      #expect(patient.hasEnded)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[2]])
  }

  @Test("with the device having the request it is in doubt, and is not left waiting for the adapter")
  func whatWasOfferedIsInDoubtWhenTheAdapterGoes() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      let caller = scene.spawn("hasty") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .idempotent, options: WriteOptions(ifUnavailable: .fail))
      }
      scene.executor.advance(by: .seconds(1))
      scene.radio.setAdapter(.off)
      scene.executor.run()
      #expect(caller.relinkError?.doubt?.cause == .adapterUnavailable(.off))
      scene.radio.setAdapter(.on)
      scene.executor.advance(by: .seconds(10))
      #expect(scene.session.snapshot().isReady)
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("what is known under an ID needs no adapter")
  func aKnownOutcomeNeedsNoAdapter() throws {
    let id = try #require(OperationID("command 1"))
    try Scene.play(peripheral) { scene in
      try scene.connect()
      @Sendable func write(_ session: DeviceSession) async throws {
        try await session.write(
          [1], to: Scene.first, idempotency: .nonIdempotent, id: id,
          options: WriteOptions(ifUnavailable: .fail))
      }
      try scene.drive("first") { try await write($0) }
      scene.radio.setAdapter(.off)
      scene.executor.run()
      let again = scene.spawn("again") { try await write($0) }
      scene.executor.run()
      #expect(again.hasEnded)
      #expect(again.error == nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  // MARK: What the link must be like

  @Test("a write that needs a secure link is not sent on another one")
  func aWriteThatNeedsASecureLinkIsNotSentOnAnother() throws {
    try Scene.play(peripheral) { scene in
      scene.radio.setSecurity(of: scene.device, to: .encrypted)
      try scene.connect()
      @Sendable func write(_ session: DeviceSession, _ level: SecurityLevel) async throws {
        try await session.write(
          [UInt8(level.rawValue)], to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(security: level))
      }
      let tooMuch = scene.spawn("too much") { try await write($0, .authenticated) }
      let enough = scene.spawn("enough") { try await write($0, .encrypted) }
      scene.executor.run()
      #expect(tooMuch.relinkError?.notSentReason == .securityTooLow(.encrypted))
      #expect(enough.error == nil)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[SecurityLevel.encrypted.rawValue]])
  }

  @Test(
    "a write that needs the device's state is sent only while it is proven",
    arguments: [Continuity.resumed, .fresh, .unknown])
  func aWriteThatNeedsTheDevicesStateIsNotSentToAnother(_ continuity: Continuity) throws {
    let configuration = Configuration(setup: { _ in continuity }, seed: 1)
    try Scene.play(peripheral, configuration) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .drop(), times: 1)
      let caller = scene.spawn("write") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .idempotent, options: WriteOptions(continuity: .unbroken))
      }
      let queued = scene.spawn("queued") {
        try await $0.write(
          [2], to: Scene.second, idempotency: .nonIdempotent, options: WriteOptions(continuity: .unbroken))
      }
      scene.executor.advance(by: .seconds(10))
      #expect(caller.hasEnded && queued.hasEnded)
      #expect(caller.relinkError?.doubt?.cause == (continuity == .resumed ? nil : .continuityBroken))
      #expect(queued.relinkError?.notSentReason == (continuity == .resumed ? nil : .continuityBroken))
    }
    #expect(peripheral.counters.applied.count == (continuity == .resumed ? 2 : 0))
  }
}
