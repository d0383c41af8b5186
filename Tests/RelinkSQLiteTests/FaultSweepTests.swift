import Glibc
import Relink
import RelinkSQLite
import Testing

/// Every place at which the disk can fail or the power can go, one after the other, until the script runs clean.
///
/// A normal run tries every fourth place. `RELINK_STORE_SEEDS` gives a number of seeds, and then it is every place for each.
@Suite("A SQLite journal over a disk that breaks")
struct FaultSweepTests {
  struct Sweep: Sendable, CustomTestStringConvertible {
    var kind: FaultSystem.Kind
    var count: Int

    var testDescription: String { "\(kind), \(count == 1 ? "once" : "for good")" }
  }

  static let seeds = getenv("RELINK_STORE_SEEDS").flatMap { UInt64(String(cString: $0)) }

  @Test(
    "what was acknowledged is there, what was refused is not, and nothing is there in part",
    arguments: [
      Sweep(kind: .inputOutput, count: 1), Sweep(kind: .inputOutput, count: .max),
      Sweep(kind: .full, count: 1), Sweep(kind: .full, count: .max), Sweep(kind: .power, count: .max),
    ])
  func sweep(_ sweep: Sweep) async throws {
    let step = FaultSweepTests.seeds == nil ? 4 : 1
    for seed in 1...(FaultSweepTests.seeds ?? 1) {
      var place = 1
      while try await StoreRun.run(
        sweep.kind, from: place, count: sweep.count, seed: seed &* 1_000_003 &+ UInt64(place))
      {
        place += step
      }
      // A script that meets nothing proves nothing.
      #expect(place > 100, "\(sweep.testDescription): \(place)")
      if FaultSweepTests.seeds != nil { print("\(sweep.testDescription), seed \(seed): \(place - 1) places") }
    }
  }

  @Test("a full disk refuses for certain, and the store goes on when there is space")
  func fullDisk() async throws {
    let (folder, system) = (StoreFolder(), try FaultSystem())
    let store = try SQLiteJournalStore(at: folder.journal, system: system.name)
    // Before the file system goes.
    defer { store.close() }
    let claim = try await store.claim(pump).get().claim
    system.plan(.full, from: 1, count: .max)
    for sync in [JournalSync.normal, .full, .full] {
      let error = await store.append([.admitted(.sample("a", at: 1))], to: claim, sync: sync).failure
      #expect(error?.code == .full)
      #expect(error?.isCertain == true)
    }
    system.heal()
    #expect(await store.append([.admitted(.sample("a", at: 1))], to: claim, sync: .full).value == [])
  }

  @Test("a commit whose end nobody can find out is said to be uncertain, until the file opens again")
  func uncertainCommit() async throws {
    let (folder, system) = (StoreFolder(), try FaultSystem())
    let store = try SQLiteJournalStore(at: folder.journal, system: system.name)
    // Before the file system goes.
    defer { store.close() }
    let claim = try await store.claim(pump).get().claim
    var uncertain = 0
    // Somewhere among the calls of an append is the one of its commit.
    for place in 1...30 {
      system.plan(.inputOutput, from: place, count: .max, seed: UInt64(place))
      let result = await store.append(
        [.admitted(.sample("\(place)", at: Int64(place)))], to: claim, sync: .full)
      if result.failure?.isCertain == false { uncertain += 1 }
      let later = await store.append([.admitted(.sample("later", at: 1))], to: claim)
      if system.hasFired, result.failure != nil { #expect(later.failure?.isCertain == true) }
      system.heal()
      #expect(await store.append([], to: claim, sync: .full).value == [])
    }
    #expect(uncertain > 0)
  }

  @Test("only commits that must last wait for the disk")
  func syncs() async throws {
    let (folder, system) = (StoreFolder(), try FaultSystem())
    let store = try SQLiteJournalStore(at: folder.journal, system: system.name)
    // Before the file system goes.
    defer { store.close() }
    let claim = try await store.claim(pump).get().claim
    // The first commit after the log was emptied makes its head last.
    await store.append([.admitted(.sample("a", at: 1))], to: claim)
    let before = system.syncs
    await store.append([.admitted(.sample("b", at: 2))], to: claim)
    await store.append([.marked(id: "b", mark: [])], to: claim)
    #expect(system.syncs == before)
    await store.append([.settled(id: "b", outcome: [], at: 1, operation: nil)], to: claim, sync: .full)
    #expect(system.syncs == before + 1)
  }
}
