/// One operation in the journal, from the call to its outcome.
package struct JournalEntry: Hashable, Sendable {
  /// How far an operation has come; it leaves the journal when it is settled.
  ///
  /// ```
  ///  recording ──► queued ──────► offered ─────► settling ──► settled
  ///  (durable)      ▲  ▲             │  answer   (durable)
  ///                 │  └─────────────┤ not taken, or lost and idempotent
  ///                 │ not applied    ▼ lost and verified
  ///                 └─── probing ◄─ inDoubt ─► unresolved
  /// ```
  package enum State: Hashable, Sendable {
    /// Its record is being committed.
    case recording
    /// Waits for a link and for its turn.
    case queued
    /// Handed over on a link, under this request ID; the answer is awaited.
    case offered(RequestID)
    /// Waits for a link on which its probe can look at the device.
    case inDoubt
    /// Its probe looks at the device, on this link.
    case probing(Generation)
    /// Waits for the app to say what became of it.
    case unresolved
    /// Has its outcome, which is being committed; nothing changes it any more.
    case settling
  }

  /// How far the mark of a durable operation has come: that it is about to be offered.
  package enum Mark: Hashable, Sendable {
    /// None was asked for since the latest offer that may have reached the device.
    case none
    /// It is being committed.
    case requested
    /// It is committed; it is never taken back in the store.
    case committed
  }

  package typealias Offer = JournaledOperation.Offer

  /// The place of the operation in the order of calls.
  package let number: OperationNumber
  /// The name of the operation.
  package let id: OperationID
  /// What is asked of the device.
  package let request: GATTRequest
  /// Whether it may be offered again when it is in doubt.
  package let idempotency: Idempotency
  /// When the caller's wait ends and the operation settles; nil for never.
  package internal(set) var deadline: MonotonicInstant?
  /// How far it has come.
  package internal(set) var state: State
  /// How often it was offered.
  package internal(set) var offers: Int
  /// The latest offer that may have reached the device; nil while none did.
  package internal(set) var lastOffer: Offer?
  /// The value of `lastOffer` before an offer that is not certain yet.
  var previousOffer: Offer?
  /// How many writes without response had been handed over on its link before it.
  var commandsBefore = 0
  /// What is special about it; nil for most.
  var extras: Extras? {
    get { special?.extras }
    set { special = newValue.map { Special($0) } }
  }
  private(set) var special: Special?

  /// What is kept of the few operations of which something special is said or has happened.
  struct Extras: Hashable, Sendable {
    var options = OperationOptions.plain
    /// The deadline on the clock that counts suspended time.
    var lastingDeadline: ExpiryInstant?
    /// When the timer for `options.offerBefore` is due.
    var offerBefore: MonotonicInstant?
    /// That instant has passed while it was out: it is not offered once more.
    var hasExpired = false
    /// How it is recorded, until it is.
    var stored: Stored?
    var mark = Mark.none
    /// Its outcome, while that is being committed.
    var outcome: Outcome<GATTAnswer>?
    var confirmation = Confirmation.acknowledged
    /// When its callers are told at the latest, committed or not.
    var settleLimit: MonotonicInstant?
    /// Its callers were told something because the store did not answer in time.
    var isTold = false
    /// The younger operation that makes it superfluous.
    var supersededBy: OperationID?
    /// The link of the call, for operations that must not outlive the device's state.
    var bornOn: Generation?
    /// The bond that secured the link of its first offer.
    var bond: UInt64?
    /// How often its probe was begun.
    var probes = 0
    /// How often in a row the device ended the link over it.
    var poisonings = 0
    /// A link that took it and gave it back again and again.
    var heldOn: Generation?
    /// How often in a row it was given back.
    var refusals = 0
    var isRecovered = false
    /// No earlier process can have used its name.
    var isNewName = true
    /// It may not be offered before the system clock is known to be right.
    var awaitsClock = false
  }

  /// The extras of an operation, elsewhere: most have none, and entries are moved about often.
  final class Special: Hashable, Sendable {
    let extras: Extras

    init(_ extras: Extras) {
      self.extras = extras
    }

    static func == (left: Special, right: Special) -> Bool { left.extras == right.extras }

    func hash(into hasher: inout Hasher) {
      hasher.combine(extras)
    }
  }

  /// An operation as the store keeps it.
  struct Stored: Hashable, Sendable {
    var operation: [UInt8]
    var fingerprint: [UInt8]
  }

  init(
    number: OperationNumber, id: OperationID, request: GATTRequest, idempotency: Idempotency,
    deadline: MonotonicInstant?
  ) {
    self.number = number
    self.id = id
    self.request = request
    self.idempotency = idempotency
    self.deadline = deadline
    state = .queued
    offers = 0
  }

  /// What was decided about it beside its tag.
  package var options: OperationOptions { special?.extras.options ?? .plain }

  /// Whether it is recorded in the store.
  package var isDurable: Bool { special?.extras.options.durability == .durable }

  /// Whether it goes before or after others that may go as well.
  var priority: OperationPriority { special?.extras.options.priority ?? .normal }

  /// Whether it has its outcome already.
  var isSettling: Bool { state == .settling }

  /// Whether its probe looks at the device.
  var isProbing: Bool {
    if case .probing = state { true } else { false }
  }

  /// Calls `body` with each key that it keeps its order in; stops and returns true where one of the calls does.
  func anyKey(_ body: (OrderKey) -> Bool) -> Bool {
    if request.anyKey(body) { return true }
    guard let lane = special?.extras.options.lane else { return false }
    return body(.lane(lane))
  }

  /// The outcome when no answer can come any more and it is not to be offered again.
  func unanswered(notSent: NotSentReason, doubt cause: Doubt.Cause) -> Outcome<GATTAnswer> {
    guard let lastOffer else { return .notSent(notSent) }
    return .indeterminate(
      Doubt(
        cause: cause, generation: lastOffer.generation, offeredAt: lastOffer.at, offers: offers,
        lastPossibleEffect: lastOffer.lastPossibleEffect))
  }

  /// The outcome for a caller who cannot be told the real one, because the store may not have kept it.
  func unrecorded(_ error: JournalStoreError, now: Timestamp) -> Outcome<GATTAnswer> {
    .indeterminate(
      Doubt(
        cause: .storeFailed(error), generation: lastOffer?.generation ?? Generation(rawValue: 0),
        offeredAt: lastOffer?.at ?? now, offers: offers, lastPossibleEffect: lastOffer?.lastPossibleEffect))
  }

  /// The operation as it is shown outside.
  package var summary: JournaledOperation {
    let options = options
    return JournaledOperation(
      id: id, request: options.isSensitive ? request.redacted : request,
      idempotency: options.isSensitive ? idempotency.redacted : idempotency,
      state: shownState, offers: offers, lastOffer: lastOffer, deadline: deadline,
      offerBefore: options.offerBefore?.wall, lane: options.lane, priority: options.priority,
      supersedes: options.supersedes, durability: options.durability, isSensitive: options.isSensitive,
      isRecovered: extras?.isRecovered ?? false)
  }

  private var shownState: JournaledOperation.State {
    switch state {
    case .recording: .recording
    case .queued: lastOffer == nil ? .queued : .inDoubt
    case .offered: .offered
    case .inDoubt: .inDoubt
    case .probing: .probing
    case .unresolved: .unresolved
    case .settling: .settling
    }
  }
}

/// The end of an operation: its one outcome.
package struct Settlement: Hashable, Sendable {
  /// The operation.
  package var number: OperationNumber
  /// Its outcome.
  package var outcome: Outcome<GATTAnswer>
  /// How a success is known.
  package var confirmation = Confirmation.acknowledged
  /// The name under which the outcome is committed, for durable operations: that it was told is to be recorded too.
  package var durableID: OperationID?

  /// The outcome as it is shown and kept.
  package var confirmed: Outcome<Confirmation> {
    switch outcome {
    case .succeeded: .succeeded(confirmation)
    case .rejected(let rejection): .rejected(rejection)
    case .notSent(let reason): .notSent(reason)
    case .indeterminate(let doubt): .indeterminate(doubt)
    }
  }
}

extension GATTRequest {
  /// The same request without the bytes of its value.
  package var redacted: GATTRequest {
    switch self {
    case .exchangeMTU, .discover, .read, .setNotifying: self
    case .write(let name, _): .write(name, [])
    case .writeLong(let name, _): .writeLong(name, [])
    case .writeWithoutResponse(let name, _): .writeWithoutResponse(name, [])
    case .writeReliably(let writes):
      .writeReliably(writes.map { ReliableWrite($0.characteristic, []) })
    }
  }

  /// Whether the request flows beside those that await an answer.
  package var isWithoutResponse: Bool {
    if case .writeWithoutResponse = self { true } else { false }
  }

  /// Whether the request changes the device.
  package var isWrite: Bool {
    switch self {
    case .write, .writeLong, .writeWithoutResponse, .writeReliably: true
    case .exchangeMTU, .discover, .read, .setNotifying: false
    }
  }
}

extension Idempotency {
  /// The same tag without the bytes that a probe expects.
  var redacted: Idempotency {
    guard case .verified(let probe) = self, case .value(let name, _) = probe.kind else { return self }
    return .verified(by: Probe(.value(name, [])))
  }
}
