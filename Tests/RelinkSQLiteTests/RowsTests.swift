import Relink
import RelinkSQLite
import Testing

@Suite("Rows of a SQLite journal")
struct RowsTests {
  let folder = StoreFolder()

  @Test("a row comes back as it was written, and after its changes, across a restart")
  func rowsComeBack() async throws {
    var store: SQLiteJournalStore? = try SQLiteJournalStore(at: folder.journal)
    var claimed = try #require(await store?.claim(pump).get())
    #expect(claimed == ClaimedJournal(claim: .init(device: pump, epoch: 1), rows: [], lastPlace: 0))
    let plain = JournalRow.sample("plain \u{1F510} '\"", at: 2, operation: [])
    let secret = JournalRow.sample(
      "secret", at: 1, operation: Array(repeating: 7, count: 9_000), isSensitive: true)
    var full = JournalRow.sample("full", at: 3)
    full.mark = []
    full.outcome = [9]
    full.settledAt = .max
    let records: [JournalRecord] = [.admitted(plain), .admitted(secret), .admitted(full)]
    #expect(try await store?.append(records, to: claimed.claim, sync: .full).get() == [])
    #expect(try await store?.append([.marked(id: plain.id, mark: [4])], to: claimed.claim).get() == [])
    store?.close()
    store = try SQLiteJournalStore(at: folder.journal)
    claimed = try #require(await store?.claim(pump).get())
    var marked = plain
    marked.mark = [4]
    #expect(
      claimed
        == ClaimedJournal(claim: .init(device: pump, epoch: 2), rows: [secret, marked, full], lastPlace: 3))
  }

  @Test("what is settled and delivered is not open, and is still found under its ID")
  func deliveredIsFoundByID() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    let row = JournalRow.sample("a", at: 5)
    await store.append([.admitted(row), .admitted(.sample("b", at: 6))], to: claim)
    await store.append([.settled(id: "a", outcome: [1], at: 10, operation: nil)], to: claim)
    #expect(try await store.claim(pump, epoch: 2).get().rows.map(\.id) == ["a", "b"])
    let second = JournalClaim(device: pump, epoch: 2)
    await store.append([.delivered(id: "a")], to: second)
    #expect(try await store.claim(pump, epoch: 3).get().rows.map(\.id) == ["b"])
    let third = JournalClaim(device: pump, epoch: 3)
    var settled = row
    settled.outcome = [1]
    settled.settledAt = 10
    settled.isDelivered = true
    // A taken ID takes nothing with it: the next record of the batch is written.
    let taken = await store.append(
      [.admitted(.sample("a", at: 7)), .admitted(.sample("c", at: 8))], to: third)
    #expect(taken.value == [settled])
    let now = try await store.claim(pump).get()
    #expect(now.rows.map(\.id) == ["b", "c"])
    #expect(now.lastPlace == 8)
  }

  @Test("an unknown operation, or another outcome, fails its batch whole and no other")
  func wrongRecordsFailTheirBatch() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    await store.append([.admitted(.sample("a", at: 1))], to: claim)
    await store.append([.settled(id: "a", outcome: [1], at: 1, operation: nil)], to: claim)
    let wrong: [JournalRecord] = [
      .marked(id: "x", mark: [1]), .settled(id: "x", outcome: [1], at: 1, operation: nil),
      .delivered(id: "x"),
      .settled(id: "a", outcome: [2], at: 1, operation: nil),
    ]
    for (index, record) in wrong.enumerated() {
      let place = Int64(index * 2 + 10)
      // Asked for at once, so that they are one transaction.
      async let before = store.append([.admitted(.sample("before \(index)", at: place))], to: claim)
      async let bad = store.append([.admitted(.sample("bad \(index)", at: 1_000)), record], to: claim)
      async let after = store.append([.admitted(.sample("after \(index)", at: place + 1))], to: claim)
      let results = await (before, bad, after)
      #expect(results.0.value == [])
      #expect(results.1.failure?.code == .invalidRecord)
      #expect(results.1.failure?.isCertain == true)
      #expect(results.2.value == [])
    }
    let now = try await store.claim(pump).get()
    #expect(now.rows.count == 9)
    #expect(!now.rows.contains { $0.id.hasPrefix("bad") })
    #expect(now.lastPlace == 17)
    // The same outcome once more is a repetition after an uncertain commit.
    let again = JournalClaim(device: pump, epoch: 2)
    #expect(
      await store.append([.settled(id: "a", outcome: [1], at: 2, operation: nil)], to: again).value == [])
  }

  @Test("pruning takes the old and the many, of settled ones of this device alone")
  func pruning() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    let other = try await store.claim(lock).get().claim
    for place in Int64(1)...6 {
      for claim in [claim, other] {
        await store.append([.admitted(.sample("\(place)", at: place))], to: claim)
        guard place < 6 else { continue }
        await store.append(
          [.settled(id: "\(place)", outcome: [1], at: place, operation: nil), .delivered(id: "\(place)")],
          to: claim)
      }
    }
    func left() throws -> [String] { try SQLiteJournalStore.read(at: folder.journal)[pump]?.map(\.id) ?? [] }
    await store.append([.pruned(settledBefore: 2, keeping: 100)], to: claim)
    #expect(try left() == ["2", "3", "4", "5", "6"])
    await store.append([.pruned(settledBefore: 0, keeping: 2)], to: claim)
    #expect(try left() == ["4", "5", "6"])
    await store.append([.pruned(settledBefore: .max, keeping: -1)], to: claim)
    #expect(try left() == ["6"])
    #expect(try SQLiteJournalStore.read(at: folder.journal)[lock]?.count == 6)
    // The place of a pruned one is not given again.
    await store.append([.admitted(.sample("9", at: 9))], to: claim)
    await store.append([.settled(id: "9", outcome: [], at: 9, operation: nil)], to: claim)
    await store.append([.pruned(settledBefore: .max, keeping: 0)], to: claim)
    #expect(try await store.claim(pump).get().lastPlace == 9)
  }

  @Test("20,000 operations that come and go leave a file of less than a megabyte")
  func theFileDoesNotGrow() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    for round in Int64(0)..<200 {
      var records: [JournalRecord] = []
      for index in Int64(1)...100 {
        let id = "operation \(round * 100 + index)"
        records.append(
          .admitted(.sample(id, at: round * 100 + index, operation: .init(repeating: 5, count: 60))))
        records.append(.marked(id: id, mark: [1, 2, 3, 4]))
        records.append(.settled(id: id, outcome: [5, 6, 7], at: round, operation: nil))
        records.append(.delivered(id: id))
      }
      records.append(.pruned(settledBefore: 0, keeping: 500))
      #expect(await store.append(records, to: claim).value == [])
    }
    #expect(folder.size("journal.sqlite") < 1 << 20)
    // The log is written back at 4 MB.
    #expect(folder.size("journal.sqlite-wal") < 6 << 20)
    #expect(try SQLiteJournalStore.read(at: folder.journal)[pump]?.count == 500)
    await store.append([.pruned(settledBefore: .max, keeping: 0)], to: claim)
    for _ in 0..<10 { await store.append([.pruned(settledBefore: .max, keeping: 0)], to: claim) }
    store.close()
    #expect(folder.size("journal.sqlite") < 1 << 19)
    #expect(folder.size("journal.sqlite-wal") == 0)
  }
}
