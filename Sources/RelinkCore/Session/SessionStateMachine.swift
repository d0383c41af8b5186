/// The life of a device session: whether a link is wanted, what is tried for it, and what its users are told.
///
/// ```
///             wanted                 dial              link up             prepared
///   idle ◄──────────────► waiting ─────────► dialling ─────────► preparing ─────────► ready
///     ▲    not wanted        ▲                  │ failed            │ lost, failed       │ lost
///     │                      └──────────────────┴───────────────────┴────────────────────┘
///     └── not wanted, or no attempts left, from any of them;   ended: from any of them, for good
/// ```
///
/// Beside that stands what the session has given up and what is not gone yet: links closed here and dials called off.
/// While there is one, nothing is dialled: a dial would adopt the old link, and with it the late answers of the old
/// generation.
package struct SessionStateMachine: Sendable {
  // MARK: State

  /// Where the session stands.
  enum State: Hashable {
    /// No link is wanted.
    case idle(IdleReason)
    /// A link is wanted; something has to happen before the next dial.
    case waiting(WaitReason, until: MonotonicInstant?)
    /// A dial is under way.
    case dialling(Dialling)
    /// A link is up and is being made ready.
    case preparing(Preparing)
    /// The session can be used.
    case ready(Ready)
    /// Nothing happens any more.
    case ended(EndReason)
  }

  /// What is known while a dial is under way.
  struct Dialling: Hashable {
    var id: AttemptID
    var info: AttemptInfo
    var startedAt: MonotonicInstant
    /// The host listed a link to the device before.
    var isListed = false
  }

  /// What is known while a link is being made ready.
  struct Preparing: Hashable {
    var link: LinkID
    var generation: Generation
    var info: AttemptInfo
    var phase: ConnectionPhase
    var mtu: Int
    var roundTrips = 0
    var security = SecurityLevel.none
    /// Whether the session can have the link secured; otherwise the platform does what it thinks right.
    var isSecurable = false
    var tableChanged = false
    /// The table changed while the setup runs, and is being learnt again.
    var isRevalidating = false
    /// The table that was learnt again has subscriptions to be armed.
    var needsRestoring = false
    /// The app's setup has ended well.
    var isSetUp = false
    var continuity: Continuity = .unknown
    /// The host may have made this link up: it was there before it was dialled, and nothing was answered on it yet.
    var isSuspect = false

    /// What is done about its timers when it ends.
    var disarming: [Action] {
      [.cancelTimer(.preparation)] + (isSuspect ? [.cancelTimer(.validation)] : [])
    }
  }

  /// What is known while the session can be used.
  struct Ready: Hashable {
    var link: LinkID
    var readiness: Readiness
    var since: MonotonicInstant
    var isRevalidating = false
  }

  /// The time from the loss of ready, or the first wish for a link, to the next ready.
  struct Outage: Hashable {
    var startedAt: MonotonicInstant
    var attempts = 0
    var failures = 0
    var lastReason: DisconnectReason?
  }

  /// A try to secure the link in use.
  struct Securing: Hashable {
    var link: LinkID
    var level: SecurityLevel
    var until: MonotonicInstant
  }

  /// A disconnection that the app has announced.
  struct Expectation: Hashable {
    var reason: String
    var until: MonotonicInstant
  }

  struct ConnectWaiter: Hashable {
    var id: ConnectWaiterID
    /// In nanoseconds of boot time: a caller waits also while the system is suspended.
    var deadline: Int64?
  }

  var state: State = .idle(.neverAsked)
  var stateSince: MonotonicInstant
  var wanted = false
  var wasEverReady = false
  var outage: Outage
  /// Ends in a row without a stable time between them.
  var streak = 0
  /// How often the app's setup failed in a row.
  var setupStreak = 0
  var backoffUntil: MonotonicInstant?
  /// The state of the adapter, as far as anybody has said.
  package internal(set) var adapter: AdapterState = .on
  var closing: [LinkID] = []
  var retiring: [AttemptID] = []
  var waiters: [ConnectWaiter] = []
  /// The end of the latest link or attempt.
  package internal(set) var lastDisconnect: DisconnectInfo?
  var staleDeliveries = 0
  /// What decides what a code means.
  var history = DiagnosisHistory()
  /// The link in use is being secured.
  var securing: Securing?
  /// The link in use could not be secured as asked, and is not asked again.
  package internal(set) var isSecurityDeclined = false
  /// Since when the link in use is encrypted.
  var encryptedSince: MonotonicInstant?
  /// Since when something that needs the bond waits for the device's answer.
  var protectedSince: MonotonicInstant?
  /// What the app says will happen, and until when it is no fault.
  var expectation: Expectation?
  /// What the user has to do before anything is tried again.
  package internal(set) var userAction: RecoveryAction?
  var lastAttempt: UInt64 = 0
  var lastGeneration: UInt64 = 0
  var generator: SplitMix

  let policy: ReconnectionPolicy
  let security: SecurityPolicy
  let table: DiagnosisTable
  let hasSetup: Bool

  /// How often the transport is asked whether an adapter that is off or missing is back.
  static let adapterRetry = Duration.seconds(5)

  /// A dial that ends sooner than this with "not found" did not listen; it is treated as a failure.
  static let shortestAbsence = Duration.seconds(1)

  /// How long a link that was there before it was dialled may take to answer its first request, before it counts as one
  /// that the host only believes in: a living one is as quick as any other.
  static let validationLimit = Duration.seconds(10)

  /// Makes a session that nobody has asked for a link yet.
  ///
  /// - `hasSetup`: whether the app wants to run something on each link before it is ready.
  /// - `seed`: decides the random part of the delays.
  package init(
    policy: ReconnectionPolicy, security: SecurityPolicy = .asRequired, table: DiagnosisTable = .standard,
    hasSetup: Bool, seed: UInt64, now: MonotonicInstant
  ) {
    self.policy = policy
    self.security = security
    self.table = table
    self.hasSetup = hasSetup
    stateSince = now
    outage = Outage(startedAt: now)
    generator = SplitMix(seed: seed)
  }

  // MARK: What is asked of the shell

  /// What the shell has to do, in this order.
  package enum Action: Hashable, Sendable {
    /// Tell the subscribers.
    case publish(ConnectionEvent)
    /// Begin a dial.
    case dial(AttemptID)
    /// Call a dial off.
    case cancelAttempt(AttemptID)
    /// Secure this link.
    case secure(LinkID, SecurityLevel, SecurityPolicy.KeySource)
    /// The link is not going to be more secure: what waits for that gets the device's answer.
    case declineSecurity(LinkID)
    /// Use this link from now on.
    case adoptLink(LinkID, Generation)
    /// End a link.
    case closeLink(LinkID)
    /// Do a step of the preparation, and report its end.
    case prepare(ConnectionPhase)
    /// Offer what waits in the journal.
    case offerOperations
    /// Nobody is going to bring a link: settle what waits.
    case settleOperations(NotSentReason, Doubt.Cause)
    /// Give these callers of `connect()` their result.
    case resume([ConnectWaiterID], ConnectResult)
    /// Ask the transport for the state of the adapter, and report it.
    case askAdapterState
    /// Set a timer.
    case setTimer(Timer, at: MonotonicInstant)
    /// Set the timer for the callers of `connect()`, which counts suspended time.
    case setConnectTimer(atBootTime: Int64)
    /// Forget a timer.
    case cancelTimer(Timer)
  }

  /// The timers of a session.
  package enum Timer: Int, Hashable, Sendable, CaseIterable {
    /// The delay before the next attempt is over.
    case backoff = 1
    /// A link took too long to become ready.
    case preparation
    /// A link took too long to be secured.
    case securing
    /// A link that was there before it was dialled answered nothing.
    case validation
    /// The wait of a caller of `connect()` is over.
    case connect
    /// The transport is to be asked whether the adapter is back.
    case adapter
  }

  /// What a caller of `connect()` gets.
  package enum ConnectResult: Hashable, Sendable {
    /// The session is ready.
    case ready(Readiness)
    /// The app disconnected the session.
    case disconnected
    /// The session ended.
    case ended
    /// The caller was cancelled.
    case cancelled
    /// The caller's deadline passed.
    case deadlineExceeded
    /// The adapter is off or missing; the session goes on by itself once that ends.
    case adapterUnavailable(AdapterState)
    /// The user has to do something first.
    case userActionNeeded(RecoveryAction)
    /// All the attempts that the policy allows have failed.
    case attemptsExhausted
  }

  // MARK: What may be asked of the machine

  /// The link in use, with its generation, from the moment it is up until it is lost or given up.
  package var currentLink: (id: LinkID, generation: Generation)? {
    switch state {
    case .preparing(let preparing): (preparing.link, preparing.generation)
    case .ready(let ready): (ready.link, ready.readiness.generation)
    case .idle, .waiting, .dialling, .ended: nil
    }
  }

  /// Whether journalled operations may be offered now.
  package var isOffering: Bool {
    if case .ready(let ready) = state { !ready.isRevalidating } else { false }
  }

  /// Whether the link in use is being secured: nothing else is asked of it meanwhile.
  package var isSecuring: Bool { securing != nil }

  /// Why no link can come for now; nil where one can.
  package var unavailability: Unavailability? {
    if adapter != .on { return .adapter(adapter) }
    return userAction == nil ? nil : .userAction
  }

  /// Whether the link in use is being made ready.
  package var isPreparing: Bool {
    if case .preparing = state { true } else { false }
  }

  /// Whether anything of the session still runs: a dial, a link, or one of them on its way out.
  package var isAtRest: Bool {
    guard closing.isEmpty, retiring.isEmpty else { return false }
    switch state {
    case .idle, .ended: return true
    case .waiting, .dialling, .preparing, .ready: return false
    }
  }

  /// Where the session stands, for people and programs that look at it from outside.
  package var snapshot: Snapshot {
    let shown: Snapshot.State =
      switch state {
      case .idle(let reason): .idle(reason)
      case .waiting(let reason, let until): .waiting(reason, until: until)
      case .dialling(let dialling): .connecting(dialling.info, nil)
      case .preparing(let preparing): .connecting(preparing.info, preparing.phase)
      case .ready(let ready): .ready(ready.readiness)
      case .ended(let reason): .ended(reason)
      }
    return Snapshot(
      state: shown, since: stateSince, lastDisconnect: lastDisconnect, staleDeliveries: staleDeliveries)
  }
}

/// The name of one call of `connect()`.
package struct ConnectWaiterID: RawRepresentable, Hashable, Sendable {
  /// The number.
  package var rawValue: UInt64

  /// Makes a waiter ID from its number.
  package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What a link leaves open when it ends.
package struct OpenOffers: Hashable, Sendable, ExpressibleByIntegerLiteral {
  /// How many operations it owed an answer.
  package var inDoubt: Int
  /// How many writes without response went over it after the last request that was answered.
  package var unconfirmed: Int

  /// Counts what is open.
  package init(inDoubt: Int, unconfirmed: Int = 0) {
    self.inDoubt = inDoubt
    self.unconfirmed = unconfirmed
  }

  /// Counts operations that are owed an answer.
  package init(integerLiteral count: Int) { self.init(inDoubt: count) }
}
