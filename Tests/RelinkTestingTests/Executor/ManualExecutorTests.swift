import Relink
import RelinkTesting
import Testing

/// What happened, in order, from whatever ran.
final class Journal: Sendable {
  private let lines = Locked<[String]>([])
  func note(_ line: String) { lines.withLock { $0.append(line) } }
  var all: [String] { lines.withLock { $0 } }
}

private final class Owner: Sendable {}

/// Something that posts its last word.
private final class Mourned: Sendable {
  private let executor: ManualExecutor
  private let journal: Journal

  init(_ executor: ManualExecutor, _ journal: Journal) {
    self.executor = executor
    self.journal = journal
  }

  deinit { executor.post { [journal] in journal.note("gone") } }
}

@Suite struct ManualExecutorTests {
  let executor = ManualExecutor()
  let journal = Journal()
  private let owner = Owner()

  private func timer(_ number: Int) -> TimerID { TimerID(owner: owner, number: number) }

  @Test func postedWorkRunsInOrderAndNeverInsideTheCall() {
    executor.post { [executor, journal] in
      journal.note("first")
      executor.post { journal.note("third") }
      journal.note("still first")
    }
    executor.post { [journal] in journal.note("second") }
    #expect(journal.all.isEmpty)
    #expect(executor.pendingJobs == 2)
    #expect(executor.run() == 3)
    #expect(journal.all == ["first", "still first", "second", "third"])
    #expect(executor.pendingJobs == 0)
  }

  @Test func stepRunsOneJob() {
    for number in 1...2 { executor.post { [journal] in journal.note("\(number)") } }
    #expect(executor.step())
    #expect(journal.all == ["1"])
    #expect(executor.step())
    #expect(!executor.step())
    #expect(journal.all == ["1", "2"])
  }

  @Test func timersFireInTheOrderOfTheirInstantsEachFollowedByItsJobs() {
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(2))) { [executor, journal] in
      journal.note("two at \(executor.now.nanoseconds)")
      executor.post { journal.note("job of two") }
    }
    executor.setTimer(timer(2), at: .zero.advanced(by: .seconds(1))) { [journal] in journal.note("one") }
    executor.setTimer(timer(3), at: .zero.advanced(by: .seconds(2))) { [journal] in journal.note("two again")
    }
    #expect(executor.timerCount == 3)
    executor.advance(by: .milliseconds(999))
    #expect(journal.all.isEmpty)
    executor.advance(by: .seconds(5))
    #expect(journal.all == ["one", "two at 2000000000", "job of two", "two again"])
    #expect(executor.now == .zero.advanced(by: .milliseconds(5999)))
    #expect(executor.timerCount == 0)
  }

  @Test func cancelledAndReplacedTimersDoNotFire() {
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(1))) { [journal] in journal.note("old") }
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(3))) { [journal] in journal.note("new") }
    executor.setTimer(timer(2), at: .zero.advanced(by: .seconds(1))) { [journal] in journal.note("gone") }
    executor.cancelTimer(timer(2))
    executor.cancelTimer(timer(9))
    executor.advance(by: .seconds(2))
    #expect(journal.all.isEmpty)
    #expect(executor.runUntilIdle().end == .nothingLeft)
    #expect(journal.all == ["new"])
  }

  /// Sets the timer to one that holds the last reference to something that posts when it dies.
  private func setMourningTimer() {
    let mourned = Mourned(executor, journal)
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(1))) { withExtendedLifetime(mourned) {} }
  }

  @Test func whatDiesWithATimerMayPost() {
    setMourningTimer()
    executor.cancelTimer(timer(1))
    executor.run()
    #expect(journal.all == ["gone"])
    setMourningTimer()
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(2))) {}
    executor.run()
    #expect(journal.all == ["gone", "gone"])
    setMourningTimer()
    executor.advance(by: .seconds(1))
    #expect(journal.all == ["gone", "gone", "gone"])
  }

  @Test func aTimerThatIsDueFiresInTheNextRunBehindTheJobs() {
    executor.setTimer(timer(1), at: .zero) { [journal] in journal.note("timer") }
    executor.post { [journal] in journal.note("job") }
    executor.run()
    #expect(journal.all == ["job", "timer"])
  }

  @Test func suspendMovesBootTimeAndSystemClockOnly() {
    let before = executor.timestamp()
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(1))) { [journal] in journal.note("fired") }
    executor.suspend(for: .seconds(10))
    executor.run()
    let suspended = executor.timestamp()
    #expect(suspended.monotonic == before.monotonic)
    #expect(suspended.bootTime - before.bootTime == 10_000_000_000)
    #expect(suspended.wall - before.wall == 10_000_000_000)
    #expect(journal.all.isEmpty)
    executor.advance(by: .seconds(1))
    executor.jumpWall(by: .seconds(-3600))
    let after = executor.timestamp()
    #expect(after.monotonic == executor.now)
    #expect(after.bootTime - suspended.bootTime == 1_000_000_000)
    #expect(after.wall - suspended.wall == -3_599_000_000_000)
    #expect(journal.all == ["fired"])
  }

  @Test func aTimerOnBootTimeThatWasSleptThroughFiresInTheNextRun() {
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(30))) { [journal] in journal.note("monotonic")
    }
    executor.setTimer(timer(2), atBootTime: 30_000_000_000) { [journal] in journal.note("boot") }
    executor.setTimer(timer(3), atBootTime: 90_000_000_000) { [journal] in journal.note("later") }
    executor.advance(by: .seconds(2))
    #expect(executor.nextTimer == .zero.advanced(by: .seconds(30)))
    executor.suspend(for: .seconds(58))
    #expect(journal.all.isEmpty)
    #expect(executor.nextTimer.map { $0 <= executor.now } == true)
    executor.run()
    #expect(journal.all == ["boot"])
    #expect(executor.now == .zero.advanced(by: .seconds(2)))
    executor.advance(by: .seconds(27))
    #expect(journal.all == ["boot"])
    #expect(executor.runUntilIdle().end == .nothingLeft)
    #expect(journal.all == ["boot", "monotonic", "later"])
    #expect(executor.timestamp().bootTime == 90_000_000_000)
  }

  @Test func aTimerTakesThePlaceOfOneOfTheSameIDOnTheOtherClock() {
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(1))) { [journal] in journal.note("old") }
    executor.setTimer(timer(1), atBootTime: 2_000_000_000) { [journal] in journal.note("new") }
    executor.setTimer(timer(2), atBootTime: 1_000_000_000) { [journal] in journal.note("gone") }
    executor.cancelTimer(timer(2))
    #expect(executor.timerCount == 1)
    executor.runUntilIdle()
    #expect(journal.all == ["new"])
  }

  @Test func clocksStayInTheirRange() {
    executor.advance(to: .distantFuture)
    #expect(executor.now == .distantFuture)
    #expect(executor.timestamp().wall == .max)
  }

  @Test func runUntilIdleStopsAtItsLimit() {
    executor.setTimer(timer(1), at: .zero.advanced(by: .seconds(10))) { [journal] in journal.note("late") }
    let report = executor.runUntilIdle(within: .seconds(9))
    #expect(report.end == .timeLimit)
    #expect(!report.isDeadlock)
    #expect(executor.now == .zero.advanced(by: .seconds(9)))
    #expect(journal.all.isEmpty)
  }

  @Test func runUntilStopsAtTheJobThatMeetsTheCondition() {
    for number in 1...5 { executor.post { [journal] in journal.note("\(number)") } }
    let report = executor.run(until: { journal.all.count == 3 })
    #expect(report.end == .conditionMet)
    #expect(executor.pendingJobs == 2)
  }

  @Test func aLivelockEndsTheRunAndIsNamed() {
    let bounded = ManualExecutor(jobLimit: 100)
    @Sendable func again() { bounded.post(again) }
    again()
    let report = bounded.runUntilIdle()
    #expect(report.end == .livelock)
    #expect(report.problems == ["100 jobs ran without time moving"])
    #expect(bounded.pendingJobs == 1)
  }

  @Test func aJobFromAnotherThreadIsCountedAndRun() async {
    executor.bind()
    await withTaskGroup(of: Void.self) { group in
      // A task of the group may run on the very thread that made the executor; the main actor's thread is another.
      group.addTask { @MainActor [executor, journal] in
        executor.post { journal.note("foreign") }
        executor.setTimer(TimerID(owner: executor, number: 1), at: .zero) { journal.note("foreign timer") }
        #expect(executor.isIsolatingCurrentContext() == false)
      }
    }
    #expect(executor.foreignJobs == 2)
    #expect(executor.problems == ["2 jobs or timers came from a foreign thread"])
    executor.run()
    #expect(journal.all == ["foreign", "foreign timer"])
  }

  @Test func theOwnerThreadIsIsolatedAlsoBetweenRuns() {
    let own = ManualExecutor()
    let counter = Counter(on: own)
    #expect(counter.assumeIsolated { $0.increment() } == 1)
    own.post { counter.assumeIsolated { _ = $0.increment() } }
    own.run()
    #expect(counter.assumeIsolated { $0.increment() } == 3)
    #expect(own.foreignJobs == 0)
  }
}

/// An actor that runs where it is told to.
actor Counter {
  private let executor: any SessionExecutor
  private var count = 0

  init(on executor: any SessionExecutor) { self.executor = executor }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func increment() -> Int {
    count += 1
    return count
  }
}
