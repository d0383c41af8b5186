@testable import RelinkCore

// Inputs of which a test says only what matters to it: nothing special about an operation, and no time where the journal
// does not look at it.
extension OperationJournal {
  init(policy: JournalPolicy) {
    self.init(policy: policy, now: .start)
  }

  mutating func operationRequested(
    _ number: OperationNumber, _ request: GATTRequest, idempotency: Idempotency, deadline: MonotonicInstant?
  ) -> Admission {
    operationRequested(
      Call(number: number, request: request, idempotency: idempotency, deadline: deadline), now: .start)
  }

  /// The operation that is to be offered next on a plain link.
  mutating func nextOffer(taking room: Room) -> JournalEntry? {
    guard case .offer(let number, _) = next(taking: room, on: LinkFacts(Generation(rawValue: 1)), now: .start)
    else {
      return nil
    }
    return entries.first { $0.number == number }
  }

  mutating func offerNotTaken(_ number: OperationNumber) {
    offerNotTaken(number, now: .start)
  }

  mutating func offerRefused(_ number: OperationNumber, _ refusal: GATTRefusal) -> Settlement? {
    offerRefused(number, refusal, now: .start)
  }

  mutating func answered(_ request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) -> Settlement? {
    answered(request, with: answer, now: .start)
  }

  mutating func cancelled(_ number: OperationNumber) -> Abandonment? {
    cancelled(number, now: .start)
  }

  mutating func delivered(_ id: OperationID) {
    delivered(id, now: .start)
  }

  mutating func retryDue(now: MonotonicInstant) {
    retryDue(now: .at(now))
  }

  mutating func settleAll(notSent: NotSentReason, doubt: Doubt.Cause) -> [Abandonment] {
    settleAll(notSent: notSent, doubt: doubt, now: .start)
  }
}

extension Timestamp {
  /// All three clocks at their origins.
  static let start = Timestamp(monotonic: .zero, bootTime: 0, wall: 0)

  /// All three clocks at the same reading, as right after a boot at the origin of time.
  static func at(_ instant: MonotonicInstant) -> Timestamp {
    Timestamp(monotonic: instant, bootTime: instant.nanoseconds, wall: instant.nanoseconds)
  }
}
