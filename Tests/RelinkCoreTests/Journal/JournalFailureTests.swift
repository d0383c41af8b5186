import BluetoothWire
import Testing

@testable import RelinkCore

/// Commits that fail, certainly or not, and commits that never come.
@Suite struct JournalFailureTests {
  private var bench = JournalBench(durable: true)
  private let lock = JournalBench.lock
  private let level = JournalBench.level

  private mutating func retry() {
    bench.pass(31)
    bench.journal.retryDue(now: bench.now.monotonic)
  }

  // MARK: Records

  @Test mutating func whatCertainlyCannotBeRecordedIsNotSentAtOnce() {
    bench.durable(1)
    let effects = bench.failCommit()
    #expect(
      effects.settled == [
        Settlement(number: bench.op(1), outcome: .notSent(.storeFailed(JournalBench.error())))
      ])
    #expect(bench.journal.entries == [])
    retry()
    // It never became an operation: the same call may be made again.
    #expect(bench.durable(2, .write(lock, [1]), id: "op1") == .recorded(timer: nil))
    bench.commit()
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func whatMayBeRecordedIsTriedAgainAndNotOffered() {
    bench.durable(1)
    #expect(bench.failCommit(isCertain: false, isDone: true).settled == [])
    #expect(bench.state(1) == .recording)
    #expect(bench.offer() == nil)
    retry()
    bench.commit()
    #expect(bench.state(1) == .queued)
    #expect(bench.disk.rows.count == 1)
    #expect(bench.markAndOffer() == 1)
  }

  @Test mutating func whatMayBeRecordedIsNotToldAsNotSentWhenALaterAttemptFails() {
    bench.durable(1)
    bench.failCommit(isCertain: false, isDone: true)
    retry()
    // The second attempt certainly failed; the first may be on the disk, where the next process would find it.
    #expect(bench.failCommit().settled == [])
    #expect(bench.state(1) == .recording)
    retry()
    bench.commit()
    #expect(bench.markAndOffer() == 1)
  }

  @Test mutating func whatMayBeRecordedIsADoubtWhenTheStoreIsLost() {
    bench.durable(1)
    bench.failCommit(isCertain: false, isDone: true)
    bench.durable(2, .write(level, [2]))
    retry()
    bench.failCommit(.superseded)
    guard case .indeterminate(let doubt) = bench.outcomes(1).first else {
      Issue.record("\(bench.outcomes(1))")
      return
    }
    #expect(doubt.offers == 0)
    #expect(bench.outcomes(2) == [.notSent(.storeFailed(JournalBench.error(.superseded)))])
  }

  @Test mutating func aCancelledOneThatCouldNotBeRecordedKeepsItsOutcome() {
    bench.durable(1)
    bench.beginCommit()
    bench.cancel(1)
    bench.failCommit()
    #expect(bench.outcomes(1) == [.notSent(.cancelled)])
  }

  @Test mutating func aCancelledOneThatMayBeRecordedWaits() {
    bench.durable(1)
    bench.beginCommit()
    bench.cancel(1)
    bench.failCommit(isCertain: false, isDone: true)
    #expect(bench.outcomes(1) == [])
    retry()
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.cancelled)])
  }

  @Test mutating func whatCalledForNothingElseStillGoesWhileTheStoreFails() {
    bench.durable(1)
    bench.commit()
    bench.durable(2, .write(level, [2]))
    bench.failCommit()
    #expect(bench.markAndOffer() == nil)
    bench.call(3, .read(level))
    #expect(bench.offer() == 3)
  }

  // MARK: Marks

  @Test(arguments: [true, false])
  mutating func nothingIsOfferedBeforeItsMarkIsThere(_ isCertain: Bool) {
    bench.durable(1)
    bench.commit()
    _ = bench.next()
    bench.failCommit(isCertain: isCertain, isDone: !isCertain)
    #expect(bench.offer() == nil)
    #expect(bench.state(1) == .queued)
    retry()
    #expect(bench.markAndOffer() == 1)
  }

  @Test mutating func aMarkThatCertainlyFailedMayGoToAnother() {
    bench.durable(1)
    bench.durable(2, .write(level, [2]))
    bench.commit()
    _ = bench.next()
    bench.failCommit()
    bench.cancel(1)
    retry()
    bench.commit()
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func whatIsMarkedIsNotOfferedWhileTheStoreFails() {
    bench.durable(1)
    bench.durable(2, .write(level, [2]))
    bench.commit()
    _ = bench.next()
    bench.commit()
    bench.durable(3, .write(level, [3]))
    bench.failCommit()
    #expect(bench.offer() == nil)
    retry()
    bench.commit()
    #expect(bench.offer() == 1)
  }

  // MARK: Outcomes

  @Test(arguments: [true, false])
  mutating func anOutcomeIsTriedAgainUntilItIsThere(_ isCertain: Bool) {
    bench.durable(1)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    for _ in 0..<3 {
      #expect(bench.failCommit(isCertain: isCertain, isDone: !isCertain).settled == [])
      retry()
    }
    bench.commit()
    #expect(bench.outcomes(1) == [.succeeded(.done)])
  }

  @Test mutating func anOutcomeThatIsNotCommittedInTimeIsADoubtForItsCallers() throws {
    bench.durable(1, within: 5)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.failCommit()
    bench.pass(5)
    #expect(bench.fireTimer() == [])
    bench.pass(1)
    #expect(bench.fireTimer().count == 1)
    #expect(bench.outcomes(1) == [bench.doubt(.storeFailed(JournalBench.error()))])
    #expect(bench.state(1) == .settling)
    #expect(bench.fireTimer() == [])
    retry()
    bench.commit()
    // Committed at last; nobody is told twice, and the same ID learns the truth.
    #expect(bench.outcomes(1).count == 1)
    #expect(bench.durable(2, .write(lock, [1]), id: "op1") == .kept(.succeeded(.acknowledged)))
  }

  @Test mutating func aCallerWhoJoinsAfterTheOthersWereToldIsToldToo() {
    bench.durable(1, within: 5)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.beginCommit()
    bench.pass(6)
    #expect(bench.fireTimer().count == 1)
    #expect(bench.durable(2, .write(lock, [1]), id: "op1", within: 3) == .joined(bench.op(1)))
    #expect(bench.journal.takeTimer() == bench.seconds(10))
    bench.commit()
    #expect(bench.outcomes(1).last == .succeeded(.done))
  }

  @Test mutating func aCallerWhoJoinsLateIsToldInTimeWithoutTheStore() {
    bench.durable(1, within: 5)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.beginCommit()
    bench.pass(6)
    bench.fireTimer()
    bench.durable(2, .write(lock, [1]), id: "op1", within: 3)
    bench.pass(4)
    #expect(bench.fireTimer().count == 1)
  }

  @Test mutating func nobodyIsToldTwiceWhenTheStoreIsLostInTheEnd() {
    bench.durable(1, within: 5)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.beginCommit()
    bench.pass(6)
    bench.fireTimer()
    bench.failCommit(.closed)
    #expect(bench.outcomes(1).count == 1)
    #expect(bench.journal.entries == [])
  }

  // MARK: The end of the claim

  @Test mutating func aNewerClaimEndsEverythingDurable() {
    bench.durable(1)
    bench.durable(2, .write(level, [2]))
    bench.commit()
    bench.markAndOffer()
    bench.durable(3)
    bench.call(4, .read(lock))
    let error = JournalBench.error(.superseded)
    bench.failCommit(.superseded)
    #expect(bench.outcomes(1) == [bench.doubt(.storeFailed(error))])
    #expect(bench.outcomes(2).count == 1)
    #expect(bench.outcomes(3) == [.notSent(.storeFailed(error))])
    #expect(bench.durable(5) == .refused(.storeFailed(error)))
    // The link still owes an answer on that attribute.
    #expect(bench.offer() == nil)
    bench.answer(1)
    #expect(bench.offer() == 4)
    #expect(bench.journal.log.isEmpty)
    #expect(!bench.journal.needsClaim)
  }

  // MARK: Records that the store does not know

  @Test mutating func aNoteThatTheStoreRefusesHoldsNobodyUp() {
    bench.journal.delivered(OperationID("pruned")!)
    bench.durable(1)
    #expect(bench.commit().recorded == [bench.op(1)])
    #expect(bench.state(1) == .queued)
    #expect(bench.markAndOffer() == 1)
  }

  @Test mutating func aFailureIsSeenFromOutside() {
    bench.journal.isObserved = true
    bench.durable(1)
    bench.failCommit()
    let changes = bench.journal.takeEvents().map(\.change)
    #expect(
      changes == [
        .storeFailed(JournalBench.error()), .settled(.notSent(.storeFailed(JournalBench.error()))),
      ])
  }
}
