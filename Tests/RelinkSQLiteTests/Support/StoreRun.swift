import Glibc
import Relink
import RelinkSQLite
import Testing

/// One run of a fixed script over a file system that breaks, and what must hold after it.
struct StoreRun {
  enum Fate: Equatable {
    case acknowledged
    case refused
    case uncertain
  }

  struct Batch {
    var records: [JournalRecord]
    var sync: JournalSync
    var fate: Fate
  }

  let system: FaultSystem
  let folder = StoreFolder()
  let kind: FaultSystem.Kind
  private var batches: [Batch] = []
  private var claim = JournalClaim(device: pump, epoch: 0)

  /// Runs the script with the faults from `first` on; the result says whether one was met.
  static func run(
    _ kind: FaultSystem.Kind, from first: Int, count: Int, seed: UInt64
  ) async throws -> Bool {
    var run = StoreRun(system: try FaultSystem(), kind: kind)
    run.system.plan(kind, from: first, count: count, seed: seed)
    try await run.play()
    let hasFired = run.system.hasFired
    try await run.verify("\(kind) from \(first), \(count) times, seed \(seed)")
    return hasFired
  }

  private init(system: FaultSystem, kind: FaultSystem.Kind) {
    self.system = system
    self.kind = kind
  }

  // MARK: The script

  private mutating func play() async throws {
    guard let store = try open() else { return }
    defer { store.close() }
    guard try await claim(in: store) else { return }
    for number in 1...3 { await append([number], to: store) }
    await append([4, 5, 6], to: store)
    for number in 7...9 { await append([number], to: store) }
    guard kind != .power else { return }
    // After the fault the store works again.
    system.heal()
    await append([10], to: store)
    let last = try #require(batches.last)
    #expect(last.fate == .acknowledged)
  }

  private func open() throws -> SQLiteJournalStore? {
    do throws(JournalStoreError) {
      return try SQLiteJournalStore(at: folder.journal, system: system.name)
    } catch {
      #expect(system.hasFired)
      #expect([.system, .full].contains(error.code), "\(error)")
      #expect(error.isCertain)
    }
    guard kind != .power else { return nil }
    system.heal()
    return try SQLiteJournalStore(at: folder.journal, system: system.name)
  }

  private mutating func claim(in store: SQLiteJournalStore) async throws -> Bool {
    switch await store.claim(pump) {
    case .success(let claimed): claim = claimed.claim
    case .failure(let error):
      #expect(system.hasFired, "\(error)")
      guard kind != .power else { return false }
      system.heal()
      claim = try await store.claim(pump).get().claim
    }
    return true
  }

  private mutating func append(_ numbers: [Int], to store: SQLiteJournalStore) async {
    let settled = batches.last { $0.fate == .acknowledged }.flatMap { batch in
      if case .admitted(let row)? = batch.records.first { row } else { nil }
    }
    let asked = numbers.map { number in
      (
        records(number, settling: number == numbers.first ? settled : nil),
        number % 2 == 0 ? JournalSync.full : .normal
      )
    }
    // Asked for at once, so that they may be one transaction.
    let (claim, system) = (claim, system)
    let fates = await withCheckedContinuation { (continuation: CheckedContinuation<[Fate], Never>) in
      let fates = Locked<[Fate]>([])
      for (records, sync) in asked {
        store.append(records, to: claim, sync: sync) { result in
          let all = fates.withLock { fates in
            switch result {
            case .success: fates.append(.acknowledged)
            case .failure(let error): fates.append(error.isCertain ? .refused : .uncertain)
            }
            return fates
          }
          if result.failure != nil { #expect(system.hasFired) }
          if all.count == asked.count { continuation.resume(returning: all) }
        }
      }
    }
    for (batch, fate) in zip(asked, fates) {
      batches.append(Batch(records: batch.0, sync: batch.1, fate: fate))
    }
  }

  private func records(_ number: Int, settling settled: JournalRow?) -> [JournalRecord] {
    let place = Int64(number * 10)
    var records: [JournalRecord] = [
      .admitted(.sample("\(number)", at: place, isSensitive: number % 3 == 0)),
      .admitted(.sample("\(number) b", at: place + 1, operation: .init(repeating: 1, count: 2_500))),
      .marked(id: "\(number) b", mark: [UInt8(number)]),
    ]
    if let settled {
      records.append(
        .settled(id: settled.id, outcome: [1], at: place, operation: settled.isSensitive ? [0] : nil))
      records.append(.delivered(id: settled.id))
    }
    if number == 8 { records.append(.pruned(settledBefore: 30, keeping: 3)) }
    return records
  }

  // MARK: What must hold

  private func verify(_ name: String) async throws {
    let rowsBefore: [JournalRow]
    if kind == .power {
      #expect(system.restart(), "\(name)")
    } else {
      system.heal()
    }
    // A new process on the same disk.
    let store = try SQLiteJournalStore(at: folder.journal, system: system.name)
    defer { store.close() }
    rowsBefore = try SQLiteJournalStore.read(at: folder.journal, system: system.name)[pump] ?? []
    let present = Set(rowsBefore.map(\.id))
    let survived = batches.indices.filter { present.contains("\($0 + 1) b") }
    // Each batch wholly or not at all, in order, and nothing else.
    var expected: [JournalRow] = []
    for index in survived { StoreRun.apply(batches[index].records, to: &expected) }
    #expect(rowsBefore == expected.sorted { $0.place < $1.place }, "\(name)")
    for (index, batch) in batches.enumerated() {
      let isThere = survived.contains(index)
      switch batch.fate {
      case .refused: #expect(!isThere, "\(name): \(index + 1) was certainly not committed, and is there")
      case .uncertain: break
      case .acknowledged:
        // Only what nobody asked to last may go with the power, from the end.
        let mayGo = kind == .power && batch.sync == .normal && !survived.contains { $0 > index }
        #expect(isThere || mayGo, "\(name): \(index + 1) was acknowledged, and is gone")
      }
    }
    let claimed = try await store.claim(pump).get()
    #expect(claimed.claim.epoch > claim.epoch || kind == .power)
    #expect(claimed.rows == rowsBefore.filter { $0.outcome == nil || !$0.isDelivered }, "\(name)")
  }

  /// What a batch does, said without a database.
  private static func apply(_ records: [JournalRecord], to rows: inout [JournalRow]) {
    for record in records {
      switch record {
      case .admitted(let row): rows.append(row)
      case .marked(let id, let mark): change(id, in: &rows) { $0.mark = mark }
      case .settled(let id, let outcome, let instant, let operation):
        change(id, in: &rows) { row in
          // One that an uncertain batch settled keeps its first outcome.
          row.settledAt = row.outcome == nil ? instant : row.settledAt
          row.outcome = row.outcome ?? outcome
          row.operation = operation ?? row.operation
        }
      case .delivered(let id): change(id, in: &rows) { $0.isDelivered = true }
      case .pruned(let before, let keeping):
        rows.removeAll { $0.settledAt.map { $0 < before } ?? false }
        let newest = rows.filter { $0.outcome != nil }.sorted {
          ($0.settledAt ?? 0, $0.place) > ($1.settledAt ?? 0, $1.place)
        }
        let gone = Set(newest.dropFirst(keeping).map(\.id))
        rows.removeAll { gone.contains($0.id) }
      @unknown default: break
      }
    }
  }

  private static func change(_ id: String, in rows: inout [JournalRow], _ body: (inout JournalRow) -> Void) {
    for index in rows.indices where rows[index].id == id { body(&rows[index]) }
  }
}
