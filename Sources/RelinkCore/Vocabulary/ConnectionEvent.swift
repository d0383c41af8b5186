/// What happens to a session, in the order in which it happens.
///
/// The history of a session, from its first event to its last, is
/// `(idle | waiting | connecting (attemptFailed | ready disconnected))* ended`, with `phase` and `missed` in between:
/// each `connecting` has exactly one end, each `ready` exactly one `disconnected`. A subscriber's first element is a
/// `snapshot`, and so is the one after `missed`.
@nonexhaustive
public enum ConnectionEvent: Hashable, Sendable {
  /// Where the session stands at the moment; every later event follows it.
  // Apart from the others, which it would make twice as large.
  indirect case snapshot(Snapshot)
  /// No link is wanted.
  case idle(IdleReason)
  /// A link is wanted, and something has to happen before the next attempt; `until` is set where a timer decides.
  case waiting(for: WaitReason, until: MonotonicInstant?)
  /// An attempt begins.
  case connecting(AttemptInfo)
  /// How far the attempt, or a ready session that looks at its table anew, has come.
  case phase(ConnectionPhase)
  /// The attempt ended before the session was ready.
  case attemptFailed(DisconnectInfo)
  /// The session can be used: journalled operations are offered from now on.
  case ready(Readiness)
  /// The device was seen under another name; unless the app has it followed, the session stays with the one it has.
  case seen(as: DeviceID, isFollowed: Bool, [Evidence])
  /// The session was ready and is not any more.
  case disconnected(DisconnectInfo)
  /// This subscriber fell behind and lost so many events; a snapshot follows.
  case missed(Int)
  /// The last event: nothing happens to the session any more.
  case ended(EndReason)
}

/// Why no link is wanted.
@nonexhaustive
public enum IdleReason: Hashable, Sendable {
  /// Nobody has asked yet.
  case neverAsked
  /// `disconnect()` was called.
  case disconnected
  /// The only caller that wanted a first link gave up.
  case withdrawn
  /// All the attempts that the policy allows have failed.
  case attemptsExhausted
  /// The link was lost, and the policy does not reconnect.
  case notReconnecting
}

/// What has to happen before the next attempt.
@nonexhaustive
public enum WaitReason: Hashable, Sendable {
  /// A delay after failures.
  case backoff
  /// The adapter is off.
  case adapterOff
  /// The adapter is blocked by a switch of this machine (rfkill).
  case adapterBlocked
  /// The host is about to sleep, or has just woken.
  case suspended
  /// The user has to do this first; then the app says so.
  case userAction(RecoveryAction)
  /// The adapter is not there.
  case adapterMissing
  /// The system does not permit this process what the transport needs.
  case notPermitted
  /// The link before, or the attempt before, is not gone yet.
  case previousLink
}

/// An attempt to bring a link up and make it ready.
public struct AttemptInfo: Hashable, Sendable {
  /// Its number in this outage, from 1.
  public var number: Int
  /// How many more may follow in this outage; nil without a limit.
  public var remaining: Int?
  /// Whether the session was ready before.
  public var isReconnection: Bool
  /// What the attempt before it, or the link, ended with.
  public var after: DisconnectReason?

  /// Describes an attempt.
  public init(number: Int, remaining: Int?, isReconnection: Bool, after: DisconnectReason?) {
    self.number = number
    self.remaining = remaining
    self.isReconnection = isReconnection
    self.after = after
  }
}

/// What a session is busy with between a link that came up and ready.
@nonexhaustive
public enum ConnectionPhase: Hashable, Sendable {
  /// The link is up; the ATT_MTU is being agreed.
  case exchangingMTU
  /// The link is being encrypted, or the device paired.
  case securing
  /// The attribute table is being learnt.
  case discovering
  /// Subscriptions are being armed again.
  case restoringSubscriptions
  /// The app's setup runs.
  case settingUp
  /// The table changed while the session was ready; it is being learnt again.
  case revalidating
}

/// Whether the device has kept its state since the link before.
@nonexhaustive
public enum Continuity: Hashable, Sendable {
  /// The device is proven to have kept its state.
  case resumed
  /// The device is proven to have lost its state, or this is the first link.
  case fresh
  /// Nothing is proven.
  case unknown
}

/// What a session knows when it becomes ready.
public struct Readiness: Hashable, Sendable {
  /// The link.
  public var generation: Generation
  /// How long the session was not ready; for the first time, since the link was asked for.
  public var outage: Duration
  /// The attempts that this outage took.
  public var attempts: Int
  /// The ATT_MTU in bytes.
  public var mtu: Int
  /// How many requests the device was asked, one after the other, before the session was ready.
  public var roundTrips: Int
  /// Whether the attribute table differs from the one of the link before.
  public var tableChanged: Bool
  /// Whether the device kept its state.
  public var continuity: Continuity
  /// How far the link was secured at that moment, and never more than is known.
  public var security: SecurityLevel

  /// Describes a ready session.
  public init(
    generation: Generation, outage: Duration, attempts: Int, mtu: Int, roundTrips: Int, tableChanged: Bool,
    continuity: Continuity, security: SecurityLevel = .none
  ) {
    self.generation = generation
    self.outage = outage
    self.attempts = attempts
    self.mtu = mtu
    self.roundTrips = roundTrips
    self.tableChanged = tableChanged
    self.continuity = continuity
    self.security = security
  }
}

/// Why a session ended.
@nonexhaustive
public enum EndReason: Hashable, Sendable {
  /// `close()` was called.
  case closed
  /// The last reference to the session was dropped.
  case released
}

/// Where a session stands at one moment.
public struct Snapshot: Hashable, Sendable {
  /// What the session is doing.
  @nonexhaustive
  public enum State: Hashable, Sendable {
    /// No link is wanted.
    case idle(IdleReason)
    /// A link is wanted, and something has to happen first.
    case waiting(WaitReason, until: MonotonicInstant?)
    /// An attempt is under way; the phase is nil until the link is up.
    case connecting(AttemptInfo, ConnectionPhase?)
    /// The session can be used.
    case ready(Readiness)
    /// Nothing happens any more.
    case ended(EndReason)
  }

  /// What the session is doing.
  public var state: State
  /// When this state began.
  public var since: MonotonicInstant
  /// The end of the latest link or attempt, if there was one.
  public var lastDisconnect: DisconnectInfo?
  /// How many deliveries of earlier links were ignored.
  public var staleDeliveries: Int

  /// Describes where a session stands.
  public init(
    state: State, since: MonotonicInstant, lastDisconnect: DisconnectInfo? = nil, staleDeliveries: Int = 0
  ) {
    self.state = state
    self.since = since
    self.lastDisconnect = lastDisconnect
    self.staleDeliveries = staleDeliveries
  }

  /// Whether the session is ready.
  public var isReady: Bool {
    if case .ready = state { true } else { false }
  }
}
