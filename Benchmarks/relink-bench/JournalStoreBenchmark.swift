internal import CBenchmark
internal import Relink
internal import RelinkSQLite

/// Rows admitted, marked and settled through a store, beside the same rows, schema and settings with SQLite in C, in
/// alternating batches on two files.
struct JournalStoreBenchmark {
  var batches = 60
  /// Operations in one commit.
  var size: Int64 = 512

  func run() async throws -> [Figure] {
    guard let device = DeviceID("bench") else { return [] }
    let folder = "/tmp/relink-bench-\(bench_now())"
    let paths = [folder + "-ours.sqlite", folder + "-theirs.sqlite", folder + "-bare.sqlite"]
    defer { remove(paths) }
    // The store makes both files, so that they are the same.
    let theirs = try SQLiteJournalStore(at: paths[1])
    _ = try await claim(device, in: theirs)
    theirs.close()
    let store = try SQLiteJournalStore(at: paths[0])
    defer { store.close() }
    let claim = try await claim(device, in: store)
    guard let raw = bench_journal_open(paths[1], 1) else {
      throw RelinkError(.system, "SQLite could not open \(paths[1]).")
    }
    defer { bench_journal_close(raw) }

    var whole: (ours: [Int64], theirs: [Int64]) = ([], [])
    var admitted: (ours: [Int64], theirs: [Int64]) = ([], [])
    var next: Int64 = 1
    for batch in 0...batches {
      for settles in [true, false] {
        let records = records(from: next, settles: settles)
        let start = bench_now()
        try await append(records, to: claim, in: store)
        let ours = bench_now() - start
        let rawStart = bench_now()
        try check(bench_journal_commit(raw, next, size, settles ? 1 : 0), "SQLite")
        let bare = bench_now() - rawStart
        next += size
        guard batch > 0 else { continue }
        if settles {
          whole.ours.append(ours)
          whole.theirs.append(bare)
        } else {
          admitted.ours.append(ours)
          admitted.theirs.append(bare)
        }
      }
      // Between the measured commits: what is settled goes, and the logs are written back.
      try await append([.pruned(settledBefore: .max, keeping: 0)], to: claim, in: store)
      bench_journal_tidy(raw)
      // The store does it after its answer, and before the next one. A commit without rows begins both logs anew: the
      // first one waits for the disk.
      try check(bench_journal_commit(raw, next, 0, 0), "SQLite")
      try await append([], to: claim, in: store)
    }
    var bare = [Int64](repeating: 0, count: batches)
    try check(bench_bare_rows(paths[2], size, batches, &bare), "SQLite")
    let ratio = Ratio(whole.ours, to: whole.theirs)
    let rows = Double(size) * 1e3
    return [
      figure(
        "SQLite in C, a row admitted, marked, settled", Double(Sample(whole.theirs).median) / rows, "us"),
      figure("store, a row admitted, marked, settled", Double(Sample(whole.ours).median) / rows, "us"),
      figure("store to SQLite in C", ratio.point, "x", 1.3),
      figure("store to SQLite in C, upper 95 %", ratio.high, "x", 1.3),
      figure(
        "group commit, NORMAL, \(size) rows, SQLite in C, a row",
        Double(Sample(admitted.theirs).median) / rows, "us"),
      figure(
        "group commit, NORMAL, \(size) rows, a row", Double(Sample(admitted.ours).median) / rows, "us", 1),
      figure(
        "the same rows in one table without an index, SQLite in C, a row",
        Double(Sample(bare).median) / rows, "us"),
    ]
  }

  private func figure(_ name: String, _ value: Double, _ unit: String, _ limit: Double? = nil) -> Figure {
    Figure(goal: "G14", name: name, value: value, unit: unit, limit: limit)
  }

  private func records(from first: Int64, settles: Bool) -> [JournalRecord] {
    let bytes = [UInt8](repeating: 1, count: 32)
    let short = [UInt8](repeating: 1, count: 8)
    var records: [JournalRecord] = []
    for number in first..<first + size {
      let id = "operation \(number)"
      records.append(
        .admitted(
          JournalRow(
            id: id, place: number, operation: bytes, fingerprint: bytes, isSensitive: false,
            admittedAt: number)))
      guard settles else { continue }
      records.append(.marked(id: id, mark: short))
      records.append(.settled(id: id, outcome: short, at: number, operation: nil))
    }
    return records
  }

  private func claim(_ device: DeviceID, in store: SQLiteJournalStore) async throws -> JournalClaim {
    try await withCheckedContinuation { continuation in
      store.claim(device, owner: "relink-bench", epoch: nil) { continuation.resume(returning: $0) }
    }.get().claim
  }

  private func append(_ records: [JournalRecord], to claim: JournalClaim, in store: SQLiteJournalStore)
    async throws
  {
    _ = try await withCheckedContinuation { continuation in
      store.append(records, to: claim, sync: .normal) { continuation.resume(returning: $0) }
    }.get()
  }

  private func remove(_ paths: [String]) {
    for path in paths {
      for end in ["", "-wal", "-shm", "-lock"] { bench_remove(path + end) }
    }
  }
}
