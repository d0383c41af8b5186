internal import CBlueZ
public import Relink
internal import Synchronization

/// The event loop of the Linux transports: one thread that waits for sockets, timers and jobs, and runs the sessions.
///
/// It is serial and task executor in one. A task that prefers it, and an actor that lives on it, resume without a
/// change of thread. One loop serves all adapters of a host; ``shared()`` is that loop, others are for tests and
/// measurements.
public final class RadioLoop: SessionExecutor {
  /// How many jobs run between two looks at the descriptors, so that neither can starve the other.
  private static let batch = 128
  private static let eventCapacity = 64

  /// What other threads leave for the loop.
  private struct Inbox {
    var work: [LoopWork] = []
    /// A thread runs the loop.
    var isRunning = false
    var isStopped = false
    var thread: UInt64?
  }

  private let epoll: OwnedDescriptor
  private let wakeUp: OwnedDescriptor
  private let timer: OwnedDescriptor
  private let bootTimer: OwnedDescriptor
  private let inbox = Locked(Inbox())
  /// Whether `inbox` has something for the loop: a look that costs no lock.
  private let inboxFilled = Atomic<Bool>(false)
  /// Whether the loop waits, or is about to, and has to be woken.
  ///
  /// Each side sets its own flag before it looks at the other's, so that one of them sees both (hence the sequential
  /// consistency).
  private let isAsleep = Atomic<Bool>(false)

  private var queue = WorkQueue()
  private var timers = ExecutorTimers()
  /// When `timer` and `bootTimer` fire, on their own clocks.
  private var armed = (monotonic: Int64.max, boot: Int64.max)
  /// Whether a timer was set, or has fired, since the two were armed: most rounds have neither.
  private var isArmingDue = false
  private var table = DescriptorTable()
  private var isStopping = false

  /// One buffer for every receive on this loop: a PDU is used before the next one is read.
  let receiveBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)

  /// Makes a loop with a thread of its own, which starts with the first job and runs until ``stop()``.
  ///
  /// - Throws: `system` when the process has no descriptors left.
  public init() throws(RelinkError) {
    epoll = try RadioLoop.own(relink_epoll_create(), "epoll_create1")
    wakeUp = try RadioLoop.own(relink_eventfd_create(), "eventfd")
    timer = try RadioLoop.own(relink_timerfd_create(0), "timerfd_create")
    bootTimer = try RadioLoop.own(relink_timerfd_create(1), "timerfd_create")
    // Edge-triggered, so that neither has to be read: each signal and each expiry is one event.
    let events = UInt32(RELINK_READABLE) | UInt32(truncatingIfNeeded: RELINK_EDGE)
    for own in [wakeUp.rawValue, timer.rawValue, bootTimer.rawValue] {
      let result = relink_epoll_add(epoll.rawValue, own, events, UInt64(own))
      if result < 0 { throw RelinkError.system("epoll_ctl", -result) }
    }
  }

  deinit {
    receiveBuffer.deallocate()
    // Nobody waits for it: `stop()` takes the thread out.
    if let thread = inbox.withLock({ $0.thread }) { _ = relink_thread_detach(thread) }
  }

  private static let sharedResult: Result<RadioLoop, RelinkError> = Result { () throws(RelinkError) in
    try RadioLoop()
  }

  /// The loop of this process, which is never stopped.
  ///
  /// - Throws: `system` when it could not be made, each time.
  public static func shared() throws(RelinkError) -> RadioLoop {
    try sharedResult.get()
  }

  private static func own(_ result: Int32, _ call: StaticString) throws(RelinkError) -> OwnedDescriptor {
    guard result >= 0 else { throw RelinkError.system(call, -result) }
    return OwnedDescriptor(adopting: result)
  }

  // MARK: Jobs

  /// Whether the caller is on the loop's thread.
  package var isCurrent: Bool {
    relink_thread_mark() == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
  }

  /// Whether the caller is on the loop's thread.
  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  /// Traps off the loop's thread.
  public func checkIsolated() {
    precondition(isCurrent, "not on the thread of the radio loop")
  }

  /// Runs a job of an actor on the loop.
  public func enqueue(_ job: consuming ExecutorJob) {
    submit(.job(UnownedJob(job)))
  }

  /// Runs a job of a task that prefers the loop and is on no actor.
  ///
  /// Told apart from an actor's: run as one, the task would find itself on the wrong executor and be enqueued again
  /// each time it resumes.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueTask(_ job: consuming ExecutorJob) {
    submit(.taskJob(UnownedJob(job)))
  }

  /// Runs `work` on the loop, after everything that was posted or enqueued before; never inside this call.
  public func post(_ work: @escaping @Sendable () -> Void) {
    submit(.closure(work))
  }

  private func submit(_ work: LoopWork) {
    if isCurrent {
      // What another thread has left came earlier.
      if inboxFilled.load(ordering: .relaxed) { emptyInbox() }
      queue.append(work)
      return
    }
    let starts: Bool = inbox.withLock { inbox in
      inbox.work.append(work)
      inboxFilled.store(true, ordering: .sequentiallyConsistent)
      if inbox.isRunning { return false }
      inbox.isRunning = true
      return true
    }
    if starts { startThread() } else { wake() }
  }

  private func wake() {
    if isAsleep.exchange(false, ordering: .sequentiallyConsistent) {
      _ = relink_eventfd_signal(wakeUp.rawValue)
    }
  }

  private func emptyInbox() {
    inbox.withLock { inbox in
      queue.take(from: &inbox.work)
      isStopping = inbox.isStopped
      inboxFilled.store(false, ordering: .relaxed)
    }
  }

  // MARK: Timers

  /// Runs `fire` at `instant` of `CLOCK_MONOTONIC` or soon after, in place of an earlier timer of the same ID.
  ///
  /// To be called on the loop.
  public func setTimer(_ id: TimerID, at instant: MonotonicInstant, _ fire: @escaping @Sendable () -> Void) {
    set(id, on: .monotonic, at: instant.nanoseconds, fire)
  }

  /// Runs `fire` at `instant` of `CLOCK_BOOTTIME` or soon after, in place of an earlier timer of the same ID.
  ///
  /// One that was slept through fires when the system is awake again. To be called on the loop.
  public func setTimer(_ id: TimerID, atBootTime instant: Int64, _ fire: @escaping @Sendable () -> Void) {
    set(id, on: .boot, at: instant, fire)
  }

  private func set(
    _ id: TimerID, on clock: ExecutorTimers.Clock, at instant: Int64, _ fire: @escaping @Sendable () -> Void
  ) {
    checkIsolated()
    isArmingDue = true
    let replaced = timers.set(id, on: clock, at: instant, fire)
    withExtendedLifetime(replaced) {}
  }

  /// Forgets a timer; to be called on the loop.
  public func cancelTimer(_ id: TimerID) {
    checkIsolated()
    // What dies with a timer may set or cancel one, so it dies outside the queue.
    let cancelled = timers.cancel(id)
    withExtendedLifetime(cancelled) {}
  }

  /// Only an earlier deadline costs a system call; one that has become later is found out when the old one fires.
  private func armTimers() {
    guard isArmingDue else { return }
    isArmingDue = false
    if let next = timers.next(on: .monotonic), next < armed.monotonic {
      armed.monotonic = next
      _ = relink_timerfd_arm(timer.rawValue, next)
    }
    if let next = timers.next(on: .boot), next < armed.boot {
      armed.boot = next
      _ = relink_timerfd_arm(bootTimer.rawValue, next)
    }
  }

  private func fireTimers(on clock: ExecutorTimers.Clock) {
    isArmingDue = true
    let now: Int64
    switch clock {
    case .monotonic: (armed.monotonic, now) = (.max, relink_clock_monotonic())
    case .boot: (armed.boot, now) = (.max, relink_clock_boot())
    }
    // A timer that sets itself again at once waits for the next round.
    var remaining = timers.count(on: clock)
    while remaining > 0, let fire = timers.popDue(now, on: clock) {
      remaining -= 1
      fire()
    }
  }

  // MARK: Descriptors

  /// Takes a descriptor over and tells `handler` when it is ready; to be called on the loop.
  ///
  /// After a failure the descriptor is closed.
  func register(
    _ descriptor: consuming OwnedDescriptor, for events: DescriptorEvents, _ handler: any DescriptorHandler
  ) -> Result<DescriptorRegistration, SystemError> {
    checkIsolated()
    let number = descriptor.rawValue
    let registration = table.add(number, handler)
    let result = relink_epoll_add(epoll.rawValue, number, events.rawValue, registration.tag)
    guard result >= 0 else {
      let handler = table.remove(registration)
      withExtendedLifetime(handler) {}
      return .failure(SystemError(number: -result))
    }
    _ = descriptor.release()
    return .success(registration)
  }

  /// Has another handler told of a descriptor from now on; to be called on the loop.
  func hand(_ registration: DescriptorRegistration, to handler: any DescriptorHandler) {
    checkIsolated()
    let before = table.setHandler(handler, for: registration)
    withExtendedLifetime(before) {}
  }

  /// Changes what a handler is told of; to be called on the loop.
  func watch(_ registration: DescriptorRegistration, for events: DescriptorEvents) {
    checkIsolated()
    guard table.contains(registration) else { return }
    _ = relink_epoll_modify(epoll.rawValue, registration.descriptor, events.rawValue, registration.tag)
  }

  /// Closes a descriptor; its handler hears nothing more.
  ///
  /// One that is closed already is no error. To be called on the loop.
  func close(_ registration: DescriptorRegistration) {
    checkIsolated()
    guard let handler = table.remove(registration) else { return }
    discard(registration)
    withExtendedLifetime(handler) {}
  }

  /// Gives a descriptor back, open; nil when it is closed already.
  ///
  /// To be called on the loop.
  func release(_ registration: DescriptorRegistration) -> OwnedDescriptor? {
    checkIsolated()
    guard let handler = table.remove(registration) else { return nil }
    defer { withExtendedLifetime(handler) {} }
    _ = relink_epoll_remove(epoll.rawValue, registration.descriptor)
    return OwnedDescriptor(adopting: registration.descriptor)
  }

  private func discard(_ registration: DescriptorRegistration) {
    _ = relink_epoll_remove(epoll.rawValue, registration.descriptor)
    _ = relink_close(registration.descriptor)
  }

  /// How many descriptors the loop looks after, for tests; to be called on the loop.
  package var descriptorCount: Int { table.count }

  /// How many timers are set, for tests; to be called on the loop.
  package var timerCount: Int { timers.count }

  /// How many jobs wait behind the one that asks, for tests; to be called on the loop.
  package var jobCount: Int { queue.count }

  // MARK: The thread

  /// Ends the loop: what was enqueued is still run, then descriptors are closed, timers forgotten, the thread ends.
  ///
  /// Waits for the thread, for as long as the jobs in hand take, unless it is called on it. To be called when no
  /// session lives on the loop any more; a job that comes later is still run, by a thread that ends with it.
  public func stop() {
    inbox.withLock { inbox in
      inbox.isStopped = true
      inboxFilled.store(true, ordering: .sequentiallyConsistent)
    }
    wake()
    guard !isCurrent else { return }
    let thread: UInt64? = inbox.withLock { inbox in
      defer { inbox.thread = nil }
      return inbox.thread
    }
    if let thread { _ = relink_thread_join(thread) }
  }

  /// Binds the loop's thread to one processor, for measurements; to be called on the loop.
  package func pin(toProcessor processor: Int) {
    checkIsolated()
    _ = relink_thread_pin(Int32(processor))
  }

  private func startThread() {
    // The thread keeps the loop alive until it ends.
    let context = Unmanaged.passRetained(self).toOpaque()
    var thread: UInt64 = 0
    let body: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
      guard let context else { return }
      Unmanaged<RadioLoop>.fromOpaque(context).takeRetainedValue().run()
    }
    let result = relink_thread_start(body, context, &thread)
    precondition(result == 0, "no thread for the radio loop: error \(-result)")
    let started = thread
    let before: UInt64? = inbox.withLock { inbox in
      defer { inbox.thread = started }
      return inbox.thread
    }
    // The thread before has ended, or is about to and touches nothing any more.
    if let before { _ = relink_thread_join(before) }
  }

  private func run() {
    relink_thread_set_mark(Unmanaged.passUnretained(self).toOpaque())
    withUnsafeTemporaryAllocation(of: relink_event.self, capacity: RadioLoop.eventCapacity) { events in
      while true {
        runJobs()
        armTimers()
        let step = nextStep()
        if step == .end { break }
        let count = relink_epoll_wait(
          epoll.rawValue, events.baseAddress, Int32(RadioLoop.eventCapacity), step == .wait ? -1 : 0)
        for index in 0..<max(Int(count), 0) {
          dispatch(events[index])
        }
      }
    }
    relink_thread_set_mark(nil)
  }

  private func runJobs() {
    if inboxFilled.load(ordering: .relaxed) { emptyInbox() }
    guard !queue.isEmpty else { return }
    let serial = UnownedSerialExecutor(ordinary: self)
    let task = UnownedTaskExecutor(ordinary: self)
    for _ in 0..<RadioLoop.batch {
      switch queue.popFirst() {
      case .job(let job): job.runSynchronously(isolatedTo: serial, taskExecutor: task)
      case .taskJob(let job): job.runSynchronously(on: task)
      case .closure(let work): work()
      case .nothing: continue
      case nil: return
      }
    }
  }

  /// What to do between two rounds of jobs.
  private enum Step {
    /// Look at the descriptors and go on.
    case look
    /// Wait for them.
    case wait
    /// The loop was stopped and has nothing left to run.
    case end
  }

  private func nextStep() -> Step {
    guard queue.isEmpty else { return .look }
    if isStopping { return finish() }
    isAsleep.store(true, ordering: .sequentiallyConsistent)
    guard inboxFilled.load(ordering: .sequentiallyConsistent) else { return .wait }
    isAsleep.store(false, ordering: .relaxed)
    emptyInbox()
    return .look
  }

  private func finish() -> Step {
    table.registrations.forEach(close)
    var forgotten = ExecutorTimers()
    swap(&forgotten, &timers)
    withExtendedLifetime(forgotten) {}
    return inbox.withLock { inbox in
      guard inbox.work.isEmpty else { return .look }
      // Who comes later starts a thread of its own.
      inbox.isRunning = false
      return .end
    }
  }

  private func dispatch(_ event: relink_event) {
    if let handler = table.handler(tag: event.tag) {
      handler.descriptorReady(DescriptorEvents(rawValue: event.events))
    } else if event.tag == UInt64(timer.rawValue) {
      fireTimers(on: .monotonic)
    } else if event.tag == UInt64(bootTimer.rawValue) {
      fireTimers(on: .boot)
    }
  }
}

// Everything that is not `let` is touched by the loop's own thread alone; other threads reach it through `inbox`.
extension RadioLoop: @unchecked Sendable {}
