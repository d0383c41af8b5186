import Foundation
import Glibc
import Relink
import RelinkSQLite
import Testing

@Suite("Opening a SQLite journal")
struct OpeningTests {
  let folder = StoreFolder()

  private func error(at path: String) -> JournalStoreError? {
    do throws(JournalStoreError) {
      _ = try SQLiteJournalStore(at: path)
      return nil
    } catch {
      return error
    }
  }

  @Test("all files are the user's alone, and wider ones become so")
  func filesArePrivate() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    await store.append([.admitted(.sample("a", at: 1))], to: claim)
    let files = ["journal.sqlite", "journal.sqlite-lock", "journal.sqlite-shm", "journal.sqlite-wal"]
    #expect(folder.names == files)
    for name in files { #expect(folder.mode(name) == 0o600, "\(name)") }
    store.close()
    for name in files { chmod(folder.path + "/" + name, 0o644) }
    let again = try SQLiteJournalStore(at: folder.journal)
    _ = await again.claim(pump)
    for name in files { #expect(folder.mode(name) == 0o600, "\(name)") }
  }

  @Test("files are private under a mask that permits everything")
  func filesArePrivateUnderAnyMask() async {
    await #expect(processExitsWith: .success) {
      let folder = StoreFolder()
      for mask: mode_t in [0, 0o777] {
        umask(mask)
        let path = folder.path + "/\(mask)"
        let store = try SQLiteJournalStore(at: path)
        _ = await store.claim(pump)
        for end in ["", "-wal", "-shm", "-lock"] { #expect(folder.mode("\(mask)" + end) == 0o600) }
      }
    }
  }

  @Test("a second writer is locked out, here and in another process, until the first has closed")
  func oneWriter() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    #expect(error(at: folder.journal)?.code == .locked)
    // Another name of the same file.
    symlink(folder.journal, folder.path + "/other")
    #expect(error(at: folder.path + "/other")?.code == .locked)
    let path = folder.journal
    await #expect(processExitsWith: .success) { [path = path as String] in
      #expect(throws: JournalStoreError.self) { _ = try SQLiteJournalStore(at: path) }
    }
    #expect(try await store.claim(pump).get().claim.epoch == 1)
    store.close()
    #expect(error(at: folder.journal) == nil)
  }

  @Test("a store that was only dropped lets go of the file too")
  func droppedStoreLetsGo() async throws {
    let path = folder.journal
    do {
      let store = try SQLiteJournalStore(at: path)
      let claim = try await store.claim(pump).get().claim
      store.append([.admitted(.sample("a", at: 1))], to: claim, sync: .normal) { _ in }
    }
    // It goes in its own time; the lock says when.
    let lock = open(path + "-lock", O_RDWR)
    defer { Glibc.close(lock) }
    while flock(lock, LOCK_EX) != 0 {}
    flock(lock, LOCK_UN)
    #expect(try SQLiteJournalStore.read(at: path)[pump]?.map(\.id) == ["a"])
  }

  @Test("what is no journal is refused and left as it is", arguments: ["text", "database", "cut", "zeros"])
  func foreignFilesAreLeft(kind: String) throws {
    switch kind {
    case "text": folder.write(Array(repeating: UInt8(ascii: "x"), count: 5_000), to: "journal.sqlite")
    case "database":
      _ = try sqlite(folder.journal, "PRAGMA journal_mode=WAL; CREATE TABLE a(b); INSERT INTO a VALUES(1)")
    case "cut": folder.write(Array("SQLite format 3\0".utf8), to: "journal.sqlite")
    default: folder.write(Array(repeating: 0, count: 8_192), to: "journal.sqlite")
    }
    let before = folder.bytes("journal.sqlite")
    let found = try #require(error(at: folder.journal))
    #expect(found.code == .corrupt)
    #expect(found.message.contains(folder.journal))
    #expect(folder.bytes("journal.sqlite") == before)
    #expect(folder.names == ["journal.sqlite", "journal.sqlite-lock"])
    #expect(throws: JournalStoreError.self) { try SQLiteJournalStore.read(at: folder.journal) }
  }

  @Test("a later schema is refused and left as it is")
  func newerSchema() throws {
    try SQLiteJournalStore(at: folder.journal).close()
    _ = try sqlite(folder.journal, "PRAGMA user_version = 2")
    _ = try sqlite(folder.journal, "PRAGMA wal_checkpoint(TRUNCATE)")
    let before = folder.bytes("journal.sqlite")
    #expect(error(at: folder.journal)?.code == .newerSchema)
    #expect(folder.bytes("journal.sqlite") == before)
    do throws(JournalStoreError) {
      _ = try SQLiteJournalStore.read(at: folder.journal)
      Issue.record("read a schema that it does not know")
    } catch {
      #expect(error.code == .newerSchema)
    }
  }

  @Test("damage is found when the journal is opened, wherever it is")
  func damageIsFound() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    let records = (1...300).map { JournalRecord.admitted(.sample("operation \($0)", at: $0)) }
    await store.append(records, to: claim)
    store.close()
    let whole = folder.bytes("journal.sqlite")
    var found = 0
    for page in 1..<(whole.count / 4096) {
      var damaged = whole
      for offset in 0..<64 { damaged[page * 4096 + offset] ^= 0xA5 }
      folder.write(damaged, to: "journal.sqlite")
      guard let error = error(at: folder.journal) else { continue }
      #expect(error.code == .corrupt, "\(error)")
      #expect(folder.bytes("journal.sqlite") == damaged)
      found += 1
    }
    // All but pages of the list of free ones.
    #expect(found >= whole.count / 4096 - 2)
  }

  @Test("a log without its database is kept")
  func orphanedLogIsKept() throws {
    folder.write([1, 2, 3], to: "journal.sqlite-wal")
    #expect(error(at: folder.journal)?.code == .corrupt)
    #expect(folder.bytes("journal.sqlite-wal") == [1, 2, 3])
  }

  @Test(
    "a folder that is not there, a folder in its place, a dangling link, a second name: each says what to do")
  func wrongPaths() throws {
    #expect(error(at: folder.path + "/none/journal")?.message.contains("Make it first") == true)
    #expect(error(at: folder.path)?.code == .corrupt)
    #expect(error(at: "")?.code == .system)
    #expect(error(at: "a\0b")?.code == .system)
    symlink(folder.path + "/nothing", folder.path + "/link")
    #expect(error(at: folder.path + "/link")?.code == .corrupt)
    try SQLiteJournalStore(at: folder.journal).close()
    link(folder.journal, folder.path + "/second")
    #expect(error(at: folder.journal)?.message.contains("hard link") == true)
  }

  @Test("a path relative to the working folder, and one with signs that mean something elsewhere")
  func unusualNames() async throws {
    for name in ["a b?c=d&e#f%20", "\u{E4}\u{1F510}"] {
      let path = folder.path + "/" + name
      try SQLiteJournalStore(at: path).close()
      try SQLiteJournalStore(at: path).close()
      #expect(try SQLiteJournalStore.read(at: path).isEmpty)
      #expect(folder.size(name) > 0)
    }
  }

  @Test(
    "a folder or file that may not be written is said to be so",
    .enabled(if: geteuid() == 0, "needs to become another user"))
  func readOnlyPlaces() async {
    await #expect(processExitsWith: .success) {
      let folder = StoreFolder()
      try SQLiteJournalStore(at: folder.journal).close()
      let before = folder.bytes("journal.sqlite")
      chmod(folder.path, 0o755)
      // As nobody, who owns neither.
      #expect(setegid(65_534) == 0 && seteuid(65_534) == 0)
      for path in [folder.journal, folder.path + "/another"] {
        do throws(JournalStoreError) {
          _ = try SQLiteJournalStore(at: path)
          Issue.record("wrote what may not be written")
        } catch {
          #expect(error.code == .readOnly)
        }
      }
      #expect(seteuid(0) == 0 && setegid(0) == 0)
      // The folder and the lock may be written, the file not.
      chmod(folder.path, 0o777)
      chown(folder.journal + "-lock", 65_534, 65_534)
      chmod(folder.journal, 0o644)
      #expect(setegid(65_534) == 0 && seteuid(65_534) == 0)
      do throws(JournalStoreError) {
        _ = try SQLiteJournalStore(at: folder.journal)
        Issue.record("wrote what may not be written")
      } catch {
        #expect(error.code == .readOnly)
      }
      #expect(seteuid(0) == 0 && setegid(0) == 0)
      #expect(folder.bytes("journal.sqlite") == before)
    }
  }
}
