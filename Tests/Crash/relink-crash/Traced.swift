internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkCrash
internal import RelinkSQLite

/// What is done while the system calls are traced: reads alone, durable writes alone, both at once.
///
/// The phases stand in the ledger, so that the trace can be read by them.
struct Traced: Sendable {
  let folder: String
  /// The number of the first command.
  let first: Int

  static let reads = 200
  static let writes = 25

  func run() async throws {
    let ledger = try CrashLedger(at: folder + "/ledger")
    let store = try SQLiteJournalStore(at: CrashVictim.journal(in: folder))
    let configuration = Configuration(store: store, owner: "traced")
    let session = try Main.session(folder, configuration)
    try await session.connect()
    // The claim on the journal, and everything that is done once.
    try await write(first, session, ledger)
    // That the caller was told is noted behind his back; it is no part of what follows.
    while try SQLiteJournalStore.read(at: CrashVictim.journal(in: folder)).values.joined().contains(where: {
      !$0.isDelivered
    }) {}
    ledger.write("phase reads")
    for _ in 0..<Traced.reads { _ = try await session.read(.status) }
    ledger.write("phase writes")
    for number in 1...Traced.writes { try await write(first + number, session, ledger) }
    ledger.write("phase both")
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        while !Task.isCancelled { _ = try? await session.read(.status) }
      }
      for number in Traced.writes + 1...2 * Traced.writes {
        try await write(first + number, session, ledger)
      }
      group.cancelAll()
    }
    ledger.write("phase end")
    await session.close()
    store.close()
  }

  private func write(_ number: Int, _ session: DeviceSession, _ ledger: CrashLedger) async throws {
    let value = (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    try await session.write(
      value, to: .dispense, idempotency: .nonIdempotent, id: OperationID("command-\(number)"),
      options: WriteOptions(durability: .durable))
    ledger.write("told \(number)")
  }
}
