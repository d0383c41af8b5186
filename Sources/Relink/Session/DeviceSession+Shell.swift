internal import RelinkCore

/// The step of a link's preparation that is under way.
struct PreparationStep {
  var request: GATTRequest
  /// Nil until the link has taken it.
  var id: RequestID?
}

// The shell: performs what the machines decided.
extension DeviceSession {
  /// The number of the timer for the deadlines of operations; the machine's own have lower ones.
  static let journalTimer = 100

  func timerID(_ number: Int) -> TimerID {
    TimerID(owner: self, number: number)
  }

  /// How many operations the link in use owes an answer.
  var outstandingOperations: Int {
    operations.outstandingRequests().count
  }

  /// Performs the actions in their order; the events among them go out together, before anything else.
  func perform(_ actions: [SessionStateMachine.Action]) {
    let events = actions.compactMap { action in
      if case .publish(let event) = action { event } else { nil }
    }
    if !events.isEmpty { publisher.publish(events, machine.snapshot) }
    for case .ready(let readiness) in events {
      operations.becameReady(on: readiness.generation, readiness.continuity)
    }
    for action in actions { perform(action) }
    if events.contains(where: \.isWaiting) { failUnavailable() }
  }

  private func perform(_ action: SessionStateMachine.Action) {
    switch action {
    case .publish:
      break  // Done, with the others of its step.
    case .dial(let id):
      if transport.existingLinks().contains(peer) { machine.linkListed(before: id) }
      attempts[id] = transport.dial(peer, attempt: id, options: DialOptions(limit: configuration.dialLimit))
    case .cancelAttempt(let id):
      attempts.removeValue(forKey: id)?.cancel()
    case .secure(let id, let level, let keys):
      (links[id] as? any SecurableLink)?.secure(to: level, keys: keys)
    case .declineSecurity(let id):
      (links[id] as? any SecurableLink)?.declineSecurity()
      endPairing()
    case .adoptLink(let id, _):
      link = links[id]
      linkCapabilities = link?.capabilities ?? LinkCapabilities()
      outstanding = 0
      markAhead(now: executor.timestamp())
    case .closeLink(let id):
      if link?.id == id { leaveLink(goneAt: nil) }
      links[id]?.close()
    case .prepare(let phase):
      prepare(phase)
    case .offerOperations:
      offerScoped()
      offerOperations()
    case .settleOperations(let notSent, let doubt):
      settleOperations(notSent, doubt)
    case .resume(let ids, let result):
      for id in ids { connectWaiters.removeValue(forKey: id)?.resume(returning: result) }
    case .askAdapterState:
      perform(machine.adapterChanged(transport.adapterState(for: peer), now: executor.now))
    case .setTimer(let timer, let instant):
      executor.setTimer(timerID(timer.rawValue), at: instant) { [weak self] in
        self?.assumeIsolated { $0.machineTimerFired(timer) }
      }
    case .setConnectTimer(let instant):
      let timer = SessionStateMachine.Timer.connect
      executor.setTimer(timerID(timer.rawValue), atBootTime: instant) { [weak self] in
        self?.assumeIsolated { $0.machineTimerFired(timer) }
      }
    case .cancelTimer(let timer):
      executor.cancelTimer(timerID(timer.rawValue))
    }
  }

  private func machineTimerFired(_ timer: SessionStateMachine.Timer) {
    perform(machine.timerFired(timer, now: executor.timestamp()))
  }

  /// Lets go of everything that belongs to the link in use: it is gone, or about to be closed.
  func leaveLink(goneAt instant: MonotonicInstant?) {
    link = nil
    outstanding = 0
    step = nil
    services = []
    setup?.cancel()
    setup = nil
    endPairing()
    subscriptions.linkLost()
    endProbe()
    exclusive.linkLost()
    for waiter in scope.linkLost(reason: machine.lastDisconnect?.reason ?? .unknown, goneAt: instant) {
      waiter.continuation.resume(returning: waiter.outcome)
    }
  }

  // MARK: Preparation

  private func prepare(_ phase: ConnectionPhase) {
    switch phase {
    case .exchangingMTU: begin(.exchangeMTU)
    case .securing: break  // The link works on it, and says when.
    case .discovering, .revalidating: begin(.discover)
    case .restoringSubscriptions: restoreSubscriptions()
    case .settingUp: runSetup()
    }
  }

  private func begin(_ request: GATTRequest) {
    step = PreparationStep(request: request)
    continueStep()
  }

  /// Hands the step's request over if the link has not taken it yet.
  func continueStep() {
    guard let request = step?.request, step?.id == nil, let link else { return }
    let id = newRequestID(for: request)
    switch link.perform(request, id: id) {
    case .accepted:
      step?.id = id
      outstanding += 1
    case .later:
      // The link's next word decides: it can be written again, or it is closed.
      break
    case .refused(let refusal):
      sendRefused(refusal)
    }
  }

  func stepAnswered(_ answer: Result<GATTAnswer, GATTFailure>, on link: LinkID) {
    step = nil
    measureLink()
    switch answer {
    case .success(.mtu(let mtu)):
      perform(machine.mtuExchanged(mtu, now: executor.now))
    case .success(.table(let services, let changed)):
      self.services = services
      fail(
        subscriptions.tableLearnt(services, restoring: linkCapabilities.needsSubscriptionRestore),
        with: RelinkError(.characteristicNotFound, "The device has no such characteristic."))
      perform(machine.tableLearnt(changed: changed))
    case .success(.done), .success(.value), .failure(.malformedAnswer):
      stepFailed(LinkLoss(.protocolViolation, evidence: [.observation("malformed answer")]), on: link)
    case .failure(.rejected(let code)), .failure(.executionRejected(let code)):
      stepFailed(LinkLoss(.unknown, evidence: [.att(code)]), on: link)
    case .failure(.refused(let refusal)):
      stepFailed(LinkLoss(.unknown, evidence: [.observation("refused: \(refusal)")]), on: link)
    }
  }

  private func measureLink() {
    guard let link else { return }
    machine.roundTripsCounted(
      link.roundTrips, security: link.capabilities.security, now: executor.now)
  }

  private func stepFailed(_ loss: LinkLoss, on link: LinkID) {
    guard !machine.isPreparing, machine.currentLink?.id == link else {
      return perform(machine.preparationFailed(on: link, loss, inDoubt: 0, now: executor.now))
    }
    // The table of a ready session cannot be learnt again: without it no operation can be addressed.
    giveLinkUp(loss)
  }

  /// Ends the link of a ready session from here, and goes on with the next one.
  func giveLinkUp(_ loss: LinkLoss) {
    guard let current = machine.currentLink, !machine.isPreparing else { return }
    let now = executor.timestamp()
    let lost = operations.linkLost(
      current.generation, reason: machine.reading(of: loss, now: now.monotonic), evidence: loss.evidence,
      inDoubt: operations.outstandingRequests(), isGone: false, now: now)
    perform(
      machine.linkGivenUp(
        on: current.id, loss, inDoubt: OpenOffers(inDoubt: lost.inDoubt, unconfirmed: lost.unconfirmed),
        now: now.monotonic))
    for settlement in lost.settled { settle(settlement) }
    journalChanged()
  }

  /// No link can come for now: those operations settle that were not to wait for one.
  private func failUnavailable() {
    guard let cause = machine.unavailability else { return }
    for one in operations.linkUnavailable(cause, now: executor.timestamp()) {
      if let settlement = one.settlement { settle(settlement) }
    }
    journalChanged()
  }

  /// Nobody is going to bring a link: what waits settles.
  func settleOperations(_ notSent: NotSentReason, _ doubt: Doubt.Cause) {
    refuseTurns(notSent)
    // A session that was let go of, and not closed, leaves its durable operations to the next one.
    let isReleased = machine.snapshot.state == .ended(.released)
    let settled = operations.settleAll(
      notSent: notSent, doubt: doubt, keepingDurable: isReleased, now: executor.timestamp())
    for one in settled {
      if let settlement = one.settlement { settle(settlement) }
    }
    if operations.isEmpty { executor.cancelTimer(timerID(Self.journalTimer)) }
    journalChanged()
  }

  func restoreSubscriptions() {
    offerSubscriptions()
    guard subscriptions.isRestored else { return }
    measureLink()
    perform(machine.subscriptionsRestored(now: executor.now))
  }

  // MARK: Setup

  private func runSetup() {
    guard let closure = configuration.setup, let (id, generation) = machine.currentLink else { return }
    let scope = LinkScope(session: self, generation: generation, services: services)
    let turn = ExclusiveTurn(of: self)
    setup = AppTask.run(on: executor) {
      let result: Result<Continuity, any Error>
      do {
        result = .success(try await turn.run(isolation: nil) { try await closure(scope) })
      } catch {
        result = .failure(error)
      }
      turn.end()
      await self.setupEnded(generation, link: id, result)
    }
  }

  private func setupEnded(
    _ generation: Generation, link: LinkID, _ result: Result<Continuity, any Error>
  ) {
    switch result {
    case .success(let continuity):
      measureLink()
      perform(machine.setupFinished(on: generation, continuity, now: executor.now))
    case .failure(let error):
      let loss = LinkLoss(.setupFailed, evidence: [.observation("\(error)")])
      perform(machine.preparationFailed(on: link, loss, inDoubt: 0, now: executor.now))
    }
  }

  // MARK: Identifiers

  /// A request ID; the lowest bit says whether the request flows beside those that await an answer.
  func newRequestID(for request: GATTRequest) -> RequestID {
    lastRequest += 1
    return RequestID(rawValue: lastRequest << 1 | (request.isWithoutResponse ? 1 : 0))
  }
}

extension RequestID {
  /// Whether the request flows beside those that await an answer.
  var isWithoutResponse: Bool { rawValue & 1 == 1 }
}

extension ConnectionEvent {
  /// Whether the session says that something has to happen before the next attempt.
  fileprivate var isWaiting: Bool {
    if case .waiting = self { true } else { false }
  }
}
