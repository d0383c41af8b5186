import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct JournalDeadlineTests {
  private let lock = Characteristic(BluetoothUUID(0xAA01 as UInt16))
  private var journal = OperationJournal(policy: .standard)

  @Test mutating func onlyAnEarlierDeadlineAsksForATimerOfItsOwn() {
    #expect(request(1, deadline: 30) == .recorded(timer: instant(30)))
    #expect(request(2, deadline: 40) == .recorded(timer: nil))
    #expect(request(3, deadline: nil) == .recorded(timer: nil))
    #expect(request(4, deadline: 30) == .recorded(timer: nil))
    #expect(request(5, deadline: 10) == .recorded(timer: instant(10)))
  }

  @Test mutating func aTimerThatFindsNothingDueAsksForTheNext() {
    _ = request(1, deadline: 10)
    _ = request(2, deadline: 40)
    _ = request(3, deadline: 30)
    _ = journal.cancelled(op(1))
    let fired = journal.timerFired(now: .at(instant(10)))
    #expect(fired.expired == [])
    #expect(fired.timer == instant(30))
    #expect(request(4, deadline: 35) == .recorded(timer: nil))
  }

  @Test mutating func aTimerAfterTheLastDeadlineAsksForNone() {
    _ = request(1, deadline: 10)
    _ = request(2, deadline: nil)
    _ = journal.cancelled(op(1))
    #expect(journal.timerFired(now: .at(instant(10))).timer == nil)
    #expect(request(3, deadline: 50) == .recorded(timer: instant(50)))
  }

  @Test mutating func deadlinesExpireInCallOrderAndTellWhatWasSent() {
    _ = request(1, deadline: 20)
    _ = request(2, deadline: 10)
    _ = request(3, deadline: 30)
    journal.offering(op(1), as: RequestID(rawValue: 7), on: Generation(rawValue: 1), now: .at(instant(5)))
    let fired = journal.timerFired(now: .at(instant(20)))
    let doubt = Doubt(
      cause: .deadline, generation: Generation(rawValue: 1), offeredAt: .at(instant(5)), offers: 1,
      lastPossibleEffect: nil)
    #expect(
      fired.expired == [
        OperationJournal.Abandonment(
          settlement: Settlement(number: op(1), outcome: .indeterminate(doubt)),
          abandon: RequestID(rawValue: 7)),
        OperationJournal.Abandonment(
          settlement: Settlement(number: op(2), outcome: .notSent(.deadline)), abandon: nil),
      ])
    #expect(fired.timer == instant(30))
    #expect(journal.entries.map(\.number) == [op(3)])
  }

  @Test mutating func anExpiredRequestKeepsItsAttributeUntilItsAnswer() {
    _ = request(1, deadline: 10)
    _ = request(2, deadline: nil)
    journal.offering(op(1), as: RequestID(rawValue: 7), on: Generation(rawValue: 1), now: .at(instant(5)))
    _ = journal.timerFired(now: .at(instant(10)))
    #expect(journal.nextOffer(taking: .any) == nil)
    #expect(journal.answered(RequestID(rawValue: 7), with: .success(.done)) == nil)
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
  }

  @Test mutating func aDeadlineRunsOnThroughALoss() {
    _ = request(1, deadline: 10)
    journal.offering(op(1), as: RequestID(rawValue: 7), on: Generation(rawValue: 1), now: .at(instant(5)))
    _ = journal.linkLost(
      Generation(rawValue: 1), reason: .remotePowerOff, inDoubt: [RequestID(rawValue: 7)],
      now: .at(instant(6)))
    let doubt = Doubt(
      cause: .deadline, generation: Generation(rawValue: 1), offeredAt: .at(instant(5)), offers: 1,
      lastPossibleEffect: instant(6))
    #expect(
      journal.timerFired(now: .at(instant(10))).expired == [
        OperationJournal.Abandonment(
          settlement: Settlement(number: op(1), outcome: .indeterminate(doubt)), abandon: nil)
      ])
  }

  @Test mutating func settlingEverythingForgetsTheTimer() {
    _ = request(1, deadline: 10)
    _ = journal.settleAll(notSent: .disconnected, doubt: .disconnected)
    #expect(request(2, deadline: 30) == .recorded(timer: instant(30)))
  }

  private func op(_ number: Int64) -> OperationNumber { OperationNumber(rawValue: number) }
  private func instant(_ seconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
  }

  private mutating func request(_ number: Int64, deadline: Int64?) -> OperationJournal.Admission {
    journal.operationRequested(
      op(number), .write(lock, [UInt8(number)]), idempotency: .idempotent,
      deadline: deadline.map { instant($0) })
  }
}
