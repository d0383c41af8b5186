internal import Relink

/// A task on a ``ManualExecutor``, whose result can be looked at without waiting.
public final class SpawnedTask<Value: Sendable>: Sendable {
  /// What the task is called in reports.
  public let name: String

  private let outcome = Locked<Result<Value, any Error>?>(nil)
  private let handle = Locked<Task<Void, Never>?>(nil)

  fileprivate init(name: String) { self.name = name }

  /// What the task ended with; nil while it runs.
  public var result: Result<Value, any Error>? { outcome.withLock { $0 } }

  /// Whether the task has ended.
  public var hasEnded: Bool { result != nil }

  /// What the task returned; nil while it runs, and where it threw.
  public var value: Value? { try? result?.get() }

  /// What the task threw; nil while it runs, and where it returned.
  public var error: (any Error)? {
    if case .failure(let error) = result { error } else { nil }
  }

  /// Cancels the task; its cancellation handlers run inside this call.
  public func cancel() { handle.withLock { $0 }?.cancel() }

  fileprivate func started(_ task: Task<Void, Never>) { handle.withLock { $0 = task } }

  fileprivate func ended(_ result: Result<Value, any Error>) {
    outcome.withLock { $0 = result }
    // The task and its handle hold each other until here.
    handle.withLock { $0 = nil }
  }
}

extension ManualExecutor {
  /// Starts a task that runs when the executor runs.
  ///
  /// Most apps call a session from tasks that do not prefer its executor. Such a task leaves it and comes back at each
  /// `await`, also inside the session, and others have their turn meanwhile: `isElsewhere` plays that, in the same order
  /// each time.
  ///
  /// - Parameters:
  ///   - name: What to call it in reports; its place in the source if not given.
  ///   - isElsewhere: Whether it behaves like a task on another executor instead of preferring this one.
  ///   - file: The file of the caller.
  ///   - line: The line of the caller.
  ///   - operation: What it does. What it awaits must end on this executor too, or the run is not the same each time.
  /// - Returns: The task.
  @discardableResult
  public func spawn<Value: Sendable>(
    _ name: String? = nil, isElsewhere: Bool = false, file: String = #fileID, line: Int = #line,
    _ operation: @escaping @Sendable () async throws -> Value
  ) -> SpawnedTask<Value> {
    let spawned = SpawnedTask<Value>(name: name ?? "\(file):\(line)")
    let number = taskStarted(spawned.name)
    let preference: any TaskExecutor = isElsewhere ? Elsewhere(self) : self
    let task = Task<Void, Never>(executorPreference: preference) {
      let result: Result<Value, any Error>
      do { result = .success(try await operation()) } catch { result = .failure(error) }
      spawned.ended(result)
      self.taskEnded(number)
    }
    spawned.started(task)
    return spawned
  }

  /// Runs the executor, moving through timers, until the task has ended.
  ///
  /// - Parameters:
  ///   - task: The task to wait for.
  ///   - limit: How far time may go.
  /// - Returns: What the task returned or threw.
  /// - Throws: ``DeadlockError`` where it has not ended when nothing is left to do or the limit is reached.
  @discardableResult
  public func complete<Value: Sendable>(
    _ task: SpawnedTask<Value>, within limit: Duration = .seconds(3600)
  ) throws(DeadlockError) -> Result<Value, any Error> {
    let report = run(until: { task.hasEnded }, within: limit)
    guard let result = task.result else { throw DeadlockError(report: report) }
    return result
  }

  /// Starts a task and runs the executor, moving through timers, until it has ended.
  ///
  /// - Parameters:
  ///   - name: What to call it in reports; its place in the source if not given.
  ///   - limit: How far time may go.
  ///   - file: The file of the caller.
  ///   - line: The line of the caller.
  ///   - operation: What it does.
  /// - Returns: What the task returned.
  /// - Throws: What the task threw, or ``DeadlockError`` where it did not end.
  @discardableResult
  public func drive<Value: Sendable>(
    _ name: String? = nil, within limit: Duration = .seconds(3600), file: String = #fileID, line: Int = #line,
    _ operation: @escaping @Sendable () async throws -> Value
  ) throws -> Value {
    try complete(spawn(name, file: file, line: line, operation), within: limit).get()
  }
}

/// Another executor than the one that runs its jobs: what is isolated to that one is a hop away.
private final class Elsewhere: TaskExecutor {
  private let executor: ManualExecutor

  init(_ executor: ManualExecutor) { self.executor = executor }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    executor.post { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
