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
    journal.entries.count { $0.state != .queued && $0.lastOffer != nil }
  }

  /// Performs the actions in their order; the events among them go out together, before anything else.
  func perform(_ actions: [SessionStateMachine.Action]) {
    let events = actions.compactMap { action in
      if case .publish(let event) = action { event } else { nil }
    }
    if !events.isEmpty { publisher.publish(events, machine.snapshot) }
    for action in actions { perform(action) }
  }

  private func perform(_ action: SessionStateMachine.Action) {
    switch action {
    case .publish:
      break  // Done, with the others of its step.
    case .dial(let id):
      attempts[id] = transport.dial(device, attempt: id, options: DialOptions(limit: configuration.dialLimit))
    case .cancelAttempt(let id):
      attempts.removeValue(forKey: id)?.cancel()
    case .adoptLink(let id, _):
      link = links[id]
      linkCapabilities = link?.capabilities ?? LinkCapabilities()
      outstanding = 0
    case .closeLink(let id):
      if link?.id == id { leaveLink(goneAt: nil) }
      links[id]?.close()
    case .prepare(let phase):
      prepare(phase)
    case .offerOperations:
      offerScoped()
      offerOperations()
    case .settleOperations(let notSent, let doubt):
      for settled in journal.settleAll(notSent: notSent, doubt: doubt) { settle(settled.settlement) }
      executor.cancelTimer(timerID(Self.journalTimer))
    case .resume(let ids, let result):
      for id in ids { connectWaiters.removeValue(forKey: id)?.resume(returning: result) }
    case .askAdapterState:
      perform(machine.adapterChanged(transport.adapterState(for: device), now: executor.now))
    case .setTimer(let timer, let instant):
      executor.setTimer(timerID(timer.rawValue), at: instant) { [weak self] in
        self?.assumeIsolated { $0.perform($0.machine.timerFired(timer, now: $0.executor.now)) }
      }
    case .cancelTimer(let timer):
      executor.cancelTimer(timerID(timer.rawValue))
    }
  }

  /// Lets go of everything that belongs to the link in use: it is gone, or about to be closed.
  func leaveLink(goneAt instant: MonotonicInstant?) {
    link = nil
    outstanding = 0
    step = nil
    services = []
    setup?.cancel()
    setup = nil
    subscriptions.linkLost()
    for waiter in scope.linkLost(reason: machine.lastDisconnect?.reason ?? .unknown, goneAt: instant) {
      waiter.continuation.resume(returning: waiter.outcome)
    }
  }

  // MARK: Preparation

  private func prepare(_ phase: ConnectionPhase) {
    switch phase {
    case .exchangingMTU: begin(.exchangeMTU)
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
    case .later, .refused:
      // The link's next word decides: it can be written again, or it is closed.
      break
    }
  }

  func stepAnswered(_ answer: Result<GATTAnswer, GATTFailure>, on link: LinkID) {
    step = nil
    machine.roundTripsCounted(self.link?.roundTrips ?? 0)
    switch answer {
    case .success(.mtu(let mtu)):
      perform(machine.mtuExchanged(mtu))
    case .success(.table(let services, let changed)):
      self.services = services
      fail(
        subscriptions.tableLearnt(services, restoring: linkCapabilities.needsSubscriptionRestore),
        with: RelinkError(.characteristicNotFound, "The device has no such characteristic."))
      perform(machine.tableLearnt(changed: changed))
    case .success(.done), .success(.value), .failure(.malformedAnswer):
      stepFailed(LinkLoss(.protocolViolation, evidence: [.observation("malformed answer")]), on: link)
    case .failure(.rejected(let code)), .failure(.executionRejected(let code)):
      stepFailed(LinkLoss(.protocolViolation, evidence: [.att(code)]), on: link)
    case .failure(.refused(let refusal)):
      stepFailed(LinkLoss(.unknown, evidence: [.observation("refused: \(refusal)")]), on: link)
    }
  }

  private func stepFailed(_ loss: LinkLoss, on link: LinkID) {
    let now = executor.now
    guard !machine.isPreparing, let current = machine.currentLink, current.id == link else {
      return perform(machine.preparationFailed(on: link, loss, inDoubt: 0, now: now))
    }
    // The table of a ready session cannot be learnt again: without it no operation can be addressed.
    let (settled, count) = journal.linkLost(
      current.generation, reason: loss.reason, inDoubt: journal.outstandingRequests(), isGone: false, now: now
    )
    perform(machine.revalidationFailed(on: link, loss, inDoubt: count, now: now))
    for settlement in settled { settle(settlement) }
  }

  func restoreSubscriptions() {
    offerSubscriptions()
    guard subscriptions.isRestored else { return }
    machine.roundTripsCounted(link?.roundTrips ?? 0)
    perform(machine.subscriptionsRestored(now: executor.now))
  }

  // MARK: Setup

  private func runSetup() {
    guard let closure = configuration.setup, let (id, generation) = machine.currentLink else { return }
    let scope = LinkScope(session: self, generation: generation, services: services)
    setup = AppTask.run(on: executor) {
      let result: Result<Continuity, any Error>
      do {
        result = .success(try await closure(scope))
      } catch {
        result = .failure(error)
      }
      await self.setupEnded(generation, link: id, result)
    }
  }

  private func setupEnded(
    _ generation: Generation, link: LinkID, _ result: Result<Continuity, any Error>
  ) {
    switch result {
    case .success(let continuity):
      machine.roundTripsCounted(self.link?.roundTrips ?? 0)
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
