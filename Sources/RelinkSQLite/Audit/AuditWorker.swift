internal import Relink

/// What the callers of a log and its thread share, and the thread's work.
package final class AuditWorker: Sendable {
  /// A transition that waits to be put down.
  private struct Entry {
    var event: JournalEvent
    var device: DeviceID
    var owner: String
  }

  /// Transitions that there was no room for.
  private struct Lost {
    var count: UInt64
    var first: Timestamp
    var last: Timestamp
  }

  /// Somebody who waits until so many transitions are on disk.
  private struct Waiter {
    var signal: AuditSignal
    var target: UInt64
  }

  private struct Inbox {
    var queue: [Entry] = []
    var lost: Lost?
    var waiters: [Waiter] = []
    /// How many transitions have come, and how many of them are on disk or counted there as lost.
    var accepted: UInt64 = 0
    var completed: UInt64 = 0
    /// The thread waits, or is about to.
    var isAsleep = false
    var isStopping = false
    var isEnded = false
    var status: AuditLog.Status
  }

  /// What the thread does next.
  private struct Batch {
    var entries: [Entry]
    var lost: Lost?
    /// How many transitions have come when this batch is done.
    var upTo: UInt64
    var isLast: Bool
    var hasWaiters: Bool
  }

  private let options: AuditLog.Options
  private let wake: AuditSignal
  private let inbox: Locked<Inbox>

  private init(_ options: AuditLog.Options, _ wake: AuditSignal, _ chain: AuditChain) {
    self.options = options
    self.wake = wake
    inbox = Locked(Inbox(status: AuditLog.Status(records: chain.records, head: chain.head)))
  }

  /// Opens a file and starts the thread that writes it.
  static func start(
    at path: String, _ options: AuditLog.Options, _ disk: AuditDisk
  ) throws(AuditLogError) -> AuditWorker {
    let wake = try signal(path)
    let writer = try AuditWriter(at: path, disk)
    let worker = AuditWorker(options, wake, writer.chain)
    guard WorkerThread.start({ worker.run(writer) }) else {
      throw AuditLogError(.system, "The system has no thread for the audit log \(path).")
    }
    return worker
  }

  private static func signal(_ path: String) throws(AuditLogError) -> AuditSignal {
    do throws(SystemNumber) {
      return try AuditSignal()
    } catch {
      throw AuditLogError("socketpair", error.rawValue, path)
    }
  }

  // MARK: Callers

  var status: AuditLog.Status { inbox.withLock { $0.status } }

  func record(_ event: JournalEvent, of device: DeviceID, owner: String) {
    let wakes: Bool = inbox.withLock { inbox in
      guard !inbox.isStopping else {
        inbox.status.lost += 1
        return false
      }
      inbox.accepted += 1
      if inbox.queue.count < max(options.capacity, 1) {
        inbox.queue.append(Entry(event: event, device: device, owner: owner))
      } else {
        // Behind everything that waits: the thread takes the whole queue at once, and these with it.
        inbox.status.lost += 1
        inbox.lost = Lost(
          count: (inbox.lost?.count ?? 0) + 1, first: inbox.lost?.first ?? event.at, last: event.at)
      }
      defer { inbox.isAsleep = false }
      return inbox.isAsleep
    }
    if wakes { wake.raise() }
  }

  /// Has the thread write what waits, and end; waits for nothing.
  func stop() {
    inbox.withLock { $0.isStopping = true }
    wake.raise()
  }

  /// Waits on this thread until everything that has come by now is on disk.
  func waitForDisk(atMost limit: Duration, _ path: String) -> Result<Void, AuditLogError> {
    wait(for: nil, limit, path)
  }

  /// Waits on this thread until the thread of the log has written what it could, and ended.
  package func waitForEnd(atMost limit: Duration, _ path: String) -> Result<Void, AuditLogError> {
    wait(for: .max, limit, path)
  }

  private func wait(
    for count: UInt64?, _ limit: Duration, _ path: String
  ) -> Result<Void, AuditLogError> {
    let signal: AuditSignal
    do throws(AuditLogError) {
      signal = try Self.signal(path)
    } catch {
      return .failure(error)
    }
    let target: UInt64 = inbox.withLock { inbox in
      let target = count ?? inbox.accepted
      if !inbox.isEnded && inbox.completed < target {
        inbox.waiters.append(Waiter(signal: signal, target: target))
      } else {
        signal.raise()
      }
      return target
    }
    wake.raise()
    signal.wait(milliseconds: Int32(clamping: max(limit.clampedNanoseconds / 1_000_000, 0)))
    let error: AuditLogError? = inbox.withLock { inbox in
      inbox.waiters.removeAll { $0.signal === signal }
      let isDone = inbox.completed >= min(target, inbox.accepted)
      if isDone && (count == nil || inbox.isEnded) { return nil }
      return inbox.status.problem
        ?? AuditLogError(
          .timedOut, "The records of \(path) are not all on disk after \(limit); the log goes on trying.")
    }
    return error.map { .failure($0) } ?? .success(())
  }

  // MARK: The thread

  private func run(_ opened: AuditWriter) {
    var writer = opened
    while true {
      guard let batch = nextBatch() else {
        wake.wait(milliseconds: -1)
        continue
      }
      guard put(batch, &writer) else { return end(without: batch) }
      done(batch, writer.chain)
      if batch.isLast { return end(without: nil) }
    }
  }

  private func nextBatch() -> Batch? {
    inbox.withLock { inbox in
      let isWanted =
        inbox.completed < inbox.accepted && inbox.waiters.contains { $0.target > inbox.completed }
      guard !inbox.queue.isEmpty || inbox.lost != nil || inbox.isStopping || isWanted else {
        inbox.isAsleep = true
        return nil
      }
      inbox.isAsleep = false
      defer {
        inbox.queue.removeAll(keepingCapacity: true)
        inbox.lost = nil
      }
      return Batch(
        entries: inbox.queue, lost: inbox.lost, upTo: inbox.accepted, isLast: inbox.isStopping,
        hasWaiters: isWanted)
    }
  }

  /// Whether everything of the batch is written, and on disk where that is wanted.
  private func put(_ batch: Batch, _ writer: inout AuditWriter) -> Bool {
    for entry in batch.entries {
      writer.append(
        AuditRecord(
          entry.event, of: entry.device, owner: entry.owner, includesValues: options.includesValues))
      if writer.isPortionFull && !settle(&writer, synchronizes: false) { return false }
    }
    if let lost = batch.lost {
      writer.append(
        AuditRecord(
          .lost,
          [
            AuditField("transitions", lost.count), AuditField("from", lost.first.rfc3339),
            AuditField("to", lost.last.rfc3339),
          ]))
    }
    if batch.isLast { writer.append(AuditRecord(.closed)) }
    return settle(&writer, synchronizes: options.synchronizesAlways || batch.hasWaiters || batch.isLast)
  }

  /// Writes what is pending, again and again while that fails; gives up only when the log is being closed.
  private func settle(_ writer: inout AuditWriter, synchronizes: Bool) -> Bool {
    var isLastTry = false
    while true {
      do throws(AuditLogError) {
        try writer.write()
        if synchronizes { try writer.synchronize() }
        return true
      } catch {
        if isLastTry { return false }
        let isStopping = inbox.withLock { inbox in
          inbox.status.problem = error
          return inbox.isStopping
        }
        if !isStopping { wake.wait(milliseconds: retryMilliseconds) }
        isLastTry = inbox.withLock { $0.isStopping }
      }
    }
  }

  private var retryMilliseconds: Int32 {
    Int32(clamping: max(options.retryInterval.clampedNanoseconds / 1_000_000, 1))
  }

  private func done(_ batch: Batch, _ chain: AuditChain) {
    let satisfied: [AuditSignal] = inbox.withLock { inbox in
      inbox.status.problem = nil
      inbox.status.records = chain.records
      inbox.status.head = chain.head
      if options.synchronizesAlways || batch.hasWaiters || batch.isLast { inbox.completed = batch.upTo }
      let satisfied = inbox.waiters.filter { $0.target <= inbox.completed }
      inbox.waiters.removeAll { $0.target <= inbox.completed }
      return satisfied.map(\.signal)
    }
    for signal in satisfied { signal.raise() }
  }

  private func end(without unwritten: Batch?) {
    let waiting: [AuditSignal] = inbox.withLock { inbox in
      inbox.isEnded = true
      if let unwritten { inbox.status.lost += UInt64(unwritten.entries.count + inbox.queue.count) }
      return inbox.waiters.map(\.signal)
    }
    for signal in waiting { signal.raise() }
  }
}
