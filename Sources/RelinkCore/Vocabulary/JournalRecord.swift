/// One durable operation as a journal store keeps it: what a store has to look at, and encoded parts it hands back as
/// they are.
public struct JournalRow: Hashable, Sendable {
  /// The name of the operation, unique for its device.
  public var id: String
  /// Its place in the order of calls: rows are handed back in ascending order.
  ///
  /// A later session's are higher.
  public var place: Int64
  /// The encoded request, tag and options.
  public var operation: [UInt8]
  /// The SHA-256 digest of request and tag, to tell whether the same ID asks for the same.
  public var fingerprint: [UInt8]
  /// Whether `operation` is to be erased, not merely replaced, when it is.
  public var isSensitive: Bool
  /// The encoded latest offer; set before the bytes may leave, and never taken back.
  public var mark: [UInt8]?
  /// The encoded outcome; nil while it is unsettled.
  public var outcome: [UInt8]?
  /// When it was recorded, in nanoseconds since 1970 on the system clock.
  public var admittedAt: Int64
  /// When it was settled, in nanoseconds since 1970 on the system clock.
  public var settledAt: Int64?
  /// Whether the outcome was told to somebody.
  public var isDelivered: Bool

  /// Describes an operation that has just been recorded.
  public init(
    id: String, place: Int64, operation: [UInt8], fingerprint: [UInt8], isSensitive: Bool, admittedAt: Int64,
    mark: [UInt8]? = nil, outcome: [UInt8]? = nil, settledAt: Int64? = nil, isDelivered: Bool = false
  ) {
    self.id = id
    self.place = place
    self.operation = operation
    self.fingerprint = fingerprint
    self.isSensitive = isSensitive
    self.admittedAt = admittedAt
    self.mark = mark
    self.outcome = outcome
    self.settledAt = settledAt
    self.isDelivered = isDelivered
  }
}

/// One change of a device's durable journal.
@nonexhaustive
public enum JournalRecord: Hashable, Sendable {
  /// A new operation. Where its ID is there already, nothing changes and that row is handed back.
  case admitted(JournalRow)
  /// The operation is about to be offered.
  case marked(id: String, mark: [UInt8])
  /// The operation has its outcome; `operation` takes the place of the encoded request where that is to be erased.
  case settled(id: String, outcome: [UInt8], at: Int64, operation: [UInt8]?)
  /// The outcome was told to somebody.
  case delivered(id: String)
  /// Settled operations go that were settled before `settledBefore` (nanoseconds since 1970) or are older than the
  /// newest `keeping` settled ones.
  case pruned(settledBefore: Int64, keeping: Int)
}

/// How much a commit must survive.
@nonexhaustive
public enum JournalSync: UInt8, Hashable, Sendable, Comparable {
  /// The end of the process (SQLite's `synchronous=NORMAL` in WAL mode).
  case normal
  /// The loss of power (SQLite's `synchronous=FULL`).
  case full

  /// Whether the left one survives less.
  public static func < (left: JournalSync, right: JournalSync) -> Bool { left.rawValue < right.rawValue }
}

/// The right of one session to write a device's durable journal.
public struct JournalClaim: Hashable, Sendable {
  /// The device.
  public var device: DeviceID
  /// The number of the claim: each new one is higher, and only the highest may write.
  public var epoch: UInt64

  /// Describes a claim.
  public init(device: DeviceID, epoch: UInt64) {
    self.device = device
    self.epoch = epoch
  }
}

/// What a session gets with its claim.
public struct ClaimedJournal: Hashable, Sendable {
  /// The claim.
  public var claim: JournalClaim
  /// The operations that are unsettled, or whose outcome nobody was told, in ascending order of their places.
  public var rows: [JournalRow]
  /// The highest place that was ever given for the device; 0 if none was.
  public var lastPlace: Int64

  /// Describes what was claimed.
  public init(claim: JournalClaim, rows: [JournalRow], lastPlace: Int64) {
    self.claim = claim
    self.rows = rows
    self.lastPlace = lastPlace
  }
}

/// Why a journal store did not do what it was asked.
public struct JournalStoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of error it is; `==` compares it with everything else.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the code.
    public var rawValue: String

    /// Makes a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Another process writes this store.
    public static let locked = Code(rawValue: "locked")
    /// A later version of the library has written this store.
    public static let newerSchema = Code(rawValue: "newerSchema")
    /// The store is damaged, or is something else.
    public static let corrupt = Code(rawValue: "corrupt")
    /// There is no space left.
    public static let full = Code(rawValue: "full")
    /// The store, or its folder, may not be written.
    public static let readOnly = Code(rawValue: "readOnly")
    /// A newer claim holds the device's journal: this session may offer nothing durable any more.
    public static let superseded = Code(rawValue: "superseded")
    /// The store was closed.
    public static let closed = Code(rawValue: "closed")
    /// The session has no store.
    public static let missing = Code(rawValue: "missing")
    /// More waits to be written than the store may hold.
    public static let busy = Code(rawValue: "busy")
    /// A record speaks of an operation that the store does not have, or contradicts what it has.
    public static let invalidRecord = Code(rawValue: "invalidRecord")
    /// The system reported another error.
    public static let system = Code(rawValue: "system")

    /// The name of the code.
    public var description: String { rawValue }
  }

  /// What kind of error it is.
  public var code: Code
  /// What happened and what to do.
  public var message: String
  /// Whether it is certain that nothing of the batch was committed, now or after a restart.
  public var isCertain: Bool

  /// Makes an error.
  public init(_ code: Code, _ message: String, isCertain: Bool = true) {
    self.code = code
    self.message = message
    self.isCertain = isCertain
  }

  /// The code and the message on one line.
  public var description: String { "\(code): \(message)" }
}
