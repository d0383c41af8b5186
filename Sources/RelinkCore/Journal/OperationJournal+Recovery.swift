// What an earlier process left, taken over before anything is offered.
extension OperationJournal {
  /// The claim was refused: nothing durable can be recorded; the next durable call asks again.
  package mutating func claimFailed(_ error: JournalStoreError, now: Timestamp) -> StoreEffects {
    guard store == .opening else { return StoreEffects() }
    let isFinal = error.code == .superseded || error.code == .closed
    store = isFinal ? .lost(error) : .closed
    var effects = StoreEffects(failure: error)
    for number in entries.filter(\.isDurable).map(\.number) {
      guard let index = index(of: number) else { continue }
      if entries[index].extras?.isNewName == false {
        // An earlier process may have done it under that name, which nobody can tell before the store can be read.
        let isTold = entries[index].extras?.isTold ?? false
        let one = Settlement(number: number, outcome: entries[index].unrecorded(error, now: now))
        finish(one, at: index, now: now)
        if !isTold { effects.settled.append(one) }
      } else if let one = neverRecorded(at: index, error, now: now) {
        effects.settled.append(one)
      }
    }
    lookUpsFailed(error, now: now, &effects)
    return effects
  }

  /// The claim is held, and this is what an earlier process left under it; `isWallRight` says whether the system clock is
  /// known to be right.
  package mutating func claimed(
    _ journal: ClaimedJournal, isWallRight: Bool, now: Timestamp
  ) -> StoreEffects {
    guard store == .opening else { return StoreEffects() }
    noteSuspension(now)
    store = .open(nextPlace: journal.lastPlace < .max ? journal.lastPlace + 1 : .max)
    self.isWallRight = isWallRight
    protect(journal.rows, now: now)
    prune(now: now)
    var effects = StoreEffects()
    let new = entries.filter(\.mayBeKnown)
    for (offset, row) in journal.rows.enumerated() {
      let number = OperationNumber(rawValue: Int64(offset) - Int64(journal.rows.count))
      takeOver(row, as: number, isWallRight: isWallRight, now: now, &effects)
    }
    for number in new.map(\.number) { admitLate(number, now: now, &effects) }
    lookUpAll(now: now, &effects)
    return effects
  }

  /// What an earlier process left is not let go of for its age while this one lives: it may be told late.
  private mutating func protect(_ rows: [JournalRow], now: Timestamp) {
    guard !rows.isEmpty else { return }
    untoldSince = min(rows.lazy.compactMap(\.settledAt).min() ?? .max, now.wall)
  }

  /// An operation that was called while the claim was asked for, under an ID that an earlier process may have used.
  private mutating func admitLate(_ number: OperationNumber, now: Timestamp, _ effects: inout StoreEffects) {
    guard let index = index(of: number) else { return }
    let entry = entries[index]
    guard let earlier = entries.first(where: { $0.id == entry.id && $0.number != number }) else {
      if let kept = kept.outcome(of: entry.id, now: now.bootTime) {
        settleLate(at: index, as: kept, now: now, &effects)
      } else if entry.isDurable {
        record(at: index, now: now)
      }
      return
    }
    _ = remove(at: index)
    effects.recorded.append(number)
    // Its callers were told something already: to them it is as if they had never asked.
    guard entry.extras?.isTold != true else { return }
    if StoredOperation.fingerprint(of: earlier.request, earlier.idempotency)
      == StoredOperation.fingerprint(of: entry.request, entry.idempotency)
    {
      var merge = Merge(from: number, into: earlier.number, deadline: entry.deadline)
      // It was called off meanwhile: that ends the call, and not the operation of an earlier process, which may have
      // been done. Whoever joined it waits for that one.
      if case .notSent(let reason) = entry.extras?.outcome, entry.isSettling { merge.end = reason }
      effects.merged.append(merge)
      if let position = self.index(of: earlier.number) { note(.joined, at: position, now) }
    } else {
      effects.settled.append(Settlement(number: number, outcome: .notSent(.conflictingID)))
    }
  }

  /// A call whose ID is that of an operation which has settled in an earlier process.
  private mutating func settleLate(
    at index: Int, as kept: KeptOutcomes.Kept, now: Timestamp, _ effects: inout StoreEffects
  ) {
    let isSame = kept.isSame(entries[index].request, entries[index].idempotency)
    let outcome = isSame ? kept.outcome : .notSent(.conflictingID)
    // Those who look may have seen it recorded, or joined, and see it end, whatever its callers are told.
    note(.settled(outcome), at: index, now)
    let entry = remove(at: index)
    effects.recorded.append(entry.number)
    // Its callers were told something already: to them it is as if they had never asked.
    guard entry.extras?.isTold != true else { return }
    let (answer, confirmation) = outcome.asAnswer
    effects.settled.append(Settlement(number: entry.number, outcome: answer, confirmation: confirmation))
    guard isSame else { return }
    reports.removeAll { $0.id == entry.id }
    delivered(entry.id, now: now)
  }

  /// The most offers that a record is believed.
  private static let mostOffers = Int(Int32.max)

  private mutating func takeOver(
    _ row: JournalRow, as number: OperationNumber, isWallRight: Bool, now: Timestamp,
    _ effects: inout StoreEffects
  ) {
    guard let id = OperationID(row.id) else { return }
    let stored: StoredOperation
    do {
      stored = try StoredOperation(decoding: row.operation)
    } catch {
      return reportUnreadable(row, id, because: error, now: now)
    }
    if let bytes = row.outcome {
      // It has settled, and nobody was told.
      let outcome: Outcome<Confirmation>
      do {
        outcome = try JournalCoding.decode(bytes)
      } catch {
        return reportUnreadable(row, id, because: error, now: now)
      }
      kept.keep(
        KeptOutcomes.Kept(
          request: stored.request, idempotency: stored.idempotency, isSensitive: row.isSensitive,
          isDurable: true, outcome: outcome, at: now.bootTime,
          fingerprint: row.fingerprint.isEmpty ? nil : row.fingerprint), for: id)
      let shown = row.isSensitive ? stored.request.redacted : stored.request
      reports.append(RecoveredOperation(id: id, request: shown, outcome: outcome))
      return
    }
    var entry = JournalEntry(
      number: number, id: id, request: stored.request, idempotency: stored.idempotency, deadline: nil)
    var extras = JournalEntry.Extras()
    extras.options = stored.options
    extras.options.durability = .durable
    extras.isRecovered = true
    extras.lastingDeadline = stored.deadline
    let isSameBoot = stored.bootID != nil && stored.bootID == bootID
    let clock: ExpiryClock? = isSameBoot ? .boot : isWallRight ? .wall : nil
    if stored.deadline != nil || stored.options.offerBefore != nil {
      extras.awaitsClock = clock == nil
      if let clock {
        entry.deadline = stored.deadline.map { clock.instant(of: $0, now: now) }
        extras.offerBefore = stored.options.offerBefore.map { clock.instant(of: $0, now: now) }
      } else {
        // It was called before this start of the system, so at least the time since then has passed.
        entry.deadline = stored.deadline.map { Self.latest($0, calledAt: row.admittedAt, now: now) }
      }
    }
    let mark = row.mark.map { try? StoredMark(decoding: $0) }
    if let mark {
      entry.offers = min(max(mark?.offers ?? 1, 1), Self.mostOffers)
      entry.lastOffer = JournalEntry.Offer(
        generation: mark?.generation ?? Generation(rawValue: 0), at: mark?.at ?? now)
    } else if !isSameBoot, stored.idempotency == .idempotent {
      // The loss of power may have taken the mark with it.
      entry.lastOffer = JournalEntry.Offer(
        generation: Generation(rawValue: 0),
        at: Timestamp(monotonic: .zero, bootTime: 0, wall: row.admittedAt))
    }
    entry.extras = extras
    let index = insert(entry)
    note(.recovered, at: index, now)
    // First of all, as when it was recorded: the older one was never to be offered again, whatever becomes of this one.
    effects.settled += supersede(olderThan: index, now: now)
    resume(at: index, wasMarked: mark != nil, now: now)
    if let position = self.index(of: number) { want(timer: entries[position].nextInstant) }
  }

  /// What an operation of an earlier process waits for now.
  private mutating func resume(at index: Int, wasMarked: Bool, now: Timestamp) {
    let entry = entries[index]
    if entry.options.continuity == .unbroken, entry.idempotency == .idempotent || !wasMarked {
      let outcome = entry.unanswered(notSent: .continuityBroken, doubt: .continuityBroken)
      _ = settle(at: index, outcome, now: now)
      return
    }
    guard wasMarked else { return }
    switch entry.idempotency {
    case .idempotent:
      break
    case .nonIdempotent:
      _ = settle(at: index, entry.unanswered(notSent: .ended, doubt: .processEnded), now: now)
    case .verified(let probe):
      entries[index].state = probe.kind == .app ? .unresolved : .inDoubt
    }
  }

  /// A row that this version cannot read: whether it was done nobody can tell, but that it was there is told.
  ///
  /// A missing mark proves nothing: whether that of an idempotent operation outlives a loss of power is not known, nor is
  /// the tag. What a later version wrote is left as it is, for that version.
  private mutating func reportUnreadable(
    _ row: JournalRow, _ id: OperationID, because reason: JournalCodingError, now: Timestamp
  ) {
    let error = JournalStoreError(.corrupt, "The store's record of \(id) cannot be read: \(reason)")
    let outcome = Outcome<Confirmation>.indeterminate(
      Doubt(
        cause: .storeFailed(error), generation: Generation(rawValue: 0), offeredAt: now, offers: 1,
        lastPossibleEffect: nil))
    reports.append(RecoveredOperation(id: id, request: nil, outcome: outcome))
    if reason.isOfLaterVersion { foreign.insert(id) }
    guard row.outcome == nil, !reason.isOfLaterVersion else { return }
    log.append(
      DurableLog.Item(
        number: nil, purpose: .note,
        record: .settled(
          id: row.id, outcome: JournalCoding.encode(outcome), at: settlingTime(now),
          operation: row.isSensitive ? [] : nil),
        sync: .full))
  }

  // MARK: The clock after a restart

  /// Whether an operation waits until the system clock is known to be right.
  package var awaitsClock: Bool {
    special > 0 && entries.contains { $0.extras?.awaitsClock == true }
  }

  /// The system clock is known to be right: what waited for that gets its limits.
  package mutating func wallClockConfirmed(now: Timestamp) {
    noteSuspension(now)
    isWallRight = true
    for index in entries.indices where entries[index].extras?.awaitsClock == true {
      let deadline = entries[index].extras?.lastingDeadline
      entries[index].deadline = deadline.map { ExpiryClock.wall.instant(of: $0, now: now) }
      withExtras(at: index) { extras in
        extras.awaitsClock = false
        extras.offerBefore = extras.options.offerBefore.map { ExpiryClock.wall.instant(of: $0, now: now) }
      }
      want(timer: entries[index].nextInstant)
    }
  }

  /// When a limit has passed for certain, if nothing is known of the time before this start of the system.
  private static func latest(
    _ limit: ExpiryInstant, calledAt: Int64, now: Timestamp
  ) -> MonotonicInstant {
    let (span, overflow) = limit.wall.subtractingReportingOverflow(calledAt)
    let (left, isFar) = span.subtractingReportingOverflow(now.bootTime)
    return overflow || isFar ? .distantFuture : now.monotonic.advanced(by: .nanoseconds(max(left, 0)))
  }

  private enum ExpiryClock {
    case boot
    case wall

    func instant(of expiry: ExpiryInstant, now: Timestamp) -> MonotonicInstant {
      let (left, overflow) =
        switch self {
        case .boot: expiry.bootTime.subtractingReportingOverflow(now.bootTime)
        case .wall: expiry.wall.subtractingReportingOverflow(now.wall)
        }
      return overflow ? .distantFuture : now.monotonic.advanced(by: .nanoseconds(left))
    }
  }
}

extension JournalEntry {
  /// Whether an earlier process may have had the same operation: nothing has been done about this one yet.
  fileprivate var mayBeKnown: Bool {
    switch state {
    case .recording, .settling: true
    case .queued: id.isLasting && lastOffer == nil
    case .offered, .inDoubt, .probing, .unresolved: false
    }
  }
}

extension StoredOperation {
  /// What is kept of an operation.
  init(of entry: JournalEntry, bootID: String?) {
    self.init(
      request: entry.request, idempotency: entry.idempotency, options: entry.options,
      deadline: entry.extras?.lastingDeadline, bootID: bootID)
  }

  /// What the store gets of it.
  var stored: JournalEntry.Stored {
    get throws(JournalCodingError) {
      JournalEntry.Stored(operation: try encoded(), fingerprint: fingerprint)
    }
  }
}
