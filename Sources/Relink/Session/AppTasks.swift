internal import RelinkCore

/// A task that runs a closure of the app's on the session's executor.
///
/// This is the only place where tasks are made: everything else in the session is driven by calls.
struct AppTask: Sendable {
  private let task: Task<Void, Never>

  /// Starts `body` in a task that prefers the executor, so that its requests cost no change of thread.
  static func run(on executor: any SessionExecutor, _ body: @escaping @Sendable () async -> Void) -> AppTask {
    AppTask(task: Task(executorPreference: executor) { await body() })
  }

  /// Cancels the task; the closure sees it at its next suspension.
  func cancel() {
    task.cancel()
  }
}
