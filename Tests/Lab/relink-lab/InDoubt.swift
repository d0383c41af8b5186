internal import Glibc
internal import Relink
internal import RelinkCrash
internal import RelinkSQLite

/// Links that are lost between a Write Request and its response: each tag does what it promises, and the peripheral
/// counts it.
struct InDoubt: Sendable {
  private enum Tag: String, CaseIterable, Sendable {
    case idempotent
    case nonIdempotent
    case verifiedByValue = "verified by a value"
    /// The app says what is true.
    case verifiedByApp = "verified by the app"
    case unresolvable = "verified by an app that cannot tell"

    /// The characteristic by the name that the radio has for it.
    var target: (name: String, characteristic: Characteristic) {
      self == .idempotent ? ("idempotent", .idempotent) : ("lock", .lock)
    }

    func idempotency(_ value: [UInt8]) -> Idempotency {
      switch self {
      case .idempotent: .idempotent
      case .nonIdempotent: .nonIdempotent
      case .verifiedByValue: .verified(by: .value(of: .lock, is: value))
      case .verifiedByApp, .unresolvable: .verified(by: .app)
      }
    }

    /// What the app says, where it is asked.
    func verdict(isApplied: Bool) -> Verdict? {
      switch self {
      case .idempotent, .nonIdempotent, .verifiedByValue: nil
      case .verifiedByApp: isApplied ? .applied : .notApplied
      case .unresolvable: .unknown
      }
    }

    /// What the caller is to be told, and on how many links the peripheral is to have carried it out.
    func promise(isApplied: Bool) -> Promise {
      let before = isApplied ? 1 : 0
      return switch (self, isApplied) {
      case (.idempotent, _): Promise(outcome: "succeeded acknowledged", count: before + 1)
      case (.nonIdempotent, _): Promise(outcome: "indeterminate linkLost", count: before)
      case (.verifiedByValue, true): Promise(outcome: "succeeded probed", count: 1)
      case (.verifiedByApp, true): Promise(outcome: "succeeded resolved", count: 1)
      case (.verifiedByValue, false), (.verifiedByApp, false):
        Promise(outcome: "succeeded acknowledged", count: 1)
      case (.unresolvable, _): Promise(outcome: "indeterminate probeInconclusive", count: before)
      }
    }
  }

  private struct Promise: Equatable, CustomStringConvertible {
    var outcome: String
    var count: Int

    var description: String { "\(outcome), counted \(count)" }
  }

  private let lab: Lab

  init(_ lab: Lab) { self.lab = lab }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    try await lab.begin()
    let folder = "/tmp/relink-in-doubt-\(getpid())"
    guard mkdir(folder, 0o700) == 0 else { throw LabFailure("no folder \(folder): error \(errno)") }
    let store = try SQLiteJournalStore(at: folder + "/journal.sqlite")
    var configuration = Lab.configuration
    configuration.store = store
    let session = try DeviceSession(with: lab.device, over: lab.transport, configuration: configuration)
    try await session.connect()
    var number: UInt64 = 0
    for reason in ["08", "13"] {
      for tag in Tag.allCases {
        for isApplied in [false, true] {
          for durability in [Durability.inMemory, .durable] {
            number += 1
            let kept = try await play(tag, number, on: session, reason, isApplied: isApplied, durability)
            let what =
              "\(tag.rawValue), \(durability == .durable ? "durable" : "in memory"), link lost (0x\(reason)) "
              + (isApplied ? "after it was applied" : "before it was applied")
            verdicts.equal(what, kept, tag.promise(isApplied: isApplied))
          }
        }
      }
    }
    let open = await session.journal
    verdicts.check("nothing is left in the journal", open.isEmpty, "\(open)")
    await session.close()
    store.close()
    let stats = try await lab.stats { $0.live.isEmpty }
    verdicts.equal("cuts", stats.cuts, Int(number))
    return verdicts.failed
  }

  private func play(
    _ tag: Tag, _ number: UInt64, on session: DeviceSession, _ reason: String, isApplied: Bool,
    _ durability: Durability
  ) async throws -> Promise {
    let (name, characteristic) = tag.target
    try await lab.radio.tell("cut-\(isApplied ? "after" : "before")-apply \(reason) \(name)")
    let value = number.littleEndianBytes
    let updates = await session.journalEvents()
    let pending = try await session.submit(
      WriteRequest(
        value, to: characteristic, idempotency: tag.idempotency(value), id: OperationID("lab-\(number)"),
        options: WriteOptions(durability: durability)))
    if let verdict = tag.verdict(isApplied: isApplied) {
      for await update in updates {
        guard case .event(let event) = update, event.operation.id == pending.id else { continue }
        guard event.operation.state == .unresolved else { continue }
        break
      }
      try await session.resolve(pending.id, as: verdict, by: "the lab")
    }
    let outcome = CrashOutcome(await pending.outcome)
    // What could still be sent goes before this read, on the same link.
    _ = try await session.read(.counter)
    let counts = try await lab.radio.ask("counts \(name)", for: RadioCounts.self).byNumber
    let detail = outcome.detail.split(separator: "(").first.map(String.init) ?? ""
    return Promise(outcome: "\(outcome.word) \(detail)", count: counts[number]?.count ?? 0)
  }
}
