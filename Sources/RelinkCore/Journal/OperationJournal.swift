internal import BluetoothWire

/// The record of all operations that have no outcome yet: which may be offered, in which order, and what becomes of
/// them when a link dies, or the process.
///
/// The rules, each in one place:
/// - *Order*: an operation may be offered when no earlier unsettled operation shares one of its keys; among those that
///   may, priority and then call order decide (`OperationJournal+Order.swift`).
/// - *Marking*: an operation is marked offered before its bytes leave, and the mark is taken back only when the link
///   proves that nothing left (``offerNotTaken(_:now:)``, ``linkLost(_:reason:evidence:inDoubt:isGone:now:)``). The mark of a
///   durable one is committed first, and that one is never taken back.
/// - *Doubt*: what was offered and cannot be answered any more is offered again if it is idempotent, is looked at if it
///   is verified, and settles as indeterminate if it is neither (`OperationJournal+Doubt.swift`).
/// - *Durability*: a durable operation is recorded before it may be offered, and its outcome is committed before anybody
///   is told (`OperationJournal+Store.swift`).
package struct OperationJournal: Sendable {
  /// The operations without outcome, in call order.
  package internal(set) var entries: [JournalEntry] = []

  /// Requests whose operation is settled while the link still owes the answer.
  ///
  /// They keep their keys.
  var abandoned: [RequestID: OrderKeys] = [:]

  /// Calls that are not taken, and wait for what the store knows under their names.
  var lookUps: [LookUp] = []
  /// Names under which a later version of the library keeps what this one cannot read.
  var foreign: Set<OperationID> = []

  let policy: JournalPolicy
  var kept: KeptOutcomes
  var store: StoreState
  var log = DurableLog()
  /// How many operations have settled in the store since it was last asked to let old ones go.
  var settledSincePrune = 0
  /// When the first outcome was settled that an earlier process may not have told, in nanoseconds since 1970.
  var untoldSince = Int64.max
  /// Whether the system clock was known to be right when somebody last looked.
  var isWallRight = false

  /// The earliest instant for which a timer was asked; a later deadline needs none of its own.
  var armed: MonotonicInstant?
  /// A timer that is wanted and that no return value has room for.
  var wantedTimer: MonotonicInstant?

  /// How many entries have another priority than the usual one.
  var prioritised = 0
  /// How many entries are not plain: those of which something special is said, or whose ID was given.
  var special = 0
  /// The name of this start of the system; nil where it has none.
  let bootID: String?
  /// How long the system had been suspended when it was last looked at, in nanoseconds.
  var suspended: Int64
  /// The earliest link since which the device is proven to have kept its state.
  var unbrokenSince = Generation(rawValue: 0)
  /// Writes without response handed over on the link in use, and how many of them an answer has shown to have arrived.
  var commands = (handedOver: 0, confirmed: 0)

  /// Whether somebody looks at the transitions.
  package var isObserved = false
  var events: [JournalEvent] = []
  var reports: [RecoveredOperation] = []

  /// Makes an empty journal.
  ///
  /// - `hasStore`: whether there is a store, whose operations are to be taken over before anything is offered.
  /// - `bootID`: the name of this start of the system, where it has one.
  package init(policy: JournalPolicy, hasStore: Bool = false, bootID: String? = nil, now: Timestamp) {
    self.policy = policy
    self.bootID = bootID
    kept = KeptOutcomes(policy: policy)
    store = hasStore ? .closed : .none
    suspended = now.suspended
  }

  // MARK: What may be asked of the journal

  /// Whether any operation waits for a link.
  package var hasQueued: Bool {
    entries.contains { $0.state == .queued || $0.state == .inDoubt }
  }

  /// Whether nobody waits for anything.
  package var isEmpty: Bool { entries.isEmpty && lookUps.isEmpty }

  /// Whether any operation is without an outcome, and not only waits for that to be committed.
  package var hasOpenWork: Bool {
    entries.contains { !$0.isSettling }
  }

  /// Whether an operation of a call up to this one is on the link, or could be offered on it.
  package func hasWork(upTo last: OperationNumber, on generation: Generation) -> Bool {
    entries.contains { entry in
      guard entry.number <= last else { return false }
      if case .offered = entry.state { return true }
      return entry.isOfferable(on: generation, storeWorks: log.isWorking)
    }
  }

  /// Whether the probe of an operation looks at the device.
  package func isProbing(_ number: OperationNumber) -> Bool {
    guard let index = index(of: number), case .probing = entries[index].state else { return false }
    return true
  }

  /// Whether an operation is still being recorded, or the store has not said yet whether it knows the call.
  package func isRecording(_ number: OperationNumber) -> Bool {
    if let index = index(of: number) { return entries[index].state == .recording }
    return lookUps.contains { $0.number == number }
  }

  /// Whether any operation asks for a secure link, or for a bond.
  package var wantsSecurity: Bool {
    special > 0
      && entries.contains { $0.options.security > .none || $0.options.continuity == .sameBond }
  }

  /// What an operation asks of the security of its link.
  package func security(of number: OperationNumber) -> SecurityLevel {
    guard special > 0, let index = index(of: number) else { return .none }
    return entries[index].options.security
  }

  /// Whether something is to be passed on: commits, a timer, transitions, reports.
  package var hasOutput: Bool {
    wantedTimer != nil || !events.isEmpty || !reports.isEmpty || !log.pending.isEmpty
  }

  /// Whether the inputs need to know the time: most journals need it for deadlines only.
  package var wantsTime: Bool { isObserved || special > 0 }

  /// The transitions since the last time that they were taken.
  package mutating func takeEvents() -> [JournalEvent] {
    guard !events.isEmpty else { return [] }
    defer { events = [] }
    return events
  }

  /// The outcomes that came from an earlier process, or belong to an operation of one, and that nobody waits for.
  package mutating func takeReports() -> [RecoveredOperation] {
    guard !reports.isEmpty else { return [] }
    defer { reports = [] }
    return reports
  }

  /// A timer that is to be set, if it is earlier than the one that was.
  package mutating func takeTimer() -> MonotonicInstant? {
    defer { wantedTimer = nil }
    // An earlier one may have been asked for since, by a return value.
    return wantedTimer == nil ? nil : armed
  }

  // MARK: Admission

  /// What an app asks for.
  package struct Call: Hashable, Sendable {
    /// Its place in the order of calls.
    package var number: OperationNumber
    /// The name that the caller gave.
    package var id: OperationID?
    /// Whether the name was made for this call, so that no earlier process can have used it.
    package var isNewName: Bool
    /// What is asked of the device.
    package var request: GATTRequest
    /// Whether it may be repeated.
    package var idempotency: Idempotency
    /// When the wait ends; nil for never.
    package var deadline: MonotonicInstant?
    /// What else is decided about it; nil for nothing.
    package var options: OperationOptions?
    /// The link on which the session is ready, if it is.
    package var readyOn: Generation?

    /// Describes a call.
    package init(
      number: OperationNumber, id: OperationID? = nil, isNewName: Bool = true, request: GATTRequest,
      idempotency: Idempotency, deadline: MonotonicInstant?, options: OperationOptions? = nil,
      readyOn: Generation? = nil
    ) {
      self.number = number
      self.id = id
      self.isNewName = isNewName
      self.request = request
      self.idempotency = idempotency
      self.deadline = deadline
      self.options = options
      self.readyOn = readyOn
    }
  }

  /// What follows from a call.
  package enum Admission: Hashable, Sendable {
    /// Recorded, or about to be, or looked up before it is refused; a timer for the deadlines is to be set where an instant is given. The operations that it
    /// makes superfluous are settled.
    case recorded(timer: MonotonicInstant?, superseded: [Settlement] = [])
    /// There is an operation of that ID, which the caller waits for too.
    case joined(OperationNumber)
    /// There was an operation of that ID: this is its outcome.
    case kept(Outcome<Confirmation>)
    /// It is not sent.
    case refused(NotSentReason)
    /// It is not sent, and what an earlier process did under its ID nobody can tell.
    case unknown(Doubt)
  }

  /// The app asks for an operation of which nothing special is said.
  ///
  /// IDs ascend in the order of the calls; one whose call was held up on its way here still takes its place.
  package mutating func operationRequested(_ call: Call, now: Timestamp) -> Admission {
    // What was slept through before the call does not count for it.
    noteSuspension(now)
    if let id = call.id, let known = lookUp(id, call, now: now) { return known }
    guard entries.count < policy.capacity else {
      return refusedUnlessStored(call, .journalFull(limit: policy.capacity), now: now)
    }
    var entry = JournalEntry(
      number: call.number, id: call.id ?? OperationID(call.number), request: call.request,
      idempotency: call.idempotency, deadline: call.deadline)
    if let options = call.options, options != .plain {
      entry.extras = extras(for: options, call, now: now)
      if call.request.isWrite, hasOtherDurability(entry) {
        return refusedUnlessStored(call, .mixedDurability, now: now)
      }
      if options.durability == .durable {
        if let obstacle = obstacleToRecording {
          return refusedUnlessStored(call, .storeFailed(obstacle), now: now)
        }
        do {
          let stored = try StoredOperation(of: entry, bootID: bootID).stored
          entry.extras?.stored = stored
        } catch {
          return .refused(
            .storeFailed(JournalStoreError(.system, "The operation cannot be recorded: \(error)")))
        }
        entry.state = .recording
      }
    } else if call.request.isWrite, special > 0, hasOtherDurability(entry) {
      return .refused(.mixedDurability)
    }
    let index = insert(entry)
    if entry.isDurable {
      record(at: index, now: now)
      return .recorded(timer: timerNeeded(for: entry), superseded: [])
    }
    note(.recorded, at: index, now)
    return .recorded(timer: timerNeeded(for: entry), superseded: supersede(olderThan: index, now: now))
  }

  /// What an ID stands for already; nil for nothing.
  package mutating func lookUp(_ id: OperationID, _ call: Call, now: Timestamp) -> Admission? {
    if let index = entries.firstIndex(where: { $0.id == id }) {
      let entry = entries[index]
      // A handle says that the operation is recorded, so one that is not cannot stand for it.
      let isDurable = call.options?.durability == .durable
      guard isSame(entry, call), entry.isDurable || !isDurable else { return .refused(.conflictingID) }
      note(.joined, at: index, now)
      waitAnew(at: index, call, now: now)
      return .joined(entry.number)
    }
    guard let one = kept.outcome(of: id, now: now.bootTime) else { return nil }
    guard one.isSame(call.request, call.idempotency) else { return .refused(.conflictingID) }
    if one.isDurable { delivered(id, now: now) }
    return .kept(one.outcome)
  }

  /// Whether a call asks for what an operation is; probes made of closures count as the same.
  private func isSame(_ entry: JournalEntry, _ call: Call) -> Bool {
    if entry.request == call.request, entry.idempotency == call.idempotency { return true }
    return StoredOperation.fingerprint(of: entry.request, entry.idempotency)
      == StoredOperation.fingerprint(of: call.request, call.idempotency)
  }

  /// One more caller waits for an outcome whose commit takes so long that the others were told something else.
  private mutating func waitAnew(at index: Int, _ call: Call, now: Timestamp) {
    guard entries[index].isSettling, entries[index].extras?.isTold == true else { return }
    noteSuspension(now)
    withExtras(at: index) {
      $0.isTold = false
      $0.settleLimit = Self.settleLimit(call.deadline, now: now)
    }
    want(timer: entries[index].nextInstant)
  }

  private func extras(
    for options: OperationOptions, _ call: Call, now: Timestamp
  ) -> JournalEntry.Extras {
    var extras = JournalEntry.Extras()
    extras.options = options
    if let instant = options.offerBefore {
      extras.offerBefore = now.monotonic.advanced(by: .nanoseconds(instant.bootTime - now.bootTime))
    }
    if options.durability == .durable, let deadline = call.deadline {
      extras.lastingDeadline = ExpiryInstant(now.monotonic.duration(to: deadline), after: now)
    }
    if options.continuity == .unbroken { extras.bornOn = call.readyOn }
    extras.isNewName = call.isNewName
    return extras
  }

  /// Whether a write that is recorded elsewhere shares a key with this one: a restart would lose their order.
  private func hasOtherDurability(_ entry: JournalEntry) -> Bool {
    let keys = OrderKeys(of: entry)
    return entries.contains {
      $0.request.isWrite && $0.isDurable != entry.isDurable && keys.contains(keyOf: $0)
    }
  }

  /// A younger operation makes older ones with its superseding key superfluous.
  mutating func supersede(olderThan index: Int, now: Timestamp) -> [Settlement] {
    guard let key = entries[index].special?.extras.options.supersedes else { return [] }
    let (number, younger) = (entries[index].number, entries[index].id)
    var settled: [Settlement] = []
    for older in entries.map(\.number) where older < number {
      guard let position = self.index(of: older), entries[position].options.supersedes == key else {
        continue
      }
      switch entries[position].state {
      case .queued where entries[position].lastOffer == nil:
        if let one = settle(at: position, .notSent(.superseded(by: younger)), now: now) {
          settled.append(one)
        }
      case .queued:
        let outcome = entries[position].unanswered(
          notSent: .superseded(by: younger), doubt: .superseded(by: younger))
        if let one = settle(at: position, outcome, now: now) { settled.append(one) }
      case .recording, .offered, .inDoubt, .probing, .unresolved:
        // It is on its way, or being looked at: what comes of that is told, but it is not offered again.
        withExtras(at: position) { $0.supersededBy = younger }
        note(.superseded(by: younger), at: position, now)
      case .settling:
        break
      }
    }
    return settled
  }

  // MARK: Parts

  mutating func insert(_ entry: JournalEntry) -> Int {
    if entry.priority != .normal { prioritised += 1 }
    if entry.special != nil || entry.id.isLasting { special += 1 }
    if let last = entries.last, last.number > entry.number {
      let index = entries.firstIndex { $0.number > entry.number } ?? entries.endIndex
      entries.insert(entry, at: index)
      return index
    }
    entries.append(entry)
    return entries.endIndex - 1
  }

  /// Changes what is special about an operation.
  mutating func withExtras<Value>(at index: Int, _ body: (inout JournalEntry.Extras) -> Value) -> Value {
    if entries[index].special == nil, !entries[index].id.isLasting { special += 1 }
    var extras = entries[index].extras ?? JournalEntry.Extras()
    // Taken out meanwhile, so that it is changed in place.
    entries[index].extras = nil
    let value = body(&extras)
    entries[index].extras = extras
    return value
  }

  mutating func remove(at index: Int) -> JournalEntry {
    let entry = entries.remove(at: index)
    if entry.priority != .normal { prioritised -= 1 }
    if entry.special != nil || entry.id.isLasting { special -= 1 }
    return entry
  }

  /// The index of an operation; numbers ascend, so a binary search finds it.
  func index(of number: OperationNumber) -> Int? {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < entries.count && entries[low].number == number ? low : nil
  }

  /// Gives an operation its outcome; nil where that has to be committed first.
  mutating func settle(
    at index: Int, _ outcome: Outcome<GATTAnswer>, _ confirmation: Confirmation = .acknowledged,
    now: Timestamp
  ) -> Settlement? {
    var settlement = Settlement(number: entries[index].number, outcome: outcome, confirmation: confirmation)
    if case .succeeded = outcome, entries[index].request.isWithoutResponse {
      settlement.confirmation = .handedOver
    }
    if entries[index].isDurable {
      commit(settlement, at: index, now: now)
      return nil
    }
    finish(settlement, at: index, now: now)
    return settlement
  }

  /// Takes an operation out, and keeps its outcome where its ID may be asked for again.
  mutating func finish(_ settlement: Settlement, at index: Int, now: Timestamp) {
    note(.settled(settlement.confirmed), at: index, now)
    // Looked at in its place: most go without a trace.
    guard entries[index].id.isLasting, entries[index].request.isWrite, !settlement.outcome.isRefusal else {
      _ = remove(at: index)
      return
    }
    let entry = remove(at: index)
    let isSensitive = entry.options.isSensitive
    kept.keep(
      KeptOutcomes.Kept(
        request: isSensitive ? entry.request.redacted : entry.request,
        idempotency: (isSensitive ? entry.idempotency.redacted : entry.idempotency).withoutClosure,
        isSensitive: isSensitive, isDurable: entry.isDurable, outcome: settlement.confirmed, at: now.bootTime,
        fingerprint: isSensitive ? StoredOperation.fingerprint(of: entry.request, entry.idempotency) : nil),
      for: entry.id)
  }

  /// Takes a transition down for those who look at them.
  mutating func note(_ change: @autoclosure () -> JournalEvent.Change, at index: Int, _ now: Timestamp) {
    guard isObserved else { return }
    let change = change()
    var operation = entries[index].summary
    if case .settled = change { operation.state = .settled }
    events.append(JournalEvent(change, of: operation, at: now))
  }

  // MARK: Timers

  mutating func timerNeeded(for entry: JournalEntry) -> MonotonicInstant? {
    guard let first = entry.nextInstant, armed.map({ first < $0 }) ?? true else { return nil }
    armed = first
    return first
  }

  mutating func want(timer instant: MonotonicInstant?) {
    guard let instant, armed.map({ instant < $0 }) ?? true else { return }
    armed = instant
    wantedTimer = instant
  }
}

extension JournalEntry {
  /// The next instant at which time alone changes something about the operation.
  var nextInstant: MonotonicInstant? {
    guard let extras = special?.extras else { return deadline }
    if isSettling { return extras.isTold ? nil : extras.settleLimit }
    guard let offerBefore = extras.offerBefore, !extras.hasExpired else { return deadline }
    return deadline.map { min($0, offerBefore) } ?? offerBefore
  }
}

extension Outcome {
  /// Whether it says that the operation never became one: the same call may be made again.
  fileprivate var isRefusal: Bool {
    switch self {
    case .notSent(.storeFailed), .notSent(.conflictingID): true
    case .indeterminate(let doubt):
      // Said in place of a store that could not be read.
      if case .storeFailed = doubt.cause { true } else { false }
    case .succeeded, .rejected, .notSent: false
    }
  }
}

extension Timestamp {
  /// How long the system has been suspended since it was started, in nanoseconds.
  var suspended: Int64 { bootTime &- monotonic.nanoseconds }
}

/// An outcome of a durable operation that was called in an earlier process.
public struct RecoveredOperation: Hashable, Sendable {
  /// The name of the operation.
  public var id: OperationID
  /// What was asked of the device, without the bytes where they are sensitive; nil where the record cannot be read.
  public var request: GATTRequest?
  /// Its one outcome.
  public var outcome: Outcome<Confirmation>

  /// Describes an outcome.
  public init(id: OperationID, request: GATTRequest?, outcome: Outcome<Confirmation>) {
    self.id = id
    self.request = request
    self.outcome = outcome
  }
}
