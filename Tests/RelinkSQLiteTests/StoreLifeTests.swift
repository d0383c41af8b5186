import Glibc
import Relink
import RelinkSQLite
import Synchronization
import Testing

@Suite("Life of a SQLite journal store")
struct StoreLifeTests {
  let folder = StoreFolder()

  @Test("results come in the order of the calls, once each, and never inside the call")
  func resultsInOrder() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    let order = Mutex<[Int]>([])
    let caller = pthread_self()
    await withCheckedContinuation { continuation in
      for number in 1...500 {
        let records = [JournalRecord.admitted(.sample("\(number)", at: Int64(number)))]
        // Every tenth fails for itself.
        let claim = number % 10 == 0 ? JournalClaim(device: pump, epoch: 9) : claim
        store.append(records, to: claim, sync: number % 7 == 0 ? .full : .normal) { result in
          #expect((result.failure == nil) == (number % 10 != 0))
          #expect(pthread_self() != caller)
          order.withLock { $0.append(number) }
          if number == 500 { continuation.resume() }
        }
      }
    }
    #expect(order.withLock { $0 } == Array(1...500))
    #expect(try await store.claim(pump).get().rows.count == 450)
  }

  @Test("closing finishes what was asked for, and answers later calls with closed")
  func closing() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    let done = Atomic<Int>(0)
    for number in 1...100 {
      store.append([.admitted(.sample("\(number)", at: Int64(number)))], to: claim, sync: .normal) { result in
        if result.failure == nil { done.add(1, ordering: .relaxed) }
      }
    }
    store.close()
    #expect(done.load(ordering: .relaxed) == 100)
    #expect(await store.append([], to: claim).failure?.code == .closed)
    let error = await store.claim(pump).failure
    #expect(error?.code == .closed)
    #expect(error?.isCertain == true)
    store.close()
    #expect(try SQLiteJournalStore.read(at: folder.journal)[pump]?.count == 100)
  }

  @Test("a store may be closed, and dropped, from its own answer")
  func closedFromItsAnswer() async throws {
    let path = folder.journal
    let slot = Mutex<SQLiteJournalStore?>(try SQLiteJournalStore(at: path))
    await withCheckedContinuation { continuation in
      slot.withLock { $0 }?.claim(pump, owner: "", epoch: nil) { _ in
        let store = slot.withLock { slot in
          defer { slot = nil }
          return slot
        }
        store?.close()
        store?.claim(pump, owner: "", epoch: nil) { result in
          #expect(result.failure?.code == .closed)
          continuation.resume()
        }
      }
    }
  }

  @Test("more than may wait is refused for certain, in order, and what was taken is written")
  func tooMuchIsRefused() async throws {
    let store = try SQLiteJournalStore(at: folder.journal, system: nil, queueRecords: 100)
    let claim = try await store.claim(pump).get().claim
    let isHeld = Mutex(true)
    let counts = Mutex((written: 0, refused: 0))
    await withCheckedContinuation { continuation in
      // The thread is busy with an answer while the rest is asked for.
      store.append([], to: claim, sync: .normal) { _ in
        while isHeld.withLock({ $0 }) { sched_yield() }
      }
      for number in 1...60 {
        let records = (0..<5).map {
          JournalRecord.admitted(.sample("\(number) \($0)", at: Int64(number * 5 + $0)))
        }
        store.append(records, to: claim, sync: .normal) { result in
          counts.withLock { counts in
            if let error = result.failure {
              #expect(error.code == .busy && error.isCertain)
              counts.refused += 1
            } else {
              counts.written += 1
            }
          }
          if number == 60 { continuation.resume() }
        }
      }
      isHeld.withLock { $0 = false }
    }
    let (written, refused) = counts.withLock { $0 }
    #expect(written >= 20 && written + refused == 60 && refused > 0)
    #expect(try await store.claim(pump).get().rows.count == written * 5)
    // One that is larger than the bound is taken when nothing else waits.
    let again = JournalClaim(device: pump, epoch: 2)
    let many = (1...150).map { JournalRecord.admitted(.sample("many \($0)", at: 1_000)) }
    #expect(await store.append(many, to: again).value == [])
  }

  @Test("reading sees what is committed while the store writes, and leaves no trace")
  func readingBesideAWriter() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let claim = try await store.claim(pump).get().claim
    _ = await store.claim(lock)
    await store.append([.admitted(.sample("a", at: 1))], to: claim)
    let names = folder.names
    let seen = try SQLiteJournalStore.read(at: folder.journal)
    #expect(seen == [pump: [.sample("a", at: 1)], lock: []])
    #expect(folder.names == names)
    await store.append([.admitted(.sample("b", at: 2, isSensitive: true))], to: claim)
    #expect(try SQLiteJournalStore.read(at: folder.journal)[pump]?.count == 2)
    store.close()
    // The file alone, as from a copy, and in a folder without the rest.
    folder.write(folder.bytes("journal.sqlite"), to: "copy")
    #expect(try SQLiteJournalStore.read(at: folder.path + "/copy")[pump]?.count == 2)
    #expect(!folder.names.contains("copy-wal"))
  }

  @Test("reading finds what is in a log that nobody wrote back")
  func readingAfterACrash() async throws {
    let path = folder.journal
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let store = try SQLiteJournalStore(at: path)
      let claim = try await store.claim(pump).get().claim
      await store.append([.admitted(.sample("a", at: 1))], to: claim)
      kill(getpid(), SIGKILL)
    }
    let before = (folder.bytes("journal.sqlite"), folder.bytes("journal.sqlite-wal"))
    #expect(try SQLiteJournalStore.read(at: path)[pump]?.map(\.id) == ["a"])
    #expect(folder.bytes("journal.sqlite") == before.0)
    #expect(folder.bytes("journal.sqlite-wal") == before.1)
    // A copy without the log's index is not read half.
    unlink(path + "-shm")
    #expect(throws: JournalStoreError.self) { try SQLiteJournalStore.read(at: path) }
    let store = try SQLiteJournalStore(at: path)
    #expect(try await store.claim(pump).get().rows.map(\.id) == ["a"])
  }
}
