internal import Relink

/// The decisions of a ``VirtualJournalStore``: what is asked, what is there, what survives.
struct StoreState {
  /// Somebody who waits.
  struct Job {
    enum Work {
      case claim(
        DeviceID, owner: String, epoch: UInt64?, @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void
      )
      case append(
        [JournalRecord], JournalClaim, JournalSync,
        @Sendable (Result<[JournalRow], JournalStoreError>) -> Void)
    }

    var work: Work
    var due: MonotonicInstant
    var fault: StoreFaultPlan.Fault

    func fail(_ error: JournalStoreError) {
      switch work {
      case .claim(_, _, _, let done): done(.failure(error))
      case .append(_, _, _, let done): done(.failure(error))
      }
    }
  }

  /// What the shell does next.
  enum Step {
    /// Nothing waits, or everything hangs.
    case rest
    /// Look again then.
    case wait(MonotonicInstant)
    /// Call this, and look again.
    case answer(@Sendable () -> Void)
  }

  var plan: StoreFaultPlan
  var isHeld = false
  var statistics = VirtualJournalStore.Statistics()
  private(set) var tables = JournalTables()
  private(set) var log: [VirtualJournalStore.Commit] = []
  /// In the order of the calls, which is that of the answers.
  private(set) var jobs: [Job] = []
  /// Which life of the process this is; what was posted in an earlier one does nothing.
  private(set) var life = 0
  /// Whether somebody is going to look again.
  var isAwake = false

  private let configuration: VirtualJournalStore.Configuration
  private var downWith: JournalStoreError.Code?
  /// What the end of the power may take back, the latest last.
  private var tail: [JournalTables.Undo] = []
  /// The first claim of each device in this life: who writes with an older one is dead.
  private var firstClaims: [DeviceID: UInt64] = [:]
  private var afterlife = VirtualJournalStore.Afterlife.silent

  init(_ configuration: VirtualJournalStore.Configuration, _ plan: StoreFaultPlan) {
    self.configuration = configuration
    self.plan = plan
  }

  // MARK: Calls

  /// Takes a call; the result is what to call at once, posted, for somebody who is dead.
  mutating func asked(_ work: Job.Work, now: MonotonicInstant) -> Job? {
    var job = Job(work: work, due: now, fault: .none)
    if life > 0, case .append(_, let claim, _, _) = work, claim.epoch < firstClaims[claim.device] ?? .max {
      return afterlife == .failed ? job : nil
    }
    switch work {
    case .claim: job.fault = plan.decide(on: .claim)
    case .append: job.fault = plan.decide(on: .append)
    }
    job.due = now.advanced(by: configuration.latency)
    if case .late(let span) = job.fault { job.due = job.due.advanced(by: span) }
    jobs.append(job)
    statistics.calls += 1
    statistics.longestQueue = max(statistics.longestQueue, jobs.count)
    return nil
  }

  /// Looks what is to be done.
  mutating func next(now: MonotonicInstant) -> Step {
    guard let job = jobs.first, !isHeld, job.fault != .hang else {
      isAwake = false
      return .rest
    }
    guard job.due <= now else { return .wait(job.due) }
    jobs.removeFirst()
    return .answer(finish(job, now: now))
  }

  mutating func release() {
    isHeld = false
    if jobs.first?.fault == .hang { jobs[0].fault = .none }
  }

  mutating func heal() {
    plan.heal()
    isHeld = false
    downWith = nil
    for index in jobs.indices { jobs[index].fault = .none }
  }

  mutating func goDown(_ code: JournalStoreError.Code) { downWith = code }

  // MARK: Commits

  private mutating func finish(_ job: Job, now: MonotonicInstant) -> @Sendable () -> Void {
    var error: JournalStoreError?
    switch job.fault {
    case .down(let code): downWith = code
    case .failed(let code): error = JournalStoreError(code, "The virtual disk failed, as planned.")
    case .unknown(isPresent: false): error = unknown
    case .none, .unknown(isPresent: true), .late, .hang: break
    }
    if let downWith { error = JournalStoreError(downWith, "The virtual store is down. Heal it to go on.") }
    if let error {
      if error.isCertain { statistics.failures += 1 } else { statistics.unknownFailures += 1 }
      return { job.fail(error) }
    }
    let isUnsaid = job.fault == .unknown(isPresent: true)
    let answer = commit(job, isAcknowledged: !isUnsaid, now: now)
    guard isUnsaid else { return answer }
    statistics.unknownFailures += 1
    return { [unknown] in job.fail(unknown) }
  }

  private var unknown: JournalStoreError {
    JournalStoreError(
      .system, "The virtual disk failed, as planned, and does not say whether it wrote.", isCertain: false)
  }

  /// Commits, and gives the answer.
  private mutating func commit(
    _ job: Job, isAcknowledged: Bool, now: MonotonicInstant
  ) -> @Sendable () -> Void {
    do throws(JournalStoreError) {
      switch job.work {
      case .claim(let device, let owner, let epoch, let done):
        let (claimed, undo) = try tables.claim(device, owner: owner, epoch: epoch)
        if isAcknowledged, firstClaims[device] == nil { firstClaims[device] = claimed.claim.epoch }
        committed(undo, VirtualJournalStore.Commit(claimed.claim, [], .full, now), isAcknowledged)
        return { done(.success(claimed)) }
      case .append(let records, let claim, let sync, let done):
        let (rows, undo) = try tables.append(records, to: claim)
        committed(undo, VirtualJournalStore.Commit(claim, records, sync, now), isAcknowledged)
        return { done(.success(rows)) }
      }
    } catch {
      statistics.refusals += 1
      return { job.fail(error) }
    }
  }

  private mutating func committed(
    _ undo: JournalTables.Undo, _ commit: VirtualJournalStore.Commit, _ isAcknowledged: Bool
  ) {
    statistics.commits += 1
    if commit.sync == .full { statistics.fullCommits += 1 }
    statistics.records += commit.records.count
    log.append(commit)
    // Twice the limit before anything goes, so that it goes seldom.
    if log.count > 2 * configuration.logLimit { log.removeFirst(log.count - configuration.logLimit) }
    tail.append(undo)
    // All that came before is written with it. What was not acknowledged may not have been synced.
    if commit.sync == .full && isAcknowledged { tail = [] }
  }

  // MARK: Crashes

  /// Ends the process; the result has those who wait.
  mutating func crash(
    losingPower: Bool, keeping kept: Int?, _ afterlife: VirtualJournalStore.Afterlife, now: MonotonicInstant
  ) -> (VirtualJournalStore.CrashReport, [Job]) {
    let waiting = jobs
    let unsynced = losingPower ? tail.count : 0
    let open = waiting.count
    let keeping = min(max(kept ?? plan.draw(upTo: unsynced + open), 0), unsynced + open)
    jobs = []
    for _ in 0..<max(unsynced - keeping, 0) {
      if let undo = tail.popLast() { tables.takeBack(undo) }
      if !log.isEmpty { log.removeLast() }
    }
    var present = 0
    for job in waiting.prefix(max(keeping - unsynced, 0)) where isWritten(job) {
      let before = statistics.commits
      _ = commit(job, isAcknowledged: false, now: now)
      present += statistics.commits - before
    }
    // What is found after the power came back is on the disk.
    if losingPower { tail = [] }
    life += 1
    firstClaims = [:]
    isAwake = false
    isHeld = false
    self.afterlife = afterlife
    statistics.crashes += 1
    let report = VirtualJournalStore.CrashReport(
      lostCommits: max(unsynced - keeping, 0), unanswered: open, unansweredPresent: present)
    return (report, afterlife == .failed ? waiting : [])
  }

  /// Whether a call that waits can have been written already.
  private func isWritten(_ job: Job) -> Bool {
    guard downWith == nil else { return false }
    switch job.fault {
    case .none, .late, .hang, .unknown(isPresent: true): return true
    case .failed, .down, .unknown(isPresent: false): return false
    }
  }
}
