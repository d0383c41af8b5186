import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct OperationJournalTests {
  private let lock = Characteristic(BluetoothUUID(0xAA01 as UInt16))
  private let level = Characteristic(BluetoothUUID(0xAA02 as UInt16))
  private var journal = OperationJournal(policy: .standard)

  // MARK: Admission

  @Test mutating func anOperationIsRecordedInCallOrder() {
    #expect(request(1, .read(lock)) == .recorded(timer: nil))
    #expect(request(2, .write(level, [1])) == .recorded(timer: nil))
    #expect(
      journal.entries == [
        JournalEntry(
          number: op(1), id: OperationID(op(1)), request: .read(lock), idempotency: .idempotent, deadline: nil
        ),
        JournalEntry(
          number: op(2), id: OperationID(op(2)), request: .write(level, [1]), idempotency: .idempotent,
          deadline: nil),
      ])
    #expect(journal.hasQueued)
  }

  @Test mutating func aCallThatWasHeldUpOnItsWayTakesItsPlace() {
    // Two callers took their numbers; the first of them changed executors before it was admitted.
    request(2, .read(lock))
    request(5, .read(lock))
    request(1, .read(lock))
    request(4, .read(lock))
    #expect(journal.entries.map(\.number) == [op(1), op(2), op(4), op(5)])
    #expect(journal.nextOffer(taking: .any)?.number == op(1))
    for number in [4, 1, 5, 2] as [Int64] { #expect(cancel(number) == .notSent(.cancelled)) }
    #expect(journal.entries.isEmpty)
  }

  @Test func aFullJournalTakesNothingUntilAnOperationHasSettled() {
    var journal = OperationJournal(policy: JournalPolicy(capacity: 2))
    for number in 1...2 as ClosedRange<Int64> {
      let admission = journal.operationRequested(
        op(number), .read(lock), idempotency: .idempotent, deadline: nil)
      #expect(admission == .recorded(timer: nil))
    }
    let refused = journal.operationRequested(op(3), .read(lock), idempotency: .idempotent, deadline: nil)
    #expect(refused == .refused(.journalFull(limit: 2)))
    #expect(journal.entries.map(\.number) == [op(1), op(2)])
    _ = journal.cancelled(op(1))
    let taken = journal.operationRequested(op(4), .read(lock), idempotency: .idempotent, deadline: nil)
    #expect(taken == .recorded(timer: nil))
  }

  // MARK: Order

  @Test mutating func callOrderDecidesAmongDifferentAttributes() {
    request(1, .read(lock))
    request(2, .read(level))
    #expect(journal.nextOffer(taking: .any)?.number == op(1))
    offer(1, as: 10)
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
    offer(2, as: 11)
    #expect(journal.nextOffer(taking: .any) == nil)
    #expect(!journal.hasQueued)
  }

  @Test mutating func aYoungerWriteWaitsForTheOlderOneToTheSameAttribute() {
    request(1, .write(lock, [1]))
    request(2, .write(lock, [2]))
    request(3, .write(level, [3]))
    offer(1, as: 10)
    #expect(journal.nextOffer(taking: .any)?.number == op(3))
    #expect(answer(10, .success(.done)) == Settlement(number: op(1), outcome: .succeeded(.done)))
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
  }

  @Test mutating func aYoungerWriteDoesNotOvertakeOneThatIsInDoubt() {
    request(1, .write(lock, [1]))
    request(2, .write(lock, [2]))
    offer(1, as: 10)
    #expect(lose(inDoubt: [10]).settled == [])
    #expect(journal.nextOffer(taking: .any)?.number == op(1))
    offer(1, as: 11, on: 2)
    #expect(journal.nextOffer(taking: .any) == nil)
    _ = answer(11, .success(.done))
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
  }

  @Test mutating func aYoungerWriteWaitsForTheAnswerThatAnAbandonedOneIsOwed() {
    request(1, .write(lock, [1]))
    request(2, .write(lock, [2]))
    request(3, .write(level, [3]))
    offer(1, as: 10)
    #expect(journal.cancelled(op(1))?.abandon == RequestID(rawValue: 10))
    #expect(journal.nextOffer(taking: .any)?.number == op(3))
    offer(3, as: 11)
    #expect(journal.nextOffer(taking: .any) == nil)
    #expect(answer(10, .success(.done)) == nil)
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
  }

  @Test mutating func theLossOfTheLinkFreesWhatAnAbandonedRequestHeld() {
    request(1, .write(lock, [1]))
    request(2, .write(lock, [2]))
    offer(1, as: 10)
    _ = journal.cancelled(op(1))
    #expect(lose(inDoubt: [10]).inDoubt == 0)
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
  }

  @Test mutating func settlingEverythingFreesWhatAnAbandonedRequestHeld() {
    // The link that owes the answer is closed by then; its last word does not come to the journal.
    request(1, .write(lock, [1]))
    offer(1, as: 10)
    request(2, .read(level))
    offer(2, as: 11)
    _ = journal.cancelled(op(2))
    _ = journal.settleAll(notSent: .disconnected, doubt: .disconnected)
    request(3, .write(lock, [3]))
    request(4, .read(level))
    #expect(journal.nextOffer(taking: .any)?.number == op(3))
    offer(3, as: 12)
    #expect(journal.nextOffer(taking: .any)?.number == op(4))
  }

  @Test mutating func oneAttributeUnderTwoNamesIsOneKey() {
    request(1, .write(lock, [1]))
    request(2, .read(Characteristic(lock.uuid, in: BluetoothUUID(0x1800 as UInt16), occurrence: 1)))
    offer(1, as: 10)
    #expect(journal.nextOffer(taking: .any) == nil)
  }

  @Test mutating func requestsWithoutAttributeWaitForTheirOwnKindOnly() {
    request(1, .discover)
    request(2, .discover)
    request(3, .exchangeMTU)
    offer(1, as: 10)
    #expect(journal.nextOffer(taking: .any)?.number == op(3))
    offer(3, as: 11)
    #expect(journal.nextOffer(taking: .any) == nil)
  }

  @Test mutating func aBusyLinkIsOfferedOnlyWhatFlowsBeside() {
    request(1, .read(lock))
    request(2, .writeWithoutResponse(level, [2]))
    request(3, .writeWithoutResponse(lock, [3]))
    #expect(journal.nextOffer(taking: .withoutResponse)?.number == op(2))
    offer(2, as: 10)
    // The third one may not overtake the read of its attribute.
    #expect(journal.nextOffer(taking: .withoutResponse) == nil)
    #expect(journal.nextOffer(taking: .any)?.number == op(1))
  }

  // MARK: Marking

  @Test mutating func offeringMarksTheOperationBeforeItsBytesLeave() {
    request(1, .write(lock, [1]))
    offer(1, as: 10, at: 5)
    let entry = journal.entries.first
    #expect(entry?.state == .offered(RequestID(rawValue: 10)))
    #expect(entry?.offers == 1)
    #expect(
      entry?.lastOffer
        == JournalEntry.Offer(generation: generation(1), at: .at(instant(5)), lastPossibleEffect: nil))
  }

  @Test(arguments: [Idempotency.idempotent, .nonIdempotent])
  mutating func theMarkGoesWhenTheLinkTookNothing(_ idempotency: Idempotency) {
    request(1, .write(lock, [1]), idempotency)
    let before = journal.entries
    offer(1, as: 10)
    journal.offerNotTaken(op(1))
    #expect(journal.entries.map(\.state) == before.map(\.state))
    #expect(journal.entries.first?.offers == 0)
    #expect(journal.entries.first?.lastOffer == nil)
    #expect(journal.nextOffer(taking: .any)?.number == op(1))
    #expect(cancel(1) == .notSent(.cancelled))
  }

  @Test mutating func takingTheMarkBackKeepsTheDoubtOfAnEarlierOffer() {
    request(1, .write(lock, [1]))
    offer(1, as: 10, at: 5)
    lose(inDoubt: [10], at: 6)
    offer(1, as: 11, on: 2, at: 7)
    journal.offerNotTaken(op(1))
    let doubt = Doubt(
      cause: .cancelled, generation: generation(1), offeredAt: .at(instant(5)), offers: 1,
      lastPossibleEffect: instant(6))
    #expect(cancel(1) == .indeterminate(doubt))
  }

  @Test mutating func takingBackWhatIsNotOfferedChangesNothing() {
    request(1, .read(lock))
    let before = journal.entries
    journal.offerNotTaken(op(1))
    journal.offerNotTaken(op(7))
    journal.offering(op(7), as: RequestID(rawValue: 1), on: generation(1), now: .at(instant(0)))
    #expect(journal.entries == before)
    #expect(journal.offerRefused(op(7), .cannotNotify) == nil)
  }

  @Test mutating func aRefusalThatHoldsOnAnyLinkSettlesAsNotSent() {
    request(1, .read(lock))
    offer(1, as: 10)
    #expect(
      journal.offerRefused(op(1), .characteristicNotFound)
        == Settlement(number: op(1), outcome: .notSent(.refused(.characteristicNotFound))))
    #expect(journal.entries.isEmpty)
  }

  @Test mutating func aRefusalAfterALossLeavesTheDoubtAboutTheFirstOffer() {
    // Offered, lost, and the table of the next link no longer has the characteristic.
    request(1, .write(lock, [1]))
    offer(1, as: 10, at: 5)
    lose(inDoubt: [10], at: 6)
    offer(1, as: 11, on: 2, at: 8)
    let doubt = Doubt(
      cause: .linkLost(.supervisionTimeout), generation: generation(1), offeredAt: .at(instant(5)), offers: 1,
      lastPossibleEffect: instant(6))
    #expect(
      journal.offerRefused(op(1), .characteristicNotFound)
        == Settlement(number: op(1), outcome: .indeterminate(doubt)))
  }

  // MARK: Answers

  @Test mutating func anAnswerSettlesItsOperationOnce() {
    request(1, .read(lock))
    offer(1, as: 10)
    #expect(
      answer(10, .success(.value([7]))) == Settlement(number: op(1), outcome: .succeeded(.value([7]))))
    #expect(answer(10, .success(.value([7]))) == nil)
    #expect(journal.entries.isEmpty)
  }

  @Test mutating func anAnswerToAnotherRequestSettlesNothing() {
    request(1, .read(lock))
    offer(1, as: 10)
    #expect(answer(9, .success(.value([7]))) == nil)
    #expect(journal.entries.map(\.number) == [op(1)])
  }

  @Test(arguments: [(0x03, true), (0x0E, false), (0x80, false)] as [(UInt8, Bool)])
  mutating func aRejectionSaysWhetherItProvesThatNothingWasApplied(_ code: UInt8, _ proof: Bool) {
    request(1, .write(lock, [1]))
    offer(1, as: 10)
    let code = ATTErrorCode(rawValue: code)
    #expect(
      answer(10, .failure(.rejected(code)))
        == Settlement(number: op(1), outcome: .rejected(Rejection(code: code, provesNotApplied: proof))))
  }

  @Test mutating func aRejectionProvesNothingAboutAnEarlierOfferInDoubt() {
    request(1, .write(lock, [1]))
    offer(1, as: 10)
    lose(inDoubt: [10])
    offer(1, as: 11, on: 2)
    let code = ATTErrorCode(rawValue: 0x03)
    #expect(
      answer(11, .failure(.rejected(code)))
        == Settlement(number: op(1), outcome: .rejected(Rejection(code: code, provesNotApplied: false))))
  }

  @Test mutating func aRejectionProvesItselfAfterAnOfferThatNeverLeft() {
    request(1, .write(lock, [1]))
    offer(1, as: 10)
    lose(inDoubt: [])
    offer(1, as: 11, on: 2)
    let code = ATTErrorCode(rawValue: 0x03)
    #expect(
      answer(11, .failure(.rejected(code)))
        == Settlement(number: op(1), outcome: .rejected(Rejection(code: code, provesNotApplied: true))))
  }

  @Test(arguments: [GATTRefusal.calledOff, .linkClosed, .system(105)])
  mutating func whatTheLinkGivesBackIsQueuedAgain(_ refusal: GATTRefusal) {
    request(1, .write(lock, [1]), .nonIdempotent)
    offer(1, as: 10)
    #expect(answer(10, .failure(.refused(refusal))) == nil)
    #expect(journal.entries.first?.state == .queued)
    #expect(journal.entries.first?.lastOffer == nil)
    #expect(journal.nextOffer(taking: .any)?.number == op(1))
  }

  @Test(arguments: [
    GATTRefusal.characteristicNotFound, .cannotNotify, .valueTooLong(limit: 20), .noValues, .notSupported,
    .prepareMismatch,
  ])
  mutating func whatNoLinkWouldTakeSettlesAsNotSent(_ refusal: GATTRefusal) {
    request(1, .write(lock, [1]), .nonIdempotent)
    offer(1, as: 10)
    #expect(
      answer(10, .failure(.refused(refusal)))
        == Settlement(number: op(1), outcome: .notSent(.refused(refusal))))
  }

  @Test mutating func aMalformedAnswerLeavesADoubt() {
    request(1, .write(lock, [1]), .nonIdempotent)
    offer(1, as: 10, at: 4)
    let doubt = Doubt(
      cause: .malformedAnswer, generation: generation(1), offeredAt: .at(instant(4)), offers: 1,
      lastPossibleEffect: nil)
    #expect(
      answer(10, .failure(.malformedAnswer)) == Settlement(number: op(1), outcome: .indeterminate(doubt)))
  }

  // MARK: Losses

  @Test mutating func anIdempotentOperationInDoubtIsOfferedAgain() {
    request(1, .write(lock, [1]))
    offer(1, as: 10)
    let loss = lose(inDoubt: [10])
    #expect(loss.settled == [])
    #expect(loss.inDoubt == 1)
    offer(1, as: 11, on: 2)
    #expect(journal.entries.first?.offers == 2)
    #expect(answer(11, .success(.done)) == Settlement(number: op(1), outcome: .succeeded(.done)))
  }

  @Test mutating func aNonIdempotentOperationInDoubtIsNeverOfferedAgain() {
    request(1, .write(lock, [1]), .nonIdempotent)
    offer(1, as: 10, at: 3)
    let doubt = Doubt(
      cause: .linkLost(.supervisionTimeout), generation: generation(1), offeredAt: .at(instant(3)), offers: 1,
      lastPossibleEffect: instant(9))
    let loss = lose(inDoubt: [10], at: 9)
    #expect(loss.settled == [Settlement(number: op(1), outcome: .indeterminate(doubt))])
    #expect(loss.inDoubt == 1)
    #expect(journal.nextOffer(taking: .any) == nil)
  }

  @Test(arguments: [Idempotency.idempotent, .nonIdempotent])
  mutating func whatDidNotReachTheDeviceIsQueuedWithoutItsMark(_ idempotency: Idempotency) {
    request(1, .write(lock, [1]), idempotency)
    offer(1, as: 10)
    let loss = lose(inDoubt: [])
    #expect(loss.settled == [])
    #expect(loss.inDoubt == 0)
    #expect(journal.entries.first?.offers == 0)
    #expect(cancel(1) == .notSent(.cancelled))
  }

  @Test mutating func aLossSettlesInCallOrderAndKeepsTheRest() {
    request(1, .write(lock, [1]), .nonIdempotent)
    request(2, .read(level))
    request(3, .discover, .nonIdempotent)
    request(4, .write(lock, [4]), .nonIdempotent)
    for (id, request) in [(1, 10), (2, 11), (3, 12)] as [(Int64, UInt64)] { offer(id, as: request) }
    let loss = lose(inDoubt: [12, 10, 11])
    #expect(loss.settled.map(\.number) == [op(1), op(3)])
    #expect(loss.inDoubt == 3)
    #expect(journal.entries.map(\.number) == [op(2), op(4)])
    #expect(journal.entries.allSatisfy { $0.state == .queued })
    #expect(journal.nextOffer(taking: .any)?.number == op(2))
  }

  // MARK: Cancelling

  @Test mutating func cancellingWhatWasNeverOfferedIsNotSent() {
    request(1, .read(lock))
    #expect(
      journal.cancelled(op(1))
        == OperationJournal.Abandonment(
          settlement: Settlement(number: op(1), outcome: .notSent(.cancelled)), abandon: nil))
    #expect(journal.cancelled(op(1)) == nil)
  }

  @Test mutating func cancellingWhatIsOnTheLinkIsADoubtAndTellsTheLink() {
    request(1, .read(lock))
    offer(1, as: 10, at: 2)
    let doubt = Doubt(
      cause: .cancelled, generation: generation(1), offeredAt: .at(instant(2)), offers: 1,
      lastPossibleEffect: nil)
    #expect(
      journal.cancelled(op(1))
        == OperationJournal.Abandonment(
          settlement: Settlement(number: op(1), outcome: .indeterminate(doubt)),
          abandon: RequestID(rawValue: 10)))
    #expect(journal.cancelled(op(1)) == nil)
  }

  @Test mutating func cancellingBetweenTwoOffersIsADoubtAndNothingIsOnTheLink() {
    request(1, .read(lock))
    offer(1, as: 10, at: 2)
    lose(inDoubt: [10], at: 4)
    let doubt = Doubt(
      cause: .cancelled, generation: generation(1), offeredAt: .at(instant(2)), offers: 1,
      lastPossibleEffect: instant(4))
    #expect(
      journal.cancelled(op(1))
        == OperationJournal.Abandonment(
          settlement: Settlement(number: op(1), outcome: .indeterminate(doubt)), abandon: nil))
  }

  // MARK: Ends of everything

  @Test mutating func settlingEverythingTellsWhatWasSentFromWhatWasNot() {
    request(1, .write(lock, [1]))
    request(2, .write(lock, [2]))
    offer(1, as: 10, at: 2)
    let doubt = Doubt(
      cause: .ended, generation: generation(1), offeredAt: .at(instant(2)), offers: 1, lastPossibleEffect: nil
    )
    #expect(
      journal.settleAll(notSent: .ended, doubt: .ended) == [
        OperationJournal.Abandonment(
          settlement: Settlement(number: op(1), outcome: .indeterminate(doubt)),
          abandon: RequestID(rawValue: 10)),
        OperationJournal.Abandonment(
          settlement: Settlement(number: op(2), outcome: .notSent(.ended)), abandon: nil),
      ])
    #expect(journal.entries.isEmpty)
    #expect(journal.settleAll(notSent: .ended, doubt: .ended) == [])
  }

  // MARK: Parts

  private func op(_ number: Int64) -> OperationNumber { OperationNumber(rawValue: number) }
  private func generation(_ number: UInt64) -> Generation { Generation(rawValue: number) }
  private func instant(_ seconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
  }

  @discardableResult
  private mutating func request(
    _ number: Int64, _ request: GATTRequest, _ idempotency: Idempotency = .idempotent
  ) -> OperationJournal.Admission {
    journal.operationRequested(op(number), request, idempotency: idempotency, deadline: nil)
  }

  private mutating func offer(_ number: Int64, as request: UInt64, on link: UInt64 = 1, at time: Int64 = 0) {
    journal.offering(
      op(number), as: RequestID(rawValue: request), on: generation(link), now: .at(instant(time)))
  }

  private mutating func answer(_ request: UInt64, _ answer: Result<GATTAnswer, GATTFailure>) -> Settlement? {
    journal.answered(RequestID(rawValue: request), with: answer)
  }

  private mutating func cancel(_ number: Int64) -> Outcome<GATTAnswer>? {
    journal.cancelled(op(number))?.settlement?.outcome
  }

  @discardableResult
  private mutating func lose(
    inDoubt: [UInt64], at time: Int64 = 1
  ) -> OperationJournal.Loss {
    journal.linkLost(
      generation(1), reason: .supervisionTimeout, inDoubt: inDoubt.map(RequestID.init(rawValue:)),
      now: .at(instant(time)))
  }
}
