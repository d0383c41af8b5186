internal import RelinkCore

/// What a session registers with its transport; it holds the session weakly, so that a dropped session can go.
final class LinkReceiver: LinkHandler {
  private weak let session: DeviceSession?

  init(_ session: DeviceSession) {
    self.session = session
  }

  func linkUp(_ link: any Link, attempt: AttemptID?) {
    guard let session else { return link.close() }
    session.assumeIsolated { $0.linkUp(link, attempt: attempt) }
  }

  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) {
    session?.assumeIsolated { $0.attemptFailed(attempt, loss) }
  }

  func adapterChanged(_ state: AdapterState) {
    session?.assumeIsolated { $0.perform($0.machine.adapterChanged(state, now: $0.executor.now)) }
  }

  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
    session?.assumeIsolated { $0.answered(request, with: answer, on: link) }
  }

  func link(
    _ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp
  ) {
    session?.assumeIsolated { $0.received(value, of: characteristic, at: receivedAt, on: link) }
  }

  func linkTableChanged(_ link: LinkID) {
    session?.assumeIsolated { $0.tableChanged(on: link) }
  }

  func linkWritable(_ link: LinkID) {
    session?.assumeIsolated { $0.writable(link) }
  }

  func link(_ link: LinkID, needs level: SecurityLevel) {
    session?.assumeIsolated { $0.securityNeeded(level, on: link) }
  }

  func link(_ link: LinkID, secured level: SecurityLevel) {
    session?.assumeIsolated { $0.secured(link, to: level) }
  }

  func link(_ link: LinkID, notSecured loss: LinkLoss) {
    session?.assumeIsolated { $0.notSecured(link, loss) }
  }

  func link(_ link: LinkID, asks question: PairingQuestion, _ responder: PairingResponder) {
    session?.assumeIsolated { $0.asked(question, responder, on: link) }
  }

  func deviceSeen(as other: DeviceID, _ evidence: [Evidence]) {
    session?.assumeIsolated { $0.seen(as: other, evidence) }
  }

  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    session?.assumeIsolated { $0.closed(link, loss, inDoubt: inDoubt) }
  }
}

// What the transport delivers, fed to the machines. Each delivery names its link; what comes from any other link than
// the one in use changes nothing and is counted.
extension DeviceSession {
  fileprivate func linkUp(_ new: any Link, attempt: AttemptID?) {
    if let attempt { attempts[attempt] = nil }
    links[new.id] = new
    let capabilities = new.capabilities
    let traits = LinkTraits(
      needsMTUExchange: capabilities.needsMTUExchange, mtu: capabilities.mtu,
      isSecurable: new is any SecurableLink)
    learnBond()
    perform(machine.linkUp(new.id, attempt: attempt, capabilities: traits, now: executor.now))
  }

  fileprivate func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) {
    attempts[attempt] = nil
    perform(machine.attemptFailed(attempt, loss, now: executor.now))
    publisher.publish([], machine.snapshot)
  }

  fileprivate func closed(_ id: LinkID, _ loss: LinkLoss, inDoubt: [RequestID]) {
    links[id] = nil
    guard let current = machine.currentLink, current.id == id else {
      perform(machine.linkClosed(id, loss, inDoubt: 0, now: executor.now))
      publisher.publish([], machine.snapshot)
      return
    }
    let now = executor.timestamp()
    let lost = operations.linkLost(
      current.generation, reason: machine.reading(of: loss, now: now.monotonic), evidence: loss.evidence,
      inDoubt: inDoubt, now: now)
    scope.markInDoubt(inDoubt)
    perform(
      machine.linkClosed(
        id, loss, inDoubt: OpenOffers(inDoubt: lost.inDoubt, unconfirmed: lost.unconfirmed),
        now: now.monotonic))
    leaveLink(goneAt: now.monotonic)
    for settlement in lost.settled { settle(settlement) }
    journalChanged()
  }

  fileprivate func answered(
    _ request: RequestID, with answer: Result<GATTAnswer, GATTFailure>, on id: LinkID
  ) {
    guard isInUse(id) else { return }
    if !request.isWithoutResponse {
      outstanding -= 1
      machine.deviceAnswered()
    }
    if let step, step.id == request {
      stepAnswered(answer, on: id)
    } else if let waiter = scope.answered(request, with: answer) {
      waiter.continuation.resume(returning: waiter.outcome)
    } else if let settlement = operations.answered(request, with: answer, now: journalTime) {
      settle(settlement)
    } else if let failed = subscriptions.answered(request, answer.onSubscription) {
      fail(failed, with: answer.subscriptionError)
    }
    journalChanged()
    offerLater()
  }

  /// The time where the journal needs it, which costs more than all the rest of an answer.
  private var journalTime: Timestamp {
    operations.wantsTime ? executor.timestamp() : Timestamp(monotonic: .zero, bootTime: 0, wall: 0)
  }

  fileprivate func received(
    _ value: [UInt8], of characteristic: Characteristic, at receivedAt: Timestamp, on id: LinkID
  ) {
    guard isInUse(id), let generation = machine.currentLink?.generation else { return }
    for recipient in subscriptions.valueReceived(of: characteristic) {
      let gap = recipient.isAfterGap ? Gap(isAfterLoss: true, dropped: 0) : nil
      consumers[recipient.id]?.append(
        ValueUpdate(value: value, generation: generation, receivedAt: receivedAt, gap: gap))
    }
  }

  fileprivate func tableChanged(on id: LinkID) {
    guard isInUse(id) else { return }
    perform(machine.tableInvalidated(on: id))
  }

  fileprivate func writable(_ id: LinkID) {
    guard isInUse(id) else { return }
    continueStep()
    offerLater()
  }

  /// Whether a delivery comes from the link in use; one that does not is counted.
  private func isInUse(_ id: LinkID) -> Bool {
    if link?.id == id { return true }
    machine.staleDelivery()
    publisher.publish([], machine.snapshot)
    return false
  }

  /// Offers what waits, after everything that has arrived by now was looked at: an answer that comes twice must be
  /// seen as one too many before the next request is out, or it would be credited to that.
  private func offerLater() {
    guard !isOfferPosted, hasSomethingToOffer else { return }
    isOfferPosted = true
    executor.post { [weak self] in
      self?.assumeIsolated {
        $0.isOfferPosted = false
        $0.offerAll()
      }
    }
  }
}

extension Result<GATTAnswer, GATTFailure> {
  /// What the answer says about a subscription: only a word about the descriptor itself ends it.
  fileprivate var onSubscription: SubscriptionsStateMachine.Answer {
    switch self {
    case .success: .done
    case .failure(.rejected), .failure(.executionRejected): .refused
    case .failure(.refused(let refusal)): refusal.isPermanent ? .refused : .undecided
    case .failure(.malformedAnswer): .undecided
    }
  }

  /// The error of consumers whose subscription was refused with this answer.
  fileprivate var subscriptionError: RelinkError {
    if case .failure(.rejected(let code)) = self {
      let rejection = Rejection(code: code, provesNotApplied: true)
      return RelinkError(
        .rejected, "The device refuses to notify this characteristic: \(code).",
        outcome: .rejected(rejection))
    }
    return RelinkError(.notSent, "The link cannot arm this subscription.", outcome: nil)
  }
}
