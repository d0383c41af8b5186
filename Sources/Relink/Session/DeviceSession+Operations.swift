public import RelinkCore

// What an app asks of the device. Each call is one operation in the journal, with one outcome.
extension DeviceSession {
  /// Reads the value of a characteristic, however long.
  ///
  /// Waits for ready, survives losses: a read is idempotent, so it is offered again after a reconnection. One that has
  /// a side effect, like a counter that it clears, can be tagged otherwise with `idempotency`. It ends
  /// within `limit`, by default ``Deadlines/operation``, whatever happens; cancelling ends it at once. After
  /// ``disconnect()`` it is not sent, at once, until ``connect(within:)``.
  /// - Throws: an error with the outcome in it: `rejected`, `notSent`, `indeterminate` (offered, and the wait ended
  ///   before an answer), `characteristicNotFound`.
  public nonisolated func read(
    _ characteristic: Characteristic, within limit: Deadline = .default,
    idempotency: Idempotency = .idempotent
  ) async throws(RelinkError) -> [UInt8] {
    let answer = try await run(.read(characteristic), idempotency, within: limit)
    if case .value(let value) = answer { return value }
    return []
  }

  /// Writes the value of a characteristic, and waits for the device's response.
  ///
  /// Waits for ready. When the link dies under it, `idempotency` decides: an idempotent write is offered again after
  /// the reconnection, a verified one is looked at first, another one ends as `indeterminate` and is never sent twice.
  /// It ends within the deadline in `options`, by default ``Deadlines/operation``, a durable one at most a second later;
  /// cancelling ends it at once, as `notSent` or `indeterminate`. After ``disconnect()`` it is not sent, at once, until
  /// ``connect(within:)``.
  ///
  /// With an `id` that is known already it is no second write: it waits for the first, or returns the outcome that was
  /// kept; a durable one that cannot be taken is looked up in the store before it is refused. Cancelling one of several callers ends his wait alone, with `cancelled`.
  /// - Throws: an error with the outcome in it: `rejected`, `notSent`, `indeterminate`, `characteristicNotFound`.
  public nonisolated func write(
    _ bytes: some Collection<UInt8> & Sendable, to characteristic: Characteristic,
    idempotency: Idempotency, id: OperationID? = nil, options: WriteOptions = WriteOptions()
  ) async throws(RelinkError) {
    let value = Array(bytes)
    _ = try await run(
      options.allowsLong ? .writeLong(characteristic, value) : .write(characteristic, value), idempotency,
      within: options.deadline, id: id, options: options)
  }

  /// Writes several values that belong together: each part is verified, then all are executed at once.
  ///
  /// What Core Specification Vol 3 Part G 4.9.5 calls reliable writes. Waits, settles and is repeated like
  /// ``write(_:to:idempotency:id:options:)``; until the values are executed nothing takes effect, and a link that is lost
  /// before that causes no doubt. ``WriteOptions/allowsLong`` makes no difference. It ends within the deadline in
  /// `options`.
  /// - Throws: an error with the outcome in it: `rejected`, `notSent`, `indeterminate`, `characteristicNotFound`.
  public nonisolated func writeReliably(
    _ writes: [ReliableWrite], idempotency: Idempotency, id: OperationID? = nil,
    options: WriteOptions = WriteOptions()
  ) async throws(RelinkError) {
    _ = try await run(
      .writeReliably(writes), idempotency, within: options.deadline, id: id, options: options)
  }

  /// Writes the value of a characteristic without asking for a response.
  ///
  /// Waits for ready. Success means that the bytes were handed over to the link, and nothing more: when the link dies
  /// they may be lost. It ends within the deadline in `options`, by default ``Deadlines/operation``; cancelling ends it
  /// at once, as `notSent` or `indeterminate`.
  /// - Throws: an error with the outcome in it: `notSent`, `indeterminate`, `characteristicNotFound`.
  public nonisolated func writeWithoutResponse(
    _ bytes: some Collection<UInt8> & Sendable, to characteristic: Characteristic,
    idempotency: Idempotency, id: OperationID? = nil, options: WriteOptions = WriteOptions()
  ) async throws(RelinkError) {
    _ = try await run(
      .writeWithoutResponse(characteristic, Array(bytes)), idempotency, within: options.deadline, id: id,
      options: options)
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
    _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline, id: OperationID? = nil,
    options: WriteOptions? = nil
  ) async throws(RelinkError) -> GATTAnswer {
    guard !ExclusiveTurn.isHeld(of: self) else { throw RelinkError.insideTurn }
    // A caller whose task prefers the executor saves two changes of executor: they would cost more than everything
    // else that a request takes.
    let caller: (any Actor)? = #isolation
    let (number, result) =
      caller == nil && staysOnExecutor
      ? await perform(request, idempotency, within: limit, id, options)
      : await performIsolated(request, idempotency, within: limit, id, options)
    let name = id ?? OperationID(number)
    // Said here, behind the last wait: where the process dies before, the outcome is left to the next one.
    if case .settled(_, _, let recorded?) = result { outcomeTold(recorded) }
    switch result {
    case .settled(.succeeded(let answer), _, _): return answer
    case .settled(let outcome, _, _):
      throw RelinkError(
        operation: name, outcome: outcome, request: request, disconnect: publisher.snapshot.lastDisconnect)
    case .detached(.deadline):
      throw RelinkError(
        .deadlineExceeded, "The caller's wait is over; the operation goes on for others that wait for it.",
        operation: name)
    case .detached:
      throw RelinkError(
        .cancelled, "The caller was cancelled; the operation goes on for others that wait for it.",
        operation: name)
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
  /// What ``perform(_:_:within:_:_:)`` does, isolated: the closures of a function that is not would leave the executor.
  private func performIsolated(
    _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline, _ id: OperationID?,
    _ options: WriteOptions?
  ) async -> (OperationNumber, CallResult) {
    lastOperation += 1
    let number = OperationNumber(rawValue: lastOperation)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        admit(number, request, idempotency, within: limit, id, options, continuation)
      }
    } onCancel: {
      executor.post { self.assumeIsolated { $0.callCancelled(number) } }
    }
    return (number, result)
  }

  private nonisolated func nextOperation() -> OperationNumber {
    assumeIsolated { session in
      session.lastOperation += 1
      return OperationNumber(rawValue: session.lastOperation)
    }
  }

  /// Takes an operation through the journal for a caller that stays on the executor.
  private nonisolated func perform(
    _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline, _ id: OperationID?,
    _ options: WriteOptions?
  ) async -> (OperationNumber, CallResult) {
    let number = nextOperation()
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: OperationWaiters.Continuation) in
        assumeIsolated { $0.admit(number, request, idempotency, within: limit, id, options, continuation) }
      }
    } onCancel: {
      executor.post { self.assumeIsolated { $0.callCancelled(number) } }
    }
    return (number, result)
  }

  /// What the journal has to know of a call that is made now.
  func operationCall(
    _ number: OperationNumber, _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline,
    _ id: OperationID?, _ options: WriteOptions?, now: Timestamp
  ) -> OperationJournal.Call {
    let journalled = options?.journalled(at: now)
    let isUnnamed = id == nil
    let name = isUnnamed && journalled?.durability == .durable ? newLastingID() : id
    return OperationJournal.Call(
      number: number, id: name, isNewName: isUnnamed, request: request, idempotency: idempotency,
      deadline: limit.instant(from: now.monotonic, default: configuration.deadlines.operation),
      options: journalled, readyOn: machine.isOffering ? machine.currentLink?.generation : nil)
  }

  /// Takes a call in that has arrived; `name` is the number that its caller knows it by.
  ///
  /// On its way here the caller may have left the executor and come back: an `await` is a suspension even inside the
  /// session, unless the calling task prefers its executor.
  private func admit(
    _ name: OperationNumber, _ request: GATTRequest, _ idempotency: Idempotency, within limit: Deadline,
    _ id: OperationID?, _ options: WriteOptions?, _ continuation: OperationWaiters.Continuation
  ) {
    let now = executor.timestamp()
    // A call that was overtaken meanwhile goes behind: what came earlier may have been recorded and offered.
    let isOvertaken = name.rawValue != lastOperation
    if isOvertaken { lastOperation += 1 }
    let number = OperationNumber(rawValue: lastOperation)
    var call = operationCall(number, request, idempotency, within: limit, id, options, now: now)
    if isOvertaken, call.id == nil { call.id = OperationID(name) }
    // A cancellation on the way here found nothing to cancel.
    guard !Task.isCancelled else {
      return continuation.resume(
        returning: id == nil ? .refused(.cancelled) : resultOfCancelled(call, now: now))
    }
    switch enter(call, now: now) {
    case .waits(let known):
      if known == number {
        waiters[number] = OperationWaiters(first: (name, continuation))
      } else {
        waiters[known, default: OperationWaiters()].joined.append((name, continuation))
        if let deadline = call.deadline { setJoinTimer(name, deadline) }
      }
      if known != name { joinedCalls[name] = known }
      journalChanged()
      offerOperations()
    case .ended(let result):
      continuation.resume(returning: result)
      journalChanged()
    }
  }

  /// What a caller is told who gave a name and was cancelled before his call came: nothing that need not be true of the
  /// operation of that name.
  private func resultOfCancelled(_ call: OperationJournal.Call, now: Timestamp) -> CallResult {
    guard let id = call.id else { return .refused(.cancelled) }
    switch operations.lookUp(id, call, now: now) {
    case .kept(let outcome):
      recovery.remove(id)
      return CallResult(kept: outcome)
    case .refused(let reason): return .refused(reason)
    case .joined, .recorded, .unknown: return .detached(.cancelled)
    // An operation of this name may be in the store, which was not asked.
    case nil: return call.options?.durability == .durable ? .detached(.cancelled) : .refused(.cancelled)
    }
  }

  /// What becomes of a call that has come.
  enum Entrance {
    /// It waits for this operation.
    case waits(OperationNumber)
    /// It has its result.
    case ended(CallResult)
  }

  /// Takes a call into the journal, and asks for a link where it needs one.
  func enter(_ call: OperationJournal.Call, now: Timestamp) -> Entrance {
    // Time that was slept through before the call is not to be taken off its own limits.
    if operations.noteSuspension(now) { journalTimerFired() }
    if !machine.isOffering {
      switch machine.workArrived(now: now.monotonic) {
      case .refuse(let reason):
        return refuse(call, reason, now: now)
      case .wait(let actions): perform(actions)
      }
      if call.options?.ifUnavailable == .fail, let cause = machine.unavailability {
        return refuse(call, cause.notSent, now: now)
      }
    }
    if call.options?.durability == .durable { openStore() }
    return entrance(operations.operationRequested(call, now: now), call)
  }

  /// A call comes when no link will: what is known under its ID, here or in the store, needs none.
  private func refuse(
    _ call: OperationJournal.Call, _ reason: NotSentReason, now: Timestamp
  ) -> Entrance {
    // A session that has ended takes no journal from the one that came after it.
    if call.options?.durability == .durable, reason != .ended { openStore() }
    return entrance(operations.callRefused(call, reason, now: now), call)
  }

  private func entrance(_ admission: OperationJournal.Admission, _ call: OperationJournal.Call) -> Entrance {
    switch admission {
    case .refused(let reason): return .ended(.refused(reason))
    case .unknown(let doubt): return .ended(.settled(.indeterminate(doubt), .acknowledged))
    case .kept(let outcome):
      if let id = call.id { recovery.remove(id) }
      return .ended(CallResult(kept: outcome))
    case .joined(let number): return .waits(number)
    case .recorded(let timer, let superseded):
      if let timer { setJournalTimer(timer) }
      for settlement in superseded { settle(settlement) }
      return .waits(call.number)
    }
  }

  // MARK: Ends

  /// Timers of callers who wait for the operation of an earlier call have this number and higher ones.
  private static let firstJoinTimer = 1 << 40

  private func joinTimer(_ call: OperationNumber) -> TimerID {
    timerID(Self.firstJoinTimer + Int(clamping: call.rawValue))
  }

  /// The operation has a deadline of its own, which may be later.
  func setJoinTimer(_ call: OperationNumber, _ deadline: MonotonicInstant) {
    executor.setTimer(joinTimer(call), atBootTime: operations.bootTime(of: deadline)) { [weak self] in
      self?.assumeIsolated { $0.callEnded(call, .deadline) }
    }
  }

  private func callCancelled(_ call: OperationNumber) {
    callEnded(call, .cancelled)
  }

  /// A caller waits no longer: his operation ends, unless others wait for it too.
  private func callEnded(_ call: OperationNumber, _ reason: CallResult.Detachment) {
    let number = joinedCalls[call] ?? call
    guard var others = waiters[number] else { return }
    if let continuation = others.remove(call), !others.isEmpty || operations.lookUpAbandoned(number) {
      forgetJoin(call)
      waiters[number] = others.isEmpty ? nil : others
      continuation.resume(returning: .detached(reason))
    } else {
      endOperation(number, reason)
    }
  }

  func forgetJoin(_ call: OperationNumber) {
    if joinedCalls.removeValue(forKey: call) != nil { executor.cancelTimer(joinTimer(call)) }
  }

  /// Ends an operation for everybody who waits for it.
  func endOperation(_ number: OperationNumber, _ reason: CallResult.Detachment) {
    if let request = operations.outstandingRequest(of: number) { callOff(request) }
    let now = executor.timestamp()
    let ended =
      switch reason {
      case .cancelled: operations.cancelled(number, now: now)
      case .deadline: operations.deadlinePassed(number, now: now)
      }
    guard let ended else { return }
    finish(ended)
  }

  func setJournalTimer(_ instant: MonotonicInstant) {
    executor.setTimer(timerID(Self.journalTimer), atBootTime: operations.bootTime(of: instant)) {
      [weak self] in
      self?.assumeIsolated { $0.journalTimerFired() }
    }
  }

  private func journalTimerFired() {
    let now = executor.timestamp()
    operations.noteSuspension(now)
    for request in operations.outstandingRequests(overdueAt: operations.limitClock(now)) { callOff(request) }
    let (expired, next) = operations.timerFired(now: now)
    if let next { setJournalTimer(next) }
    for settlement in expired.compactMap(\.settlement) { settle(settlement) }
    // Before anything else is offered on a link that goes.
    if expired.contains(where: \.dropsLink) { giveLinkUp(LinkLoss(.operationExpired)) }
    journalChanged()
    if case .ended = machine.snapshot.state { finishFeeds() }
    offerOperations()
  }

  /// Tells the link that nobody waits for a request any more; what it can still stop causes no doubt.
  func callOff(_ request: RequestID) {
    if link?.abandon(request) == true { operations.offerDisproven(request, now: executor.timestamp()) }
  }

  func finish(_ abandonment: OperationJournal.Abandonment) {
    if let settlement = abandonment.settlement { settle(settlement) }
    // Before anything else is offered on a link that goes.
    if abandonment.dropsLink { giveLinkUp(LinkLoss(.operationExpired)) }
    journalChanged()
    offerOperations()
  }

  func settle(_ settlement: Settlement) {
    if probe?.number == settlement.number { endProbe() }
    defer {
      for continuation in recordings.removeValue(forKey: settlement.number) ?? [] { continuation.resume() }
    }
    guard let waiting = waiters.removeValue(forKey: settlement.number) else { return }
    let result = CallResult.settled(
      settlement.outcome, settlement.confirmation, recordedAs: settlement.durableID)
    if let first = waiting.first, first.call != settlement.number { forgetJoin(first.call) }
    if let first = waiting.first, waiting.joined.isEmpty, waiting.cells.isEmpty {
      first.continuation.resume(returning: result)
    } else {
      for (call, _) in waiting.joined { forgetJoin(call) }
      waiting.resume(result, settlement.confirmed, isRecorded: settlement.durableID != nil)
    }
  }

  // MARK: Offering

  /// Whether the link could be asked for something that waits.
  var hasSomethingToOffer: Bool {
    if machine.isPreparing { return true }
    if scope.hasWaiting || (step != nil && step?.id == nil) { return true }
    return machine.isOffering
      && (operations.hasQueued || subscriptions.nextRequest() != nil || exclusive.hasWaiting)
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
    guard machine.isOffering, link != nil, !isExclusive(), !machine.isSecuring else { return }
    offerSubscriptions()
    let now = executor.timestamp()
    // Time that was slept through counts: what is too late by now is not offered.
    if operations.noteSuspension(now) { return journalTimerFired() }
    beginProbe(now: now)
    while let link, let generation = machine.currentLink?.generation {
      let room: OperationJournal.Room =
        outstanding < linkCapabilities.maximumOutstanding ? .any : .withoutResponse
      let facts = linkFacts(link, generation)
      switch operations.next(taking: room, on: facts, now: now) {
      case .nothing:
        operations.marksWanted(on: generation, now: now)
        return journalChanged()
      case .settled(let settlement):
        settle(settlement)
      case .secure(let level):
        securityNeeded(level, on: link.id)
        return journalChanged()
      case .offer(let number, let request):
        guard offer(number, request, on: link, facts, now: now) else { return journalChanged() }
      }
    }
  }

  /// Hands one operation over; whether the link may be asked for more.
  private func offer(
    _ number: OperationNumber, _ request: GATTRequest, on link: any Link,
    _ facts: OperationJournal.LinkFacts, now: Timestamp
  ) -> Bool {
    let id = newRequestID(for: request)
    if operations.security(of: number) > .none { machine.protectedRequestSent(now: now.monotonic) }
    operations.offering(number, as: id, on: facts.generation, bond: facts.bond, now: now)
    switch link.perform(request.fitted(to: link), id: id) {
    case .accepted:
      if !id.isWithoutResponse { outstanding += 1 }
      return true
    case .refused(let refusal) where refusal.isPermanent:
      if let settlement = operations.offerRefused(number, refusal, now: now) { settle(settlement) }
      return true
    case .later:
      operations.offerNotTaken(number, now: now)
      return false
    case .refused(let refusal):
      operations.offerNotTaken(number, now: now)
      sendRefused(refusal)
      return false
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
      case .later:
        return
      case .refused(let refusal):
        return sendRefused(refusal)
      }
    }
  }

  /// The system took nothing, and no word of the link will say when it does again: what waits is offered once more soon.
  func sendRefused(_ refusal: GATTRefusal) {
    guard case .system = refusal else { return }
    executor.setTimer(timerID(Self.refusalTimer), at: executor.now.advanced(by: Self.refusalPause)) {
      [weak self] in
      self?.assumeIsolated { $0.offerAll() }
    }
  }

  /// The number of the timer after which something is offered again that the system did not take.
  static let refusalTimer = 104
  private static let refusalPause = Duration.milliseconds(100)

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
