public import BluetoothWire

/// Whether a request may be repeated when a link died and nobody knows whether it took effect.
@nonexhaustive
public enum Idempotency: Hashable, Sendable {
  /// Twice is as good as once: offered again after the next ready.
  case idempotent
  /// Twice would be wrong: never offered again once it was offered.
  case nonIdempotent
}

/// The one final outcome of an operation.
///
/// There are four, and there will be no fifth: switch over them without a default.
public enum Outcome<Value: Sendable>: Sendable {
  /// The device answered. For a write without response: it was handed over, and nothing more is claimed.
  case succeeded(Value)
  /// The device answered with an error.
  case rejected(Rejection)
  /// It was never offered to a link, or the answer proves that it was not executed: safe to repeat by hand.
  case notSent(NotSentReason)
  /// It was offered and no answer can come: it may have been applied, once.
  case indeterminate(Doubt)
}

extension Outcome: Equatable where Value: Equatable {}
extension Outcome: Hashable where Value: Hashable {}

/// The error that a device answered an operation with.
public struct Rejection: Hashable, Sendable {
  /// The ATT error code (Core Specification Vol 3 Part F 3.4.1.1).
  public var code: ATTErrorCode

  /// Whether the code proves that the request changed nothing on the device.
  ///
  /// Unlikely Error (0x0E) and the application and profile ranges prove nothing: devices send them after the fact.
  public var provesNotApplied: Bool

  /// Describes a rejection.
  public init(code: ATTErrorCode, provesNotApplied: Bool) {
    self.code = code
    self.provesNotApplied = provesNotApplied
  }
}

/// Why an operation was not sent.
@nonexhaustive
public enum NotSentReason: Hashable, Sendable {
  /// The app disconnected the session, and nobody is going to bring a link.
  case disconnected
  /// The session ended.
  case ended
  /// The deadline of the call passed before a link took the request.
  case deadline
  /// The caller was cancelled before a link took the request.
  case cancelled
  /// The link was lost, and the session does not reconnect.
  case notReconnecting
  /// All the attempts that the policy allows have failed.
  case attemptsExhausted
  /// The link would not take it, nor would the next one.
  case refused(GATTRefusal)
  /// The journal holds as many operations as it may.
  case journalFull(limit: Int)
  /// The link that the request belonged to is gone.
  case linkLost
}

/// What is known about an operation that may or may not have been applied.
public struct Doubt: Hashable, Sendable {
  /// Why no answer can come.
  @nonexhaustive
  public enum Cause: Hashable, Sendable {
    /// The link was lost before the answer.
    case linkLost(DisconnectReason)
    /// The deadline passed while the device had the request.
    case deadline
    /// The caller was cancelled while the device had the request.
    case cancelled
    /// The app disconnected while the device had the request.
    case disconnected
    /// The session ended while the device had the request.
    case ended
    /// All the attempts that the policy allows have failed since.
    case attemptsExhausted
    /// The link was lost before the answer, and the session does not reconnect.
    case notReconnecting
    /// The answer was not one that the request can have.
    case malformedAnswer
  }

  /// Why no answer can come.
  public var cause: Cause
  /// The link on which it was offered last.
  public var generation: Generation
  /// When it was offered last.
  public var offeredAt: MonotonicInstant
  /// How often it was offered.
  public var offers: Int
  /// The last instant at which it could still take effect; nil while its link is not known to be gone, which the
  /// supervision timeout (at most 32 s, Core Specification Vol 6 Part B 4.5.2) bounds.
  public var lastPossibleEffect: MonotonicInstant?

  /// Describes a doubt.
  public init(
    cause: Cause, generation: Generation, offeredAt: MonotonicInstant, offers: Int,
    lastPossibleEffect: MonotonicInstant?
  ) {
    self.cause = cause
    self.generation = generation
    self.offeredAt = offeredAt
    self.offers = offers
    self.lastPossibleEffect = lastPossibleEffect
  }
}
