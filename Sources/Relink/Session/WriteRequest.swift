public import RelinkCore

/// What an app decides about one write beside what is written and its tag.
public struct WriteOptions: Hashable, Sendable {
  /// When the call ends at the latest.
  public var deadline: Deadline

  /// How long after the call it may still be offered; nil for as long as the deadline lasts.
  ///
  /// A safe request can still be stale: "unlock" ten minutes later. The time that the system is suspended counts.
  public var offerBefore: Duration?

  /// Whether a value that does not fit into one PDU may go through the device's prepare queue, in several.
  ///
  /// Without it such a value is refused before anything is sent.
  public var allowsLong: Bool

  /// Where it is recorded.
  ///
  /// Durable and other writes of one attribute or lane must not be unsettled at the same time.
  public var durability: Durability

  /// A name in which it keeps its order with operations on other attributes.
  public var lane: Lane?

  /// Whether it goes before or after others that may go as well.
  public var priority: OperationPriority

  /// What it makes superfluous: an older write with this key is settled if it was never offered, and not offered again if
  /// it is in doubt.
  public var supersedes: SupersedingKey?

  /// What becomes of the link when the deadline passes while the device has the request.
  public var onExpiry: ExpiryAction

  /// Whether it waits while the adapter is off, missing or not permitted.
  public var ifUnavailable: UnavailabilityAction

  /// What the device must be known to have kept since the call.
  public var continuity: ContinuityRequirement

  /// What the link must offer at least when it is offered.
  public var security: SecurityLevel

  /// Whether the value is to be shown nowhere, and erased from the store once it is settled.
  public var isSensitive: Bool

  /// Makes options; everything has a default.
  public init(
    within deadline: Deadline = .default, offerBefore: Duration? = nil, allowsLong: Bool = false,
    durability: Durability = .inMemory, lane: Lane? = nil, priority: OperationPriority = .normal,
    supersedes: SupersedingKey? = nil, onExpiry: ExpiryAction = .keepLink,
    ifUnavailable: UnavailabilityAction = .wait,
    continuity: ContinuityRequirement = .none, security: SecurityLevel = .none, isSensitive: Bool = false
  ) {
    self.deadline = deadline
    self.offerBefore = offerBefore
    self.allowsLong = allowsLong
    self.durability = durability
    self.lane = lane
    self.priority = priority
    self.supersedes = supersedes
    self.onExpiry = onExpiry
    self.ifUnavailable = ifUnavailable
    self.continuity = continuity
    self.security = security
    self.isSensitive = isSensitive
  }

  /// What the journal needs of them; nil where nothing special is said.
  func journalled(at now: Timestamp) -> OperationOptions? {
    var options = OperationOptions()
    options.offerBefore = offerBefore.map { ExpiryInstant($0, after: now) }
    options.lane = lane
    options.priority = priority
    options.supersedes = supersedes
    options.onExpiry = onExpiry
    options.ifUnavailable = ifUnavailable
    options.continuity = continuity
    options.security = security
    options.durability = durability
    options.isSensitive = isSensitive
    return options == .plain ? nil : options
  }
}

/// A write, for ``DeviceSession/submit(_:)``.
public struct WriteRequest: Hashable, Sendable {
  let request: GATTRequest
  /// Whether it may be repeated.
  public var idempotency: Idempotency
  /// The name that the caller gives it, if he does.
  public var id: OperationID?
  /// What else is decided about it.
  public var options: WriteOptions

  private init(
    _ request: GATTRequest, _ idempotency: Idempotency, _ id: OperationID?, _ options: WriteOptions
  ) {
    self.request = request
    self.idempotency = idempotency
    self.id = id
    self.options = options
  }

  /// A write with response.
  public init(
    _ bytes: some Collection<UInt8>, to characteristic: Characteristic, idempotency: Idempotency,
    id: OperationID? = nil, options: WriteOptions = WriteOptions()
  ) {
    let value = Array(bytes)
    self.init(
      options.allowsLong ? .writeLong(characteristic, value) : .write(characteristic, value), idempotency, id,
      options)
  }

  /// A write without response: it has succeeded once it was handed over, and nothing more is claimed.
  public static func withoutResponse(
    _ bytes: some Collection<UInt8>, to characteristic: Characteristic, idempotency: Idempotency,
    id: OperationID? = nil, options: WriteOptions = WriteOptions()
  ) -> WriteRequest {
    WriteRequest(.writeWithoutResponse(characteristic, Array(bytes)), idempotency, id, options)
  }

  /// Several values that are verified part by part and executed together (Core Specification Vol 3 Part G 4.9.5).
  public static func reliably(
    _ writes: [ReliableWrite], idempotency: Idempotency, id: OperationID? = nil,
    options: WriteOptions = WriteOptions()
  ) -> WriteRequest {
    WriteRequest(.writeReliably(writes), idempotency, id, options)
  }
}

/// An operation that was submitted: its name, and its outcome once it has one.
///
/// It keeps its session alive.
public final class PendingOperation: Sendable {
  /// The name of the operation: the one that was given, or one that the session gave.
  ///
  /// That of a durable operation means the same after a restart.
  public let id: OperationID

  private let cell: OutcomeCell
  private let session: DeviceSession

  init(id: OperationID, cell: OutcomeCell, session: DeviceSession) {
    self.id = id
    self.cell = cell
    self.session = session
  }

  /// The one outcome of the operation; it may be asked for any number of times, by any number of tasks.
  ///
  /// It comes within the operation's deadline, for a durable operation at most a second later. Cancelling a task that
  /// waits for it changes nothing: ``cancel()`` ends the operation.
  public var outcome: Outcome<Confirmation> {
    get async {
      let outcome = await cell.wait()
      if cell.takeUntold() { session.outcomeTold(id) }
      return outcome
    }
  }

  /// The outcome, if there is one by now.
  public var outcomeIfSettled: Outcome<Confirmation>? {
    let outcome = cell.outcome
    if cell.takeUntold() { session.outcomeTold(id) }
    return outcome
  }

  /// Ends the operation for everybody who waits for it: what was never offered is not sent, what was offered is
  /// indeterminate.
  ///
  /// An operation that has its outcome keeps it.
  public func cancel() {
    session.operationCancelled(id)
  }
}
