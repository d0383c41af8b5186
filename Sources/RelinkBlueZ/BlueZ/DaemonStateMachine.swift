internal import Relink

/// Decides whether bluetoothd has stopped, which switches the adapters off.
///
/// It is looked for when the transport starts and when an adapter was switched on. Only one that was seen running and is
/// not any more has stopped; since it ends after it has switched the adapters off, its process is watched for a while.
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
    /// See whether this process is still its own, then, and say so with `watched`.
    case watch(Int32, at: MonotonicInstant)
  }

  private enum State: Equatable {
    /// Exits: any.
    case resting
    /// Exits: `resting`, `stopped`.
    case asking(until: MonotonicInstant)
    /// Exits: `asking`, `resting`.
    case stopped
  }

  static let interval = Duration.milliseconds(20)

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
    state = .asking(until: now.advanced(by: LossMergeStateMachine.daemonSpan))
    return [.watch(process, at: now)]
  }

  /// An adapter that is meant is on, and was off: bluetoothd may have started.
  mutating func powerCame() -> [Action] {
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

  /// Its process was looked at.
  mutating func watched(isRunning: Bool, now: MonotonicInstant) -> [Action] {
    guard case .asking(let until) = state, let process else { return [] }
    guard isRunning else {
      state = .stopped
      self.process = nil
      return []
    }
    guard now < until else {
      state = .resting
      return []
    }
    return [.watch(process, at: now.advanced(by: Self.interval))]
  }
}
