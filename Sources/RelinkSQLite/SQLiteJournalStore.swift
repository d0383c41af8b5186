public import Relink

/// The durable journal in a file of SQLite.
///
/// One store serves any number of devices of one process. It has a thread of its own, which does all that touches the
/// disk; what was asked for while it was busy is committed together. The file and those beside it (`-wal`, `-shm`,
/// `-lock`) are readable by their owner alone; wider permissions of files that are there already are narrowed.
///
/// One store may write a file at a time, in this process and in others: the lock is held until ``close()`` or until the
/// store is gone and its work done. ``read(at:)`` looks into a file that is being written.
///
/// A store whose disk fails stays: each later call tries to open the file again first.
public final class SQLiteJournalStore: JournalStore {
  private let queue: JournalQueue

  /// Opens the journal at `path`, or makes it where nothing is; the folder must be there.
  ///
  /// Waits for the disk. Nothing that is no journal of this library is changed.
  ///
  /// - Throws: `locked` when another store writes it; `newerSchema` when a later version of the library made it;
  ///   `corrupt` when it is damaged or something else; `readOnly` when the file or its folder may not be written;
  ///   `full`; `system`.
  public convenience init(at path: String) throws(JournalStoreError) {
    try self.init(at: path, system: nil)
  }

  /// Opens the journal over a file system of SQLite's with this name, nil for the usual one.
  package init(
    at path: String, system: String?, queueRecords: Int = QueueLimits().records
  ) throws(JournalStoreError) {
    var limits = QueueLimits()
    limits.records = queueRecords
    guard let queue = JournalQueue(limits: limits), let opened = Signal() else {
      throw JournalStoreError(.system, "The process has no descriptors left for the journal store.")
    }
    let result = Locked<JournalStoreError?>(nil)
    let isStarted = WorkerThread.start {
      JournalWorker.run(path: path, system: system, queue: queue) { error in
        result.withLock { $0 = error }
        opened.open()
      }
    }
    guard isStarted else {
      throw JournalStoreError(.system, "The system has no thread left for the journal store.")
    }
    opened.wait()
    if let error = result.withLock({ $0 }) { throw error }
    self.queue = queue
  }

  deinit {
    queue.close(ends: true)
  }

  /// Takes a device's journal over; the commit survives the loss of power.
  public func claim(
    _ device: DeviceID, owner: String, epoch: UInt64?,
    _ done: @escaping @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void
  ) {
    queue.add(JournalJob(work: .claim(device, owner: owner, epoch: epoch, done)))
  }

  /// Commits the records, together with what else was asked for while the disk was busy.
  public func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync,
    _ done: @escaping @Sendable (Result<[JournalRow], JournalStoreError>) -> Void
  ) {
    queue.add(JournalJob(work: .append(records, claim, sync, done)))
  }

  /// Commits what was asked for, lets go of the file and answers all later calls with `closed`.
  ///
  /// Waits until that is done, unless it is called from an answer of the store. A store that is dropped without it does
  /// the same in its own time.
  public func close() {
    queue.close(ends: false)
    queue.waitUntilClosed()
  }
}
