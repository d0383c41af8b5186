// Operations that are in doubt and can be looked at: by a probe, or by the app.
extension OperationJournal {
  /// The operation whose probe is to be begun on this link, if there is one: none while another one runs.
  ///
  /// It counts as begun.
  package mutating func nextProbe(on generation: Generation, now: Timestamp) -> (OperationNumber, Probe)? {
    guard !isTakingOver, entries.contains(where: { $0.state == .inDoubt }) else { return nil }
    if entries.contains(where: \.isProbing) { return nil }
    var blocked = OrderKeys()
    for index in entries.indices {
      let entry = entries[index]
      if entry.state == .inDoubt, !blocked.contains(keyOf: entry),
        case .verified(let probe) = entry.idempotency
      {
        entries[index].state = .probing(generation)
        withExtras(at: index) { $0.probes += 1 }
        note(.probing(generation), at: index, now)
        return (entry.number, probe)
      }
      blocked.insert(keysOf: entry)
    }
    return nil
  }

  /// A probe has looked at the device; nothing where it was overtaken by an end of the operation or of the link.
  package mutating func probeFinished(
    _ number: OperationNumber, on generation: Generation, _ verdict: Verdict, now: Timestamp
  ) -> Settlement? {
    guard let index = index(of: number), entries[index].state == .probing(generation) else { return nil }
    return judged(at: index, verdict, by: "probe", .probed, now: now)
  }

  /// What follows from the app's word about an operation.
  package enum Resolution: Hashable, Sendable {
    /// It is taken; the operation is settled by it where one is given.
    case resolved(Settlement?)
    /// There is no such operation without outcome.
    case unknownID
    /// The operation is not one that waits for the app.
    case notAwaited
  }

  /// The app has found out what became of an operation.
  package mutating func resolved(
    _ id: OperationID, as verdict: Verdict, by who: String, now: Timestamp
  ) -> Resolution {
    guard let index = entries.firstIndex(where: { $0.id == id }) else { return .unknownID }
    guard entries[index].state == .unresolved else { return .notAwaited }
    return .resolved(judged(at: index, verdict, by: who, .resolved, now: now))
  }

  /// The link was lost while a probe ran on it.
  mutating func probeInterrupted(at index: Int, now: Timestamp) -> Settlement? {
    entries[index].state = .inDoubt
    guard entries[index].extras?.probes ?? 0 >= policy.probeLimit else { return nil }
    let outcome = entries[index].unanswered(notSent: .linkLost, doubt: .probeInterrupted)
    return settle(at: index, outcome, now: now)
  }

  private mutating func judged(
    at index: Int, _ verdict: Verdict, by who: String, _ confirmation: Confirmation, now: Timestamp
  ) -> Settlement? {
    note(.judged(verdict, by: who), at: index, now)
    switch verdict {
    case .applied:
      return settle(at: index, .succeeded(.done), confirmation, now: now)
    case .unknown:
      let outcome = entries[index].unanswered(notSent: .linkLost, doubt: .probeInconclusive)
      return settle(at: index, outcome, now: now)
    case .notApplied:
      // No offer had an effect: there is no doubt left, and it waits as if it had never been offered.
      entries[index].state = .queued
      entries[index].lastOffer = nil
      entries[index].previousOffer = nil
      return settledIfSuperfluous(at: index, now: now)
    }
  }
}
