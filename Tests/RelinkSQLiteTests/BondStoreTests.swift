import Dispatch
import Foundation
import Glibc
import Relink
import RelinkSQLite
import RelinkTesting
import Testing

@Suite("A store of bonds in a file")
struct BondStoreTests {
  private let folder = StoreFolder()
  private var path: String { folder.path + "/bonds.sqlite" }

  @Test func keepsTheContract() async throws {
    let report = await BondStoreContract.check(FileEnvironment())
    #expect(report.failures == [])
    #expect(report.skipped == [])
  }

  private static func bond(_ octet: UInt8, id: UInt64 = 1) throws -> Bond {
    let value = try #require(SecurityKey([UInt8](repeating: octet, count: 16)))
    return Bond(
      with: try #require(DeviceID("C0:DE:00:00:00:01/random")), of: BluetoothAddress(1), id: id,
      longTermKeys: [Bond.LongTermKey(value, isAuthenticated: true, isSecureConnections: true)],
      identityKey: value)
  }

  private func keep(_ bond: Bond, in store: SQLiteBondStore) async -> RelinkError? {
    await withCheckedContinuation { continuation in store.keep(bond) { continuation.resume(returning: $0) } }
  }

  @Test("the files are their owner's alone, and wider ones become so")
  func filesArePrivate() async throws {
    let store = try SQLiteBondStore(at: path)
    #expect(await keep(try Self.bond(7), in: store) == nil)
    let files = ["bonds.sqlite", "bonds.sqlite-lock", "bonds.sqlite-shm", "bonds.sqlite-wal"]
    #expect(folder.names == files)
    for name in files { #expect(folder.mode(name) == 0o600, "\(name)") }
    store.close()
    for name in files { chmod(folder.path + "/" + name, 0o644) }
    let again = try SQLiteBondStore(at: path)
    for name in files { #expect(folder.mode(name) == 0o600, "\(name)") }
    again.close()
  }

  @Test("no octet of a removed or replaced key is left in any file")
  func keysAreOverwritten() async throws {
    let store = try SQLiteBondStore(at: path)
    #expect(await keep(try Self.bond(0xA7), in: store) == nil)
    #expect(occurrences(of: 0xA7) > 0)
    #expect(await keep(try Self.bond(0xB8, id: 2), in: store) == nil)
    #expect(occurrences(of: 0xA7) == 0)
    let device = try Self.bond(0).device
    let error = await withCheckedContinuation { continuation in
      store.remove(device, of: BluetoothAddress(1)) { continuation.resume(returning: $0) }
    }
    #expect(error == nil)
    #expect(occurrences(of: 0xB8) == 0)
    store.close()
  }

  private func occurrences(of octet: UInt8) -> Int {
    let key = Data(repeating: octet, count: 16)
    return folder.names.filter { name in
      (try? Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + name)))?.range(of: key) != nil
    }.count
  }

  @Test("one store has the file at a time, and a closed one answers with an error")
  func oneWriter() async throws {
    let store = try SQLiteBondStore(at: path)
    #expect(throws: RelinkError.self) { try SQLiteBondStore(at: path) }
    store.close()
    #expect(await keep(try Self.bond(7), in: store)?.code == .ended)
    let again = try SQLiteBondStore(at: path)
    again.close()
  }

  @Test("what is no file of bonds is left as it is, and said so")
  func otherFiles() async throws {
    let journal = try SQLiteJournalStore(at: folder.journal)
    journal.close()
    for (name, words) in [("journal.sqlite", "something else"), ("text", "no database of SQLite")] {
      if name == "text" { try Data("not a database, but long enough to be one".utf8).write(to: url(name)) }
      let before = try Data(contentsOf: url(name))
      do {
        _ = try SQLiteBondStore(at: folder.path + "/" + name)
        Issue.record("\(name) was opened")
      } catch {
        #expect(error.message.contains(words), "\(error.message)")
      }
      #expect(try Data(contentsOf: url(name)) == before)
    }
  }

  private func url(_ name: String) -> URL { URL(fileURLWithPath: folder.path + "/" + name) }

  @Test("nothing that describes a bond shows its keys")
  func keysAreNotShown() throws {
    let bond = try Self.bond(0x5A)
    var dumped = ""
    dump(bond, to: &dumped)
    for text in ["\(bond)", String(reflecting: bond), dumped] {
      #expect(
        !text.contains("5A") && !text.contains("90, 90") && !text.contains("6510615555426900570"), "\(text)")
    }
  }
}

private struct FileEnvironment: BondStoreContractEnvironment {
  let driver: any ContractDriver = BondDriver()
  private let folder = StoreFolder()
  private let paths = Locked<[ObjectIdentifier: String]>([:])
  private let count = Locked(0)

  func makeStore() async throws -> any BondStore {
    let number = count.withLock { count in
      count += 1
      return count
    }
    return try open("\(folder.path)/\(number).sqlite")
  }

  private func open(_ path: String) throws -> any BondStore {
    let store = try SQLiteBondStore(at: path)
    paths.withLock { $0[ObjectIdentifier(store)] = path }
    return store
  }

  func reopen(_ store: any BondStore) async throws -> (any BondStore)? {
    guard let path = paths.withLock({ $0[ObjectIdentifier(store)] }) else { return nil }
    (store as? SQLiteBondStore)?.close()
    return try open(path)
  }
}

/// Looks once each millisecond whether a store has answered on its thread.
private struct BondDriver: ContractDriver {
  func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value { body() }

  func wait(until condition: @escaping @Sendable () -> Bool) async -> Bool {
    for _ in 0..<20_000 where !condition() { await pause() }
    return condition()
  }

  func settle() async { for _ in 0..<5 { await pause() } }

  private func pause() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { continuation.resume() }
    }
  }
}
