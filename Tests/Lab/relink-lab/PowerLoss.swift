internal import Relink
internal import RelinkCrash
internal import RelinkSQLite

/// A session with a durable journal on a disk that outlives the machine.
struct PowerLoss: Sendable {
  private static let device = CrashDevice(
    nonIdempotent: .lock, idempotent: .idempotent, verified: .lock, status: .counter)

  private let lab: Lab
  private let folder: String
  private let ledger: String

  init(_ lab: Lab, folder: String, ledger: String) {
    self.lab = lab
    self.folder = folder
    self.ledger = ledger
  }

  /// Runs until the machine ends; or, the last time, until everything is accounted for, and judges it. Returns how many
  /// checks failed.
  func run(isLast: Bool) async throws -> Int {
    let victim = try CrashVictim(PowerLoss.device, store: folder, ledger: ledger)
    try await victim.run(isLast: isLast, window: 4, seed: 1) {
      try DeviceSession(with: lab.device, over: lab.transport, configuration: $0)
    }
    return try await judge()
  }

  private func judge() async throws -> Int {
    var verdicts = Verdicts()
    var counts: [Int: Int] = [:]
    for name in ["lock", "idempotent"] {
      for (number, links) in try await lab.radio.ask("counts \(name)", for: RadioCounts.self).byNumber {
        counts[Int(number), default: 0] += links.count
      }
    }
    let record = try CrashRecord(at: ledger)
    let judge = CrashJudge(record, counts: counts, on: PowerLoss.device)
    for finding in judge.findings() {
      let faults = finding.faults.prefix(8).joined(separator: "; ")
      verdicts.check(finding.what, finding.faults.isEmpty, "\(finding.faults.count), such as \(faults)")
    }
    let rows = try SQLiteJournalStore.read(at: CrashVictim.journal(in: folder)).values.flatMap { $0 }
    let open = rows.filter { $0.outcome == nil || !$0.isDelivered }.map(\.id)
    verdicts.equal("operations in the journal that are unsettled or were told to nobody", open, [])
    for line in judge.summary() { say("        \(line)") }
    return verdicts.failed
  }
}
