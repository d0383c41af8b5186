import Testing

@testable import RelinkCore

@Suite struct DurableLogTests {
  private var log = DurableLog()

  private func item(
    _ number: Int64, _ purpose: DurableLog.Item.Purpose = .settlement, _ sync: JournalSync = .normal
  ) -> DurableLog.Item {
    DurableLog.Item(
      number: OperationNumber(rawValue: number), purpose: purpose, record: .delivered(id: "\(number)"),
      sync: sync)
  }

  private func seconds(_ count: Double) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: Int64(count * 1_000_000_000))
  }

  private func error(_ isCertain: Bool = true) -> JournalStoreError {
    JournalStoreError(.full, "It is full.", isCertain: isCertain)
  }

  @Test mutating func whatComesWhileABatchIsOutGoesTogetherWithTheNext() {
    log.append(item(1))
    #expect(log.next()?.records == [item(1).record])
    log.append(item(2))
    log.append(item(3))
    #expect(log.next() == nil)
    #expect(log.committed() == [item(1)])
    #expect(log.next()?.records == [item(2).record, item(3).record])
    #expect(!log.isEmpty)
    #expect(log.committed() == [item(2), item(3)])
    #expect(log.isEmpty)
    #expect(log.next() == nil)
  }

  @Test mutating func aBatchIsMadeToLastAsTheStrictestOfItsRecordsSays() {
    log.append(item(1))
    #expect(log.next()?.sync == .normal)
    _ = log.committed()
    log.append(item(2))
    log.append(item(3, .mark, .full))
    log.append(item(4))
    #expect(log.next()?.sync == .full)
  }

  @Test mutating func aBatchThatFailedGoesAgainBeforeEverythingYounger() {
    log.append(item(1))
    _ = log.next()
    log.append(item(2))
    #expect(log.failed(error(), now: .zero) == [])
    #expect(!log.isWorking)
    #expect(log.retryAt == seconds(0.5))
    #expect(log.next() == nil)
    log.retryDue(now: seconds(0.4))
    #expect(log.next() == nil)
    log.retryDue(now: seconds(0.5))
    #expect(!log.isWorking)
    #expect(log.next()?.records == [item(1).record, item(2).record])
    _ = log.committed()
    #expect(log.isWorking)
  }

  @Test mutating func theDelayDoublesUpToItsLimitAndStartsAnewAfterASuccess() {
    log.append(item(1))
    var now = MonotonicInstant.zero
    for delay in [0.5, 1, 2, 4, 8, 16, 30, 30, 30] {
      _ = log.next()
      _ = log.failed(error(), now: now)
      #expect(log.retryAt.map { now.duration(to: $0) } == .milliseconds(Int64(delay * 1_000)))
      now = log.retryAt ?? now
      log.retryDue(now: now)
    }
    _ = log.next()
    _ = log.committed()
    log.append(item(2))
    _ = log.next()
    _ = log.failed(error(), now: .zero)
    #expect(log.retryAt == seconds(0.5))
  }

  @Test mutating func whatCertainlyFailedIsDroppedButForOutcomes() {
    for (number, purpose) in [(1, .admission), (2, .mark), (3, .settlement), (4, .note)]
      as [(Int64, DurableLog.Item.Purpose)]
    {
      log.append(item(number, purpose))
    }
    _ = log.next()
    #expect(log.failed(error(), now: .zero) == [item(1, .admission), item(2, .mark), item(4, .note)])
    log.retryDue(now: seconds(1))
    #expect(log.next()?.records == [item(3).record])
  }

  @Test mutating func whatMayHaveBeenDoneIsNeverDropped() {
    log.append(item(1, .admission))
    _ = log.next()
    #expect(log.failed(error(false), now: .zero) == [])
    log.append(item(2, .admission))
    log.retryDue(now: seconds(1))
    _ = log.next()
    // This time it certainly was not done; the time before it may have been.
    #expect(log.failed(error(), now: seconds(1)) == [item(2, .admission)])
    log.retryDue(now: seconds(3))
    #expect(log.next()?.records == [item(1).record])
  }

  @Test mutating func aStoreThatIsOwedNothingIsTriedAgainByTheNextRecord() {
    log.append(item(1, .mark))
    _ = log.next()
    _ = log.failed(error(), now: .zero)
    #expect(!log.isWorking)
    log.retryDue(now: seconds(0.5))
    #expect(log.isWorking)
    #expect(log.retryAt == nil)
  }

  @Test mutating func aBatchIsTriedWithoutWhatNobodyWaitsFor() {
    log.append(item(1, .note))
    log.append(item(2))
    _ = log.next()
    #expect(log.dropNotes() == true)
    #expect(log.isWorking)
    #expect(log.next()?.records == [item(2).record])
    #expect(log.dropNotes() == false)
  }

  @Test mutating func theEndOfTheStoreDropsEverything() {
    log.append(item(1))
    _ = log.next()
    log.append(item(2))
    log.ended(error())
    #expect(log.isEmpty)
    #expect(!log.isWorking)
    #expect(log.retryAt == nil)
  }

  @Test mutating func whatIsInFlightCannotBeTakenBack() {
    log.append(item(1))
    _ = log.next()
    log.append(item(1, .mark))
    log.append(item(2))
    log.dropPending(of: OperationNumber(rawValue: 1))
    #expect(log.inFlight == [item(1)])
    #expect(log.pending == [item(2)])
  }
}
