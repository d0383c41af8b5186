internal import BluetoothWire

/// The record of all operations that have no outcome yet: which may be offered, in which order, and what becomes of
/// them when a link dies.
///
/// Three rules, each in one place:
/// - *Order*: an operation may be offered when no earlier unsettled operation shares its `OrderKey`; among those
///   that may, call order decides (``nextOffer(taking:)``).
/// - *Marking*: an operation is marked offered before its bytes leave, and the mark is taken back only when the link
///   proves that nothing left (``offerNotTaken(_:)``, ``linkLost(_:reason:inDoubt:now:)``).
/// - *Doubt*: what was offered and cannot be answered any more is offered again if it is idempotent, and settles as
///   indeterminate if it is not.
package struct OperationJournal: Sendable {
  /// The operations without outcome, in call order.
  package private(set) var entries: [JournalEntry] = []

  /// Requests whose operation is settled while the link still owes the answer.
  ///
  /// They keep their key.
  private var abandoned: [RequestID: OrderKey] = [:]

  private let policy: JournalPolicy

  /// The earliest instant for which a timer was asked; a later deadline needs none of its own.
  private var armed: MonotonicInstant?

  /// Makes an empty journal.
  package init(policy: JournalPolicy) {
    self.policy = policy
  }

  /// Whether any operation waits to be offered.
  package var hasQueued: Bool {
    entries.contains { $0.state == .queued }
  }

  // MARK: Admission and offers

  /// What follows from a request to record an operation.
  package enum Admission: Hashable, Sendable {
    /// Recorded; a timer for the deadlines is to be set where an instant is given.
    case recorded(timer: MonotonicInstant?)
    /// The journal is full.
    case full(limit: Int)
  }

  /// The app asks for an operation.
  ///
  /// IDs ascend in the order of the calls; one whose call was held up on its way here still takes its place.
  package mutating func operationRequested(
    _ id: OperationNumber, _ request: GATTRequest, idempotency: Idempotency, deadline: MonotonicInstant?
  ) -> Admission {
    guard entries.count < policy.capacity else { return .full(limit: policy.capacity) }
    let entry = JournalEntry(id: id, request: request, idempotency: idempotency, deadline: deadline)
    if let last = entries.last, last.id > id {
      entries.insert(entry, at: entries.firstIndex { $0.id > id } ?? entries.endIndex)
    } else {
      entries.append(entry)
    }
    return .recorded(timer: timerNeeded(for: deadline))
  }

  /// Which kinds of request a link can take at the moment.
  package enum Room: Hashable, Sendable {
    /// Any request.
    case any
    /// Only what flows beside the outstanding requests.
    case withoutResponse
  }

  /// The operation that is to be offered next, if there is one.
  package func nextOffer(taking room: Room) -> JournalEntry? {
    var blocked: [OrderKey] = []
    for entry in entries {
      let key = entry.orderKey
      let isFree = entry.state == .queued && !blocked.contains(key) && !isAbandoned(key)
      if isFree && (room == .any || entry.request.isWithoutResponse) { return entry }
      if !blocked.contains(key) { blocked.append(key) }
    }
    return nil
  }

  /// The operation is about to be handed over on a link.
  ///
  /// This comes before the bytes leave.
  package mutating func offering(
    _ id: OperationNumber, as request: RequestID, on generation: Generation, now: Timestamp
  ) {
    guard let index = index(of: id) else { return }
    entries[index].previousOffer = entries[index].lastOffer
    entries[index].state = .offered(request)
    entries[index].offers += 1
    entries[index].lastOffer = JournalEntry.Offer(generation: generation, at: now, lastPossibleEffect: nil)
  }

  /// The link did not take the operation: nothing left, so the mark goes.
  package mutating func offerNotTaken(_ id: OperationNumber) {
    guard let index = index(of: id) else { return }
    takeOfferBack(at: index)
  }

  /// The link refused the operation for a reason that holds on any link.
  package mutating func offerRefused(_ id: OperationNumber, _ refusal: GATTRefusal) -> Settlement? {
    guard let index = index(of: id) else { return nil }
    return refused(at: index, refusal)
  }

  // MARK: Ends

  /// A request of the link that is up was answered.
  ///
  /// An answer to a request that nobody waits for any more frees its place and settles nothing.
  package mutating func answered(
    _ request: RequestID, with answer: Result<GATTAnswer, GATTFailure>
  ) -> Settlement? {
    guard let index = entries.firstIndex(where: { $0.state == .offered(request) }) else {
      abandoned[request] = nil
      return nil
    }
    switch answer {
    case .success(let value):
      return settle(at: index, .succeeded(value))
    case .failure(.rejected(let code)):
      return rejected(at: index, code, proof: policy.rejections.provesNotApplied(code))
    case .failure(.executionRejected(let code)):
      return rejected(at: index, code, proof: policy.rejections.provesNotExecuted(code))
    case .failure(.refused(let refusal)):
      guard refusal.isPermanent else {
        takeOfferBack(at: index)
        return nil
      }
      return refused(at: index, refusal)
    case .failure(.malformedAnswer):
      return settle(at: index, entries[index].unanswered(notSent: .linkLost, doubt: .malformedAnswer))
    }
  }

  /// The requests that the link owes an answer to; with an instant, those whose caller waits no longer by then.
  package func outstandingRequests(overdueAt now: MonotonicInstant? = nil) -> [RequestID] {
    entries.compactMap { entry in
      guard case .offered(let request) = entry.state else { return nil }
      guard let now else { return request }
      return entry.deadline.map { $0 <= now } ?? false ? request : nil
    }
  }

  /// The request that the link owes an answer to for this operation.
  package func outstandingRequest(of id: OperationNumber) -> RequestID? {
    guard let index = index(of: id), case .offered(let request) = entries[index].state else { return nil }
    return request
  }

  /// The link has called a request off before it could take effect, and still holds it: this offer causes no doubt.
  package mutating func offerDisproven(_ request: RequestID) {
    guard let index = entries.firstIndex(where: { $0.state == .offered(request) }) else { return }
    entries[index].offers -= 1
    entries[index].lastOffer = entries[index].previousOffer
  }

  /// What follows when a caller's wait ends before the answer.
  package struct Abandonment: Hashable, Sendable {
    /// The outcome that the caller gets.
    package var settlement: Settlement
    /// The request that the link should know nobody waits for; nil where none is outstanding.
    package var abandon: RequestID?
  }

  /// The caller of an operation was cancelled.
  package mutating func cancelled(_ id: OperationNumber) -> Abandonment? {
    guard let index = index(of: id) else { return nil }
    return abandon(at: index, notSent: .cancelled, doubt: .cancelled)
  }

  /// A timer for deadlines went off.
  ///
  /// - Returns: the operations whose deadline has passed, and the instant of the next timer.
  package mutating func timerFired(
    now: MonotonicInstant
  ) -> (expired: [Abandonment], timer: MonotonicInstant?) {
    armed = nil
    var expired: [Abandonment] = []
    for entry in entries where entry.deadline.map({ $0 <= now }) ?? false {
      if let index = index(of: entry.id) {
        expired.append(abandon(at: index, notSent: .deadline, doubt: .deadline))
      }
    }
    return (expired, timerNeeded(for: entries.lazy.compactMap(\.deadline).min()))
  }

  /// The link is gone: what it owed cannot be answered any more.
  ///
  /// `inDoubt`: the requests that may have reached the device. The others did not: their marks go. `isGone`: whether
  /// nothing that was handed over can take effect any more.
  /// - Returns: the operations that are settled by it, and how many were in doubt.
  package mutating func linkLost(
    _ generation: Generation, reason: DisconnectReason, inDoubt: [RequestID], isGone: Bool = true,
    now: MonotonicInstant
  ) -> (settled: [Settlement], inDoubt: Int) {
    abandoned.removeAll()
    var settled: [Settlement] = []
    var count = 0
    var index = 0
    while index < entries.count {
      guard case .offered(let request) = entries[index].state else {
        index += 1
        continue
      }
      guard inDoubt.contains(request) else {
        takeOfferBack(at: index)
        index += 1
        continue
      }
      count += 1
      entries[index].state = .queued
      entries[index].lastOffer?.lastPossibleEffect = isGone ? now : nil
      entries[index].lastOffer?.lostTo = reason
      switch entries[index].idempotency {
      case .idempotent:
        index += 1
      case .nonIdempotent, .verified:
        settled.append(
          settle(at: index, entries[index].unanswered(notSent: .linkLost, doubt: .linkLost(reason))))
      }
    }
    return (settled, count)
  }

  /// Nobody is going to bring a link: everything settles.
  package mutating func settleAll(notSent: NotSentReason, doubt: Doubt.Cause) -> [Abandonment] {
    var settled: [Abandonment] = []
    while !entries.isEmpty {
      settled.append(abandon(at: 0, notSent: notSent, doubt: doubt))
    }
    armed = nil
    // The link that owes those answers is closed, and nothing is offered before it is gone: its last word, which would
    // free the keys, does not come here any more once the session has let go of it.
    abandoned.removeAll()
    return settled
  }

  // MARK: Parts

  private func isAbandoned(_ key: OrderKey) -> Bool {
    !abandoned.isEmpty && abandoned.values.contains(key)
  }

  /// The index of an operation; IDs ascend, so a binary search finds it.
  private func index(of id: OperationNumber) -> Int? {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low < entries.count && entries[low].id == id ? low : nil
  }

  private mutating func takeOfferBack(at index: Int) {
    guard case .offered = entries[index].state else { return }
    entries[index].state = .queued
    entries[index].offers -= 1
    entries[index].lastOffer = entries[index].previousOffer
  }

  /// The latest offer had no effect, and there will be no other: what is left is the doubt about an earlier one.
  private mutating func refused(at index: Int, _ refusal: GATTRefusal) -> Settlement {
    takeOfferBack(at: index)
    let earlier = entries[index].lastOffer?.lostTo ?? .unknown
    return settle(
      at: index, entries[index].unanswered(notSent: .refused(refusal), doubt: .linkLost(earlier)))
  }

  private mutating func rejected(at index: Int, _ code: ATTErrorCode, proof: Bool) -> Settlement {
    // It proves nothing about an earlier offer that nobody answered.
    let isProven = proof && entries[index].previousOffer == nil
    return settle(at: index, .rejected(Rejection(code: code, provesNotApplied: isProven)))
  }

  private mutating func settle(at index: Int, _ outcome: Outcome<GATTAnswer>) -> Settlement {
    Settlement(id: entries.remove(at: index).id, outcome: outcome)
  }

  private mutating func abandon(
    at index: Int, notSent: NotSentReason, doubt: Doubt.Cause
  ) -> Abandonment {
    let entry = entries[index]
    var request: RequestID?
    if case .offered(let outstanding) = entry.state {
      request = outstanding
      abandoned[outstanding] = entry.orderKey
    }
    let settlement = settle(at: index, entry.unanswered(notSent: notSent, doubt: doubt))
    return Abandonment(settlement: settlement, abandon: request)
  }

  private mutating func timerNeeded(for deadline: MonotonicInstant?) -> MonotonicInstant? {
    guard let deadline else { return nil }
    if let armed, armed <= deadline { return nil }
    armed = deadline
    return deadline
  }
}

extension GATTRequest {
  /// Whether the request flows beside those that await an answer.
  package var isWithoutResponse: Bool {
    if case .writeWithoutResponse = self { true } else { false }
  }
}
