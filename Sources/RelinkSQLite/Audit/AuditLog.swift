public import Relink

/// An audit log in a file: one line for each transition of each operation, each with the hash of the line before.
///
/// The file is only ever appended to. It belongs to one writer at a time, which holds a lock on it; whoever opens it
/// again continues the chain. An edit within the chain can be seen by anybody, with `relink audit verify` or a few lines
/// of any language. What a chain cannot show by itself is that its end was cut off, or that all of it was written anew:
/// keep ``Status/head`` somewhere else for that.
///
/// Transitions are taken at once and written by a thread of the log's own. A disk that is full or gone holds up no
/// session: the log goes on trying, says so in ``status``, and counts in the file itself what it had no room to keep.
public final class AuditLog: AuditSink {
  /// What an app decides about a log.
  public struct Options: Hashable, Sendable {
    /// How many transitions wait for the disk at most; what comes beyond is counted and lost.
    public var capacity: Int
    /// Whether the values of writes that are not sensitive stand in the file, and not only their digests.
    public var includesValues: Bool
    /// Whether transitions are brought to the disk as soon as they come, several with one `fdatasync`; otherwise only
    /// by ``AuditLog/flush(within:)`` and ``AuditLog/close(within:)``.
    public var synchronizesAlways: Bool
    /// How long after a failure the disk is tried again.
    public var retryInterval: Duration

    /// Makes options; everything has a default.
    public init(
      capacity: Int = 4096, includesValues: Bool = false, synchronizesAlways: Bool = true,
      retryInterval: Duration = .seconds(1)
    ) {
      self.capacity = capacity
      self.includesValues = includesValues
      self.synchronizesAlways = synchronizesAlways
      self.retryInterval = retryInterval
    }
  }

  /// How a log stands.
  public struct Status: Hashable, Sendable {
    /// How many records were written, those of earlier processes included.
    public var records: UInt64
    /// The hash of the last of them, in hexadecimal: kept elsewhere, it shows later that nothing up to here was changed.
    public var head: String
    /// How many transitions this log has lost: for want of room, or because they came after it was closed.
    public var lost: UInt64 = 0
    /// Why nothing is written for now; nil while all is well.
    public var problem: AuditLogError?
  }

  /// The file.
  public let path: String
  package let worker: AuditWorker

  /// Opens a log, or creates it, readable and writable by its owner alone.
  ///
  /// Waits for the disk, so it does not belong on an executor. Where the process before was cut off in the middle of a
  /// line, the traces stay, and a record accounts for them.
  ///
  /// - Throws: `locked` while another log writes the file, `corrupt` where its end was edited or is something else,
  ///   `full`, `notPermitted`, `notAFile`, `system`.
  public convenience init(at path: String, _ options: Options = Options()) throws(AuditLogError) {
    try self.init(at: path, options, .system)
  }

  package init(at path: String, _ options: Options, _ disk: AuditDisk) throws(AuditLogError) {
    self.path = path
    worker = try AuditWorker.start(at: path, options, disk)
  }

  /// Has the thread write what is waiting, and end, without waiting for it: a program that ends at once loses that.
  deinit {
    worker.stop()
  }

  /// Takes a transition; returns at once, whatever the disk does.
  public func record(_ event: JournalEvent, of device: DeviceID, owner: String) {
    worker.record(event, of: device, owner: owner)
  }

  /// How the log stands.
  public var status: Status { worker.status }

  /// Whether nothing is written for now; ``Status/problem`` says why.
  public var isFailing: Bool { status.problem != nil }

  /// Waits until everything that was recorded before the call is on disk.
  ///
  /// It ends within `limit`, whatever the disk does; cancelling the task does not end it sooner.
  ///
  /// - Parameter limit: How long to wait, to the millisecond.
  /// - Throws: What keeps the records from the disk, or `timedOut`, when the time is over; the log goes on trying.
  public func flush(within limit: Duration = .seconds(10)) async throws(AuditLogError) {
    let (worker, path) = (worker, path)
    try await Self.off { worker.waitForDisk(atMost: limit, path) }
  }

  /// Writes what is waiting and a record that says that the log was closed, and gives the file free.
  ///
  /// What is recorded later is counted as lost. A disk that fails is tried once more. It ends within `limit`, whatever the
  /// disk does; cancelling the task does not end it sooner.
  ///
  /// - Parameter limit: How long to wait, to the millisecond.
  /// - Throws: What kept records from the disk, or `timedOut` when the time is over.
  public func close(within limit: Duration = .seconds(10)) async throws(AuditLogError) {
    let (worker, path) = (worker, path)
    worker.stop()
    try await Self.off { worker.waitForEnd(atMost: limit, path) }
  }

  /// Waits on a thread of its own, since a thread of the pool may not be held up.
  private static func off(
    _ wait: @escaping @Sendable () -> Result<Void, AuditLogError>
  ) async throws(AuditLogError) {
    let result: Result<Void, AuditLogError> = await withCheckedContinuation { continuation in
      let isStarted = WorkerThread.start { continuation.resume(returning: wait()) }
      if !isStarted {
        let error = AuditLogError(.system, "The system has no thread that could wait for an audit log.")
        continuation.resume(returning: .failure(error))
      }
    }
    try result.get()
  }
}
