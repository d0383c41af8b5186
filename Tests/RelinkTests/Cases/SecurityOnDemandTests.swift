import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A device, or an operation, that asks for more security than the link has gets it, once and without anybody noticing;
/// what is kept meanwhile was not carried out.
@Suite struct SecurityOnDemandTests {
  // MARK: Raised without a word

  @Test("a protected value is read with the bond that there is", arguments: [true, false])
  func aProtectedReadRaisesSecurityOnce(_ isTogether: Bool) throws {
    let peripheral = VirtualPeripheral.halfProtected()
    try Scene.play(peripheral) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      #expect(scene.recorder.readiness.map(\.security) == [.none])
      let before = scene.recorder.events.count
      let reads = (0..<5).map { number in
        let read = scene.spawn("read \(number)") { try await $0.read(Scene.first) }
        if !isTogether { scene.executor.run() }
        return read
      }
      scene.executor.run()
      #expect(reads.map(\.value) == [[UInt8]?](repeating: [0x0A], count: 5))
      #expect(peripheral.encryptions == 1)
      #expect(peripheral.counters.securityRefusals == 1)
      #expect(peripheral.counters.reads[0x0010] == 5)
      #expect(peripheral.pairingRequests == 0)
      #expect(scene.recorder.events.count == before)
    }
  }

  @Test("each kind of request", arguments: Request.allCases)
  func whatIsRefusedIsAskedAgainAndAppliedOnce(_ request: Request) throws {
    let peripheral = VirtualPeripheral.halfProtected()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      let caller = request.start(scene, .nonIdempotent)
      scene.executor.advance(by: .seconds(1))
      request.nudge(peripheral)
      scene.executor.run()
      #expect(caller.hasEnded && caller.error == nil, "\(String(describing: caller.error))")
      #expect(peripheral.encryptions == 1)
      #expect(peripheral.counters.securityRefusals == 1)
      #expect(peripheral.wr(0x0010) == (request.isWrite ? 1 : 0))
    }
  }

  @Test("without a bond the device's answer is the outcome", arguments: Request.allCases)
  func withoutABondNothingPairsAndTheAnswerIsPassedOn(_ request: Request) throws {
    let peripheral = VirtualPeripheral.halfProtected()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral) { scene in
      try scene.connect()
      for count in 1...2 {
        let caller = request.start(scene, .nonIdempotent)
        scene.executor.run()
        #expect(caller.relinkError?.code == .rejected)
        guard case .rejected(let rejection) = caller.relinkError?.outcome else {
          Issue.record("there is no rejection")
          return
        }
        #expect(rejection == Rejection(code: .insufficientAuthentication, provesNotApplied: true))
        #expect(peripheral.counters.securityRefusals == count)
      }
      #expect(peripheral.pairingRequests == 0)
      #expect(scene.session.snapshot().isReady)
      #expect(scene.recorder.disconnections.isEmpty)
      #expect(try scene.drive("read") { try await $0.read(Scene.second) } == [0x0B])
    }
  }

  @Test("a policy that pairs does so when the device asks for it")
  func aProtectedReadPairsWhereThePolicySaysSo() throws {
    let peripheral = VirtualPeripheral.halfProtected()
    let user = AskedUser { _ in .accept }
    let policy = SecurityPolicy(level: .none, keys: .bondOrPairing(.none))
    try Scene.play(peripheral, Configuration(security: policy, pairing: user.closure, seed: 1)) { scene in
      try scene.connect()
      #expect(peripheral.pairingRequests == 0)
      #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
      #expect(peripheral.pairingRequests == 1)
      #expect(user.asked == [.consent])
    }
  }

  @Test("a device that wants more than the bond is worth has the last word", arguments: [true, false])
  func moreThanTheBondIsWorthIsNotAskedForForEver(_ mayPair: Bool) throws {
    let peripheral = VirtualPeripheral.halfProtected(.authenticated)
    let user = AskedUser { _ in .accept }
    let policy = SecurityPolicy(level: .none, keys: mayPair ? .bondOrPairing(.displayYesNo) : .bond)
    try Scene.play(peripheral, Configuration(security: policy, pairing: user.closure, seed: 1)) { scene in
      scene.radio.bond(scene.device, level: .encrypted)
      scene.radio.setPairing(.comparison(7), of: scene.device)
      try scene.connect()
      let read = scene.spawn("read") { try await $0.read(Scene.first) }
      #expect(scene.run(until: { read.hasEnded }, within: .seconds(5)))
      #expect(read.value == (mayPair ? [0x0A] : nil))
      if !mayPair { #expect(read.relinkError?.code == .rejected) }
      #expect(peripheral.pairingRequests == (mayPair ? 1 : 0))
      #expect(peripheral.counters.securityRefusals <= 2)
    }
  }

  @Test("a link that could not be secured can be once the user has paired")
  func aBondThatIsMadeMeanwhileCountsOnTheLinkThatIsUp() throws {
    let peripheral = VirtualPeripheral.halfProtected()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let first = scene.spawn("first") { try await $0.read(Scene.first) }
      scene.executor.run()
      #expect(first.relinkError?.code == .rejected)
      scene.radio.bond(scene.device)
      try scene.drive("paired") { await $0.pairingWasRemoved() }
      #expect(try scene.drive("second") { try await $0.read(Scene.first) } == [0x0A])
      #expect(scene.recorder.readiness.count == 1)
      #expect(peripheral.encryptions == 1)
    }
  }

  // MARK: Asked for by an operation

  @Test(
    "an operation that asks for a secured link", arguments: [SecurityLevel.encrypted, .authenticated],
    [SecurityLevel.none, .encrypted, .secureConnections])
  func anOperationGetsTheSecurityThatItAsksFor(_ level: SecurityLevel, _ bond: SecurityLevel) throws {
    let peripheral = VirtualPeripheral.twoValues()
    try Scene.play(peripheral) { scene in
      if bond > .none { scene.radio.bond(scene.device, level: bond) }
      try scene.connect()
      let write = scene.spawn("write") { session in
        try await session.write(
          [1], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(security: level))
      }
      let plain = scene.spawn("plain") { try await $0.read(Scene.second) }
      #expect(scene.run(until: { write.hasEnded && plain.hasEnded }, within: .seconds(5)))
      #expect(plain.value == [0x0B])
      if bond >= level {
        #expect(write.error == nil)
        #expect(peripheral.encryptions == 1)
        #expect(peripheral.wr(0x0010) == 1)
      } else {
        #expect(write.relinkError?.notSentReason == .securityTooLow(bond))
        #expect(peripheral.wr(0x0010) == 0)
      }
      #expect(peripheral.pairingRequests == 0)
      #expect(scene.recorder.disconnections.isEmpty)
    }
  }

  // MARK: What is kept meanwhile

  /// A request of a protected value.
  enum Request: CaseIterable {
    case read, write, longWrite, reliableWrite, subscription

    var isWrite: Bool { self == .write || self == .longWrite || self == .reliableWrite }

    func start(_ scene: Scene, _ tag: Idempotency, within limit: Deadline = .never) -> SpawnedTask<[UInt8]> {
      let long = [UInt8](repeating: 7, count: 100)
      return scene.spawn("\(self)") { session in
        switch self {
        case .read: return try await session.read(Scene.first, within: limit, idempotency: tag)
        case .write:
          try await session.write(
            [1], to: Scene.first, idempotency: tag, options: WriteOptions(within: limit))
        case .longWrite:
          try await session.write(
            long, to: Scene.first, idempotency: tag,
            options: WriteOptions(within: limit, allowsLong: true))
        case .reliableWrite:
          try await session.writeReliably(
            [ReliableWrite(Scene.first, [1]), ReliableWrite(Scene.second, [2])], idempotency: tag,
            options: WriteOptions(within: limit))
        case .subscription:
          for try await update in session.notifications(from: Scene.first) { return update.value }
        }
        return []
      }
    }

    /// Lets a subscription have its value.
    func nudge(_ peripheral: VirtualPeripheral) {
      if self == .subscription { peripheral.update([5], of: Scene.first) }
    }
  }

  static let tags: [(name: String, tag: Idempotency)] = [
    ("idempotent", .idempotent), ("non-idempotent", .nonIdempotent), ("for the app", .verified(by: .app)),
    ("by its value", .verified(by: .value(of: Scene.first, is: [9]))),
  ]

  static let kept: [(Request, Int)] = [Request.read, .write, .longWrite, .reliableWrite].flatMap { one in
    (one == .read ? 0..<2 : 0..<tags.count).map { (one, $0) }
  }

  /// Brings the scene to the moment at which a request is kept while the link is being encrypted.
  private func begin(
    _ scene: Scene, _ peripheral: VirtualPeripheral, _ request: Request, _ tag: Idempotency,
    within limit: Deadline = .never
  ) throws -> SpawnedTask<[UInt8]> {
    scene.radio.bond(scene.device)
    scene.radio.setEncryptionTime(.seconds(2), of: scene.device)
    try scene.connect()
    let caller = request.start(scene, tag, within: limit)
    scene.executor.advance(by: .seconds(1))
    #expect(!caller.hasEnded)
    #expect(peripheral.counters.securityRefusals == 1)
    return caller
  }

  @Test("the link is lost while a request is kept: it was not carried out", arguments: kept)
  func whatIsKeptIsNeverInDoubt(_ request: Request, _ tag: Int) throws {
    let peripheral = VirtualPeripheral.halfProtected()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral) { scene in
      let caller = try begin(scene, peripheral, request, Self.tags[tag].tag)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(scene.recorder.disconnections.map(\.inDoubt) == [0])
      scene.executor.advance(by: .seconds(10))
      #expect(caller.hasEnded && caller.error == nil, "\(String(describing: caller.error))")
      #expect(peripheral.wr(0x0010) == (request.isWrite ? 1 : 0))
      #expect(peripheral.encryptions == 1)
    }
  }

  @Test("and where nobody reconnects it is proven not sent", arguments: kept)
  func whatIsKeptIsNotSentWhereNobodyReconnects(_ request: Request, _ tag: Int) throws {
    let peripheral = VirtualPeripheral.halfProtected()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral, Configuration(reconnection: .off, seed: 1)) { scene in
      let caller = try begin(scene, peripheral, request, Self.tags[tag].tag)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(caller.relinkError?.notSentReason == .notReconnecting)
      #expect(peripheral.wr(0x0010) == 0)
    }
  }

  /// What ends the wait for a request that is kept.
  enum GivingUp: CaseIterable { case cancelled, deadline, disconnect, close }

  @Test("nobody waits any more for what is kept: it is not asked again", arguments: kept, GivingUp.allCases)
  func whatIsGivenUpWhileItIsKeptIsNotSent(_ kept: (Request, Int), _ way: GivingUp) throws {
    let (request, tag) = kept
    let peripheral = VirtualPeripheral.halfProtected()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral) { scene in
      let caller = try begin(
        scene, peripheral, request, Self.tags[tag].tag, within: .after(.milliseconds(1_500)))
      switch way {
      case .cancelled: caller.cancel()
      case .deadline: break
      case .disconnect: try scene.drive("disconnect") { await $0.disconnect() }
      case .close: try scene.drive("close") { await $0.close() }
      }
      scene.executor.advance(by: .milliseconds(600))
      let reason: NotSentReason =
        switch way {
        case .cancelled: .cancelled
        case .deadline: .deadline
        case .disconnect: .disconnected
        case .close: .ended
        }
      #expect(caller.relinkError?.notSentReason == reason, "\(String(describing: caller.error))")
      scene.executor.advance(by: .seconds(10))
      #expect(peripheral.wr(0x0010) == 0)
      #expect(peripheral.counters.reads[0x0010] == nil)
      guard way == .cancelled || way == .deadline else { return }
      // The bearer is free for the next one.
      #expect(try scene.drive("read") { try await $0.read(Scene.second) } == [0x0B])
      #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
      #expect(scene.recorder.disconnections.isEmpty)
    }
  }

  @Test("a link that is never secured gives back what it keeps at the limit")
  func aKeptRequestHasItsAnswerWhenTheTimeIsOver() throws {
    let peripheral = VirtualPeripheral.halfProtected()
    let policy = SecurityPolicy(limit: .seconds(5))
    try Scene.play(peripheral, Configuration(security: policy, seed: 1)) { scene in
      scene.radio.bond(scene.device)
      scene.radio.setEncryptionTime(.seconds(3600), of: scene.device)
      try scene.connect()
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      let other = scene.spawn("other") { try await $0.read(Scene.second, within: .never) }
      scene.executor.advance(by: .milliseconds(4_999))
      #expect(!read.hasEnded)
      scene.executor.advance(by: .milliseconds(2))
      #expect(read.relinkError?.code == .rejected)
      #expect(other.value == [0x0B])
      #expect(scene.session.snapshot().isReady)
    }
  }
}
