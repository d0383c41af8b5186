public import Relink

/// A journal store in memory, on the clock of an executor, with faults on a plan and crashes on demand.
///
/// Calls are answered in their order, each in a job of its own on the executor and after the latency, never inside the
/// call. What was committed outlives ``crash(losingPower:keeping:waiters:)`` as it would on a disk: the end of the
/// process takes nothing of it, the end of the power may take the latest commits that were not made with `full`.
///
/// Everything may be called on any thread, except where a member says otherwise.
public final class VirtualJournalStore: JournalStore {
  /// Where answers are given, and the only source of time.
  public let executor: any SessionExecutor
  /// What the store is like.
  public let configuration: Configuration

  let state: Locked<StoreState>

  /// Makes an empty store.
  ///
  /// - Parameters:
  ///   - executor: Where it answers.
  ///   - configuration: What it is like.
  ///   - faults: What goes wrong; its seed also decides what survives a crash.
  public init(
    on executor: any SessionExecutor, configuration: Configuration = Configuration(),
    faults: StoreFaultPlan = .none
  ) {
    self.executor = executor
    self.configuration = configuration
    state = Locked(StoreState(configuration, faults))
  }

  // MARK: - JournalStore

  /// Takes a device's journal over; it is committed as with `full`.
  public func claim(
    _ device: DeviceID, owner: String, epoch: UInt64?,
    _ done: @escaping @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void
  ) {
    ask(.claim(device, owner: owner, epoch: epoch, done))
  }

  /// Commits the records in their order, all or none.
  public func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync,
    _ done: @escaping @Sendable (Result<[JournalRow], JournalStoreError>) -> Void
  ) {
    ask(.append(records, claim, sync, done))
  }

  // MARK: - The shell

  private func ask(_ work: StoreState.Job.Work) {
    let now = executor.now
    let dead = state.withLock { $0.asked(work, now: now) }
    if let dead { executor.post { dead.fail(.processEnded) } }
    wake()
  }

  /// Sees to it that somebody looks at the queue.
  func wake() {
    let life: Int? = state.withLock { state in
      guard !state.isAwake, !state.jobs.isEmpty else { return nil }
      state.isAwake = true
      return state.life
    }
    if let life { executor.post { self.look(life) } }
  }

  /// Gives one answer where one is due.
  private func look(_ life: Int) {
    let now = executor.now
    let step: StoreState.Step? = state.withLock { $0.life == life ? $0.next(now: now) : nil }
    switch step {
    case .answer(let answer):
      answer()
      executor.post { self.look(life) }
    case .wait(let due):
      executor.setTimer(TimerID(owner: self, number: 0), at: due) { self.look(life) }
    case .rest, nil: break
    }
  }
}

extension JournalStoreError {
  static let processEnded = JournalStoreError(
    .closed, "The process of this session has ended, as planned.", isCertain: false)
}
