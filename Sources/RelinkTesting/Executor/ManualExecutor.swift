public import Relink

/// An executor that only queues: nothing runs, and no time passes, until the test says so.
///
/// It has three virtual clocks, which move when the test moves them, and timers on the monotonic one and on boot time. The
/// same program runs in the same order each time. It makes no threads and knows no real time.
///
/// It is bound to one thread: the one that made it, and from then on the latest one that ran it. What that thread calls
/// counts as isolated to the executor, also between runs, so that synchronous test code may use what belongs to it. A
/// job or timer that comes from another thread is a fault in what is tested, or in the test: it is kept and run, and
/// counted in ``foreignJobs``. In an asynchronous test call ``bind()`` after each `await` that may have moved the test
/// to another thread; a synchronous test needs no such care.
public final class ManualExecutor: SessionExecutor {
  private struct State {
    var owner: ThreadIdentity
    var isRunning = false
    /// Jobs that came, the latest last.
    var inbox: [Item] = []
    /// Jobs that are next, the first of them last: taken from the end, so that a job leaves no reference behind.
    var outbox: [Item] = []
    var timers = ExecutorTimers()
    var now: MonotonicInstant
    var bootTime: Int64
    var wall: Int64
    var bootID: String? = "boot 1"
    var isWallClockRight = true
    var timestamp: Timestamp { Timestamp(monotonic: now, bootTime: bootTime, wall: wall) }
    var jobsInThisInstant = 0
    var foreignJobs = 0
    var hasLivelock = false
    var nextTask = 1
    var waiting: [Int: String] = [:]
  }

  private enum Item {
    case job(UnownedJob)
    case work(@Sendable () -> Void)
  }

  private let state: Locked<State>
  private let jobLimit: Int

  /// Makes an executor whose clocks stand at the given readings, bound to the calling thread.
  ///
  /// - Parameters:
  ///   - now: The first reading of the monotonic clock; boot time starts there too.
  ///   - wall: The first reading of the system clock, in nanoseconds since 1970; 2027-01-15T08:00:00Z if not given.
  ///   - jobLimit: How many jobs may run without time moving. Beyond it the executor stops as livelocked.
  public init(
    now: MonotonicInstant = .zero, wall: Int64 = 1_800_000_000_000_000_000, jobLimit: Int = 1_000_000
  ) {
    self.jobLimit = jobLimit
    state = Locked(
      State(owner: .current, now: now, bootTime: now.nanoseconds, wall: wall))
  }

  // MARK: - What it serves as

  /// The monotonic clock.
  ///
  /// May be read on any thread.
  public var now: MonotonicInstant { state.withLock { $0.now } }

  /// The three clocks at once.
  ///
  /// May be read on any thread.
  public func timestamp() -> Timestamp {
    state.withLock { $0.timestamp }
  }

  /// The name of this start of the simulated machine; a test that restarts the machine gives it another.
  ///
  /// May be read and set on any thread.
  public var bootID: String? {
    get { state.withLock { $0.bootID } }
    set { state.withLock { $0.bootID = newValue } }
  }

  /// Whether the simulated system clock counts as synchronised; it does at first.
  ///
  /// May be read and set on any thread.
  public var isWallClockRight: Bool {
    get { state.withLock { $0.isWallClockRight } }
    set { state.withLock { $0.isWallClockRight = newValue } }
  }

  /// Queues a job behind all others.
  ///
  /// - Parameter job: The job of a task or an actor.
  public func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

  /// Queues work behind all jobs that are there.
  ///
  /// May be called on any thread; another one than the executor's counts as foreign.
  ///
  /// - Parameter work: What to run.
  public func post(_ work: @escaping @Sendable () -> Void) { add(.work(work)) }

  /// Runs `fire` when the clock has been moved to `instant`; takes the place of an earlier timer of the same ID.
  ///
  /// - Parameters:
  ///   - id: The name of the timer.
  ///   - instant: When it is due; one that is past fires in the next run.
  ///   - fire: What to run.
  public func setTimer(_ id: TimerID, at instant: MonotonicInstant, _ fire: @escaping @Sendable () -> Void) {
    set(id, on: .monotonic, at: instant.nanoseconds, fire)
  }

  /// Runs `fire` when boot time has come to `instant`; takes the place of an earlier timer of the same ID.
  ///
  /// Boot time goes on while the virtual machine is suspended: a timer that is due then fires in the next run.
  ///
  /// - Parameters:
  ///   - id: The name of the timer.
  ///   - instant: When it is due, in nanoseconds of boot time; one that is past fires in the next run.
  ///   - fire: What to run.
  public func setTimer(_ id: TimerID, atBootTime instant: Int64, _ fire: @escaping @Sendable () -> Void) {
    set(id, on: .boot, at: instant, fire)
  }

  private func set(
    _ id: TimerID, on clock: ExecutorTimers.Clock, at instant: Int64, _ fire: @escaping @Sendable () -> Void
  ) {
    let here = ThreadIdentity.current
    let replaced = state.withLock {
      if $0.owner != here { $0.foreignJobs += 1 }
      return $0.timers.set(id, on: clock, at: instant, fire)
    }
    withExtendedLifetime(replaced) {}
  }

  /// Forgets a timer; one that has fired or never was is no error.
  ///
  /// - Parameter id: The name of the timer.
  public func cancelTimer(_ id: TimerID) {
    let here = ThreadIdentity.current
    // What dies with a timer may post or set one, so it dies outside the lock.
    let cancelled = state.withLock {
      if $0.owner != here { $0.foreignJobs += 1 }
      return $0.timers.cancel(id)
    }
    withExtendedLifetime(cancelled) {}
  }

  /// Whether the calling thread is the one that the executor is bound to.
  public func isIsolatingCurrentContext() -> Bool? {
    let here = ThreadIdentity.current
    return state.withLock { $0.owner == here }
  }

  /// Stops the program unless the calling thread is the one that the executor is bound to.
  public func checkIsolated() {
    precondition(
      isIsolatingCurrentContext() == true, "Called on a thread that the ManualExecutor is not bound to")
  }

  private func add(_ item: Item) {
    let here = ThreadIdentity.current
    state.withLock {
      if $0.owner != here { $0.foreignJobs += 1 }
      $0.inbox.append(item)
    }
  }

  // MARK: - What a test sees

  /// How many jobs are queued.
  public var pendingJobs: Int { state.withLock { $0.inbox.count + $0.outbox.count } }

  /// How many timers are set.
  public var timerCount: Int { state.withLock { $0.timers.count } }

  /// When the first timer is due, on the monotonic clock; nil where none is set.
  ///
  /// One that runs on boot time comes earlier by the time that the virtual machine is suspended before it.
  public var nextTimer: MonotonicInstant? { state.withLock { $0.timers.next(after: $0.timestamp) } }

  /// How many jobs, timers and cancellations of timers came from a thread that the executor is not bound to.
  ///
  /// Anything but 0 means that something ran outside: an unstructured task, a sleep, a hop to another executor. The
  /// order of such a run is not the same each time.
  public var foreignJobs: Int { state.withLock { $0.foreignJobs } }

  /// What went wrong in the runs so far, a sentence each; empty where all is well.
  public var problems: [String] {
    let (foreign, livelock) = state.withLock { ($0.foreignJobs, $0.hasLivelock) }
    var found: [String] = []
    if foreign > 0 { found.append("\(foreign) jobs or timers came from a foreign thread") }
    if livelock { found.append("\(jobLimit) jobs ran without time moving") }
    return found
  }

  /// The names of the spawned tasks that have not ended, in the order in which they were spawned.
  public var waitingTasks: [String] {
    state.withLock { state in state.waiting.sorted { $0.key < $1.key }.map(\.value) }
  }

  // MARK: - Running

  /// Binds the executor to the calling thread, as each run does.
  public func bind() {
    state.withLock { $0.owner = .current }
  }

  /// Runs what is queued and what that queues, in order, and the timers that are due now; no time passes.
  ///
  /// - Returns: How many jobs and timers ran.
  @discardableResult
  public func run() -> Int {
    running { drain() }
  }

  /// Runs the first job that is queued, or the first timer that is due now.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  public func step() -> Bool {
    running { runNext() }
  }

  /// Moves the clocks on, through the timers that become due, each followed by the jobs that it brings.
  ///
  /// - Parameter span: How far; a negative one counts as zero.
  /// - Returns: How many jobs and timers ran.
  @discardableResult
  public func advance(by span: Duration) -> Int {
    advance(to: now.advanced(by: max(span, .zero)))
  }

  /// Moves the clocks on to an instant, through the timers that become due, each followed by the jobs that it brings.
  ///
  /// - Parameter instant: The reading of the monotonic clock to end at; an earlier one than `now` counts as `now`.
  /// - Returns: How many jobs and timers ran.
  @discardableResult
  public func advance(to instant: MonotonicInstant) -> Int {
    running {
      var ran = drain()
      while let due = nextTimer, due <= instant, !isLivelocked {
        moveClocks(to: due)
        ran += drain()
      }
      moveClocks(to: instant)
      return ran
    }
  }

  /// Runs jobs and moves through timers until neither is left, or the next timer lies beyond the limit.
  ///
  /// - Parameter limit: How far time may go.
  /// - Returns: How it ended, and who is still waiting.
  @discardableResult
  public func runUntilIdle(within limit: Duration = .seconds(3600)) -> IdleReport {
    run(until: { false }, within: limit)
  }

  /// Runs job by job, and moves through timers, until a condition holds, nothing is left, or the limit is reached.
  ///
  /// The condition is looked at before the first job and after each one.
  ///
  /// - Parameters:
  ///   - condition: What to wait for. It runs on the executor and must not run the executor.
  ///   - limit: How far time may go.
  /// - Returns: How it ended, and who is still waiting.
  @discardableResult
  public func run(until condition: () -> Bool, within limit: Duration = .seconds(3600)) -> IdleReport {
    let last = now.advanced(by: limit)
    let end: IdleReport.End = running {
      while true {
        if condition() { return .conditionMet }
        if runNext() { continue }
        if isLivelocked { return .livelock }
        guard let due = nextTimer else { return .nothingLeft }
        guard due <= last else {
          moveClocks(to: last)
          return .timeLimit
        }
        moveClocks(to: due)
      }
    }
    return IdleReport(end: end, waitingTasks: waitingTasks, problems: problems)
  }

  // MARK: - Clocks

  /// Suspends the virtual machine: boot time and system clock move, the monotonic clock and its timers stand still.
  ///
  /// Timers on boot time that are due by the end fire in the next run, as they do when a system wakes up.
  ///
  /// - Parameter span: For how long; a negative one counts as zero.
  public func suspend(for span: Duration) {
    let nanoseconds = max(span, .zero).clampedNanoseconds
    state.withLock {
      $0.bootTime = $0.bootTime.clampedAdding(nanoseconds)
      $0.wall = $0.wall.clampedAdding(nanoseconds)
    }
  }

  /// Sets the system clock off, as a person or a time server does; the two others do not notice.
  ///
  /// - Parameter span: How far; backwards where negative.
  public func jumpWall(by span: Duration) {
    state.withLock { $0.wall = $0.wall.clampedAdding(span.clampedNanoseconds) }
  }

  private func moveClocks(to instant: MonotonicInstant) {
    state.withLock {
      guard instant > $0.now else { return }
      let span = instant.nanoseconds - $0.now.nanoseconds
      $0.now = instant
      $0.bootTime = $0.bootTime.clampedAdding(span)
      $0.wall = $0.wall.clampedAdding(span)
      $0.jobsInThisInstant = 0
    }
  }

  // MARK: - Spawned tasks

  func taskStarted(_ name: String) -> Int {
    state.withLock {
      let number = $0.nextTask
      $0.nextTask += 1
      $0.waiting[number] = name
      return number
    }
  }

  func taskEnded(_ number: Int) {
    state.withLock { $0.waiting[number] = nil }
  }

  // MARK: - The loop

  private var isLivelocked: Bool { state.withLock { $0.jobsInThisInstant >= jobLimit } }

  private func running<Result>(_ body: () -> Result) -> Result {
    state.withLock {
      precondition(!$0.isRunning, "A job must not run the ManualExecutor that runs it")
      $0.owner = .current
      $0.isRunning = true
    }
    defer { state.withLock { $0.isRunning = false } }
    return body()
  }

  private func drain() -> Int {
    var ran = 0
    while runNext() { ran += 1 }
    return ran
  }

  private func runNext() -> Bool {
    let next = state.withLock { state -> Item? in
      guard state.jobsInThisInstant < jobLimit else {
        state.hasLivelock = true
        return nil
      }
      if state.outbox.isEmpty {
        swap(&state.inbox, &state.outbox)
        state.outbox.reverse()
      }
      guard let item = state.outbox.popLast() ?? state.timers.popDue(state.timestamp).map(Item.work) else {
        return nil
      }
      state.jobsInThisInstant += 1
      return item
    }
    switch next {
    case .job(let job):
      job.runSynchronously(
        isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    case .work(let work): work()
    case nil: return false
    }
    return true
  }
}

extension Int64 {
  /// The sum, or the end of the range where it lies outside.
  fileprivate func clampedAdding(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    guard overflow else { return sum }
    return other < 0 ? .min : .max
  }
}
