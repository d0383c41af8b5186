/// One operation in the journal, from the call to its outcome.
package struct JournalEntry: Hashable, Sendable {
  /// How far an operation has come; it leaves the journal when it is settled.
  ///
  /// ```
  ///            offering             answer
  ///  queued ─────────────► offered ────────► settled
  ///    ▲                      │
  ///    └──────────────────────┘  not taken by the link; or the link was lost and it may be offered again
  /// ```
  package enum State: Hashable, Sendable {
    /// Waits for a link and for its turn.
    case queued
    /// Handed over on a link, under this request ID; the answer is awaited.
    case offered(RequestID)
  }

  /// One time that an operation was handed over.
  package struct Offer: Hashable, Sendable {
    /// The link.
    package var generation: Generation
    /// When.
    package var at: Timestamp
    /// Until when it could still take effect: set once its link is known to be gone.
    package var lastPossibleEffect: MonotonicInstant?
    /// What its link was lost to, once it is.
    package var lostTo: DisconnectReason?
  }

  /// The name of the operation; names are given in call order.
  package let id: OperationNumber
  /// What is asked of the device.
  package let request: GATTRequest
  /// Whether it may be offered again when it is in doubt.
  package let idempotency: Idempotency
  /// When the caller's wait ends and the operation settles; nil for never.
  package let deadline: MonotonicInstant?
  /// How far it has come.
  package internal(set) var state: State
  /// How often it was offered.
  package internal(set) var offers: Int
  /// The latest offer that may have reached the device; nil while none did.
  package internal(set) var lastOffer: Offer?
  /// The value of `lastOffer` before an offer that is not certain yet.
  var previousOffer: Offer?

  init(id: OperationNumber, request: GATTRequest, idempotency: Idempotency, deadline: MonotonicInstant?) {
    self.id = id
    self.request = request
    self.idempotency = idempotency
    self.deadline = deadline
    state = .queued
    offers = 0
  }

  /// What the operation must not overtake and not be overtaken on.
  var orderKey: OrderKey { OrderKey(request) }

  /// The outcome when no answer can come any more and it is not to be offered again.
  func unanswered(notSent: NotSentReason, doubt cause: Doubt.Cause) -> Outcome<GATTAnswer> {
    guard let lastOffer else { return .notSent(notSent) }
    return .indeterminate(
      Doubt(
        cause: cause, generation: lastOffer.generation, offeredAt: lastOffer.at, offers: offers,
        lastPossibleEffect: lastOffer.lastPossibleEffect))
  }
}

/// What two operations must share to be kept in call order: the attribute that they concern.
///
/// Names may leave the service out, so characteristics with one UUID share a key, whatever their service. A request
/// without a characteristic shares a key with its own kind only.
struct OrderKey: Hashable, Sendable {
  private var request: GATTRequest

  init(_ request: GATTRequest) {
    guard let name = request.characteristic else {
      self.request = request
      return
    }
    self.request = .read(Characteristic(name.uuid))
  }
}

/// The end of an operation: its one outcome.
package struct Settlement: Hashable, Sendable {
  /// The operation.
  package var id: OperationNumber
  /// Its outcome.
  package var outcome: Outcome<GATTAnswer>
}
