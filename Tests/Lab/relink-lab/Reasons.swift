internal import BluetoothWire
internal import Relink
internal import RelinkBlueZ

/// A link lost for each HCI reason: the finest reason that the sources can tell is what the session says, with every
/// code that they gave.
struct Reasons: Sendable {
  /// One line of the table in README.md.
  private struct Row: Sendable {
    var hci: UInt8
    /// The kernel's reason in Device Disconnected.
    var management: UInt8
    /// The error number of the socket.
    var number: Int32
    /// What the controller's reason means.
    var exact: DisconnectReason
    /// What the rest means.
    var folded: DisconnectReason

    init(
      _ hci: UInt8, _ management: UInt8, _ number: Int32, _ exact: DisconnectReason,
      or folded: DisconnectReason? = nil
    ) {
      self.hci = hci
      self.management = management
      self.number = number
      self.exact = exact
      self.folded = folded ?? exact
    }

    var digits: String { (hci < 16 ? "0" : "") + String(hci, radix: 16) }
  }

  private static let rows = [
    Row(0x08, 1, 110, .supervisionTimeout),
    Row(0x13, 3, 104, .remoteUserTerminated),
    Row(0x14, 3, 104, .remoteLowResources, or: .remoteUserTerminated),
    Row(0x15, 3, 104, .remotePowerOff, or: .remoteUserTerminated),
    Row(0x16, 2, 103, .localHostTerminated),
    Row(0x05, 0, 13, .authenticationFailure),
    Row(0x06, 0, 52, .keyMissing),
    Row(0x1A, 0, 93, .linkLayerFault),
    Row(0x29, 0, 95, .pairingFailed, or: .linkLayerFault),
    Row(0x1F, 0, 38, .linkLayerFault),
    Row(0x22, 0, 38, .linkLayerFault),
    Row(0x28, 0, 38, .linkLayerFault),
    Row(0x2F, 0, 38, .authenticationFailure, or: .linkLayerFault),
    Row(0x3B, 0, 38, .connectionParameters, or: .linkLayerFault),
    Row(0x3D, 0, 38, .micFailure, or: .linkLayerFault),
    Row(0x3E, 0, 38, .failedToEstablish, or: .linkLayerFault),
    Row(0x3F, 0, 38, .linkLayerFault),
    Row(0x44, 0, 38, .failedToEstablish, or: .linkLayerFault),
  ]

  private let lab: Lab

  init(_ lab: Lab) { self.lab = lab }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    try await lab.begin()
    let session = try lab.session()
    try await connect(session)
    let capabilities = lab.transport.capabilities
    say("knows the exact reason: \(capabilities.knowsExactReason), ends links: \(capabilities.endsLinks)")
    verdicts.equal(
      "the controller is seen", capabilities.knowsExactReason, !Lab.options.contains("--without-controller"))
    var delays: [Double] = []
    for row in Reasons.rows { delays.append(try await lose(row, session, capabilities, &verdicts)) }
    await session.close()
    say("the radio's word to the session's: \(Distribution(delays).summary)")
    try await unanswered(&verdicts)
    return verdicts.failed
  }

  private func connect(_ session: DeviceSession) async throws {
    try await session.connect(within: .after(.seconds(60)))
    _ = try await session.read(.counter)
  }

  /// Loses the link of a ready session; how long it took the session to say so, in milliseconds.
  private func lose(
    _ row: Row, _ session: DeviceSession, _ capabilities: TransportCapabilities, _ verdicts: inout Verdicts
  ) async throws -> Double {
    try await connect(session)
    guard case .ready(let readiness) = session.snapshot().state else {
      throw LabFailure("the session is not ready")
    }
    try await lab.radio.tell("lose \(row.digits)")
    let began = lab.loop.now
    let isSeen = await lab.wait(within: .seconds(30)) {
      session.snapshot().lastDisconnect?.generation == readiness.generation
    }
    let took = began.duration(to: lab.loop.now).milliseconds
    guard isSeen, let info = session.snapshot().lastDisconnect else {
      throw LabFailure("the loss for 0x\(row.digits) was not seen within 30 s")
    }
    var evidence: [Evidence] = []
    if capabilities.knowsExactReason { evidence.append(.hci(HCIErrorCode(rawValue: row.hci))) }
    let number = Evidence.system(row.number, call: .receive)
    let management = capabilities.endsLinks ? [Evidence.management(row.management)] : []
    // ENOSYS folds more than the kernel's own few numbers do.
    evidence += row.number == 38 ? management + [number] : [number] + management
    let wanted = capabilities.knowsExactReason ? row.exact : row.folded
    verdicts.check(
      "0x\(row.digits): \(info.reason), \(info.confidence), \(info.evidence)",
      info.reason == wanted && info.evidence == evidence, "wanted \(wanted), \(evidence)")
    return took
  }

  /// Links that come up and die before anything was answered on them are attempts that failed.
  private func unanswered(_ verdicts: inout Verdicts) async throws {
    let before = try await lab.stats { $0.live.isEmpty }.links
    try await lab.radio.tell("hold-answers discarded")
    let session = try lab.session()
    let events = Locked<[ConnectionEvent]>([])
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { for await event in session.events() { events.withLock { $0.append(event) } } }
      group.addTask { try await session.connect(within: .after(.seconds(120))) }
      for number in 1...5 {
        try await lab.radio.tell("wait links \(before + number) 30000")
        await lab.pause(.milliseconds(200))
        if number == 5 { try await lab.radio.tell("hold-answers off") }
        try await lab.radio.tell("lose 3e")
      }
      try await group.next()
      _ = try await session.read(.counter)
      await session.close()
      try await group.waitForAll()
    }
    let seen = events.withLock { $0 }
    let failures = seen.compactMap { if case .attemptFailed(let info) = $0 { info.reason } else { nil } }
    verdicts.equal(
      "0x3e before the first answer, five times", failures,
      [DisconnectReason](repeating: .failedToEstablish, count: 5))
    verdicts.equal("ready, after that", seen.count { if case .ready = $0 { true } else { false } }, 1)
  }
}
