import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B10: the peripheral has lost its bond. The session tries once more, says what to do, and waits for the user.
@Suite struct LostBondTests {
  /// How the session secures its links.
  enum Policy: CaseIterable {
    case requireExistingBond, asRequired, pairing

    var policy: SecurityPolicy {
      switch self {
      case .requireExistingBond: .requireExistingBond
      case .asRequired: .asRequired
      case .pairing: .pairing()
      }
    }
  }

  struct Run: CustomTestStringConvertible {
    var policy: Policy
    var isExact: Bool
    var testDescription: String { "\(policy), \(isExact ? "exact" : "inexact") reasons" }
    static let all = Policy.allCases.flatMap { one in
      [Run(policy: one, isExact: true), Run(policy: one, isExact: false)]
    }
  }

  let peripheral = VirtualPeripheral.halfProtected()

  private func play(_ run: Run, _ script: (Scene) throws -> Void) throws {
    var air = VirtualRadio.Configuration()
    air.knowsExactReason = run.isExact
    air.latency = .milliseconds(5)
    try Scene.play(peripheral, Configuration(security: run.policy.policy, seed: 1), air: air) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
      #expect(peripheral.encryptions == 1)
      try script(scene)
    }
  }

  /// Lets the peripheral forget, and the session find out.
  private func forget(_ scene: Scene) {
    scene.radio.forgetBond(atPeripheral: scene.device)
    scene.radio.lose(scene.device, .connectionTimeout)
    scene.executor.run()
  }

  private func write(
    _ scene: Scene, _ tag: Idempotency, within limit: Deadline = .never,
    ifUnavailable: UnavailabilityAction = .wait
  ) -> SpawnedTask<Void> {
    scene.spawn("write") { session in
      try await session.write(
        [1], to: Scene.first, idempotency: tag,
        options: WriteOptions(within: limit, ifUnavailable: ifUnavailable))
    }
  }

  @Test("B10: the bond is lost, and made anew", arguments: Run.all)
  func theSessionTriesOnceMoreAndWaitsForTheUser(_ run: Run) throws {
    try play(run) { scene in
      let before = scene.statistics
      forget(scene)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      let once = write(scene, .nonIdempotent)
      let often = write(scene, .idempotent)
      let bounded = write(scene, .nonIdempotent, within: .after(.seconds(20)))
      let hasty = write(scene, .nonIdempotent, ifUnavailable: .fail)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(15))
      #expect(scene.statistics.links - before.links == 2)
      let told = scene.recorder.failures + scene.recorder.disconnections.dropFirst()
      #expect(told.map(\.recovery) == [.retryConnection, .removePairingAndPairAgain])
      #expect(told.map(\.willReconnect) == [true, false])
      let reason: DisconnectReason = run.isExact ? .keyMissing : .authenticationFailure
      #expect(told.map(\.reason) == [reason, reason])
      let source: [Evidence] =
        run.isExact
        ? [.hci(.authenticationFailure), .encryption(.pinOrKeyMissing)]
        : [.management(4), .system(13, call: .receive)]
      #expect(told.map(\.evidence) == [source, source])
      #expect(told.last?.confidence ?? .low > .low)
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
      // It stays like that, whatever else happens.
      scene.radio.setAdapter(.off)
      scene.executor.advance(by: .seconds(3600))
      scene.radio.setAdapter(.on)
      scene.executor.advance(by: .seconds(3600))
      #expect(scene.statistics.links - before.links == 2)
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
      #expect(peripheral.pairingRequests == 0)
      if run.policy != .asRequired { #expect(connect.relinkError?.code == .userActionNeeded) }
      #expect(hasty.relinkError?.notSentReason == .userActionNeeded)
      #expect(bounded.relinkError?.notSentReason == .deadline)
      #expect(!read.hasEnded && !once.hasEnded && !often.hasEnded)
      let again = scene.spawn("again") { try await $0.connect() }
      scene.executor.run()
      #expect(again.relinkError?.code == .userActionNeeded)
      // The user removes the pairing here, and pairs again: in the settings, or by the session.
      try scene.drive("remove") { try await $0.removeBond() }
      if run.policy != .pairing { scene.radio.bond(scene.device) }
      try scene.drive("removed") { await $0.pairingWasRemoved() }
      scene.executor.advance(by: .seconds(5))
      #expect(read.value == [0x0A] || read.value == [1])
      #expect(once.error == nil && once.hasEnded)
      #expect(often.error == nil && often.hasEnded)
      #expect(peripheral.wr(0x0010) == 2)
      #expect(peripheral.pairingRequests == (run.policy == .pairing ? 1 : 0))
      #expect(scene.session.snapshot().isReady)
    }
  }

  @Test("B10: nothing was done, and the app says that it was", arguments: Run.all)
  func theSameMistakeCostsTheSameTwoAttempts(_ run: Run) throws {
    try play(run) { scene in
      forget(scene)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      for count in 1...3 {
        scene.executor.advance(by: .seconds(60))
        #expect(scene.statistics.links == 1 + 2 * count)
        #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
        try scene.drive("removed") { await $0.pairingWasRemoved() }
      }
      scene.executor.advance(by: .seconds(60))
      #expect(!read.hasEnded)
      #expect(peripheral.pairingRequests == 0)
      try scene.drive("disconnect") { await $0.disconnect() }
      scene.executor.run()
      #expect(read.relinkError?.notSentReason == .disconnected)
    }
  }

  @Test("B10: the first bond in vain is no proof", arguments: Run.all)
  func aDeviceThatFindsItsKeyAgainIsNotGivenUp(_ run: Run) throws {
    try play(run) { scene in
      for _ in 1...5 {
        forget(scene)
        let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
        let told = scene.recorder.failures.count + scene.recorder.disconnections.count
        #expect(scene.run { scene.recorder.failures.count + scene.recorder.disconnections.count > told })
        scene.radio.bond(scene.device)
        scene.executor.advance(by: .seconds(5))
        #expect(read.value == [0x0A])
        #expect(scene.session.snapshot().userAction == nil)
        // A link that lasted shows that the keys are good.
        scene.executor.advance(by: .seconds(30))
      }
    }
  }

  @Test("B10: the bond is gone here", arguments: [true, false])
  func aSessionThatDoesNotPairSaysThatThereIsNoBondHere(_ wasThereOne: Bool) throws {
    try Scene.play(peripheral, Configuration(security: .requireExistingBond, seed: 1)) { scene in
      if wasThereOne {
        scene.radio.bond(scene.device)
        try scene.connect()
        scene.radio.forgetBond(atHost: scene.device)
        scene.radio.lose(scene.device, .connectionTimeout)
      }
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(600))
      #expect(scene.recorder.failures.map(\.reason) == [.bondMissing])
      #expect(scene.recorder.failures.first?.recovery == .removePairingAndPairAgain)
      #expect(scene.recorder.failures.first?.confidence == .high)
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
      #expect(scene.statistics.links == (wasThereOne ? 2 : 1))
      #expect(peripheral.pairingRequests == 0)
      #expect(peripheral.encryptions == (wasThereOne ? 1 : 0))
      scene.radio.bond(scene.device)
      try scene.drive("removed") { await $0.pairingWasRemoved() }
      scene.executor.advance(by: .seconds(5))
      #expect(read.value == [0x0A])
    }
  }
}
