public import RelinkCore

/// One link, as a setup closure sees it: requests that belong to it alone.
///
/// They go out at once, in their order, are never journalled, and are never offered on another link: when the link is
/// lost, those that may have reached the device end as `indeterminate`, the others with `linkLost`. A scope may be kept
/// beyond the setup closure; it is of use as long as its link.
public struct LinkScope: Sendable {
  let session: DeviceSession

  /// The link.
  public let generation: Generation

  /// The attribute table of the link.
  public let services: [DiscoveredService]

  /// Reads a value, however long.
  ///
  /// It ends with the link at the latest, and an unanswered request ends the link after 30 s (Core Specification Vol 3
  /// Part F 3.3.3). Cancelling ends it at once, as `notSent` or `indeterminate`.
  /// - Throws: an error with the outcome in it: `rejected`, `linkLost` (nothing was sent), `indeterminate`, `notSent`,
  ///   `characteristicNotFound`.
  public func read(_ characteristic: Characteristic) async throws(RelinkError) -> [UInt8] {
    let answer = try await session.run(.read(characteristic), in: self)
    if case .value(let value) = answer { return value }
    return []
  }

  /// Writes a value and waits for the response.
  ///
  /// It ends with the link at the latest, and an unanswered request ends the link after 30 s (Core Specification Vol 3
  /// Part F 3.3.3). Cancelling ends it at once, as `notSent` or `indeterminate`.
  /// - Throws: an error with the outcome in it: `rejected`, `linkLost` (nothing was sent), `indeterminate`, `notSent`,
  ///   `characteristicNotFound`.
  public func write(
    _ bytes: some Collection<UInt8> & Sendable, to characteristic: Characteristic
  ) async throws(RelinkError) {
    _ = try await session.run(.write(characteristic, Array(bytes)), in: self)
  }

  /// Writes a value without asking for a response: returns once the link has taken it, or with the link.
  ///
  /// Cancelling ends it at once, as `notSent` or `indeterminate`.
  /// - Throws: an error with the outcome in it: `linkLost` (nothing was sent), `indeterminate`, `notSent`,
  ///   `characteristicNotFound`.
  public func writeWithoutResponse(
    _ bytes: some Collection<UInt8> & Sendable, to characteristic: Characteristic
  ) async throws(RelinkError) {
    _ = try await session.run(.writeWithoutResponse(characteristic, Array(bytes)), in: self)
  }
}

/// The requests of a link scope that have no answer yet, in their order.
struct ScopedRequests {
  typealias Continuation = CheckedContinuation<Outcome<GATTAnswer>, Never>

  struct Waiter {
    var continuation: Continuation
    var outcome: Outcome<GATTAnswer>
  }

  private struct Pending {
    var number: Int64
    var request: GATTRequest
    var id: RequestID?
    var offeredAt = Timestamp(monotonic: .zero, bootTime: 0, wall: 0)
    var isInDoubt = false
    var continuation: Continuation
  }

  private var pending: [Pending] = []
  /// Which errors prove that a request changed nothing.
  private let rejections: RejectionRules
  private var generation = Generation(rawValue: 0)

  init(rejections: RejectionRules) {
    self.rejections = rejections
  }

  /// Whether a request waits for the link to take it.
  var hasWaiting: Bool { pending.contains { $0.id == nil } }

  mutating func add(
    _ number: Int64, _ request: GATTRequest, on generation: Generation, _ continuation: Continuation
  ) {
    self.generation = generation
    pending.append(Pending(number: number, request: request, continuation: continuation))
  }

  /// The link answered; returns the waiter if the request was one of these.
  mutating func answered(_ id: RequestID, with answer: Result<GATTAnswer, GATTFailure>) -> Waiter? {
    guard let index = pending.firstIndex(where: { $0.id == id }) else { return nil }
    let one = pending.remove(at: index)
    return Waiter(continuation: one.continuation, outcome: outcome(of: one, answer))
  }

  /// The caller was cancelled; returns its waiter, and the request that the link still owes an answer.
  mutating func cancelled(_ number: Int64) -> (Waiter, abandon: RequestID?)? {
    guard let index = pending.firstIndex(where: { $0.number == number }) else { return nil }
    let one = pending.remove(at: index)
    let outcome: Outcome<GATTAnswer> =
      one.id == nil ? .notSent(.cancelled) : doubtful(one, .cancelled, effect: nil)
    return (Waiter(continuation: one.continuation, outcome: outcome), one.id)
  }

  /// The link says which of its requests may have reached the device.
  mutating func markInDoubt(_ ids: [RequestID]) {
    for index in pending.indices {
      if let id = pending[index].id { pending[index].isInDoubt = ids.contains(id) }
    }
  }

  /// The link is gone, and with it everything that belonged to it.
  ///
  /// `goneAt`: when it was seen gone; nil where it was only given up, and may deliver for a while.
  mutating func linkLost(reason: DisconnectReason, goneAt: MonotonicInstant?) -> [Waiter] {
    defer { pending.removeAll() }
    return pending.map { one -> Waiter in
      let outcome: Outcome<GATTAnswer> =
        one.isInDoubt ? doubtful(one, .linkLost(reason), effect: goneAt) : .notSent(.linkLost)
      return Waiter(continuation: one.continuation, outcome: outcome)
    }
  }

  /// Hands over what waits, in its order, as far as the link takes it.
  mutating func next() -> (index: Int, request: GATTRequest)? {
    guard let index = pending.firstIndex(where: { $0.id == nil }) else { return nil }
    return (index, pending[index].request)
  }

  mutating func taken(_ index: Int, as id: RequestID, at now: Timestamp) {
    pending[index].id = id
    pending[index].offeredAt = now
    pending[index].isInDoubt = true
  }

  mutating func refused(_ index: Int, _ refusal: GATTRefusal) -> Waiter {
    let one = pending.remove(at: index)
    return Waiter(continuation: one.continuation, outcome: .notSent(.refused(refusal)))
  }

  private func outcome(
    of one: Pending, _ answer: Result<GATTAnswer, GATTFailure>
  ) -> Outcome<GATTAnswer> {
    switch answer {
    case .success(let value): .succeeded(value)
    case .failure(.rejected(let code)):
      .rejected(Rejection(code: code, provesNotApplied: rejections.provesNotApplied(code)))
    case .failure(.executionRejected(let code)):
      .rejected(Rejection(code: code, provesNotApplied: rejections.provesNotExecuted(code)))
    case .failure(.refused(let refusal)): .notSent(.refused(refusal))
    case .failure(.malformedAnswer): doubtful(one, .malformedAnswer, effect: nil)
    }
  }

  private func doubtful(
    _ one: Pending, _ cause: Doubt.Cause, effect: MonotonicInstant?
  ) -> Outcome<GATTAnswer> {
    .indeterminate(
      Doubt(
        cause: cause, generation: generation, offeredAt: one.offeredAt, offers: 1, lastPossibleEffect: effect)
    )
  }
}

extension DeviceSession {
  /// Runs a request that belongs to one link.
  func run(_ request: GATTRequest, in scope: LinkScope) async throws(RelinkError) -> GATTAnswer {
    lastOperation += 1
    let number = lastOperation
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: ScopedRequests.Continuation) in
        // The way here may leave the executor; a cancellation of that time found nothing to cancel.
        guard !Task.isCancelled else { return continuation.resume(returning: .notSent(.cancelled)) }
        guard let current = machine.currentLink, current.generation == scope.generation else {
          return continuation.resume(returning: .notSent(.linkLost))
        }
        self.scope.add(number, request, on: scope.generation, continuation)
        offerScoped()
      }
    } onCancel: {
      executor.post { self.assumeIsolated { $0.cancelScoped(number) } }
    }
    switch outcome {
    case .succeeded(let answer): return answer
    case .rejected, .notSent, .indeterminate:
      throw RelinkError(
        operation: OperationID(OperationNumber(rawValue: number)), outcome: outcome, request: request,
        disconnect: machine.lastDisconnect)
    }
  }

  /// Hands over the scope's requests, in their order, as far as the link takes them.
  func offerScoped() {
    while let link, let (index, request) = scope.next() {
      guard request.isWithoutResponse || outstanding < linkCapabilities.maximumOutstanding else { return }
      let id = newRequestID(for: request)
      switch link.perform(request, id: id) {
      case .accepted:
        scope.taken(index, as: id, at: executor.timestamp())
        if !request.isWithoutResponse { outstanding += 1 }
      case .refused(let refusal) where refusal.isPermanent:
        let waiter = scope.refused(index, refusal)
        waiter.continuation.resume(returning: waiter.outcome)
      case .later:
        return
      case .refused(let refusal):
        return sendRefused(refusal)
      }
    }
  }

  private func cancelScoped(_ number: Int64) {
    guard let (waiter, request) = scope.cancelled(number) else { return }
    if let request { link?.abandon(request) }
    waiter.continuation.resume(returning: waiter.outcome)
    offerScoped()
  }
}
