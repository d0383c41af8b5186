import Relink
import RelinkTesting
import Testing

/// The virtual store: when it answers, what goes wrong in it, what survives.
@Suite struct VirtualJournalStoreTests {
  // MARK: Time

  @Test func anAnswerTakesTheLatencyAndKeepsTheOrder() {
    let desk = Desk(latency: .milliseconds(5))
    desk.claim()
    desk.executor.advance(by: .milliseconds(2))
    desk.append(1)
    desk.executor.advance(by: .milliseconds(2))
    #expect(desk.answers == [])
    #expect(desk.store.waitingCalls == 2)
    desk.executor.advance(by: .milliseconds(1))
    #expect(desk.answers == ["claim 1"])
    desk.executor.advance(by: .milliseconds(2))
    #expect(desk.answers == ["claim 1", "append 1"])
    #expect(desk.executor.timerCount == 0)
    #expect(desk.executor.problems == [])
  }

  @Test func withoutLatencyAnAnswerIsAJobOfItsOwn() {
    let desk = Desk(latency: .zero)
    desk.claim()
    #expect(desk.answers == [])
    desk.executor.run()
    #expect(desk.answers == ["claim 1"])
  }

  @Test func aLateCallHoldsUpThoseBehindIt() {
    let desk = Desk(latency: .milliseconds(5))
    desk.strike(.late(.milliseconds(50)), at: 2, of: .append)
    desk.claim()
    for place in 1...3 { desk.append(place) }
    desk.executor.advance(by: .milliseconds(54))
    #expect(desk.answers == ["claim 1", "append 1"])
    desk.executor.advance(by: .milliseconds(1))
    #expect(desk.answers == ["claim 1", "append 1", "append 2", "append 3"])
  }

  // MARK: Faults

  @Test func aCallThatFailsCommitsNothing() {
    let desk = Desk()
    desk.strike(.failed(.full), at: 2)
    desk.strike(.unknown(isPresent: false), at: 4)
    desk.strike(.unknown(isPresent: true), at: 5)
    desk.claim()
    for place in 1...5 { desk.append(place) }
    desk.executor.advance(by: .seconds(1))
    #expect(
      desk.answers == [
        "claim 1", "append 1: full", "append 2", "append 3: system, uncertain", "append 4: system, uncertain",
        "append 5",
      ])
    #expect(desk.places == [2, 4, 5])
    #expect(desk.store.statistics.failures == 1)
    #expect(desk.store.statistics.unknownFailures == 2)
    #expect(desk.store.faults.strikes == 3)
  }

  @Test func whatHangsIsReleased() {
    let desk = Desk()
    desk.strike(.hang, at: 2)
    desk.claim()
    for place in 1...2 { desk.append(place) }
    desk.executor.advance(by: .seconds(100))
    #expect(desk.answers == ["claim 1"])
    #expect(desk.executor.runUntilIdle().end == .nothingLeft)
    desk.store.release()
    desk.executor.run()
    #expect(desk.answers == ["claim 1", "append 1", "append 2"])
    desk.store.hold()
    desk.append(3)
    desk.executor.advance(by: .seconds(100))
    #expect(desk.answers.count == 3)
    desk.store.release()
    desk.executor.run()
    #expect(desk.answers.last == "append 3")
  }

  @Test func aStoreThatIsDownFailsEverythingUntilItIsHealed() {
    let desk = Desk()
    desk.strike(.down(.readOnly), at: 2)
    desk.strike(.hang, at: 4)
    desk.claim()
    for place in 1...3 { desk.append(place) }
    desk.executor.advance(by: .seconds(1))
    #expect(desk.answers == ["claim 1", "append 1: readOnly", "append 2: readOnly"])
    desk.store.heal()
    desk.executor.run()
    #expect(desk.answers.last == "append 3")
    desk.store.goDown(with: .full)
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    #expect(desk.answers.last == "claim: full")
    #expect(desk.places == [3])
  }

  // MARK: Crashes

  @Test(arguments: 0...3) func aPrefixOfWhatWasNotAnsweredIsThere(kept: Int) {
    let desk = Desk()
    desk.claim()
    desk.append(1)
    desk.executor.advance(by: .seconds(1))
    for place in 2...4 { desk.append(place) }
    let report = desk.store.crash(losingPower: false, keeping: kept)
    #expect(report.unanswered == 3)
    #expect(report.unansweredPresent == kept)
    #expect(report.lostCommits == 0)
    #expect(desk.places == Array(1...(1 + kept)))
    desk.executor.advance(by: .seconds(10))
    #expect(desk.answers == ["claim 1", "append 1"], "the dead hear nothing")
    #expect(desk.executor.timerCount == 0)
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    #expect(desk.answers.last == "claim 2")
  }

  @Test(arguments: 0...4) func thePowerTakesCommitsBackToTheLatestFullOne(kept: Int) {
    let desk = Desk()
    desk.claim()
    desk.append(1, mark: true)
    desk.append(2, sync: .full)
    desk.append(3)
    // Undone as a whole, with what it changed of others.
    desk.append(4, also: [.marked(id: "1", mark: [8]), .pruned(settledBefore: .max, keeping: 0)])
    desk.executor.advance(by: .seconds(1))
    for place in 5...6 { desk.append(place) }
    let report = desk.store.crash(losingPower: true, keeping: kept)
    #expect(report.lostCommits == max(2 - kept, 0))
    #expect(report.unansweredPresent == max(kept - 2, 0))
    #expect(desk.places == Array(1...(2 + kept)))
    #expect(desk.store.rows(of: desk.device).first?.mark == (kept < 2 ? [1] : [8]))
    #expect(desk.store.lastPlace(of: desk.device) == Int64(2 + kept))
    #expect(desk.store.log.count == 3 + kept)
    // What was found is on the disk.
    #expect(desk.store.crash(losingPower: true, keeping: 0).lostCommits == 0)
    #expect(desk.places == Array(1...(2 + kept)))
  }

  @Test func theEndOfAProcessTakesNothingThatWasAnswered() {
    let desk = Desk()
    desk.claim()
    desk.append(1)
    desk.executor.advance(by: .seconds(1))
    desk.store.crash(losingPower: false)
    #expect(desk.places == [1])
    desk.store.crash(losingPower: true, keeping: 0)
    #expect(desk.places == [], "it was still in the memory of the machine")
    #expect(desk.store.epoch(of: desk.device) == 1, "a claim is made as with full")
  }

  @Test func thoseWhoWaitAreToldWhereThatIsWanted() {
    let desk = Desk()
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    desk.append(1)
    desk.append(2)
    desk.store.crash(losingPower: false, keeping: 1, waiters: .failed)
    #expect(desk.answers.count == 1, "not inside the call")
    desk.executor.run()
    #expect(desk.answers.dropFirst() == ["append 1: closed, uncertain", "append 2: closed, uncertain"])
    // A dead process goes on asking for a while.
    desk.append(3)
    desk.executor.run()
    #expect(desk.answers.last == "append 3: closed, uncertain")
    #expect(desk.places == [1])
  }

  @Test func aDeadProcessCommitsNothing() {
    let desk = Desk()
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    desk.store.crash(losingPower: false)
    desk.append(1)
    desk.executor.advance(by: .seconds(1))
    let old = desk.latestClaim
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    desk.append(2)
    desk.append(3, claim: old)
    desk.executor.advance(by: .seconds(1))
    #expect(desk.answers == ["claim 1", "claim 2", "append 2"])
    #expect(desk.places == [2])
  }

  @Test func whatHangsOrIsHeldDiesWithTheProcess() {
    let desk = Desk()
    desk.strike(.hang, at: 1)
    desk.claim()
    desk.store.hold()
    desk.executor.advance(by: .seconds(1))
    desk.store.crash(losingPower: false, keeping: 0)
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    #expect(desk.answers == ["claim 1"])
  }

  @Test func aCallThatWasToFailIsNotThereAfterACrash() {
    let desk = Desk()
    desk.claim()
    desk.executor.advance(by: .seconds(1))
    desk.strike(.failed(.full), at: 1)
    desk.strike(.unknown(isPresent: false), at: 2)
    desk.strike(.unknown(isPresent: true), at: 3)
    for place in 1...3 { desk.append(place) }
    #expect(desk.store.crash(losingPower: false, keeping: 3).unansweredPresent == 1)
    #expect(desk.places == [3])
  }

  @Test func whatSurvivesFollowsFromTheSeed() {
    var counts: [Set<Int>] = []
    for seed in 0..<40 as Range<UInt64> {
      let runs = (0..<2).map { _ in
        let desk = Desk(faults: StoreFaultPlan(seed: seed))
        desk.claim()
        for place in 1...2 { desk.append(place) }
        desk.executor.advance(by: .seconds(1))
        for place in 3...4 { desk.append(place) }
        desk.store.crash(losingPower: true)
        return desk.places.count
      }
      counts.append(Set(runs))
    }
    #expect(counts.allSatisfy { $0.count == 1 }, "the same seed, the same survivors")
    #expect(counts.reduce(into: Set()) { $0.formUnion($1) } == [0, 1, 2, 3, 4])
  }

  // MARK: Inspection

  @Test func theStoreShowsWhatIsInIt() throws {
    let desk = Desk(logLimit: 2)
    desk.claim()
    desk.append(1)
    desk.append(1, sync: .full)
    desk.append(2, also: [.delivered(id: "unknown")])
    desk.executor.advance(by: .seconds(1))
    #expect(desk.answers.suffix(2) == ["append 1: taken", "append 2: invalidRecord"])
    let statistics = desk.store.statistics
    #expect(statistics.calls == 4 && statistics.commits == 3 && statistics.fullCommits == 2)
    #expect(statistics.records == 2 && statistics.refusals == 1 && statistics.longestQueue == 4)
    #expect(desk.store.devices == [desk.device])
    #expect(desk.store.owner(of: desk.device) == "desk")
    let latest = try #require(desk.store.log.last)
    #expect(latest.sync == .full && latest.records.count == 1 && latest.at.nanoseconds == 5_000_000)
    for place in 3...9 { desk.append(place) }
    desk.executor.advance(by: .seconds(1))
    #expect((2...4).contains(desk.store.log.count))
  }
}

/// A store, one device, and what was answered, in words.
private final class Desk: Sendable {
  let executor = ManualExecutor()
  let store: VirtualJournalStore
  let device = DeviceID("7E8B0C9D")!
  private let told = Locked<[String]>([])
  private let claims = Locked(JournalClaim(device: DeviceID("7E8B0C9D")!, epoch: 1))

  init(latency: Duration = .milliseconds(5), logLimit: Int = 100, faults: StoreFaultPlan = .none) {
    store = VirtualJournalStore(
      on: executor, configuration: .init(latency: latency, logLimit: logLimit), faults: faults)
  }

  var answers: [String] { told.withLock { $0 } }
  var places: [Int] { store.rows(of: device).map { Int($0.place) } }
  var latestClaim: JournalClaim { claims.withLock { $0 } }

  func strike(_ fault: StoreFaultPlan.Fault, at ordinal: Int, of call: StoreFaultPlan.Call? = nil) {
    var plan = store.faults
    plan.strike(fault, at: ordinal, of: call)
    store.setFaults(plan)
  }

  func claim() {
    store.claim(device, owner: "desk", epoch: nil) { [self] result in
      if case .success(let journal) = result { claims.withLock { $0 = journal.claim } }
      tell("claim", result.map { " \($0.claim.epoch)" })
    }
  }

  /// Admits an operation whose ID is its place.
  func append(
    _ place: Int, sync: JournalSync = .normal, mark: Bool = false, also records: [JournalRecord] = [],
    claim: JournalClaim? = nil
  ) {
    let row = JournalRow(
      id: "\(place)", place: Int64(place), operation: [0], fingerprint: [0], isSensitive: false,
      admittedAt: 0,
      mark: mark ? [1] : nil)
    store.append([.admitted(row)] + records, to: claim ?? latestClaim, sync: sync) { [self] result in
      tell("append \(place)", result.map { $0.isEmpty ? "" : ": taken" })
    }
  }

  private func tell(_ call: String, _ result: Result<String, JournalStoreError>) {
    let words =
      switch result {
      case .success(let words): words
      case .failure(let error): ": \(error.code)" + (error.isCertain ? "" : ", uncertain")
      }
    told.withLock { $0.append(call + words) }
  }
}
