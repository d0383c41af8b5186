import BluetoothWire
import Testing

@testable import RelinkCore

/// What is too late, and how that is counted: deadlines, instants after which nothing is offered, suspensions.
@Suite struct JournalExpiryTests {
  private var bench = JournalBench()
  private let lock = JournalBench.lock

  private mutating func call(_ number: Int64, _ tag: Idempotency = .idempotent, before seconds: Int64) {
    let limit = bench.after(seconds)
    bench.call(number, nil, tag) { $0.offerBefore = limit }
  }

  // MARK: The instant after which nothing is offered

  @Test mutating func whatIsNotOfferedInTimeEndsAsExpired() {
    call(1, before: 5)
    bench.pass(5)
    #expect(bench.fireTimer().map(\.settlement?.outcome) == [.notSent(.expired)])
    #expect(bench.journal.entries == [])
  }

  @Test mutating func whatIsTooLateIsNotOfferedEvenBeforeTheTimer() {
    call(1, before: 5)
    bench.pass(5)
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [.notSent(.expired)])
  }

  @Test mutating func whatIsPastItsDeadlineIsNotOfferedEvenBeforeTheTimer() {
    bench.call(1, within: 5)
    bench.pass(5)
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [.notSent(.deadline)])
  }

  @Test mutating func itIsAWaitOfItsOwnBesideTheDeadline() {
    let limit = bench.after(5)
    let admission = bench.call(1, within: 30) { $0.offerBefore = limit }
    #expect(admission == .recorded(timer: bench.seconds(5)))
    bench.offer()
    bench.pass(5)
    let fired = bench.journal.timerFired(now: bench.now)
    #expect(fired.expired == [])
    #expect(fired.timer == bench.seconds(30))
  }

  @Test mutating func whatIsOutIsNotOfferedOnceMoreAfterALoss() {
    call(1, before: 5)
    bench.offer()
    bench.pass(5)
    #expect(bench.fireTimer() == [])
    #expect(bench.lose().settled.map(\.outcome) == [bench.doubt(.expired, until: 5)])
  }

  @Test mutating func whatIsOutStillSucceeds() {
    call(1, before: 5)
    bench.offer()
    bench.pass(5)
    bench.fireTimer()
    #expect(bench.answer(1)?.outcome == .succeeded(.done))
  }

  @Test mutating func whatIsOutAndDidNotReachTheDeviceEndsWithItsLink() {
    call(1, before: 5)
    bench.offer()
    bench.pass(5)
    bench.fireTimer()
    #expect(bench.lose(inDoubt: []).settled.map(\.outcome) == [.notSent(.expired)])
  }

  @Test mutating func whatTheLinkGivesBackTooLateEndsAtOnce() {
    call(1, before: 5)
    bench.offer()
    bench.pass(5)
    bench.fireTimer()
    #expect(bench.answer(1, .failure(.refused(.calledOff)))?.outcome == .notSent(.expired))
  }

  @Test mutating func whatWaitsToBeOfferedAgainIsADoubt() {
    call(1, before: 5)
    bench.offer()
    bench.pass(1)
    bench.lose()
    bench.pass(4)
    #expect(bench.fireTimer().map(\.settlement?.outcome) == [bench.doubt(.expired, until: 1)])
  }

  @Test(arguments: [.applied, .notApplied, .unknown] as [Verdict])
  mutating func whatIsLookedAtEndsAsItsProbeSays(_ verdict: Verdict) {
    call(1, .verified(by: .named("p")), before: 5)
    bench.offer()
    bench.lose()
    bench.probe()
    bench.pass(5)
    #expect(bench.fireTimer() == [])
    let expected: Outcome<GATTAnswer> =
      switch verdict {
      case .applied: .succeeded(.done)
      case .notApplied: .notSent(.expired)
      case .unknown: bench.doubt(.probeInconclusive, until: 0)
      }
    #expect(bench.probed(1, verdict)?.outcome == expected)
  }

  @Test mutating func aDurableOneThatExpiresWhileItIsRecordedIsNeverOffered() {
    bench = JournalBench(durable: true)
    let limit = bench.after(1)
    bench.durable(1) { $0.offerBefore = limit }
    bench.beginCommit()
    bench.pass(1)
    #expect(bench.fireTimer().map(\.settlement) == [nil])
    #expect(bench.state(1) == .settling)
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.expired)])
  }

  // MARK: What an expiry does to the link

  @Test(arguments: [.keepLink, .dropLink] as [ExpiryAction])
  mutating func theLinkIsDroppedWhereThatWasAskedForAndTheDeviceHasTheRequest(_ action: ExpiryAction) {
    bench.call(1, within: 5) { $0.onExpiry = action }
    bench.call(2, within: 5) { $0.onExpiry = action }
    bench.offer()
    bench.pass(5)
    #expect(
      bench.fireTimer() == [
        OperationJournal.Abandonment(
          settlement: Settlement(
            number: bench.op(1), outcome: bench.doubt(.deadline, until: action == .dropLink ? 39 : nil)),
          abandon: bench.request(1), dropsLink: action == .dropLink),
        OperationJournal.Abandonment(
          settlement: Settlement(number: bench.op(2), outcome: .notSent(.deadline))),
      ])
  }

  @Test mutating func aDurableOneDropsTheLinkBeforeItsOutcomeIsCommitted() {
    bench = JournalBench(durable: true)
    bench.durable(1, within: 5) { $0.onExpiry = .dropLink }
    bench.commit()
    bench.markAndOffer()
    bench.pass(5)
    #expect(
      bench.fireTimer() == [
        OperationJournal.Abandonment(settlement: nil, abandon: bench.request(1), dropsLink: true)
      ])
    bench.commit()
    #expect(bench.outcomes(1) == [bench.doubt(.deadline, until: 39)])
  }

  @Test mutating func theDoubtOfALinkThatIsDroppedEndsWithTheLongestThatItCanLive() {
    bench.call(1, .read(lock), within: 5) { $0.onExpiry = .dropLink }
    bench.call(2, .writeReliably([ReliableWrite(JournalBench.level, [1])]), within: 60)
    #expect(bench.offers(2) == [1, 2])
    bench.pass(5)
    bench.fireTimer()
    #expect(bench.outcomes(1) == [bench.doubt(.deadline, until: 39)])
    _ = bench.journal.linkLost(
      bench.generation, reason: .operationExpired, inDoubt: [bench.request(2)], isGone: false, now: bench.now)
    #expect(bench.entry(2)?.lastOffer?.lastPossibleEffect == bench.seconds(39))
  }

  @Test mutating func thatAnOfferIsDisprovenIsSeen() {
    bench.journal.isObserved = true
    bench.call(1, within: 5)
    bench.offer()
    bench.pass(5)
    bench.journal.offerDisproven(bench.request(1), now: bench.now)
    bench.fireTimer()
    let events = bench.journal.takeEvents()
    #expect(
      events.map(\.change)
        == [.recorded, .offered(bench.generation, number: 1), .notTaken, .settled(.notSent(.deadline))])
    #expect(events.map(\.operation.offers) == [0, 1, 0, 0])
    #expect(events.map(\.at.monotonic) == [0, 0, 5, 5].map { bench.seconds($0) })
  }

  @Test mutating func whatWasCalledOffLeavesTheDoubtOfTheOfferBefore() {
    bench.call(1, within: 5) { $0.onExpiry = .dropLink }
    bench.offer()
    bench.pass(1)
    bench.lose()
    bench.offer()
    bench.pass(4)
    bench.journal.offerDisproven(bench.request(1), now: bench.now)
    bench.fireTimer()
    #expect(bench.outcomes(1) == [bench.doubt(.deadline, until: 1)])
  }

  // MARK: Suspension

  @Test mutating func timeThatWasSleptThroughCountsForEveryLimit() {
    call(1, before: 60)
    bench.call(2, within: 50)
    bench.suspend(45)
    #expect(bench.journal.noteSuspension(bench.now) == true)
    #expect(bench.journal.takeTimer() == bench.seconds(5))
    bench.pass(5)
    #expect(bench.fireTimer().map(\.settlement?.number) == [bench.op(2)])
    bench.pass(10)
    #expect(bench.fireTimer().map(\.settlement?.number) == [bench.op(1)])
  }

  @Test mutating func whatWasSleptThroughBeforeTheCallDoesNotCountForIt() {
    bench.suspend(3_600)
    #expect(bench.call(1, within: 30) == .recorded(timer: bench.seconds(30)))
    #expect(bench.journal.noteSuspension(bench.now) == false)
    #expect(bench.entry(1)?.deadline == bench.seconds(30))
  }

  @Test mutating func aCallAfterASleepBringsTheOthersForward() {
    bench.call(1, within: 30)
    bench.suspend(20)
    bench.call(2, .read(JournalBench.level), within: 5)
    #expect(bench.entry(1)?.deadline == bench.seconds(10))
    #expect(bench.journal.takeTimer() == bench.seconds(5))
  }

  @Test mutating func theWaitForACommitIsNotSleptAway() {
    bench = JournalBench(durable: true)
    bench.durable(1, within: 60)
    bench.commit()
    bench.suspend(600)
    bench.cancel(1)
    #expect(bench.journal.noteSuspension(bench.now) == false)
    #expect(bench.fireTimer() == [])
    bench.pass(1)
    #expect(bench.fireTimer().count == 1)
  }

  @Test mutating func aCommitThatWasSleptThroughHasASecondAwake() {
    bench = JournalBench(durable: true)
    bench.durable(1, within: 60)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.suspend(600)
    #expect(bench.fireTimer() == [])
    bench.pass(milliseconds: 999)
    #expect(bench.fireTimer() == [])
    bench.suspend(600)
    bench.pass(milliseconds: 1)
    #expect(bench.fireTimer().count == 1)
  }

  @Test mutating func theBootTimeOfALimitIsTheSameBeforeAndAfterASleep() {
    bench.call(1, within: 30)
    let due = bench.journal.bootTime(of: bench.seconds(30))
    #expect(due == 30_000_000_000)
    bench.suspend(20)
    bench.journal.noteSuspension(bench.now)
    #expect(bench.entry(1)?.deadline.map { bench.journal.bootTime(of: $0) } == due)
  }

  @Test mutating func aTimerThatIsDueByBootTimeFindsItsOperation() {
    bench.call(1, within: 30)
    bench.pass(29)
    // Too short to be told from the time between two readings.
    bench.now.bootTime += 8_000_000
    bench.pass(milliseconds: 992)
    #expect(bench.journal.limitClock(bench.now) == bench.seconds(30))
    #expect(bench.fireTimer().map(\.settlement?.number) == [bench.op(1)])
  }

  @Test mutating func theTimeBetweenTwoReadingsIsNoSuspension() {
    bench.call(1, within: 30)
    for skew in [300, -200, 9_000_000, 100] as [Int64] {
      bench.now.bootTime = bench.now.monotonic.nanoseconds + skew
      #expect(bench.journal.noteSuspension(bench.now) == false)
    }
    #expect(bench.entry(1)?.deadline == bench.seconds(30))
  }

  @Test mutating func manyShortSuspensionsAddUp() {
    bench.call(1, within: 30)
    for _ in 0..<100 {
      bench.now.bootTime += 6_000_000
      bench.journal.noteSuspension(bench.now)
    }
    #expect(bench.entry(1)?.deadline == bench.seconds(30).advanced(by: .milliseconds(-600)))
  }

  @Test mutating func aReadingThatWasHeldUpIsTakenBackByTheNext() {
    bench.call(1, within: 30)
    bench.now.bootTime += 200_000_000
    #expect(bench.journal.noteSuspension(bench.now) == true)
    bench.now.bootTime -= 200_000_000
    #expect(bench.journal.noteSuspension(bench.now) == false)
    #expect(bench.entry(1)?.deadline == bench.seconds(30))
  }

  // MARK: Timers

  @Test mutating func aTimerForACommitDoesNotPutAnEarlierDeadlineOff() {
    bench = JournalBench(durable: true)
    bench.durable(1, within: 5)
    bench.call(2, .read(JournalBench.level), within: nil)
    bench.commit()
    bench.pass(milliseconds: 4_500)
    bench.call(3, .discover, within: 1)
    bench.pass(milliseconds: 500)
    // The first settles, which wants a timer a second from now; the third is due half a second earlier.
    let fired = bench.journal.timerFired(now: bench.now)
    let due = MonotonicInstant(nanoseconds: 5_500_000_000)
    #expect(fired.timer == due)
    #expect(bench.journal.takeTimer() == nil)
  }

  // MARK: No link

  @Test mutating func whatIsNotToWaitFailsWhileNoLinkCanCome() {
    bench.call(1) { $0.ifUnavailable = .fail }
    bench.call(2, .read(JournalBench.level))
    let ends = bench.journal.linkUnavailable(.adapter(.off), now: bench.now)
    #expect(ends.map(\.settlement?.outcome) == [.notSent(.adapterUnavailable(.off))])
    #expect(bench.journal.entries.map(\.number) == [bench.op(2)])
  }

  @Test mutating func whatIsInDoubtAndNotToWaitIsADoubt() {
    bench.call(1, .write(lock, [1]), .verified(by: .named("p"))) { $0.ifUnavailable = .fail }
    bench.call(2, .read(JournalBench.level)) { $0.ifUnavailable = .fail }
    #expect(bench.offers(2) == [1, 2])
    #expect(bench.journal.linkUnavailable(.adapter(.off), now: bench.now) == [])
    bench.lose()
    let ends = bench.journal.linkUnavailable(.adapter(.missing), now: bench.now)
    #expect(
      ends.map(\.settlement?.outcome) == [
        bench.doubt(.adapterUnavailable(.missing), until: 0),
        bench.doubt(.adapterUnavailable(.missing), until: 0),
      ])
  }
}
