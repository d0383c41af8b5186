// Calls that are refused, under a name that an earlier process may have used: the store is asked before anybody is told
// that nothing was sent.
extension OperationJournal {
  /// A durable call that is not taken, and waits until the store has said what stands under its name.
  ///
  /// It is no operation: it keeps no key, and nothing of it is recorded.
  struct LookUp: Hashable, Sendable {
    var number: OperationNumber
    var id: OperationID
    var request: GATTRequest
    var idempotency: Idempotency
    var deadline: MonotonicInstant?
    /// What it is told where the store has nothing.
    var refusal: NotSentReason
    /// When it is told at the latest, whatever the store does.
    var limit: MonotonicInstant
    /// Whether the store has been asked, or is next.
    var isAsked = false
  }

  /// The session cannot take a call, for a reason that says nothing about its name.
  ///
  /// What is known under the name needs no admission; of a durable call the store is asked too.
  package mutating func callRefused(_ call: Call, _ reason: NotSentReason, now: Timestamp) -> Admission {
    if let id = call.id, let known = lookUp(id, call, now: now) { return known }
    return refusedUnlessStored(call, reason, now: now)
  }

  /// What a call would be told if nothing stood under its name; nil where it is not one that is looked up.
  package func refusal(of number: OperationNumber) -> NotSentReason? {
    lookUps.first { $0.number == number }?.refusal
  }

  /// The caller of a call that is looked up waits no longer; whether it was one.
  package mutating func lookUpAbandoned(_ number: OperationNumber) -> Bool { takeLookUp(number) != nil }

  /// Nothing in memory stands under the name of a call that cannot be taken.
  mutating func refusedUnlessStored(_ call: Call, _ reason: NotSentReason, now: Timestamp) -> Admission {
    guard let id = call.id, !call.isNewName, call.options?.durability == .durable else {
      return .refused(reason)
    }
    switch store {
    case .none:
      return .refused(reason)
    case .lost(let error):
      return .unknown(unknown(error, now: now))
    case .closed:
      let error = JournalStoreError(.closed, "The session does not hold the device's journal any more.")
      return .unknown(unknown(error, now: now))
    case .opening, .open:
      guard lookUps.count < policy.capacity else {
        let error = JournalStoreError(.busy, "Too many calls wait until the store has looked up their IDs.")
        return .unknown(unknown(error, now: now))
      }
    }
    let one = LookUp(
      number: call.number, id: id, request: call.request, idempotency: call.idempotency,
      deadline: call.deadline, refusal: reason, limit: Self.settleLimit(call.deadline, now: now))
    lookUps.append(one)
    if case .open = store, let doubt = ask(one, now: now) {
      _ = takeLookUp(one.number)
      return .unknown(doubt)
    }
    guard armed.map({ one.limit < $0 }) ?? true else { return .recorded(timer: nil) }
    armed = one.limit
    return .recorded(timer: one.limit)
  }

  // MARK: The claim

  /// The claim is held: what it brought is known now, and the store is asked for the rest.
  mutating func lookUpAll(now: Timestamp, _ effects: inout StoreEffects) {
    for one in lookUps where !one.isAsked {
      if let entry = entries.first(where: { $0.id == one.id }) {
        _ = takeLookUp(one.number)
        effects.recorded.append(one.number)
        if StoredOperation.fingerprint(of: entry.request, entry.idempotency) == one.fingerprint {
          effects.merged.append(Merge(from: one.number, into: entry.number, deadline: one.deadline))
          if let index = index(of: entry.number) { note(.joined, at: index, now) }
        } else {
          effects.settled.append(Settlement(number: one.number, outcome: .notSent(.conflictingID)))
        }
      } else if let kept = kept.outcome(of: one.id, now: now.bootTime) {
        if kept.isSame(one.request, one.idempotency) {
          let (outcome, confirmation) = kept.outcome.asAnswer
          end(Settlement(number: one.number, outcome: outcome, confirmation: confirmation), &effects)
          delivered(one.id, now: now)
        } else {
          end(Settlement(number: one.number, outcome: .notSent(.conflictingID)), &effects)
        }
      } else if let doubt = ask(one, now: now) {
        end(Settlement(number: one.number, outcome: .indeterminate(doubt)), &effects)
      }
    }
  }

  /// The store cannot be asked any more: what stands under these names nobody can tell.
  mutating func lookUpsFailed(_ error: JournalStoreError, now: Timestamp, _ effects: inout StoreEffects) {
    for one in lookUps {
      end(Settlement(number: one.number, outcome: .indeterminate(unknown(error, now: now))), &effects)
    }
  }

  // MARK: The store's word

  /// The store has an operation of that name.
  mutating func found(
    _ row: JournalRow?, for number: OperationNumber, now: Timestamp, _ effects: inout StoreEffects
  ) {
    guard let one = lookUps.first(where: { $0.number == number }) else { return }
    let settlement: Settlement
    if let row, !row.fingerprint.isEmpty, row.fingerprint != one.fingerprint {
      settlement = Settlement(number: number, outcome: .notSent(.conflictingID))
    } else if let bytes = row?.outcome, let outcome = try? JournalCoding.decode(bytes) {
      let (answer, confirmation) = outcome.asAnswer
      settlement = Settlement(number: number, outcome: answer, confirmation: confirmation)
      let isSensitive = row?.isSensitive ?? false
      kept.keep(
        KeptOutcomes.Kept(
          request: isSensitive ? one.request.redacted : one.request,
          idempotency: (isSensitive ? one.idempotency.redacted : one.idempotency).withoutClosure,
          isSensitive: isSensitive, isDurable: true,
          outcome: outcome, at: now.bootTime, fingerprint: one.fingerprint), for: one.id)
      noteDelivered(one.id, now: now)
    } else {
      let error = JournalStoreError(.corrupt, "The store's record of \(one.id) cannot be read.")
      settlement = Settlement(number: number, outcome: .indeterminate(unknown(error, now: now)))
    }
    end(settlement, &effects)
  }

  /// The store failed when it was asked for a name: where it has nothing of that name, the call is refused.
  mutating func lookUpFailed(
    _ number: OperationNumber, _ error: JournalStoreError, now: Timestamp
  ) -> StoreEffects {
    var effects = StoreEffects()
    if error.code == .invalidRecord, error.isCertain {
      log.dropLookUp()
      // It does not show that the store works again, and nothing else may be left that could.
      if log.isEmpty, log.failure != nil { prune(now: now) }
      if let one = lookUps.first(where: { $0.number == number }) {
        end(Settlement(number: number, outcome: .notSent(one.refusal)), &effects)
      }
      return effects
    }
    effects.failure = error
    _ = log.failed(error, now: now.monotonic)
    if lookUps.contains(where: { $0.number == number }) {
      end(Settlement(number: number, outcome: .indeterminate(unknown(error, now: now))), &effects)
    }
    return effects
  }

  /// The calls that have waited long enough for the store.
  mutating func lookUpsOverdue(now: Timestamp) -> [Abandonment] {
    let error = storeSilence
    var ended: [Abandonment] = []
    for one in lookUps where one.limit <= now.monotonic {
      _ = takeLookUp(one.number)
      let outcome = Outcome<GATTAnswer>.indeterminate(unknown(error, now: now))
      ended.append(Abandonment(settlement: Settlement(number: one.number, outcome: outcome)))
    }
    return ended
  }

  // MARK: Parts

  /// Asks the store for a name; nil where it cannot be asked, which is because a later version keeps it.
  ///
  /// A record of what has to be there, before one that brings it back: the store changes nothing where there is nothing.
  private mutating func ask(_ one: LookUp, now: Timestamp) -> Doubt? {
    guard !foreign.contains(one.id) else {
      return unknown(
        JournalStoreError(.corrupt, "A later version of the library has written the record of \(one.id)."),
        now: now)
    }
    if let index = lookUps.firstIndex(where: { $0.number == one.number }) { lookUps[index].isAsked = true }
    let row = JournalRow(
      id: one.id.description, place: 0, operation: [], fingerprint: one.fingerprint, isSensitive: false,
      admittedAt: now.wall)
    log.append(
      DurableLog.Item(number: one.number, purpose: .lookUp, record: .admitted(row), sync: .normal))
    return nil
  }

  private mutating func takeLookUp(_ number: OperationNumber) -> LookUp? {
    guard let index = lookUps.firstIndex(where: { $0.number == number }) else { return nil }
    return lookUps.remove(at: index)
  }

  private mutating func end(_ settlement: Settlement, _ effects: inout StoreEffects) {
    _ = takeLookUp(settlement.number)
    effects.recorded.append(settlement.number)
    effects.settled.append(settlement)
  }

  private func unknown(_ error: JournalStoreError, now: Timestamp) -> Doubt {
    Doubt(
      cause: .storeFailed(error), generation: Generation(rawValue: 0), offeredAt: now, offers: 0,
      lastPossibleEffect: nil)
  }
}

extension OperationJournal.LookUp {
  fileprivate var fingerprint: [UInt8] { StoredOperation.fingerprint(of: request, idempotency) }
}
