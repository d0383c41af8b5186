import Relink
import RelinkSQLite
import Testing

@Suite("Claims on a SQLite journal")
struct ClaimTests {
  let folder = StoreFolder()

  @Test("a newer claim supersedes every earlier one, for good")
  func newerSupersedes() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    let first = try await store.claim(pump).get().claim
    let second = try await store.claim(pump).get().claim
    #expect((first.epoch, second.epoch) == (1, 2))
    let refused = await store.append([.admitted(.sample("a", at: 1))], to: first, sync: .full)
    #expect(refused.failure?.code == .superseded)
    #expect(refused.failure?.isCertain == true)
    #expect(await store.append([.admitted(.sample("b", at: 1))], to: second).value == [])
    #expect(try await store.claim(pump).get().rows.map(\.id) == ["b"])
  }

  @Test("an epoch that was given, or a lower one, is superseded; a higher one counts from there")
  func explicitEpochs() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    #expect(try await store.claim(pump, epoch: 7).get().claim.epoch == 7)
    #expect(await store.claim(pump, epoch: 7).failure?.code == .superseded)
    #expect(await store.claim(pump, epoch: 3).failure?.code == .superseded)
    #expect(try await store.claim(pump).get().claim.epoch == 8)
    #expect(
      try await store.claim(pump, epoch: UInt64(Int64.max) + 5).get().claim.epoch == UInt64(Int64.max) + 5)
    #expect(await store.claim(pump, epoch: 9).failure?.code == .superseded)
    #expect(try await store.claim(pump, epoch: .max).get().claim.epoch == .max)
    #expect(await store.claim(pump).failure?.code == .superseded)
    // A device's epochs are its own.
    #expect(try await store.claim(lock).get().claim.epoch == 1)
  }

  @Test("epochs go on after a restart, and a claim of the store before is superseded")
  func epochsLast() async throws {
    var store = try SQLiteJournalStore(at: folder.journal)
    let before = try await store.claim(pump).get().claim
    store.close()
    store = try SQLiteJournalStore(at: folder.journal)
    #expect(try await store.claim(pump).get().claim.epoch == 2)
    #expect(await store.append([], to: before).failure?.code == .superseded)
    let nobody = JournalClaim(device: lock, epoch: 1)
    #expect(await store.append([], to: nobody).failure?.code == .superseded)
  }

  @Test("who claims is there to be read")
  func ownerIsNamed() async throws {
    let store = try SQLiteJournalStore(at: folder.journal)
    _ = await store.claim(pump, owner: "gateway '7'")
    store.close()
    #expect(
      try sqlite(folder.journal, "SELECT device, owner, epoch FROM claims") == "\(pump)|gateway '7'|1\n")
  }
}
