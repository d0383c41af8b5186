package import Relink
internal import RelinkSQLite
internal import RelinkTesting

/// An app as it should be: it names each command, notes what it was told, and after a restart asks once more for what it
/// was not told.
package struct CrashVictim: Sendable {
  private let device: CrashDevice
  private let ledgerPath: String
  private let ledger: CrashLedger
  private let storePath: String
  private let auditPath: String

  /// Uses the folder for the ledger, the journal and the audit log.
  ///
  /// - Parameters:
  ///   - device: What the device offers.
  ///   - store: The folder of the journal and the audit log.
  ///   - ledger: The file of the ledger.
  package init(_ device: CrashDevice, store: String, ledger: String) throws {
    self.device = device
    ledgerPath = ledger
    self.ledger = try CrashLedger(at: ledger)
    storePath = CrashVictim.journal(in: store)
    auditPath = CrashVictim.audit(in: store)
  }

  package static func journal(in folder: String) -> String { folder + "/journal.sqlite" }
  package static func audit(in folder: String) -> String { folder + "/audit.jsonl" }

  /// What a session needs for a crash run: no delays of its own, for it is not the policy that is tried.
  private func configuration(_ store: SQLiteJournalStore, _ audit: AuditLog) -> Configuration {
    Configuration(
      reconnection: ReconnectionPolicy(
        backoff: BackoffPolicy(base: .milliseconds(1), cap: .milliseconds(20)), stability: .zero),
      deadlines: Deadlines(operation: .seconds(120), connect: .seconds(120)), store: store, owner: "crash",
      audit: audit, probes: CrashCommand.probes(of: device))
  }

  /// Runs until it is killed; the last process has no new commands, asks for all that there were, and ends.
  ///
  /// - Parameters:
  ///   - isLast: Whether it is the last process.
  ///   - window: How many commands are under way at once.
  ///   - seed: Decides which told commands are asked for once more.
  ///   - open: Opens the session.
  package func run(
    isLast: Bool, window: Int, seed: UInt64, _ open: (Configuration) throws -> DeviceSession
  ) async throws {
    let record = try CrashRecord(at: ledgerPath)
    ledger.write("start")
    let store = try SQLiteJournalStore(at: storePath)
    let audit = try AuditLog(at: auditPath)
    let session = try open(configuration(store, audit))
    let untold = record.issued.filter { record.outcomes[$0] == nil }.sorted()
    let told = record.outcomes.keys.sorted()
    let next = (record.issued.max() ?? 0) + 1
    await withDiscardingTaskGroup { group in
      group.addTask { await listen(session) }
      await play(session, untold.map { ($0, .told) }, window: window)
      await play(session, chosen(told, seed, all: isLast).map { ($0, .again) }, window: window)
      if !isLast { await play(session, (next...).lazy.map { ($0, nil) }, window: window) }
      await session.close()
      group.cancelAll()
    }
    try await audit.close()
    store.close()
    ledger.write("end")
  }

  /// Which told commands are asked for once more: a few, as a cloud does that delivers twice, or all of them.
  private func chosen(_ told: [Int], _ seed: UInt64, all: Bool) -> [Int] {
    guard !all, !told.isEmpty else { return told }
    var random = SeededGenerator(seed: seed)
    return (0..<3).map { _ in told[random.next(below: told.count)] }
  }

  /// Plays commands, up to `window` at once; those without a source are new.
  private func play(
    _ session: DeviceSession, _ commands: some Sequence<(Int, CrashSource?)>, window: Int
  ) async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for (number, source) in commands {
        if running == window {
          await group.next()
          running -= 1
        }
        if source == nil { ledger.write("issued \(number)") }
        running += 1
        group.addTask {
          async let value: Void = read(session)
          await ask(number, session, source ?? .told)
          await value
        }
      }
    }
  }

  private func ask(_ number: Int, _ session: DeviceSession, _ source: CrashSource) async {
    do throws(RelinkError) {
      let command = CrashCommand(number: number, on: device)
      tell(source, number, try await command.ask(session, on: device))
    } catch {
      guard let outcome = CrashOutcome(error) else {
        return ledger.write("fault \(number) ended with \(error)")
      }
      tell(source, number, outcome)
    }
  }

  private func tell(_ source: CrashSource, _ number: Int, _ outcome: CrashOutcome) {
    ledger.write("\(source.rawValue) \(number) \(outcome.word.rawValue) \(outcome.detail)")
  }

  private func listen(_ session: DeviceSession) async {
    for await recovered in session.recoveredOperations() {
      guard let number = CrashCommand.number(of: recovered.id) else {
        ledger.write("fault \(recovered.id) was recovered, which nobody called")
        continue
      }
      tell(.recovered, number, CrashOutcome(recovered.outcome))
    }
  }

  /// A read beside the commands, recorded nowhere.
  private func read(_ session: DeviceSession) async {
    _ = try? await session.read(device.status)
  }
}
