public import RelinkCore

// What an app asks of the device. Each call is one operation in the journal, with one outcome.
extension DeviceSession {
  /// Reads the value of a characteristic, however long.
  ///
  /// Waits for ready, survives losses: a read is idempotent, so it is offered again after a reconnection. It ends
  /// within `limit`, by default ``Deadlines/operation``, whatever happens; cancelling ends it at once. After
  /// ``disconnect()`` it is not sent, at once, until ``connect(within:)``.
  /// - Throws: an error with the outcome in it: `rejected`, `notSent`, `indeterminate` (offered, and the wait ended
  ///   before an answer), `characteristicNotFound`.
  public nonisolated func read(
    _ characteristic: Characteristic, within limit: Deadline = .default
  ) async throws(RelinkError) -> [UInt8] {
    let answer = try await run(.read(characteristic), .idempotent, within: limit)
    if case .value(let value) = answer { return value }
    return []
  }

  /// Writes the value of a characteristic, and waits for the device's response.
  ///
  /// Waits for ready. When the link dies under it, `idempotency` decides: an idempotent write is offered again after
  /// the reconnection, another one ends as `indeterminate` and is never sent twice. It ends within the deadline in
  /// `options`, by default ``Deadlines/operation``; cancelling ends it at once, as `notSent` or `indeterminate`. After
  /// ``disconnect()`` it is not sent, at once, until ``connect(within:)``.
  /// - Throws: an error with the outcome in it: `rejected`, `notSent`, `indeterminate`, `characteristicNotFound`.
  public nonisolated func write(
    _ bytes: some Collection<UInt8> & Sendable, to characteristic: Characteristic,
    idempotency: Idempotency, options: WriteOptions = WriteOptions()
  ) async throws(RelinkError) {
    let value = Array(bytes)
    _ = try await run(
      options.allowsLong ? .writeLong(characteristic, value) : .write(characteristic, value), idempotency,
      within: options.deadline)
  }

  /// Writes the value of a characteristic without asking for a response.
  ///
  /// Waits for ready. Success means that the bytes were handed over to the link, and nothing more: when the link dies
  /// they may be lost. It ends within the deadline in `options`, by default ``Deadlines/operation``; cancelling ends it
  /// at once, as `notSent` or `indeterminate`.
  /// - Throws: an error with the outcome in it: `notSent`, `indeterminate`, `characteristicNotFound`.
  public nonisolated func writeWithoutResponse(
    _ bytes: some Collection<UInt8> & Sendable, to characteristic: Characteristic,
    idempotency: Idempotency, options: WriteOptions = WriteOptions()
  ) async throws(RelinkError) {
    _ = try await run(
      .writeWithoutResponse(characteristic, Array(bytes)), idempotency, within: options.deadline)
  }

  /// The services of the device as its attribute table shows them now.
  ///
  /// Waits for ready, survives losses; the table is learnt anew where the link does not trust it. It ends within
  /// `limit`, by default ``Deadlines/operation``; cancelling ends it at once.
  /// - Throws: an error with the outcome in it: `notSent`, `indeterminate`.
  public nonisolated func discoverServices(
    within limit: Deadline = .default
  ) async throws(RelinkError) -> [DiscoveredService] {
    let answer = try await run(.discover, .idempotent, within: limit)
    if case .table(let services, _) = answer { return services }
    return []
  }

  // MARK: The way through the journal

  private nonisolated func run(
    _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline
  ) async throws(RelinkError) -> GATTAnswer {
    // A caller whose task prefers the executor saves two changes of executor: they would cost more than everything
    // else that a request takes.
    let caller: (any Actor)? = #isolation
    let (id, outcome) =
      caller == nil && staysOnExecutor
      ? await perform(request, idempotency, within: limit)
      : await performIsolated(request, idempotency, within: limit)
    switch outcome {
    case .succeeded(let answer): return answer
    case .rejected, .notSent, .indeterminate:
      throw RelinkError(
        operation: OperationID(id), outcome: outcome, request: request,
        disconnect: publisher.snapshot.lastDisconnect)
    }
  }

  /// Whether the calling task is on the executor and comes back to it after each wait.
  ///
  /// To be on it is not enough: a task without isolation that has just called an actor there may still be, in an
  /// optimised build, and is taken elsewhere by the next wait.
  private nonisolated var staysOnExecutor: Bool {
    guard executor.isIsolatingCurrentContext() == true else { return false }
    let preferred = executor.asUnownedTaskExecutor()
    return withUnsafeCurrentTask { $0?.unownedTaskExecutor == preferred }
  }

  /// Takes an operation through the journal for any caller.
  ///
  /// What ``perform(_:_:within:)`` does, isolated: the closures of a function that is not would leave the executor.
  private func performIsolated(
    _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline
  ) async -> (OperationNumber, Outcome<GATTAnswer>) {
    lastOperation += 1
    let id = OperationNumber(rawValue: lastOperation)
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { admit(id, request, idempotency, within: limit, $0) }
    } onCancel: {
      // Runs after the admission above, since that happens without leaving the executor.
      executor.post { self.assumeIsolated { $0.cancelOperation(id) } }
    }
    return (id, outcome)
  }

  private nonisolated func nextOperation() -> OperationNumber {
    assumeIsolated { session in
      session.lastOperation += 1
      return OperationNumber(rawValue: session.lastOperation)
    }
  }

  /// Takes an operation through the journal for a caller that stays on the executor.
  private nonisolated func perform(
    _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline
  ) async -> (OperationNumber, Outcome<GATTAnswer>) {
    let id = nextOperation()
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<Outcome<GATTAnswer>, Never>) in
        // A caller without isolation leaves the executor and comes back on the way here. A cancellation of that time
        // finds nothing to cancel, so it is looked for once more.
        guard !Task.isCancelled else { return continuation.resume(returning: .notSent(.cancelled)) }
        assumeIsolated { $0.admit(id, request, idempotency, within: limit, continuation) }
      }
    } onCancel: {
      executor.post { self.assumeIsolated { $0.cancelOperation(id) } }
    }
    return (id, outcome)
  }

  private func admit(
    _ id: OperationNumber, _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline,
    _ continuation: CheckedContinuation<Outcome<GATTAnswer>, Never>
  ) {
    let now = executor.now
    let deadline = limit.instant(from: now, default: configuration.deadlines.operation)
    if !machine.isOffering {
      switch machine.workArrived(now: now) {
      case .refuse(let reason): return continuation.resume(returning: .notSent(reason))
      case .wait(let actions): perform(actions)
      }
    }
    switch journal.operationRequested(id, request, idempotency: idempotency, deadline: deadline) {
    case .full(let limit):
      continuation.resume(returning: .notSent(.journalFull(limit: limit)))
    case .recorded(let timer):
      operationWaiters[id] = continuation
      if let timer { setJournalTimer(timer) }
      offerOperations()
    }
  }

  private func cancelOperation(_ id: OperationNumber) {
    if let request = journal.outstandingRequest(of: id) { callOff(request) }
    guard let cancelled = journal.cancelled(id) else { return }
    finish(cancelled)
  }

  private func setJournalTimer(_ instant: MonotonicInstant) {
    executor.setTimer(timerID(Self.journalTimer), at: instant) { [weak self] in
      self?.assumeIsolated { $0.journalTimerFired() }
    }
  }

  private func journalTimerFired() {
    let now = executor.now
    for request in journal.outstandingRequests(overdueAt: now) { callOff(request) }
    let (expired, next) = journal.timerFired(now: now)
    if let next { setJournalTimer(next) }
    for one in expired { finish(one) }
  }

  /// Tells the link that nobody waits for a request any more; what it can still stop causes no doubt.
  func callOff(_ request: RequestID) {
    if link?.abandon(request) == true { journal.offerDisproven(request) }
  }

  private func finish(_ abandonment: OperationJournal.Abandonment) {
    settle(abandonment.settlement)
    offerOperations()
  }

  func settle(_ settlement: Settlement) {
    operationWaiters.removeValue(forKey: settlement.id)?.resume(returning: settlement.outcome)
  }

  // MARK: Offering

  /// Whether the link could be asked for something that waits.
  var hasSomethingToOffer: Bool {
    if machine.isPreparing { return true }
    if scope.hasWaiting || (step != nil && step?.id == nil) { return true }
    return machine.isOffering && (journal.hasQueued || subscriptions.nextRequest() != nil)
  }

  /// Goes on with whatever the session's state allows to be asked of the link.
  func offerAll() {
    continueStep()
    offerScoped()
    if case .connecting(_, .restoringSubscriptions) = machine.snapshot.state { restoreSubscriptions() }
    offerOperations()
  }

  /// Offers what waits in the journal, in its order, as far as the link takes it.
  func offerOperations() {
    guard machine.isOffering, link != nil else { return }
    offerSubscriptions()
    while let link, let generation = machine.currentLink?.generation {
      let room: OperationJournal.Room =
        outstanding < linkCapabilities.maximumOutstanding ? .any : .withoutResponse
      guard let entry = journal.nextOffer(taking: room) else { return }
      let request = newRequestID(for: entry.request)
      journal.offering(entry.id, as: request, on: generation, now: executor.timestamp())
      switch link.perform(entry.request.fitted(to: link), id: request) {
      case .accepted:
        if !request.isWithoutResponse { outstanding += 1 }
      case .refused(let refusal) where refusal.isPermanent:
        if let settlement = journal.offerRefused(entry.id, refusal) { settle(settlement) }
      case .later, .refused:
        journal.offerNotTaken(entry.id)
        return
      }
    }
  }

  /// Arms and disarms what is due, as far as the link takes it.
  func offerSubscriptions() {
    while let link, outstanding < linkCapabilities.maximumOutstanding,
      let request = subscriptions.nextRequest()
    {
      let id = newRequestID(for: request)
      switch link.perform(request, id: id) {
      case .accepted:
        subscriptions.requestTaken(request, as: id)
        outstanding += 1
      case .refused(let refusal) where refusal.isPermanent:
        fail(
          subscriptions.requestRefused(request),
          with: RelinkError(
            .invalidArgument, "This characteristic can be neither notified nor indicated: \(refusal)."))
      case .later, .refused:
        return
      }
    }
  }

  // MARK: Consumers

  func consumerCame(_ id: ConsumerID, of characteristic: Characteristic, _ buffer: ValueBuffer) {
    switch machine.workArrived(now: executor.now) {
    case .refuse(.ended):
      return buffer.finish(RelinkError(.ended, "The session has ended; make a new one to go on."))
    case .refuse:
      break  // Declared now, armed once the app connects again.
    case .wait(let actions):
      perform(actions)
    }
    switch subscriptions.consumerAdded(id, of: characteristic) {
    case .kept:
      consumers[id] = buffer
      offerOperations()
    case .notFound:
      buffer.finish(
        RelinkError(.characteristicNotFound, "The device has no characteristic \(characteristic)."))
    }
  }

  func consumerLeft(_ id: ConsumerID) {
    guard consumers.removeValue(forKey: id) != nil else { return }
    subscriptions.consumerRemoved(id)
    offerOperations()
  }

  func fail(_ failed: [ConsumerID], with error: RelinkError) {
    for id in failed { consumers.removeValue(forKey: id)?.finish(error) }
  }
}

extension GATTRequest {
  /// The same write in one PDU where the link carries that: only the link on which it is offered can tell.
  fileprivate func fitted(to link: any Link) -> GATTRequest {
    guard case .writeLong(let name, let value) = self, value.count <= link.capabilities.mtu - 3 else {
      return self
    }
    return .write(name, value)
  }
}
