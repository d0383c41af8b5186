/// The outcomes of operations with a given ID, for callers who ask for the same once more.
struct KeptOutcomes: Hashable, Sendable {
  /// What is kept of a settled operation.
  struct Kept: Hashable, Sendable {
    var request: GATTRequest
    var idempotency: Idempotency
    /// The bytes of request and tag are not kept, only their digest.
    var isSensitive: Bool
    var isDurable: Bool
    var outcome: Outcome<Confirmation>
    /// When it settled, on the clock that counts suspended time.
    var at: Int64
    /// The digest of request and tag, where those themselves were erased; nil also where a store did not keep it, and
    /// whoever knows the ID of a sensitive one is taken to ask for the same.
    var fingerprint: [UInt8]?

    /// Whether a call asks for what this operation was.
    func isSame(_ request: GATTRequest, _ idempotency: Idempotency) -> Bool {
      if let fingerprint {
        return fingerprint == StoredOperation.fingerprint(of: request, idempotency)
      }
      return self.idempotency.isSame(as: idempotency)
        && (isSensitive ? self.request == request.redacted : self.request == request)
    }
  }

  private var outcomes: [OperationID: Kept] = [:]
  /// The IDs, the oldest first; those before `head` are gone.
  private var order: [OperationID] = []
  private var head = 0
  private let limit: Int
  private let retention: Int64

  init(policy: JournalPolicy) {
    limit = policy.keptInMemory
    retention = policy.outcomeRetention.clampedNanoseconds
  }

  var count: Int { outcomes.count }

  /// Keeps an outcome; what is too old, or too much, goes.
  mutating func keep(_ kept: Kept, for id: OperationID) {
    guard limit > 0 else { return }
    if outcomes.updateValue(kept, forKey: id) == nil { order.append(id) }
    while outcomes.count > limit { dropOldest() }
    dropExpired(now: kept.at)
  }

  /// The outcome of an ID, if it is kept.
  mutating func outcome(of id: OperationID, now: Int64) -> Kept? {
    dropExpired(now: now)
    return outcomes[id]
  }

  private mutating func dropExpired(now: Int64) {
    while head < order.count, let oldest = outcomes[order[head]], now - oldest.at > retention { dropOldest() }
  }

  private mutating func dropOldest() {
    outcomes[order[head]] = nil
    head += 1
    if head > 64, head * 2 > order.count {
      order.removeFirst(head)
      head = 0
    }
  }
}
