@testable import RelinkCore

/// What the journal has to do, written down again in the plainest way: one record for each operation, kept as long
/// as anything is owed to it or by it, and every question answered by looking at all of them.
struct NaiveJournal {
  struct Record {
    var number: OperationNumber
    var request: GATTRequest
    var idempotency: Idempotency
    var deadline: MonotonicInstant?
    /// Offers that may have reached the device.
    var possible: [Doubt] = []
    /// The offer that is out, and the request ID under which its answer is awaited.
    var out: (request: RequestID, generation: Generation, at: MonotonicInstant)?
    var isSettled = false
  }

  var records: [Record] = []
  let capacity: Int

  var unsettled: [Int] { records.indices.filter { !records[$0].isSettled } }

  func isSameAttribute(_ left: GATTRequest, _ right: GATTRequest) -> Bool {
    guard let one = left.characteristic, let other = right.characteristic else {
      return left.characteristic == nil && right.characteristic == nil && left == right
    }
    return one.uuid == other.uuid
  }

  /// All operations that may be offered: nothing earlier on their attribute is without outcome or owed an answer.
  func mayBeOffered(onlyWithoutResponse: Bool) -> [OperationNumber] {
    unsettled.filter { index in
      guard records[index].out == nil else { return false }
      if onlyWithoutResponse && !records[index].request.isWithoutResponse { return false }
      let isOvertaking = records.indices.contains {
        $0 < index && (!records[$0].isSettled || records[$0].out != nil)
          && isSameAttribute(records[$0].request, records[index].request)
      }
      return !isOvertaking
    }.map { records[$0].number }
  }

  mutating func forgetWhatIsOver() {
    records.removeAll { $0.isSettled && $0.out == nil }
  }

  func index(_ id: OperationNumber) -> Int? { unsettled.first { records[$0].number == id } }

  mutating func settle(_ index: Int, _ outcome: Outcome<GATTAnswer>) -> Settlement {
    records[index].isSettled = true
    var settlement = Settlement(number: records[index].number, outcome: outcome)
    if case .succeeded = outcome, records[index].request.isWithoutResponse {
      settlement.confirmation = .handedOver
    }
    return settlement
  }

  /// The outcome without an answer: not sent if nothing can have reached the device, a doubt about the latest otherwise.
  func outcome(_ index: Int, _ notSent: NotSentReason, _ cause: Doubt.Cause) -> Outcome<GATTAnswer> {
    let record = records[index]
    let count = record.possible.count
    if let out = record.out {
      return .indeterminate(
        Doubt(
          cause: cause, generation: out.generation, offeredAt: .at(out.at), offers: count + 1,
          lastPossibleEffect: nil))
    }
    guard var doubt = record.possible.last else { return .notSent(notSent) }
    doubt.cause = cause
    doubt.offers = count
    return .indeterminate(doubt)
  }

  mutating func abandon(
    _ index: Int, _ notSent: NotSentReason, _ cause: Doubt.Cause
  ) -> OperationJournal.Abandonment {
    OperationJournal.Abandonment(
      settlement: settle(index, outcome(index, notSent, cause)), abandon: records[index].out?.request)
  }

  mutating func refused(_ index: Int, _ refusal: GATTRefusal) -> Settlement {
    records[index].out = nil
    return settle(index, outcome(index, .refused(refusal), records[index].possible.last?.cause ?? .ended))
  }

  mutating func answered(
    _ request: RequestID, _ answer: Result<GATTAnswer, GATTFailure>
  ) -> Settlement? {
    guard let index = records.indices.first(where: { records[$0].out?.request == request }) else {
      return nil
    }
    guard !records[index].isSettled else {
      records[index].out = nil
      return nil
    }
    defer { records[index].out = nil }
    switch answer {
    case .success(let value): return settle(index, .succeeded(value))
    case .failure(.rejected(let code)):
      let proof =
        records[index].possible.isEmpty
        && RejectionRules.standard.provesNotApplied(code)
      return settle(index, .rejected(Rejection(code: code, provesNotApplied: proof)))
    case .failure(.executionRejected(let code)):
      let proof =
        records[index].possible.isEmpty
        && RejectionRules.standard.provesNotExecuted(code)
      return settle(index, .rejected(Rejection(code: code, provesNotApplied: proof)))
    case .failure(.malformedAnswer): return settle(index, outcome(index, .linkLost, .malformedAnswer))
    case .failure(.refused(let refusal)):
      return refusal.isPermanent ? refused(index, refusal) : nil
    }
  }

  mutating func linkLost(
    _ reason: DisconnectReason, _ inDoubt: [RequestID], _ now: MonotonicInstant
  ) -> (settled: [Settlement], inDoubt: Int) {
    var settled: [Settlement] = []
    var count = 0
    for index in records.indices {
      guard let out = records[index].out else { continue }
      records[index].out = nil
      guard !records[index].isSettled, inDoubt.contains(out.request) else { continue }
      count += 1
      let offers = records[index].possible.count + 1
      let doubt = Doubt(
        cause: .linkLost(reason), generation: out.generation, offeredAt: .at(out.at), offers: offers,
        lastPossibleEffect: now)
      records[index].possible.append(doubt)
      if records[index].idempotency == .nonIdempotent { settled.append(settle(index, .indeterminate(doubt))) }
    }
    return (settled, count)
  }

  mutating func settleAll(_ notSent: NotSentReason, _ cause: Doubt.Cause) -> [OperationJournal.Abandonment] {
    let all = unsettled.map { abandon($0, notSent, cause) }
    for index in records.indices { records[index].out = nil }
    return all
  }
}
