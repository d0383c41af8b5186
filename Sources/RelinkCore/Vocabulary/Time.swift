/// A point on a clock that never goes back and stands still while the system is suspended.
///
/// The origin is the executor's own (the boot of the machine on Linux, `CLOCK_MONOTONIC`; zero in simulation), so
/// instants of two executors must not be compared. Resolution is one nanosecond; the range is 292 years.
public struct MonotonicInstant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the origin.
  public var nanoseconds: Int64

  /// Makes an instant from nanoseconds since the origin.
  @inlinable
  public init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// The origin of the clock.
  public static let zero = MonotonicInstant(nanoseconds: 0)

  /// An instant that is never reached.
  public static let distantFuture = MonotonicInstant(nanoseconds: .max)

  /// The instant a span later; it stays within the range instead of overflowing.
  @inlinable
  public func advanced(by span: Duration) -> MonotonicInstant {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(span.clampedNanoseconds)
    guard overflow else { return MonotonicInstant(nanoseconds: sum) }
    return MonotonicInstant(nanoseconds: span < .zero ? .min : .max)
  }

  /// The span from this instant to a later one; negative when the other is earlier.
  @inlinable
  public func duration(to later: MonotonicInstant) -> Duration {
    .nanoseconds(later.nanoseconds.subtractingReportingOverflow(nanoseconds).partialValue)
  }

  /// Whether the left instant comes before the right one.
  @inlinable
  public static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

extension Duration {
  /// The span in whole nanoseconds, limited to the range of `Int64` (292 years either way).
  @inlinable
  public var clampedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    if carried { return seconds < 0 ? .min : .max }
    return sum
  }
}

/// One moment, read from the three clocks that matter to a device session.
///
/// Orders and intervals come from `monotonic`; `bootTime` also counts the time that the system was suspended;
/// `wall` is for people and may jump.
public struct Timestamp: Hashable, Sendable {
  /// The monotonic clock: stands still in suspend, never jumps.
  public var monotonic: MonotonicInstant

  /// Nanoseconds since boot, suspend included (`CLOCK_BOOTTIME` on Linux).
  public var bootTime: Int64

  /// Nanoseconds since 1970-01-01T00:00:00Z on the system clock, which may be wrong and may jump.
  public var wall: Int64

  /// Makes a timestamp from readings of the three clocks.
  public init(monotonic: MonotonicInstant, bootTime: Int64, wall: Int64) {
    self.monotonic = monotonic
    self.bootTime = bootTime
    self.wall = wall
  }
}

/// How long a caller is ready to wait.
///
/// There is always a bound unless ``never`` is written out. Time that the system is suspended counts: a wait that ended
/// meanwhile is over as soon as it is awake again.
@nonexhaustive
public enum Deadline: Hashable, Sendable {
  /// The session's own default, from its configuration.
  case `default`

  /// This long from now.
  case after(Duration)

  /// Without a bound: the wait ends only with the request, the session or the task.
  case never

  /// This many seconds from now.
  public static func seconds(_ count: Int) -> Deadline { .after(.seconds(count)) }

  /// This many milliseconds from now.
  public static func milliseconds(_ count: Int) -> Deadline { .after(.milliseconds(count)) }

  /// When the wait ends on the clock that counts suspended time, in nanoseconds, or nil where there is no bound.
  package func bootTime(from now: Timestamp, default span: Duration) -> Int64? {
    let start = MonotonicInstant(nanoseconds: now.bootTime)
    return instant(from: start, default: span)?.nanoseconds
  }

  /// The instant at which the wait ends, or nil where there is no bound.
  package func instant(from now: MonotonicInstant, default span: Duration) -> MonotonicInstant? {
    switch self {
    case .default: now.advanced(by: span)
    case .after(let span): now.advanced(by: span)
    case .never: nil
    }
  }
}
