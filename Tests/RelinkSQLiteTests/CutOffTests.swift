import Relink
import RelinkSQLite
import Testing

@Suite("A process that died while it wrote the log back")
struct CutOffTests {
  @Test("leaves a journal that opens, with everything in it")
  func aFileThatIsShorterThanItSaysOpensWithItsLog() async throws {
    let folder = StoreFolder()
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    for place in 1...200 {
      let row = JournalRow.sample(
        "row-\(place)", at: Int64(place), operation: [UInt8](repeating: 7, count: 300))
      _ = try await store.append([.admitted(row)], to: claim).get()
    }
    let (old, log) = (folder.bytes("journal.sqlite"), folder.bytes("journal.sqlite-wal"))
    store.close()
    let new = folder.bytes("journal.sqlite")
    try #require(new.count > old.count && !log.isEmpty)
    // The first page went first; it has the size of the whole.
    let other = StoreFolder()
    other.write(Array(new[..<4096] + old[4096...]), to: "journal.sqlite")
    other.write(log, to: "journal.sqlite-wal")
    let again = try SQLiteJournalStore(at: other.journal)
    #expect(try await again.claim(pump).get().rows.count == 200)
  }
}
