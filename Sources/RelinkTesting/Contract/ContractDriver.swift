public import Relink

/// How a contract suite gets things done on an executor, whichever kind it is.
///
/// The suites themselves never sleep: they ask the driver to let the executor go on until something has happened.
public protocol ContractDriver: Sendable {
  /// Runs `body` on the executor and comes back with what it returns.
  ///
  /// - Parameter body: What to run.
  /// - Returns: What it returned.
  func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value

  /// Lets the executor go on until a condition holds.
  ///
  /// - Parameter condition: Looked at on the executor.
  /// - Returns: Whether it holds; false once the driver's limit has passed.
  func wait(until condition: @escaping @Sendable () -> Bool) async -> Bool

  /// Lets the executor go on for as long as something could still come that should not.
  func settle() async
}

/// Drives a ``ManualExecutor``: time passes only as far as it has to.
public struct ManualContractDriver: ContractDriver {
  /// The executor.
  public let executor: ManualExecutor
  private let limit: Duration
  private let quiet: Duration

  /// Makes a driver.
  ///
  /// - Parameters:
  ///   - executor: The executor; nobody else runs it meanwhile.
  ///   - limit: How long a wait may take, in virtual time.
  ///   - quiet: How long nothing has to come before nothing comes, in virtual time.
  public init(_ executor: ManualExecutor, limit: Duration = .seconds(120), quiet: Duration = .seconds(5)) {
    self.executor = executor
    self.limit = limit
    self.quiet = quiet
  }

  /// Runs `body` on the calling thread, to which the executor is bound.
  ///
  /// - Parameter body: What to run.
  /// - Returns: What it returned.
  public func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    executor.bind()
    return body()
  }

  /// Runs jobs and moves through timers.
  ///
  /// - Parameter condition: What to wait for.
  /// - Returns: Whether it holds.
  public func wait(until condition: @escaping @Sendable () -> Bool) async -> Bool {
    executor.run(until: condition, within: limit).end == .conditionMet
  }

  /// Runs jobs and moves through timers for the quiet time.
  public func settle() async { executor.advance(by: quiet) }
}

/// Drives an executor that runs by itself, such as an event loop.
///
/// It looks at conditions once each millisecond of the executor's own timers.
public final class LoopContractDriver: ContractDriver {
  private let executor: any SessionExecutor
  private let limit: Duration
  private let quiet: Duration
  private let timers = Locked(0)

  /// Makes a driver.
  ///
  /// - Parameters:
  ///   - executor: The executor.
  ///   - limit: How long a wait may take.
  ///   - quiet: How long nothing has to come before nothing comes.
  public init(
    _ executor: any SessionExecutor, limit: Duration = .seconds(20), quiet: Duration = .milliseconds(500)
  ) {
    self.executor = executor
    self.limit = limit
    self.quiet = quiet
  }

  /// Posts `body` and waits for it.
  ///
  /// - Parameter body: What to run.
  /// - Returns: What it returned.
  public func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      executor.post { continuation.resume(returning: body()) }
    }
  }

  /// Looks at the condition again and again.
  ///
  /// - Parameter condition: What to wait for.
  /// - Returns: Whether it holds; false once the limit has passed.
  public func wait(until condition: @escaping @Sendable () -> Bool) async -> Bool {
    await poll(until: condition, within: limit)
  }

  /// Lets the quiet time pass.
  public func settle() async { _ = await poll(until: { false }, within: quiet) }

  private func poll(until condition: @escaping @Sendable () -> Bool, within span: Duration) async -> Bool {
    let deadline = executor.now.advanced(by: span)
    let timer = timers.withLock { count in
      count += 1
      return count
    }
    return await withCheckedContinuation { continuation in
      executor.post { self.look(at: condition, deadline, timer) { continuation.resume(returning: $0) } }
    }
  }

  private func look(
    at condition: @escaping @Sendable () -> Bool, _ deadline: MonotonicInstant, _ timer: Int,
    _ end: @escaping @Sendable (Bool) -> Void
  ) {
    if condition() { return end(true) }
    let now = executor.now
    guard now < deadline else { return end(false) }
    executor.setTimer(TimerID(owner: self, number: timer), at: now.advanced(by: .milliseconds(1))) {
      self.look(at: condition, deadline, timer, end)
    }
  }
}
