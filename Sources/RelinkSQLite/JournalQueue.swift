internal import Relink

/// What the store was asked for, and whom to tell.
struct JournalJob: Sendable {
  /// What is to be done.
  enum Work: Sendable {
    case claim(
      DeviceID, owner: String, epoch: UInt64?,
      @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void)
    case append(
      [JournalRecord], JournalClaim, JournalSync,
      @Sendable (Result<[JournalRow], JournalStoreError>) -> Void)
  }

  var work: Work
  /// Why it is not even tried.
  var refusal: JournalStoreError?

  /// How many records it holds.
  var weight: Int {
    guard refusal == nil, case .append(let records, _, _, _) = work else { return 0 }
    return records.count
  }

  /// How many bytes of its records the store holds.
  var size: Int {
    guard refusal == nil, case .append(let records, _, _, _) = work else { return 0 }
    return records.reduce(0) { $0 + $1.size }
  }

  /// How much its commit must survive.
  var sync: JournalSync {
    if case .append(_, _, let sync, _) = work { sync } else { .full }
  }

  /// Lets go of the records, which are not going to be written.
  func refused(_ error: JournalStoreError) -> JournalJob {
    guard case .append(_, let claim, let sync, let done) = work else {
      return JournalJob(work: work, refusal: error)
    }
    return JournalJob(work: .append([], claim, sync, done), refusal: error)
  }

  func answer(_ result: Result<JournalAnswer, JournalStoreError>) {
    switch (work, result) {
    case (.claim(_, _, _, let done), .success(.claimed(let journal))): done(.success(journal))
    case (.claim(_, _, _, let done), .failure(let error)): done(.failure(error))
    case (.append(_, _, _, let done), .success(.appended(let rows))): done(.success(rows))
    case (.append(_, _, _, let done), .failure(let error)): done(.failure(error))
    case (.claim, .success(.appended)), (.append, .success(.claimed)):
      preconditionFailure("a job has the answer of another")
    }
  }
}

/// What a job resulted in.
enum JournalAnswer: Sendable {
  case claimed(ClaimedJournal)
  case appended([JournalRow])
}

extension JournalRecord {
  /// How many bytes of the caller it holds, roughly.
  fileprivate var size: Int {
    switch self {
    case .admitted(let row):
      row.operation.count + row.fingerprint.count + (row.mark?.count ?? 0) + (row.outcome?.count ?? 0)
    case .marked(_, let mark): mark.count
    case .settled(_, let outcome, _, let operation): outcome.count + (operation?.count ?? 0)
    case .delivered, .pruned: 0
    @unknown default: 0
    }
  }
}

/// How much may wait for the store's thread.
struct QueueLimits: Sendable {
  /// Records of all batches that wait or are being written.
  var records = 65_536
  /// Bytes in these records.
  var bytes = 64 << 20
}

/// What callers leave for the store's thread, in order.
final class JournalQueue: Sendable {
  /// What the thread is to do next.
  enum Step {
    /// All that was asked for since it looked last.
    case jobs([JournalJob])
    /// Let go of the file.
    case close
    /// End: nobody can ask any more.
    case end
  }

  private struct State {
    var jobs: [JournalJob] = []
    var records = 0
    var bytes = 0
    var isAsleep = false
    var isClosing = false
    var isClosed = false
    var isEnded = false
    var worker: ThreadIdentity?
  }

  private let state = Locked(State())
  private let limits: QueueLimits
  private let wake: Signal
  /// Open once the file was let go.
  private let closed: Signal

  /// Nil when the process has no descriptors left.
  init?(limits: QueueLimits) {
    guard let wake = Signal(), let closed = Signal() else { return nil }
    self.wake = wake
    self.closed = closed
    self.limits = limits
  }

  /// Takes a job, for the thread to do or to refuse: never inside the call.
  func add(_ job: JournalJob) {
    let weight = job.weight
    let size = job.size
    let limits = limits
    let wakes: Bool = state.withLock { state in
      let isFirst = state.records == 0 && state.bytes == 0
      if state.isClosing {
        state.jobs.append(job.refused(.closed))
      } else if !isFirst && (state.records + weight > limits.records || state.bytes + size > limits.bytes) {
        state.jobs.append(job.refused(.busy(limits)))
      } else {
        state.records += weight
        state.bytes += size
        state.jobs.append(job)
      }
      defer { state.isAsleep = false }
      return state.isAsleep
    }
    if wakes { wake.send() }
  }

  /// Sleeps until there is something to do; for the store's thread alone.
  func next() -> Step {
    while true {
      let step: Step? = state.withLock { state in
        state.worker = .current
        if !state.jobs.isEmpty {
          var jobs: [JournalJob] = []
          swap(&jobs, &state.jobs)
          return .jobs(jobs)
        }
        if state.isClosing && !state.isClosed { return .close }
        if state.isEnded { return .end }
        state.isAsleep = true
        return nil
      }
      if let step { return step }
      wake.wait()
    }
  }

  /// Whether nothing waits.
  var isEmpty: Bool { state.withLock { $0.jobs.isEmpty } }

  /// Makes room for others.
  func finished(_ jobs: [JournalJob]) {
    let records = jobs.reduce(0) { $0 + $1.weight }
    let bytes = jobs.reduce(0) { $0 + $1.size }
    state.withLock { state in
      state.records -= records
      state.bytes -= bytes
    }
  }

  /// Says that the file was let go.
  func didClose() {
    state.withLock { $0.isClosed = true }
    closed.open()
  }

  /// Refuses what comes from now on; `ends` when nothing more can come.
  func close(ends: Bool) {
    let wakes: Bool = state.withLock { state in
      state.isClosing = true
      if ends { state.isEnded = true }
      defer { state.isAsleep = false }
      return state.isAsleep
    }
    if wakes { wake.send() }
  }

  /// Waits until the file was let go; not on the store's own thread, which would wait for itself.
  func waitUntilClosed() {
    let isWorker: Bool = state.withLock { $0.worker == .current }
    if !isWorker { closed.wait() }
  }
}

extension JournalStoreError {
  fileprivate static let closed = JournalStoreError(
    .closed, "The journal store was closed. Open it again to go on.")

  fileprivate static func busy(_ limits: QueueLimits) -> JournalStoreError {
    JournalStoreError(
      .busy,
      "The disk is too slow for the journal: more than \(limits.records) records or \(limits.bytes) bytes wait to be "
        + "written. Ask again later, and for less at a time.")
  }
}
