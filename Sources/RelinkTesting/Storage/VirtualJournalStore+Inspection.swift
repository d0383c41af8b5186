public import Relink

/// What a test sees of the store.
extension VirtualJournalStore {
  /// Something that is committed.
  public struct Commit: Hashable, Sendable {
    /// The claim that it belongs to; of a claim, the claim itself.
    public var claim: JournalClaim
    /// What was committed; empty for a claim.
    public var records: [JournalRecord]
    /// How much it must survive.
    public var sync: JournalSync
    /// When it was committed.
    public var at: MonotonicInstant

    init(_ claim: JournalClaim, _ records: [JournalRecord], _ sync: JournalSync, _ at: MonotonicInstant) {
      self.claim = claim
      self.records = records
      self.sync = sync
      self.at = at
    }
  }

  /// Counters since the store was made.
  public struct Statistics: Hashable, Sendable {
    /// Calls that were taken.
    public var calls = 0
    /// Commits, claims included, also those that a crash took back later.
    public var commits = 0
    /// Those of them that were made with `full`.
    public var fullCommits = 0
    /// Records in these commits.
    public var records = 0
    /// Calls that asked for what cannot be: superseded claims, unknown operations.
    public var refusals = 0
    /// Calls that failed by plan, certainly.
    public var failures = 0
    /// Calls that failed by plan, uncertainly.
    public var unknownFailures = 0
    /// Crashes.
    public var crashes = 0
    /// How many calls have waited at once.
    public var longestQueue = 0

    /// Makes counters of zero.
    public init() {}
  }

  /// The counters.
  public var statistics: Statistics { state.withLock { $0.statistics } }

  /// The latest commits that are there, the latest last.
  public var log: [Commit] { state.withLock { $0.log } }

  /// How many calls wait.
  public var waitingCalls: Int { state.withLock { $0.jobs.count } }

  /// The devices that were ever claimed, in the order of their names.
  public var devices: [DeviceID] {
    state.withLock { $0.tables.devices.keys.sorted { $0.description < $1.description } }
  }

  /// The committed rows of a device, in ascending order of their places.
  ///
  /// - Parameter device: The device.
  /// - Returns: The rows.
  public func rows(of device: DeviceID) -> [JournalRow] {
    state.withLock { $0.tables.devices[device]?.ordered ?? [] }
  }

  /// The highest epoch that a device was claimed with; 0 if it never was.
  ///
  /// - Parameter device: The device.
  /// - Returns: The epoch.
  public func epoch(of device: DeviceID) -> UInt64 {
    state.withLock { $0.tables.devices[device]?.epoch ?? 0 }
  }

  /// Who claimed a device last; nil if nobody did.
  ///
  /// - Parameter device: The device.
  /// - Returns: The owner.
  public func owner(of device: DeviceID) -> String? { state.withLock { $0.tables.devices[device]?.owner } }

  /// The highest place that was ever given for a device; 0 if none was.
  ///
  /// - Parameter device: The device.
  /// - Returns: The place.
  public func lastPlace(of device: DeviceID) -> Int64 {
    state.withLock { $0.tables.devices[device]?.lastPlace ?? 0 }
  }
}
