/// How a run of a ``ManualExecutor`` ended, and who is still waiting.
public struct IdleReport: Hashable, Sendable, CustomStringConvertible {
  /// What a run ended with.
  @nonexhaustive
  public enum End: String, Hashable, Sendable {
    /// The condition that was waited for holds.
    case conditionMet
    /// No job and no timer is left.
    case nothingLeft
    /// The next timer lies beyond the limit of the run.
    case timeLimit
    /// Too many jobs ran without time moving.
    case livelock
  }

  /// What the run ended with.
  public var end: End
  /// The names of the spawned tasks that have not ended.
  public var waitingTasks: [String]
  /// What went wrong, a sentence each.
  public var problems: [String]

  /// Describes the end of a run.
  ///
  /// - Parameters:
  ///   - end: What the run ended with.
  ///   - waitingTasks: The names of the tasks that have not ended.
  ///   - problems: What went wrong, a sentence each.
  public init(end: End, waitingTasks: [String] = [], problems: [String] = []) {
    self.end = end
    self.waitingTasks = waitingTasks
    self.problems = problems
  }

  /// Whether somebody waits although nothing is left that could wake them.
  public var isDeadlock: Bool { end == .nothingLeft && !waitingTasks.isEmpty }

  /// The end, the waiting tasks and the problems on one line.
  public var description: String {
    let waiting = waitingTasks.isEmpty ? "nobody waits" : "waiting: " + waitingTasks.joined(separator: ", ")
    return ([end.rawValue, waiting] + problems).joined(separator: "; ")
  }
}

/// A run ended and a task that it was to complete had not ended.
public struct DeadlockError: Error, Hashable, Sendable, CustomStringConvertible {
  /// How the run ended, and who is still waiting.
  public var report: IdleReport

  /// Makes the error from the report of the run.
  ///
  /// - Parameter report: How the run ended.
  public init(report: IdleReport) { self.report = report }

  /// The report on one line.
  public var description: String { "a task did not end: \(report)" }
}
