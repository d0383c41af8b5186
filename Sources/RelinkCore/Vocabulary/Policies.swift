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

  /// How long a session must stay ready before earlier failures are forgotten.
  public var stability: Duration

  /// How long a link that is up may take to become ready.
  public var preparationLimit: Duration

  /// Makes a policy.
  public init(
    isAutomatic: Bool = true, attemptsPerOutage: Int? = nil, backoff: BackoffPolicy = BackoffPolicy(),
    stability: Duration = .seconds(10), preparationLimit: Duration = .seconds(60)
  ) {
    self.isAutomatic = isAutomatic
    self.attemptsPerOutage = attemptsPerOutage
    self.backoff = backoff
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

/// The bounds of the operation journal.
public struct JournalPolicy: Hashable, Sendable {
  /// How many unsettled operations it holds; the next one is not sent, with that reason.
  public var capacity: Int

  /// Makes a policy.
  public init(capacity: Int = 1024) {
    self.capacity = max(capacity, 1)
  }

  /// In memory, 1,024 operations.
  public static let inMemory = JournalPolicy()
}

/// The state of the adapter that serves a device.
@nonexhaustive
public enum AdapterState: Hashable, Sendable {
  /// It can be used.
  case on
  /// It is there, and switched off or blocked.
  case off
  /// It is not there.
  case missing
  /// It is there, and this process may not use it.
  case notPermitted
}
