/// When and how often a session tries again.
public struct ReconnectionPolicy: Hashable, Sendable {
  /// Whether a lost link is brought back without being asked.
  public var isAutomatic: Bool

  /// How many failed attempts one outage may have; nil for no limit.
  ///
  /// A device that is merely absent uses up none.
  public var attemptsPerOutage: Int?

  /// The delays between attempts that failed.
  public var backoff: BackoffPolicy

  /// The delays after attempts of which the app's setup failed; nil for those of ``backoff``.
  ///
  /// Such failures are counted apart, since the link is fine then; the next setup that succeeds forgets them.
  public var setupBackoff: BackoffPolicy?

  /// How long a session must stay ready before earlier failures are forgotten.
  public var stability: Duration

  /// How long a link that is up may take to become ready.
  public var preparationLimit: Duration

  /// Makes a policy.
  public init(
    isAutomatic: Bool = true, attemptsPerOutage: Int? = nil, backoff: BackoffPolicy = BackoffPolicy(),
    setupBackoff: BackoffPolicy? = nil, stability: Duration = .seconds(10),
    preparationLimit: Duration = .seconds(60)
  ) {
    self.isAutomatic = isAutomatic
    self.attemptsPerOutage = attemptsPerOutage
    self.backoff = backoff
    self.setupBackoff = setupBackoff
    self.stability = stability
    self.preparationLimit = preparationLimit
  }

  /// Reconnects without end, with growing delays between failures.
  public static let standard = ReconnectionPolicy()

  /// Leaves a lost link lost until the app asks again.
  public static let off = ReconnectionPolicy(isAutomatic: false)
}

/// Delays that grow with each failure, drawn at random below a ceiling that doubles (full jitter).
public struct BackoffPolicy: Hashable, Sendable {
  /// The ceiling of the first delay.
  public var base: Duration
  /// The ceiling that no delay exceeds.
  public var cap: Duration

  /// Makes a policy; both spans are at least zero.
  public init(base: Duration = .milliseconds(250), cap: Duration = .seconds(30)) {
    self.base = max(base, .zero)
    self.cap = max(cap, .zero)
  }
}

/// How long calls wait that do not say it themselves.
public struct Deadlines: Hashable, Sendable {
  /// Reads, writes and discovery, from call to outcome, all losses and reconnections included.
  public var operation: Duration
  /// `connect()`.
  public var connect: Duration

  /// Makes default deadlines.
  public init(operation: Duration = .seconds(30), connect: Duration = .seconds(30)) {
    self.operation = operation
    self.connect = connect
  }

  /// 30 seconds each.
  public static let standard = Deadlines()
}

/// The bounds of the operation journal, and its rules where a device or an app needs others.
public struct JournalPolicy: Hashable, Sendable {
  /// How many unsettled operations it holds; the next one is not sent, with that reason.
  public var capacity: Int

  /// How often an operation is offered that is followed, each time, by the loss of a link on which nothing else was
  /// outstanding: within ``poisonInterval`` by the device or by what it sent, or by an ATT timeout.
  public var poisonOffers: Int

  /// How soon after an offer a loss counts against the operation.
  public var poisonInterval: Duration

  /// How often a probe is begun for one operation, losses of the link included.
  public var probeLimit: Int

  /// How long one probe may take.
  public var probeTime: Duration

  /// How long the outcome of an operation with a given ID is kept after it settled.
  public var outcomeRetention: Duration

  /// How many outcomes of operations with a given ID are kept in memory; the oldest go first.
  public var keptInMemory: Int

  /// How many settled operations are kept in the store, for each device; the oldest go first.
  public var keptInStore: Int

  /// Which ATT errors prove that a request changed nothing.
  public var rejections: RejectionRules

  /// Makes a policy.
  public init(
    capacity: Int = 1024, poisonOffers: Int = 3, poisonInterval: Duration = .seconds(2), probeLimit: Int = 3,
    probeTime: Duration = .seconds(30), outcomeRetention: Duration = .seconds(86_400),
    keptInMemory: Int = 4_096, keptInStore: Int = 100_000,
    rejections: RejectionRules = .standard
  ) {
    self.capacity = max(capacity, 1)
    self.poisonOffers = max(poisonOffers, 1)
    self.poisonInterval = poisonInterval
    self.probeLimit = max(probeLimit, 1)
    self.probeTime = probeTime
    self.outcomeRetention = max(outcomeRetention, .zero)
    self.keptInMemory = max(keptInMemory, 0)
    self.keptInStore = max(keptInStore, 0)
    self.rejections = rejections
  }

  /// 1,024 operations, three offers, three probes, outcomes for a day.
  public static let standard = JournalPolicy()
}

/// The state of the adapter that serves a device.
@nonexhaustive
public enum AdapterState: String, Hashable, Sendable {
  /// It can be used.
  case on
  /// It is there, and switched off.
  case off
  /// It is there, and blocked by a switch of this machine (rfkill).
  case blocked
  /// The host is about to sleep, or has just woken.
  case suspended
  /// It is not there.
  case missing
  /// It is there, and this process may not use it.
  case notPermitted
}
