import Relink
import RelinkSQLite
import Testing

@Suite("Sensitive values in a SQLite journal")
struct SecretTests {
  let folder = StoreFolder()

  @Test("a sensitive request is gone from every file when its settlement is told")
  func secretIsErased() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    let secret = "the code of the door is 4711"
    await store.append(
      [.admitted(.sample("a", at: 1, operation: Array(secret.utf8), isSensitive: true))], to: claim)
    #expect(!folder.files(with: secret).isEmpty)
    await store.append(
      [.settled(id: "a", outcome: [1], at: 2, operation: Array("erased".utf8))], to: claim, sync: .full)
    #expect(folder.files(with: secret) == [])
    let row = try #require(try SQLiteJournalStore.read(at: folder.journal)[pump]?.first)
    #expect(row.operation == Array("erased".utf8) && row.isSensitive)
  }

  @Test(
    "no copy is left by pages that were rearranged, moved or freed", arguments: 1...4 as ClosedRange<UInt64>)
  func noCopyIsLeft(seed: UInt64) async throws {
    var random = Seeded(seed)
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    var open: [String] = []
    for number in 1...400 {
      let secret = "SECRET" + String(repeating: "!", count: Int.random(in: 0...3_000, using: &random))
      let row = JournalRow.sample(
        "\(UInt64.random(in: 0 ... .max, using: &random))", at: Int64(number), operation: Array(secret.utf8),
        isSensitive: number.isMultiple(of: 2))
      var plain = row
      if !row.isSensitive { plain.operation = .init(repeating: 0x55, count: secret.utf8.count) }
      await store.append([.admitted(plain)], to: claim)
      open.append(row.id)
      open.shuffle(using: &random)
      if Bool.random(using: &random), let id = open.popLast() {
        let mark = [UInt8](repeating: 3, count: Int.random(in: 0...600, using: &random))
        await store.append([.marked(id: id, mark: mark)], to: claim)
        await store.append([.settled(id: id, outcome: mark, at: 1, operation: [0])], to: claim)
      }
    }
    let rest = open.map { JournalRecord.settled(id: $0, outcome: [1], at: 2, operation: [0]) }
    await store.append(rest, to: claim)
    #expect(folder.files(with: "SECRET") == [])
    await store.append([.pruned(settledBefore: .max, keeping: 10)], to: claim)
    #expect(folder.files(with: "SECRET") == [])
  }

  @Test("a reader of the old state holds the erasure up, and it is made up for")
  func erasureIsMadeUpFor() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    await store.append(
      [.admitted(.sample("a", at: 1, operation: Array("SECRET".utf8), isSensitive: true))], to: claim)
    let reader = try HeldReader(folder.journal)
    await store.append([.settled(id: "a", outcome: [1], at: 2, operation: [0])], to: claim)
    #expect(folder.files(with: "SECRET").contains("journal.sqlite-wal"))
    reader.end()
    await store.append([], to: claim)
    // What is made up for after an answer is done before the next one.
    await store.append([], to: claim)
    #expect(folder.files(with: "SECRET") == [])
  }

  @Test("a sensitive request that is pruned without having been replaced goes too")
  func prunedSecretGoes() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    await store.append(
      [.admitted(.sample("a", at: 1, operation: Array("SECRET".utf8), isSensitive: true))], to: claim)
    await store.append(
      [.settled(id: "a", outcome: [1], at: 2, operation: nil), .pruned(settledBefore: .max, keeping: 0)],
      to: claim)
    #expect(folder.files(with: "SECRET") == [])
  }
}
