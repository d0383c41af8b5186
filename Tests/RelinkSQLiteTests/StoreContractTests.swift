import Dispatch
import Relink
import RelinkSQLite
import RelinkTesting
import Testing

/// The contract of journal stores over a file.
@Suite struct StoreContractTests {
  @Test func aFileKeepsTheContract() async throws {
    let report = await JournalStoreContract.check(FileEnvironment())
    #expect(report.failures == [])
    #expect(report.skipped == [])
  }
}

/// Files in a folder of their own.
private struct FileEnvironment: JournalStoreContractEnvironment {
  let driver: any ContractDriver = ThreadDriver()
  private let folder = StoreFolder()
  private let paths = Locked<[ObjectIdentifier: String]>([:])
  private let numbers = Locked(0)

  func makeStore() async throws -> any JournalStore {
    let number = numbers.withLock { count in
      count += 1
      return count
    }
    return try open("\(folder.path)/\(number).sqlite")
  }

  private func open(_ path: String) throws -> any JournalStore {
    let store = try SQLiteJournalStore(at: path)
    paths.withLock { $0[ObjectIdentifier(store)] = path }
    return store
  }

  func reopen(_ store: any JournalStore) async throws -> (any JournalStore)? {
    guard let path = paths.withLock({ $0[ObjectIdentifier(store)] }) else { return nil }
    await discard(store)
    return try open(path)
  }

  func discard(_ store: any JournalStore) async { (store as? SQLiteJournalStore)?.close() }
}

/// Looks once each millisecond whether a store has answered on its thread.
private struct ThreadDriver: ContractDriver {
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
