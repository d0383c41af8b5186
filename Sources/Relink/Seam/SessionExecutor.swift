public import RelinkCore

/// The place where a session runs: the thread, queue or loop on which its radio's callbacks arrive.
///
/// It is the session's only source of time. A transport supplies it, for the life of the transport. Implementations
/// run one job at a time in the order in which the jobs came, serve as serial and as task executor through
/// `runSynchronously(isolatedTo:taskExecutor:)`, and implement `isIsolatingCurrentContext()` or `checkIsolated()`.
///
/// Timers run on two clocks under one set of IDs. What a radio does is timed on the monotonic clock, which stands still
/// while the system is suspended; how long a caller waits is timed on boot time, which goes on.
public protocol SessionExecutor: SerialExecutor, TaskExecutor {
  /// The monotonic clock. May be read on any thread.
  var now: MonotonicInstant { get }

  /// The three clocks at once. May be read on any thread.
  func timestamp() -> Timestamp

  /// The name of this start of the machine, by which a later process knows whether boot time has gone on; nil where there
  /// is none. May be read on any thread.
  var bootID: String? { get }

  /// Whether the system clock is known to be right, to about a second: synchronised with a time server. May be read on
  /// any thread.
  var isWallClockRight: Bool { get }

  /// Runs `work` on the executor, after everything that was posted or enqueued before; never inside this call.
  ///
  /// May be called on any thread.
  func post(_ work: @escaping @Sendable () -> Void)

  /// Runs `fire` on the executor at `instant` or soon after; it takes the place of an earlier timer of the same ID.
  ///
  /// Time that the system is suspended does not count. To be called on the executor.
  func setTimer(_ id: TimerID, at instant: MonotonicInstant, _ fire: @escaping @Sendable () -> Void)

  /// Runs `fire` on the executor when the clock of ``Timestamp/bootTime`` has come to `instant`, in nanoseconds, or soon
  /// after; it takes the place of an earlier timer of the same ID, on either clock.
  ///
  /// Time that the system is suspended counts: a timer whose instant was slept through fires when the system is awake
  /// again; it does not wake the system. To be called on the executor.
  func setTimer(_ id: TimerID, atBootTime instant: Int64, _ fire: @escaping @Sendable () -> Void)

  /// Forgets a timer; one that has fired or never was is no error. To be called on the executor.
  func cancelTimer(_ id: TimerID)
}

/// The name of a timer on an executor: its owner and the owner's own number for it.
public struct TimerID: Hashable, Sendable {
  /// The object that the timer belongs to.
  public var owner: ObjectIdentifier
  /// The owner's number for it.
  public var number: Int

  /// Names a timer.
  ///
  /// The owner cancels its timers before it goes.
  public init(owner: AnyObject, number: Int) {
    self.owner = ObjectIdentifier(owner)
    self.number = number
  }
}

extension SessionExecutor {
  /// Unknown: limits that were set before a restart are taken from the system clock.
  public var bootID: String? { nil }

  /// Not known to be right.
  public var isWallClockRight: Bool { false }
}
