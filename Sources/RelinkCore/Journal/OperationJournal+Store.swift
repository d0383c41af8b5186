// What is committed when, and what follows from it. The store itself is the shell's: it is asked for one batch at a time.
extension OperationJournal {
  /// How it stands with the store.
  enum StoreState: Hashable, Sendable {
    /// There is none.
    case none
    /// Nobody has asked for the claim yet, or the last one who did was refused.
    case closed
    /// The claim is asked for; until it is there nothing is offered.
    case opening
    /// The claim is held; the next operation gets this place.
    case open(nextPlace: Int64)
    /// A newer claim holds the device's journal, or the store was closed: nothing durable is done any more.
    case lost(JournalStoreError)
  }

  /// How long callers wait for a commit beyond their deadline, or after the outcome where that comes later.
  static let settleGrace = Duration.seconds(1)

  /// How many operations settle between two prunings of the store.
  static let pruneInterval = 1_000

  /// Operations of an earlier process may be there that go first.
  var isTakingOver: Bool { store == .opening }

  /// Why no durable operation can be recorded.
  var obstacleToRecording: JournalStoreError? {
    switch store {
    case .none:
      JournalStoreError(.missing, "The session has no journal store; give it one in its configuration.")
    case .lost(let error): error
    case .closed, .opening, .open: nil
    }
  }

  /// Whether the claim is to be asked for.
  package var needsClaim: Bool { store == .closed }

  /// The claim is being asked for.
  package mutating func claimRequested() {
    if store == .closed { store = .opening }
  }

  /// What is to be committed now, if anything: one batch at a time.
  package mutating func nextCommit() -> (records: [JournalRecord], sync: JournalSync)? {
    guard case .open = store else { return nil }
    return log.next()
  }

  /// When a failed commit is to be tried again.
  package var retryAt: MonotonicInstant? { log.retryAt }

  /// The timer for trying a failed commit again went off.
  package mutating func retryDue(now: Timestamp) {
    // Where nothing is left to commit, something harmless finds out whether the store works again.
    if log.isEmpty, log.failure != nil { prune(now: now) }
    log.retryDue(now: now.monotonic)
  }

  /// Whether the store owes an answer from which something follows for an operation.
  package var awaitsStore: Bool { !isEmpty && (store == .opening || log.isInFlight) }

  /// Whether the callers of any operation have not been told its outcome yet.
  package var hasUntold: Bool { entries.contains { $0.extras?.isTold != true } }

  // MARK: What goes in

  /// A durable operation was called; its record goes once the claim is held.
  mutating func record(at index: Int, now: Timestamp) {
    guard case .open(let place) = store, let stored = entries[index].extras?.stored else { return }
    // A store that was tampered with may have used the highest place up; its rows are then ordered by their IDs.
    store = .open(nextPlace: place < .max ? place + 1 : place)
    withExtras(at: index) { $0.stored = nil }
    let entry = entries[index]
    let row = JournalRow(
      id: entry.id.description, place: place, operation: stored.operation, fingerprint: stored.fingerprint,
      isSensitive: entry.options.isSensitive, admittedAt: now.wall)
    log.append(
      DurableLog.Item(number: entry.number, purpose: .admission, record: .admitted(row), sync: .full))
  }

  /// A durable operation is next in line.
  ///
  /// Each offer has a mark of its own: a session whose journal somebody else has claimed meanwhile finds out by it. Of one
  /// that was offered before the store has a mark already, so that nothing is lost with the power but the number of offers.
  mutating func requestMark(at index: Int, on generation: Generation, now: Timestamp) {
    withExtras(at: index) { $0.mark = .requested }
    let entry = entries[index]
    let mark = StoredMark(generation: generation, at: now, offers: entry.offers + 1, bootID: bootID)
    log.append(
      DurableLog.Item(
        number: entry.number, purpose: .mark, record: .marked(id: entry.id.description, mark: mark.encoded()),
        sync: entry.idempotency == .idempotent || entry.offers > 0 ? .normal : .full))
  }

  /// A durable operation has its outcome.
  mutating func commit(_ settlement: Settlement, at index: Int, now: Timestamp) {
    guard !entries[index].isSettling else { return }
    noteSuspension(now)
    let isRecorded = entries[index].state != .recording
    entries[index].state = .settling
    let deadline = entries[index].deadline
    withExtras(at: index) { extras in
      extras.outcome = settlement.outcome
      extras.confirmation = settlement.confirmation
      extras.settleLimit = Self.settleLimit(deadline, now: now)
    }
    want(timer: entries[index].nextInstant)
    // Whether it is a new operation is not known before its record is acknowledged.
    if isRecorded { recordOutcome(at: index, now: now) }
  }

  /// When the callers of an operation that has its outcome are told at the latest.
  static func settleLimit(_ deadline: MonotonicInstant?, now: Timestamp) -> MonotonicInstant {
    max(now.monotonic, deadline ?? now.monotonic).advanced(by: settleGrace)
  }

  /// The outcome of a durable operation that is recorded goes to the store.
  private mutating func recordOutcome(at index: Int, now: Timestamp) {
    let entry = entries[index]
    guard let extras = entry.extras, let outcome = extras.outcome else { return }
    let settlement = Settlement(number: entry.number, outcome: outcome, confirmation: extras.confirmation)
    let erased =
      entry.options.isSensitive ? try? StoredOperation(of: entry, bootID: bootID).redacted().encoded() : nil
    log.append(
      DurableLog.Item(
        number: entry.number, purpose: .settlement,
        record: .settled(
          id: entry.id.description, outcome: JournalCoding.encode(settlement.confirmed),
          at: settlingTime(now), operation: erased),
        sync: entry.isRepeatable(after: outcome) && !isWaitedFor(at: index) ? .normal : .full))
  }

  /// Whether a younger durable operation shares a key with one, and may be offered on the strength of its outcome.
  ///
  /// Its record is committed already, and its mark may be: if the power took the outcome alone, the older write would be
  /// done once more, over the younger one. What is recorded later takes the outcome to the disk with it.
  private func isWaitedFor(at index: Int) -> Bool {
    let keys = OrderKeys(of: entries[index])
    return entries[(index + 1)...].contains { $0.isDurable && keys.contains(keyOf: $0) }
  }

  /// When an operation settles, as the store should know it: a clock that may be wrong must not make an outcome look old,
  /// or it would be let go of, and the same command be taken for a new one.
  func settlingTime(_ now: Timestamp) -> Int64 { isWallRight ? now.wall : .max }

  /// The outcome of a durable operation was told to somebody.
  package mutating func delivered(_ id: OperationID, now: Timestamp) {
    reports.removeAll { $0.id == id }
    guard case .open = store else { return }
    noteDelivered(id, now: now)
    log.append(
      DurableLog.Item(
        number: nil, purpose: .note, record: .delivered(id: id.description), sync: .normal))
  }

  /// Takes down for those who look that a kept outcome was told to somebody.
  mutating func noteDelivered(_ id: OperationID, now: Timestamp) {
    guard isObserved, let one = kept.outcome(of: id, now: now.bootTime) else { return }
    let operation = JournaledOperation(
      id: id, request: one.isSensitive ? one.request.redacted : one.request,
      idempotency: one.isSensitive ? one.idempotency.redacted : one.idempotency, state: .settled,
      durability: .durable, isSensitive: one.isSensitive)
    events.append(JournalEvent(.delivered, of: operation, at: now))
  }

  // MARK: What comes back

  /// What follows from a word of the store.
  package struct StoreEffects: Hashable, Sendable {
    /// These operations are recorded: who waited for that may go on.
    package var recorded: [OperationNumber] = []
    /// These have their outcome, and it is committed; or there is nothing left to wait for.
    package var settled: [Settlement] = []
    /// The callers of the first wait for the second from now on: it is the same operation.
    package var merged: [Merge] = []
    /// The claim is gone for good, or was refused, for this reason.
    package var failure: JournalStoreError?
  }

  /// Two calls that turned out to be for one operation.
  package struct Merge: Hashable, Sendable {
    /// The call.
    package var from: OperationNumber
    /// The operation.
    package var into: OperationNumber
    /// When the call ends, which the operation may outlive.
    package var deadline: MonotonicInstant?
    /// Whether the call that began it is over already, and why; others may have joined that.
    package var end: NotSentReason?
  }

  /// The batch in flight is committed; `existing` has the rows whose IDs were taken.
  package mutating func committed(existing: [JournalRow], now: Timestamp) -> StoreEffects {
    var effects = StoreEffects()
    for item in log.committed() {
      if item.purpose == .lookUp, let number = item.number {
        found(existing.first, for: number, now: now, &effects)
      }
      guard let number = item.number, let index = index(of: number) else { continue }
      switch item.purpose {
      case .admission:
        if case .admitted(let row) = item.record, let other = existing.first(where: { $0.id == row.id }),
          other.place != row.place
        {
          taken(at: index, by: other, now: now, &effects)
        } else {
          recorded(at: index, now: now, &effects)
        }
      case .mark:
        withExtras(at: index) { $0.mark = .committed }
        note(.marked, at: index, now)
      case .settlement:
        settledAtLast(at: index, now: now, &effects)
      case .lookUp, .note:
        break
      }
    }
    return effects
  }

  private mutating func recorded(at index: Int, now: Timestamp, _ effects: inout StoreEffects) {
    effects.recorded.append(entries[index].number)
    note(.recorded, at: index, now)
    guard entries[index].state == .recording else { return recordOutcome(at: index, now: now) }
    entries[index].state = .queued
    // A younger one may have come meanwhile that needed no record.
    if let one = settledIfSuperfluous(at: index, now: now) { effects.settled.append(one) }
    effects.settled += supersede(olderThan: index, now: now)
  }

  /// The ID of a call is that of an operation that has settled before, in this process or an earlier one.
  private mutating func taken(
    at index: Int, by row: JournalRow, now: Timestamp, _ effects: inout StoreEffects
  ) {
    let entry = entries[index]
    log.dropPending(of: entry.number)
    let outcome: Outcome<GATTAnswer>
    var confirmation = Confirmation.acknowledged
    if !row.fingerprint.isEmpty,
      row.fingerprint != StoredOperation.fingerprint(of: entry.request, entry.idempotency)
    {
      outcome = .notSent(.conflictingID)
    } else if let bytes = row.outcome, let kept = try? JournalCoding.decode(bytes) {
      (outcome, confirmation) = kept.asAnswer
      delivered(entry.id, now: now)
    } else {
      let error = JournalStoreError(.corrupt, "The store's record of \(entry.id) cannot be read.")
      outcome = row.mark == nil ? .notSent(.storeFailed(error)) : entry.unrecorded(error, now: now)
    }
    let settlement = Settlement(number: entry.number, outcome: outcome, confirmation: confirmation)
    effects.recorded.append(entry.number)
    finish(settlement, at: index, now: now)
    if entry.extras?.isTold != true { effects.settled.append(settlement) }
  }

  private mutating func settledAtLast(at index: Int, now: Timestamp, _ effects: inout StoreEffects) {
    guard let extras = entries[index].extras, let outcome = extras.outcome else { return }
    let settlement = Settlement(
      number: entries[index].number, outcome: outcome, confirmation: extras.confirmation,
      durableID: entries[index].id)
    if extras.isRecovered {
      let shown = entries[index].summary
      reports.append(RecoveredOperation(id: shown.id, request: shown.request, outcome: settlement.confirmed))
    }
    finish(settlement, at: index, now: now)
    pruneSometimes(now: now)
    // Callers that were told already, because it took too long, are not told again.
    if !extras.isTold { effects.settled.append(settlement) }
  }

  private mutating func pruneSometimes(now: Timestamp) {
    settledSincePrune += 1
    if settledSincePrune >= Self.pruneInterval { prune(now: now) }
  }

  /// What is too old, or too much, goes from the store; by age only where the system clock is known to be right, and not
  /// what an earlier process left and nobody may have been told.
  mutating func prune(now: Timestamp) {
    settledSincePrune = 0
    let (limit, overflow) = now.wall.subtractingReportingOverflow(policy.outcomeRetention.clampedNanoseconds)
    log.append(
      DurableLog.Item(
        number: nil, purpose: .note,
        record: .pruned(
          settledBefore: isWallRight && !overflow ? min(limit, untoldSince) : .min,
          keeping: policy.keptInStore),
        sync: .normal))
  }

  /// A commit has taken too long: its callers are told that nothing certain is recorded, and it goes on without them.
  mutating func toldAtLast(at index: Int, now: Timestamp) -> Settlement {
    withExtras(at: index) { $0.isTold = true }
    return Settlement(
      number: entries[index].number, outcome: entries[index].unrecorded(storeSilence, now: now))
  }

  /// Why the store has not answered in time.
  var storeSilence: JournalStoreError {
    log.failure ?? JournalStoreError(.system, "The store has not answered in time.", isCertain: false)
  }

  /// The batch in flight failed.
  ///
  /// What was only to be recorded settles at once if it is certain that it never will be; everything else goes again
  /// later, and nothing durable is offered until then. What nobody waits for is dropped: it can be done without.
  package mutating func commitFailed(_ error: JournalStoreError, now: Timestamp) -> StoreEffects {
    if error.code == .superseded || error.code == .closed { return storeLost(error, now: now) }
    if let number = log.lookUpInFlight { return lookUpFailed(number, error, now: now) }
    if error.code == .invalidRecord, error.isCertain, log.dropNotes() { return StoreEffects(failure: error) }
    var effects = StoreEffects(failure: error)
    for number in log.inFlight.compactMap(\.number) {
      if let index = index(of: number) { note(.storeFailed(error), at: index, now) }
    }
    for item in log.failed(error, now: now.monotonic) {
      guard let number = item.number, let index = index(of: number) else { continue }
      switch item.purpose {
      case .admission:
        if let one = neverRecorded(at: index, error, now: now) { effects.settled.append(one) }
      case .mark:
        withExtras(at: index) { $0.mark = .none }
      case .settlement, .lookUp, .note:
        break
      }
    }
    return effects
  }

  /// It was never recorded and never sent; nil where its callers were told something already.
  mutating func neverRecorded(
    at index: Int, _ error: JournalStoreError, now: Timestamp
  ) -> Settlement? {
    // One that was called off meanwhile has its outcome.
    let outcome = entries[index].extras?.outcome ?? .notSent(.storeFailed(error))
    let isTold = entries[index].extras?.isTold ?? false
    let settlement = Settlement(number: entries[index].number, outcome: outcome)
    // It never was an operation: the same call may be made again.
    note(.settled(settlement.confirmed), at: index, now)
    _ = remove(at: index)
    return isTold ? nil : settlement
  }

  /// Somebody else holds the device's journal now, or the store is closed: what is recorded is theirs.
  private mutating func storeLost(_ error: JournalStoreError, now: Timestamp) -> StoreEffects {
    var effects = StoreEffects(failure: error)
    store = .lost(error)
    let unrecorded = (log.inFlight + log.pending).filter { $0.purpose == .admission }
    let neverRecorded = Set(unrecorded.filter { error.isCertain && !$0.mayBeThere }.compactMap(\.number))
    log.ended(error)
    for number in entries.map(\.number) {
      guard let index = index(of: number), entries[index].isDurable else { continue }
      if case .offered(let request) = entries[index].state {
        abandoned[request] = OrderKeys(of: entries[index])
      }
      if neverRecorded.contains(number) {
        if let one = self.neverRecorded(at: index, error, now: now) { effects.settled.append(one) }
        continue
      }
      let isTold = entries[index].extras?.isTold ?? false
      let settlement = Settlement(number: number, outcome: entries[index].unrecorded(error, now: now))
      finish(settlement, at: index, now: now)
      if !isTold { effects.settled.append(settlement) }
    }
    lookUpsFailed(error, now: now, &effects)
    return effects
  }
}

extension JournalEntry {
  /// Whether nothing is contradicted when the power fails, the outcome is lost with it, and it is offered again.
  fileprivate func isRepeatable(after outcome: Outcome<GATTAnswer>) -> Bool {
    guard idempotency == .idempotent else { return false }
    if case .succeeded = outcome { return true }
    return false
  }
}

extension Outcome<Confirmation> {
  /// The outcome as an operation settles with it.
  var asAnswer: (Outcome<GATTAnswer>, Confirmation) {
    switch self {
    case .succeeded(let confirmation): (.succeeded(.done), confirmation)
    case .rejected(let rejection): (.rejected(rejection), .acknowledged)
    case .notSent(let reason): (.notSent(reason), .acknowledged)
    case .indeterminate(let doubt): (.indeterminate(doubt), .acknowledged)
    }
  }
}
