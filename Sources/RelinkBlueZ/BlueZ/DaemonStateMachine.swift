internal import Relink

/// Decides whether bluetoothd has stopped, which switches the adapters off.
///
/// It is looked for when the transport starts and when an adapter was switched on. Only one that was seen running and is
/// not any more has stopped. It ends after it has switched the adapters off, and has much to put away before: so its
/// process is watched for as long as that computes. One that rests for ``rest`` has only done as its user asked.
struct DaemonStateMachine {
  /// What is known of bluetoothd since an adapter lost its power.
  enum Fate: Equatable, Sendable {
    /// It runs, or did not run before, or nobody can tell.
    case notStopped
    /// It ran before; whether it still does is being found out.
    case unanswered
    case stopped
  }

  /// What to do.
  enum Action: Equatable {
    /// Look for it among all processes, and say so with `looked`.
    case look
    /// See what this process of its own does, then, and say so with `watched`.
    case watch(Int32, at: MonotonicInstant)
  }

  private enum State: Equatable {
    /// Exits: any.
    case resting
    /// Exits: `resting`, `stopped`.
    case asking(Watch)
    /// Exits: `asking`, `resting`.
    case stopped
  }

  private struct Watch: Equatable {
    var until: MonotonicInstant
    /// How long it had computed when it was seen last, and since when it rests.
    var ticks: UInt64?
    var restsSince: MonotonicInstant
  }

  static let interval = Duration.milliseconds(20)
  /// Fifty clock ticks of the system.
  static let rest = Duration.milliseconds(500)

  private var state = State.resting
  private var process: Int32?

  var fate: Fate {
    switch state {
    case .resting: .notStopped
    case .asking: .unanswered
    case .stopped: .stopped
    }
  }

  mutating func started() -> [Action] { [.look] }

  /// An adapter that is meant is off, and was on.
  mutating func powerLost(now: MonotonicInstant) -> [Action] {
    guard let process else { return [] }
    if case .asking = state { return [] }
    let until = now.advanced(by: LossMergeStateMachine.daemonSpan)
    state = .asking(Watch(until: until, ticks: nil, restsSince: now))
    return [.watch(process, at: now)]
  }

  /// An adapter that is meant is on, and was off: bluetoothd may have started.
  mutating func powerCame() -> [Action] {
    // Somebody switched it on while the one before is still ending.
    if case .asking = state { return [] }
    state = .resting
    return [.look]
  }

  /// It was looked for.
  mutating func looked(_ sight: DaemonSight) {
    switch sight {
    case .running(let process): self.process = process
    case .absent: process = nil
    }
  }

  /// Its process was looked at; nil where it is no more.
  mutating func watched(_ effort: DaemonEffort?, now: MonotonicInstant) -> [Action] {
    guard case .asking(var watch) = state, let process else { return [] }
    guard let effort else {
      state = .stopped
      self.process = nil
      return []
    }
    if !effort.isAsleep || effort.ticks != watch.ticks { watch.restsSince = now }
    watch.ticks = effort.ticks
    guard now < watch.until, watch.restsSince.duration(to: now) < Self.rest else {
      state = .resting
      return []
    }
    state = .asking(watch)
    return [.watch(process, at: now.advanced(by: Self.interval))]
  }
}
