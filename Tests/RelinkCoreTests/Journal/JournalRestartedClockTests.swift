import BluetoothWire
import Testing

@testable import RelinkCore

/// Limits that are carried over a restart, and records that cannot be read.
@Suite struct JournalRestartedClockTests {
  private var bench = JournalBench(durable: true)
  private let lock = JournalBench.lock

  /// One with both limits, left to a process that begins ten seconds later.
  private mutating func leave(bootID: String?, isWallRight: Bool) {
    let limit = bench.after(60)
    bench.durable(1, within: 90) { $0.offerBefore = limit }
    bench.commit()
    bench.pass(10)
    guard bootID != "boot 1" else { return _ = bench.restart(bootID: bootID, isWallRight: isWallRight) }
    // The clocks of another boot begin anew; the one on the wall goes on.
    bench.now.monotonic = MonotonicInstant(nanoseconds: 4_000_000_000)
    bench.now.bootTime = 4_000_000_000
    bench.restart(bootID: bootID, isWallRight: isWallRight)
  }

  @Test(arguments: [true, false])
  mutating func inTheSameBootTheLimitsGoOn(_ isWallRight: Bool) {
    leave(bootID: "boot 1", isWallRight: isWallRight)
    #expect(bench.entry(-1)?.deadline == bench.seconds(90))
    #expect(bench.journal.takeTimer() == bench.seconds(60))
    #expect(!bench.journal.awaitsClock)
    bench.pass(50)
    #expect(bench.markAndOffer() == nil)
    bench.fireTimer()
    bench.commit()
    #expect(bench.journal.takeReports().map(\.outcome) == [.notSent(.expired)])
  }

  @Test mutating func sleepBetweenTheProcessesCounts() {
    let limit = bench.after(60)
    bench.durable(1) { $0.offerBefore = limit }
    bench.commit()
    bench.suspend(50)
    bench.restart()
    #expect(bench.journal.takeTimer() == bench.seconds(10))
  }

  @Test mutating func sleepBeforeTheClaimIsNotCountedTwice() {
    let limit = bench.after(60)
    bench.durable(1) { $0.offerBefore = limit }
    bench.commit()
    bench.crash()
    bench.journal.claimRequested()
    bench.suspend(50)
    bench.claim()
    #expect(bench.journal.noteSuspension(bench.now) == false)
    #expect(bench.journal.takeTimer() == bench.seconds(10))
  }

  @Test mutating func inAnotherBootTheRightClockGoesOn() {
    leave(bootID: "boot 2", isWallRight: true)
    #expect(bench.entry(-1)?.deadline == bench.seconds(84))
    #expect(bench.journal.takeTimer() == bench.seconds(54))
    #expect(bench.markAndOffer() == -1)
  }

  @Test(arguments: ["boot 2", nil])
  mutating func withAWrongClockItWaitsUntilThatIsRight(_ bootID: String?) {
    leave(bootID: bootID, isWallRight: false)
    #expect(bench.journal.awaitsClock)
    // At the latest when the time since the boot alone is as long as the call was to wait.
    #expect(bench.journal.takeTimer() != nil)
    #expect(bench.markAndOffer() == nil)
    bench.pass(1)
    bench.suspend(3)
    bench.journal.wallClockConfirmed(now: bench.now)
    #expect(!bench.journal.awaitsClock)
    #expect(bench.entry(-1)?.deadline == bench.seconds(81))
    #expect(bench.journal.noteSuspension(bench.now) == false)
    #expect(bench.journal.takeTimer() == bench.seconds(51))
    #expect(bench.markAndOffer() == -1)
  }

  @Test mutating func whatHasNoLimitWaitsForNoClock() {
    bench.durable(1)
    bench.commit()
    bench.restart(bootID: "boot 2", isWallRight: false)
    #expect(!bench.journal.awaitsClock)
    #expect(bench.markAndOffer() == -1)
  }

  @Test mutating func itsKeysWaitWithIt() {
    leave(bootID: "boot 2", isWallRight: false)
    bench.durable(2)
    bench.durable(3, .write(JournalBench.level, [3]))
    bench.commit()
    #expect(bench.markedOffers() == [3])
  }

  @Test mutating func aLimitLongPastEndsItAtOnce() {
    leave(bootID: "boot 2", isWallRight: false)
    bench.now.wall += 1_000_000_000_000
    bench.journal.wallClockConfirmed(now: bench.now)
    #expect(bench.fireTimer().count == 1)
    bench.commit()
    #expect(bench.journal.takeReports().map(\.outcome) == [.notSent(.deadline)])
  }

  // MARK: Records that cannot be read

  private mutating func damage(_ change: (inout JournalRow) -> Void) {
    bench.durable(1)
    bench.commit()
    change(&bench.disk.rows[0])
    bench.restart()
  }

  @Test mutating func whatALaterVersionWroteIsReportedAndLeftToIt() {
    damage { $0.operation = [0xFF] }
    #expect(bench.journal.takeReports().count == 1)
    bench.commit()
    #expect(bench.disk.rows[0].outcome == nil)
    bench.restart()
    #expect(bench.journal.takeReports().count == 1)
  }

  @Test(arguments: [true, false])
  mutating func whatCannotBeReadIsReportedOnce(_ isMarked: Bool) {
    damage {
      $0.operation = []
      if isMarked { $0.mark = [1] }
    }
    #expect(bench.journal.entries == [])
    let reports = bench.journal.takeReports()
    #expect(reports.count == 1)
    #expect(reports.first?.request == nil)
    guard case .indeterminate = reports.first?.outcome else {
      Issue.record("\(reports)")
      return
    }
    #expect(bench.disk.rows[0].outcome != nil)
    bench.journal.delivered(OperationID("op1")!)
    bench.commit()
    bench.restart()
    #expect(bench.journal.takeReports() == [])
  }

  @Test mutating func aMarkThatCannotBeReadIsAMark() {
    damage { $0.mark = [0xFF, 0xFF] }
    guard case .indeterminate(let doubt) = bench.journal.takeReports().first?.outcome else {
      Issue.record("it was not taken for one")
      return
    }
    #expect(doubt.cause == .processEnded)
    #expect(doubt.offers == 1)
  }

  @Test mutating func anOutcomeThatCannotBeReadIsADoubt() {
    damage {
      $0.mark = [1]
      $0.outcome = [0xFF]
    }
    guard case .indeterminate = bench.journal.takeReports().first?.outcome else {
      Issue.record("it was not reported as one")
      return
    }
  }

  @Test mutating func aNameThatCannotBeOneIsLeftAlone() {
    damage { $0.id = "" }
    #expect(bench.journal.entries == [])
    #expect(bench.journal.takeReports() == [])
  }

  @Test mutating func aRecordThatCannotBeReadIsNotDoneUnderItsID() {
    damage {
      $0.operation = [0xFF]
      $0.mark = [1]
    }
    bench.durable(7, .write(lock, [1]), id: "op1")
    bench.commit()
    guard case .indeterminate = bench.outcomes(7).first else {
      Issue.record("\(bench.outcomes(7))")
      return
    }
    #expect(bench.markAndOffer() == nil)
  }

  @Test mutating func numbersAtTheirEndsAreNoEnd() {
    bench.durable(1, nil, .idempotent)
    bench.commit()
    bench.markAndOffer()
    bench.disk.rows[0].mark =
      StoredMark(generation: Generation(rawValue: .max), at: bench.now, offers: .max, bootID: nil).encoded()
    bench.disk.rows[0].place = .max
    bench.disk.lastPlace = .max
    bench.now.wall = .min
    bench.restart()
    #expect(bench.markAndOffer() == -1)
    bench.lose()
    #expect(bench.markAndOffer() == -1)
    bench.durable(2)
    bench.durable(3)
    #expect(bench.commit().recorded == [bench.op(2), bench.op(3)])
  }
}
