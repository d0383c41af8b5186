package import RelinkCore

/// The timers of one executor: one set of IDs, and a queue for each of the two clocks.
package struct ExecutorTimers {
  /// The clocks that timers run on.
  package enum Clock {
    /// Stands still while the system is suspended.
    case monotonic
    /// Counts suspended time.
    case boot
  }

  private var monotonic = TimerQueue()
  private var boot = TimerQueue()
  /// Orders timers of one instant by their setting, whichever clocks they run on.
  private var sequence: UInt64 = 0

  package init() {}

  /// How many timers are set.
  package var count: Int { monotonic.count + boot.count }

  /// How many timers run on one clock.
  package func count(on clock: Clock) -> Int {
    switch clock {
    case .monotonic: monotonic.count
    case .boot: boot.count
    }
  }

  /// When the first timer of one clock is due, in that clock's nanoseconds.
  package func next(on clock: Clock) -> Int64? {
    switch clock {
    case .monotonic: monotonic.first?.instant
    case .boot: boot.first?.instant
    }
  }

  /// When the first timer of both clocks is due, if the system is not suspended before.
  package func next(after now: Timestamp) -> MonotonicInstant? {
    let onMonotonic = monotonic.first.map { MonotonicInstant(nanoseconds: $0.instant) }
    guard let first = boot.first else { return onMonotonic }
    let left = first.instant.subtractingReportingOverflow(now.bootTime)
    let onBoot =
      left.overflow ? .distantFuture : now.monotonic.advanced(by: .nanoseconds(left.partialValue))
    return onMonotonic.map { min($0, onBoot) } ?? onBoot
  }

  /// Sets a timer in place of one of the same ID, on either clock, which is returned.
  @discardableResult
  package mutating func set(
    _ id: TimerID, on clock: Clock, at instant: Int64, _ fire: @escaping @Sendable () -> Void
  ) -> (@Sendable () -> Void)? {
    sequence += 1
    let rank = TimerQueue.Rank(instant: instant, sequence: sequence)
    switch clock {
    case .monotonic:
      let other = boot.cancel(id)
      return monotonic.set(id, rank, fire) ?? other
    case .boot:
      let other = monotonic.cancel(id)
      return boot.set(id, rank, fire) ?? other
    }
  }

  /// Forgets a timer and returns it, so that what dies with it does so outside.
  @discardableResult
  package mutating func cancel(_ id: TimerID) -> (@Sendable () -> Void)? {
    monotonic.cancel(id) ?? boot.cancel(id)
  }

  /// Takes out the first timer of one clock that is due at that clock's reading.
  package mutating func popDue(_ now: Int64, on clock: Clock) -> (@Sendable () -> Void)? {
    switch clock {
    case .monotonic: monotonic.popDue(now)
    case .boot: boot.popDue(now)
    }
  }

  /// Takes out the timer that has been due for the longest; of two that are level, the one that was set first.
  package mutating func popDue(_ now: Timestamp) -> (@Sendable () -> Void)? {
    guard let onBoot = boot.first, let onMonotonic = monotonic.first else {
      return monotonic.popDue(now.monotonic.nanoseconds) ?? boot.popDue(now.bootTime)
    }
    var onBootAsMonotonic = onBoot
    onBootAsMonotonic.instant = onBoot.instant &- now.bootTime &+ now.monotonic.nanoseconds
    return onBootAsMonotonic < onMonotonic
      ? boot.popDue(now.bootTime) : monotonic.popDue(now.monotonic.nanoseconds)
  }
}
