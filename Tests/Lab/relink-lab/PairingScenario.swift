internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkSQLite

/// Pairing, bonds and their loss, against the kernel and a peripheral that counts what it is asked.
struct PairingScenario: Sendable {
  /// What is tried; the others need another state of the host.
  enum Part: Sendable {
    case alone
    case besideDaemon
    case unprivileged
  }

  private struct Number: Decodable, Sendable { var number: UInt32? }

  let lab: Lab

  init(_ lab: Lab) { self.lab = lab }

  /// Runs it; how many checks failed.
  func run(_ part: Part) async throws -> Int {
    var verdicts = Verdicts()
    try await lab.begin()
    switch part {
    case .alone: try await alone(&verdicts)
    case .besideDaemon: try await besideDaemon(&verdicts)
    case .unprivileged: try await unprivileged(&verdicts)
    }
    return verdicts.failed
  }

  private func alone(_ verdicts: inout Verdicts) async throws {
    let path = "/tmp/relink-bonds-\(getpid()).sqlite"
    let store = try SQLiteBondStore(at: path)
    let transport = try BlueZTransport(adapter: .index(0), bonds: store, on: lab.loop)
    try await pairs(over: transport, &verdicts)
    try await forgets(over: transport, "forget", "the device forgot its keys", &verdicts)
    try await forgets(over: transport, "corrupt", "the device has another key", &verdicts)
    try await wiped(over: transport, &verdicts)
    try await protected(over: transport, "0f", &verdicts)
    try await protected(over: transport, "05", &verdicts)
    try await methods(over: transport, &verdicts)
    try await refused(over: transport, &verdicts)
    store.close()
    let again = try SQLiteBondStore(at: path)
    try await restarted(with: again, before: transport.bonds(), &verdicts)
    again.close()
  }

  // MARK: Pieces

  func session(
    over transport: BlueZTransport, _ security: SecurityPolicy,
    answers: (@Sendable (PairingQuestion) async -> PairingAnswer)? = nil
  ) throws -> DeviceSession {
    var configuration = Lab.configuration
    configuration.security = security
    configuration.pairing = answers
    return try DeviceSession(with: lab.device, over: transport, configuration: configuration)
  }

  func counts() async throws -> RadioStats.Pairing { try await lab.stats { _ in true }.pairing }

  func describe(_ info: DisconnectInfo?) -> String {
    guard let info else { return "nothing" }
    let evidence = info.evidence.map(\.description).joined(separator: "; ")
    return "\(info.reason), \(info.recovery), confidence \(info.confidence): \(evidence)"
  }

  /// Waits until the user has to act; what the session says then.
  func waitsForUser(_ session: DeviceSession) async -> RecoveryAction? {
    _ = await lab.wait(within: .seconds(60)) {
      if case .waiting(.userAction, _) = session.snapshot().state { true } else { false }
    }
    if case .waiting(.userAction(let action), _) = session.snapshot().state { return action }
    return nil
  }

  func start(from session: DeviceSession, _ transport: BlueZTransport) async throws {
    try await session.removeBond()
    try await lab.radio.tell("forget")
  }

  // MARK: Alone

  /// Pairs without a word, comes back with the bond.
  private func pairs(over transport: BlueZTransport, _ verdicts: inout Verdicts) async throws {
    let session = try session(over: transport, .pairing())
    verdicts.equal("before: bonds", transport.bonds().count, 0)
    // A kernel that may not bond makes keys that nobody keeps.
    let began = lab.loop.now
    let first = try await session.connect()
    say("paired in \(began.duration(to: lab.loop.now).milliseconds) ms, link included")
    verdicts.equal("just works: the level of the link", first.security, .encrypted)
    verdicts.equal("just works: pairing requests", try await counts().requests, 1)
    verdicts.equal("just works: bonds", transport.bonds().map(\.device), [lab.device])
    verdicts.equal("just works: the size of the key", transport.bonds().first?.keySize, 16)
    verdicts.equal(
      "just works: a protected read", try await session.read(.protected), Array("secret".utf8))
    var times: [Double] = []
    for _ in 0..<5 {
      try await lab.radio.tell("terminate 13")
      let lost = lab.loop.now
      _ = try await session.read(.protected)
      times.append(lost.duration(to: lab.loop.now).milliseconds)
    }
    let (requests, link) = (try await counts().requests, session.snapshot())
    verdicts.equal("bonded: pairing requests after five reconnections", requests, 1)
    verdicts.check("bonded: each link was secured", link.isSecured, "\(link.state)")
    say("bonded reconnection to a protected answer: \(Distribution(times).summary)")
    await session.close()
  }

  /// The device has lost its half of the bond, or has another one.
  private func forgets(
    over transport: BlueZTransport, _ command: String, _ what: String, _ verdicts: inout Verdicts
  ) async throws {
    let session = try session(over: transport, .pairing())
    try await session.connect()
    let before = try await lab.stats { _ in true }
    let old = transport.bonds().map(\.id)
    try await lab.radio.tell(command)
    try await lab.radio.tell("terminate 13")
    async let waiting = session.read(.protected)
    let action = await waitsForUser(session)
    verdicts.equal("\(what): the advice", action, .removePairingAndPairAgain)
    let info = session.snapshot().lastDisconnect
    say("\(what): \(describe(info))")
    verdicts.check("\(what): the evidence names a source", info?.evidence.isEmpty == false)
    let after = try await lab.stats { $0.live.isEmpty }
    verdicts.check(
      "\(what): \(after.links - before.links) links were tried, one further at most",
      (1...2).contains(after.links - before.links))
    await lab.pause(.seconds(3))
    let later = try await lab.stats { _ in true }
    verdicts.equal("\(what): links in the next 3 s", later.links - after.links, 0)
    verdicts.equal("\(what): pairing requests", later.pairing.requests - before.pairing.requests, 0)
    try await session.removeBond()
    verdicts.equal("\(what): bonds once removed here", transport.bonds().count, 0)
    try await lab.radio.tell("forget")
    await session.pairingWasRemoved()
    verdicts.equal("\(what): what waited is answered", try await waiting, Array("secret".utf8))
    verdicts.equal("\(what): pairing requests then", try await counts().requests - before.pairing.requests, 1)
    verdicts.check("\(what): the bond is a new one", transport.bonds().map(\.id) != old)
    await session.close()
  }

  /// Somebody takes the kernel's keys away.
  private func wiped(over transport: BlueZTransport, _ verdicts: inout Verdicts) async throws {
    let before = try await counts().requests
    try await adapter("wipe")
    let kept = try session(over: transport, .requireExistingBond)
    let ready = try await kept.connect()
    verdicts.equal("keys wiped, bond kept here: the level of the link", ready.security, .encrypted)
    verdicts.equal("keys wiped, bond kept here: pairing requests", try await counts().requests - before, 0)
    await kept.close()
    try await adapter("wipe")
    // A transport whose own store is empty as well.
    let poor = try BlueZTransport(
      adapter: .index(0), bonds: try SQLiteBondStore(at: "/tmp/relink-none-\(getpid()).sqlite"), on: lab.loop)
    let session = try session(over: poor, .requireExistingBond)
    let error = await error { try await session.connect() }
    verdicts.equal("keys wiped, no bond here: the reason", error?.disconnect?.reason, .bondMissing)
    say("keys wiped, no bond here: \(describe(error?.disconnect))")
    verdicts.equal("keys wiped, no bond here: pairing requests", try await counts().requests - before, 0)
    await session.close()
  }

  func error(_ body: () async throws -> Void) async -> RelinkError? {
    do {
      try await body()
      return nil
    } catch { return error as? RelinkError }
  }

  private func adapter(_ words: String) async throws {
    guard let command = Lab.environment("RELINK_LAB_ADAPTER") else {
      throw LabFailure("RELINK_LAB_ADAPTER is not set")
    }
    guard try Child("/bin/sh", ["-c", "\(command) \(words)"]).wait() == 0 else {
      throw LabFailure("adapter.py \(words) failed")
    }
  }

  /// The device asks for security in an answer.
  private func protected(
    over transport: BlueZTransport, _ code: String, _ verdicts: inout Verdicts
  ) async throws {
    let what = "ATT error 0x\(code)"
    let session = try session(
      over: transport, SecurityPolicy(level: .none, keys: .bondOrPairing(.none)))
    try await start(from: session, transport)
    try await lab.radio.tell("protect \(code)")
    _ = try await session.read(.counter)
    let before = try await lab.stats { _ in true }
    let value = try await session.read(.protected)
    verdicts.equal("\(what): the answer", value, Array("secret".utf8))
    let after = try await lab.stats { _ in true }
    verdicts.equal("\(what): refused", after.protected.refused - before.protected.refused, 1)
    verdicts.equal("\(what): asked", after.protected.asked - before.protected.asked, 2)
    verdicts.equal("\(what): pairing requests", after.pairing.requests - before.pairing.requests, 1)
    _ = try await session.read(.protected)
    let last = try await lab.stats { _ in true }
    verdicts.equal("\(what): refused from then on", last.protected.refused - after.protected.refused, 0)
    verdicts.equal("\(what): the same link", last.links, before.links)
    try await lab.radio.tell("protect 0f")
    await session.close()
  }

  /// The ways of pairing that have somebody compare, read or type digits.
  private func methods(over transport: BlueZTransport, _ verdicts: inout Verdicts) async throws {
    let cases: [(method: String, abilities: PairingAbilities, kind: String)] = [
      ("comparison", .displayYesNo, "comparison"), ("shows", .keyboard, "passkeyEntry"),
      ("types", .displayYesNo, "passkeyDisplay"),
    ]
    for (method, abilities, kind) in cases {
      let asked = Locked<[PairingQuestion]>([])
      let radio = lab.radio
      let session = try session(over: transport, .pairing(to: .authenticated, with: abilities)) { question in
        asked.withLock { $0.append(question) }
        return await Self.answer(question, radio)
      }
      try await start(from: session, transport)
      try await lab.radio.tell("pairing \(method)")
      let ready = try await session.connect()
      verdicts.check(
        "\(kind): the level of the link is \(ready.security)", ready.security >= .authenticated)
      verdicts.equal("\(kind): the questions", asked.withLock { $0.map(\.kind) }, [kind])
      verdicts.equal("\(kind): the level of the bond", transport.bonds().first?.level, .secureConnections)
      try await lab.radio.tell("terminate 13")
      let before = try await counts().requests
      _ = try await session.read(.protected)
      verdicts.check("\(kind): the next link is secured as well", session.snapshot().isAuthenticated)
      verdicts.equal("\(kind): and nothing was asked again", try await counts().requests - before, 0)
      await session.close()
    }
    try await lab.radio.tell("pairing just-works")
  }

  private static func answer(_ question: PairingQuestion, _ radio: RadioControl) async -> PairingAnswer {
    do {
      switch question {
      case .consent: return .accept
      case .comparison(let digits):
        return try await radio.ask("shown", for: Number.self).number == digits ? .accept : .refuse
      case .passkeyEntry:
        return try await radio.ask("shown", for: Number.self).number.map { .passkey($0) } ?? .refuse
      case .passkeyDisplay(let digits):
        try await radio.tell("type \(digits)")
        return .accept
      @unknown default: return .refuse
      }
    } catch {
      say("the radio: \(error)")
      return .refuse
    }
  }

  /// Pairing that one side refuses, and one that is tried again.
  private func refused(over transport: BlueZTransport, _ verdicts: inout Verdicts) async throws {
    let refuses = Locked(true)
    let session = try session(over: transport, .pairing(to: .authenticated, with: .displayYesNo)) {
      question in
      refuses.withLock { $0 } ? .refuse : .accept
    }
    try await start(from: session, transport)
    try await lab.radio.tell("pairing comparison")
    let error = await error { try await session.connect() }
    verdicts.equal("the user refused: the advice", error?.disconnect?.recovery, .retryPairing)
    say("the user refused: \(describe(error?.disconnect))")
    verdicts.equal("the user refused: bonds", transport.bonds().count, 0)
    try await lab.radio.tell("pairing refuses")
    refuses.withLock { $0 = false }
    await session.pairingWasRemoved()
    let second = await self.error { try await session.connect() }
    verdicts.equal("the device refused: the advice", second?.disconnect?.recovery, .retryPairing)
    say("the device refused: \(describe(second?.disconnect))")
    try await lab.radio.tell("pairing comparison")
    await session.pairingWasRemoved()
    let ready = try await session.connect()
    verdicts.check("then it pairs: \(ready.security)", ready.security >= .authenticated)
    await session.close()
    try await lab.radio.tell("pairing just-works")
  }

  /// The bonds outlive the transport that made them.
  private func restarted(
    with store: SQLiteBondStore, before: [BondRecord], _ verdicts: inout Verdicts
  ) async throws {
    try await adapter("wipe")
    let transport = try BlueZTransport(adapter: .index(0), bonds: store, on: lab.loop)
    let requests = try await counts().requests
    let session = try session(over: transport, .requireExistingBond)
    let ready = try await session.connect()
    verdicts.equal("restarted: the bonds", transport.bonds(), before)
    verdicts.check("restarted: the level is \(ready.security)", ready.security >= .encrypted)
    verdicts.equal("restarted: pairing requests", try await counts().requests - requests, 0)
    await session.close()
  }

  // MARK: Elsewhere

  private func besideDaemon(_ verdicts: inout Verdicts) async throws {
    let transport = try BlueZTransport(
      adapter: .index(0), bonds: try SQLiteBondStore(at: "/tmp/relink-daemon-\(getpid()).sqlite"),
      on: lab.loop)
    let pairing = try session(over: transport, .pairing())
    let error = await error { try await pairing.connect() }
    verdicts.equal("beside bluetoothd: the reason", error?.disconnect?.reason, .pairingFailed)
    say("beside bluetoothd: \(describe(error?.disconnect))")
    await pairing.close()
    let bonded = try session(over: transport, .requireExistingBond)
    let second = await self.error { try await bonded.connect() }
    verdicts.equal(
      "beside bluetoothd, with a bond only: the reason", second?.disconnect?.reason, .bondMissing)
    say("beside bluetoothd, with a bond only: \(describe(second?.disconnect))")
    verdicts.equal("beside bluetoothd: pairing requests", try await counts().requests, 0)
    await bonded.close()
  }

  private func unprivileged(_ verdicts: inout Verdicts) async throws {
    let transport = lab.transport
    let pairing = try session(over: transport, .pairing(to: .encrypted, with: .displayYesNo))
    let error = await error { try await pairing.connect() }
    verdicts.equal("without privileges: the reason", error?.disconnect?.reason, .pairingFailed)
    say("without privileges: \(describe(error?.disconnect))")
    await pairing.close()
    let bonded = try session(over: transport, .requireExistingBond)
    let second = await self.error { try await bonded.connect() }
    verdicts.equal(
      "without privileges, with a bond only: the reason", second?.disconnect?.reason, .bondMissing)
    say("without privileges, with a bond only: \(describe(second?.disconnect))")
    verdicts.equal("without privileges: pairing requests", try await counts().requests, 0)
    await bonded.close()
  }
}

extension Snapshot {
  fileprivate var isSecured: Bool {
    if case .ready(let readiness) = state { readiness.security >= .encrypted } else { false }
  }

  fileprivate var isAuthenticated: Bool {
    if case .ready(let readiness) = state { readiness.security >= .authenticated } else { false }
  }
}

extension PairingQuestion {
  fileprivate var kind: String {
    switch self {
    case .consent: "consent"
    case .comparison: "comparison"
    case .passkeyEntry: "passkeyEntry"
    case .passkeyDisplay: "passkeyDisplay"
    @unknown default: "another"
    }
  }
}
