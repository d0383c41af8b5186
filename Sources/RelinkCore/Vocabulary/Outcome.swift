public import BluetoothWire

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

/// How it is known that a write was done.
@nonexhaustive
public enum Confirmation: String, Hashable, Sendable {
  /// The device answered.
  case acknowledged
  /// It was handed over to the link, without a response, and nothing more is claimed.
  case handedOver
  /// The probe found it carried out.
  case probed
  /// The app found it carried out, by `resolve(_:as:by:)`.
  case resolved
}

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
  /// The instant after which it was not to be offered any more has passed.
  case expired
  /// A younger operation with the same superseding key took its place.
  case superseded(by: OperationID)
  /// No link can come for now, and the operation was not to wait for one.
  case adapterUnavailable(AdapterState)
  /// The user has to do something before a link can come, and the operation was not to wait for that.
  case userActionNeeded
  /// The device may have lost the state that the operation is about.
  case continuityBroken
  /// The link is less secure than the operation requires.
  case securityTooLow(SecurityLevel)
  /// The journal store could not record it: nothing is sent that is not recorded.
  ///
  /// Under an ID that an earlier process may have used it says nothing of that process's operation: ask again once the
  /// store works, under the same ID.
  case storeFailed(JournalStoreError)
  /// A durable and a non-durable write would share an attribute or a lane, and could not be kept in order by a restart.
  case mixedDurability
  /// Its ID belongs to an operation that asks for something else.
  case conflictingID
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
    /// The instant after which it was not to be offered any more has passed.
    case expired
    /// A younger operation with the same superseding key took its place.
    case superseded(by: OperationID)
    /// No link can come for now, and the operation was not to wait for one.
    case adapterUnavailable(AdapterState)
    /// The user has to do something before a link can come, and the operation was not to wait for that.
    case userActionNeeded
    /// The device may have lost the state that the operation is about.
    case continuityBroken
    /// The link is less secure than the operation requires.
    case securityTooLow(SecurityLevel)
    /// Each time it was offered, alone, the device ended the link.
    case poisonous
    /// The probe, or the app, could not tell.
    case probeInconclusive
    /// The link was lost under the probe as often as the policy allows.
    case probeInterrupted
    /// The process, or the machine, ended while the device had the request.
    case processEnded
    /// What became of it could not be recorded in time.
    case storeFailed(JournalStoreError)
  }

  /// Why no answer can come.
  public var cause: Cause
  /// The link on which it was offered last, in the numbering of the process that offered it; 0 where it was not offered
  /// as far as anybody knows.
  public var generation: Generation
  /// When it was offered last.
  public var offeredAt: Timestamp
  /// How often it was offered.
  public var offers: Int
  /// The last instant at which it could still take effect; nil while nothing is known of the end of its link.
  ///
  /// Where the link was seen to go, that instant; where it was dropped because the deadline passed, the latest one at
  /// which it can be gone: 34 s later, two for the system and 32 s for the longest supervision timeout (Core Specification
  /// Vol 6 Part B 4.5.2).
  public var lastPossibleEffect: MonotonicInstant?

  /// Describes a doubt.
  public init(
    cause: Cause, generation: Generation, offeredAt: Timestamp, offers: Int,
    lastPossibleEffect: MonotonicInstant?
  ) {
    self.cause = cause
    self.generation = generation
    self.offeredAt = offeredAt
    self.offers = offers
    self.lastPossibleEffect = lastPossibleEffect
  }
}
