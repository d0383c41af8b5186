public import Relink

/// What a test does to the store.
extension VirtualJournalStore {
  /// What a store is like.
  public struct Configuration: Hashable, Sendable {
    /// How long a call takes; calls that wait together are written together, as SQLite's are in one transaction.
    public var latency: Duration
    /// How many commits ``log`` has at least; up to as many more are kept.
    public var logLimit: Int

    /// Describes a store.
    ///
    /// - Parameters:
    ///   - latency: How long a call takes; zero answers in the next job.
    ///   - logLimit: How many commits the log has at least.
    public init(latency: Duration = .milliseconds(5), logLimit: Int = 10_000) {
      self.latency = max(latency, .zero)
      self.logLimit = max(logLimit, 1)
    }
  }

  /// What becomes of those who wait when the process ends.
  public enum Afterlife: Hashable, Sendable {
    /// They hear nothing, as in life.
    case silent
    /// They get an error, so that tasks of the dead process end.
    case failed
  }

  /// What a crash took and left.
  public struct CrashReport: Hashable, Sendable {
    /// Acknowledged commits that are lost with the power.
    public var lostCommits: Int
    /// Calls that were not answered.
    public var unanswered: Int
    /// Those of them whose commit is there all the same.
    public var unansweredPresent: Int
  }

  // MARK: - Faults

  /// Plays another plan from now on; calls that wait keep what the old one said.
  ///
  /// - Parameter faults: The plan.
  public func setFaults(_ faults: StoreFaultPlan) { state.withLock { $0.plan = faults } }

  /// The plan as it is now, with what it has still to come.
  public var faults: StoreFaultPlan { state.withLock { $0.plan } }

  /// Lets every call from now on, those that wait included, fail until ``heal()``.
  ///
  /// - Parameter code: What they fail with.
  public func goDown(with code: JournalStoreError.Code = .system) { state.withLock { $0.goDown(code) } }

  /// Lets nothing be answered until ``release()``.
  public func hold() { state.withLock { $0.isHeld = true } }

  /// Goes on after ``hold()``, or with the call that hangs by plan.
  public func release() {
    state.withLock { $0.release() }
    wake()
  }

  /// Ends the plan: nothing goes wrong any more, and what hangs goes on.
  public func heal() {
    state.withLock { $0.heal() }
    wake()
  }

  // MARK: - Crashes

  /// Ends the process that uses the store; the next one claims its journals anew.
  ///
  /// Calls that were not answered are committed in part: the first so many of them, each wholly. The end of the power
  /// may also take the latest acknowledged commits, back to the latest `full` one. An appending with a claim from
  /// before is a dead process's: it commits nothing. To be called on the executor.
  ///
  /// - Parameters:
  ///   - losingPower: Whether the machine ends too.
  ///   - kept: How many of the commits that need not survive do, in their order; nil draws it from the plan's seed.
  ///   - waiters: What becomes of those who wait, now and later.
  /// - Returns: What was lost.
  @discardableResult
  public func crash(
    losingPower: Bool, keeping kept: Int? = nil, waiters: Afterlife = .silent
  ) -> CrashReport {
    let now = executor.now
    let (report, waiting) = state.withLock {
      $0.crash(losingPower: losingPower, keeping: kept, waiters, now: now)
    }
    executor.cancelTimer(TimerID(owner: self, number: 0))
    for job in waiting { executor.post { job.fail(.processEnded) } }
    return report
  }
}
