internal import BluetoothWire

// Offers, and the answers to them.
extension OperationJournal {
  /// How often in a row a link may give an operation back before it is left alone until the next link.
  static let refusalLimit = 8

  /// The operation is about to be handed over on a link.
  ///
  /// This comes before the bytes leave.
  package mutating func offering(
    _ number: OperationNumber, as request: RequestID, on generation: Generation, bond: UInt64? = nil,
    now: Timestamp
  ) {
    guard let index = index(of: number) else { return }
    if entries[index].options.continuity == .sameBond, entries[index].offers == 0 {
      withExtras(at: index) { $0.bond = bond }
    }
    entries[index].previousOffer = entries[index].lastOffer
    entries[index].state = .offered(request)
    entries[index].offers += 1
    entries[index].lastOffer = JournalEntry.Offer(generation: generation, at: now)
    entries[index].commandsBefore = commands.handedOver
    let count = entries[index].offers
    note(.offered(generation, number: count), at: index, now)
  }

  /// The link did not take the operation: nothing left, so the mark goes.
  package mutating func offerNotTaken(_ number: OperationNumber, now: Timestamp) {
    guard let index = index(of: number) else { return }
    takeOfferBack(at: index)
    note(.notTaken, at: index, now)
  }

  /// The link refused the operation for a reason that holds on any link.
  package mutating func offerRefused(
    _ number: OperationNumber, _ refusal: GATTRefusal, now: Timestamp
  ) -> Settlement? {
    guard let index = index(of: number) else { return nil }
    return refused(at: index, refusal, now: now)
  }

  /// A request of the link that is up was answered.
  ///
  /// An answer to a request that nobody waits for any more frees its keys and settles nothing.
  package mutating func answered(
    _ request: RequestID, with answer: Result<GATTAnswer, GATTFailure>, now: Timestamp
  ) -> Settlement? {
    guard let index = entries.firstIndex(where: { $0.state == .offered(request) }) else {
      abandoned[request] = nil
      return nil
    }
    if entries[index].request.isWithoutResponse {
      if case .success = answer { commands.handedOver += 1 }
    } else if answer.comesFromDevice {
      // The bearer keeps its order: what was handed over before this request has arrived.
      commands.confirmed = max(commands.confirmed, entries[index].commandsBefore)
    }
    switch answer {
    case .success(let value):
      return settle(at: index, .succeeded(value), now: now)
    case .failure(.rejected(let code)):
      return rejected(at: index, code, proof: policy.rejections.provesNotApplied(code), now: now)
    case .failure(.executionRejected(let code)):
      return rejected(at: index, code, proof: policy.rejections.provesNotExecuted(code), now: now)
    case .failure(.refused(let refusal)):
      guard refusal.isPermanent else {
        return givenBack(at: index, now: now)
      }
      return refused(at: index, refusal, now: now)
    case .failure(.malformedAnswer):
      let outcome = entries[index].unanswered(notSent: .linkLost, doubt: .malformedAnswer)
      return settle(at: index, outcome, now: now)
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
  package func outstandingRequest(of number: OperationNumber) -> RequestID? {
    guard let index = index(of: number), case .offered(let request) = entries[index].state else { return nil }
    return request
  }

  /// The link has called a request off before it could take effect, and still holds it: this offer causes no doubt.
  package mutating func offerDisproven(_ request: RequestID, now: Timestamp) {
    guard let index = entries.firstIndex(where: { $0.state == .offered(request) }) else { return }
    entries[index].offers -= 1
    entries[index].lastOffer = entries[index].previousOffer
    note(.notTaken, at: index, now)
  }

  // MARK: Parts

  mutating func takeOfferBack(at index: Int) {
    guard case .offered = entries[index].state else { return }
    entries[index].state = .queued
    entries[index].offers -= 1
    entries[index].lastOffer = entries[index].previousOffer
  }

  /// The link took the operation and gave it back; one that does so again and again is not asked any more.
  private mutating func givenBack(at index: Int, now: Timestamp) -> Settlement? {
    let generation = entries[index].lastOffer?.generation
    takeOfferBack(at: index)
    note(.notTaken, at: index, now)
    withExtras(at: index) {
      $0.refusals += 1
      if $0.refusals >= Self.refusalLimit {
        $0.refusals = 0
        $0.heldOn = generation
      }
    }
    return settledIfSuperfluous(at: index, now: now)
  }

  /// The latest offer had no effect, and there will be no other: what is left is the doubt about an earlier one.
  private mutating func refused(at index: Int, _ refusal: GATTRefusal, now: Timestamp) -> Settlement? {
    takeOfferBack(at: index)
    let earlier = entries[index].lastOffer?.lostTo ?? .unknown
    let outcome = entries[index].unanswered(notSent: .refused(refusal), doubt: .linkLost(earlier))
    return settle(at: index, outcome, now: now)
  }

  private mutating func rejected(
    at index: Int, _ code: ATTErrorCode, proof: Bool, now: Timestamp
  ) -> Settlement? {
    // It proves nothing about an earlier offer that nobody answered.
    let isProven = proof && entries[index].previousOffer == nil
    return settle(at: index, .rejected(Rejection(code: code, provesNotApplied: isProven)), now: now)
  }
}

extension Result<GATTAnswer, GATTFailure> {
  /// Whether the device has said something: not where the link gave the request back.
  fileprivate var comesFromDevice: Bool {
    switch self {
    case .success, .failure(.rejected), .failure(.executionRejected), .failure(.malformedAnswer): true
    case .failure(.refused): false
    }
  }
}
