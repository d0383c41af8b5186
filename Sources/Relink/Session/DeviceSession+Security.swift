public import RelinkCore

// Security, bonds, and what the user has to do.
extension DeviceSession {
  /// Says that the user has removed the pairing on the device, or put it into its pairing mode: automatic reconnection
  /// goes on.
  ///
  /// What waited meanwhile is offered as soon as the session is ready. It does not remove the bond that this host keeps:
  /// see ``removeBond()``. Without a recovery action that waits for the user it only forgets what spoke against the
  /// keys.
  public func pairingWasRemoved() {
    learnBond()
    perform(machine.userActed(now: executor.now))
  }

  /// Says that the device is about to end its link: a restart, an update, a sleep.
  ///
  /// The end of the link within the span is no fault: its recovery action is ``RecoveryAction/none``, its
  /// ``DisconnectInfo/expectation`` the reason given here, and it costs no delay. While a mark lasts, a second one
  /// changes nothing; the next ready clears it. The session comes back as ever.
  ///
  /// - Parameters:
  ///   - span: How long the mark lasts.
  ///   - reason: Why, for people.
  public func expectDisconnection(within span: Duration = .seconds(60), because reason: String) {
    machine.disconnectionExpected(within: span, because: reason, now: executor.now)
  }

  /// What is known here of a bond with the device; ``BondKnowledge/unknown`` over a transport that knows no bonds.
  public var bond: BondKnowledge {
    (transport as? any BondingTransport)?.bond(with: peer) ?? .unknown
  }

  /// Removes the bond with the device from this host; the device keeps its half, and has to be told by its own means.
  ///
  /// A link that the bond secured is ended. It ends within 10 s, with the host's answer or without one; cancelling it
  /// changes nothing.
  ///
  /// - Throws: `notSent` where the transport keeps no bonds, or the host refuses: the message says why.
  public func removeBond() async throws(RelinkError) {
    guard let transport = transport as? any BondingTransport else {
      throw RelinkError(.notSent, "This transport keeps no bonds; remove it in the system's settings.")
    }
    lastBondRemoval += 1
    let id = RequestID(rawValue: lastBondRemoval)
    let error = await withCheckedContinuation { continuation in
      bondRemovals[id] = continuation
      transport.removeBond(with: peer) { [weak self] error in
        self?.assumeIsolated { $0.bondRemoved(id, error) }
      }
      let limit = executor.now.advanced(by: Self.bondRemovalLimit)
      executor.setTimer(timerID(Self.bondTimers + Int(id.rawValue)), at: limit) { [weak self] in
        self?.assumeIsolated { $0.bondRemoved(id, .noAnswer) }
      }
    }
    if let error { throw error }
  }

  private static let bondRemovalLimit = Duration.seconds(10)
  /// The first number of the timers of bond removals.
  private static let bondTimers = 1_000

  private func bondRemoved(_ id: RequestID, _ error: RelinkError?) {
    executor.cancelTimer(timerID(Self.bondTimers + Int(id.rawValue)))
    learnBond()
    bondRemovals.removeValue(forKey: id)?.resume(returning: error)
  }

  // MARK: Parts

  func learnBond() {
    if let transport = transport as? any BondingTransport { machine.bondKnown(transport.bond(with: peer)) }
  }

  /// The link in use, as the journal has to know it.
  func linkFacts(_ link: any Link, _ generation: Generation) -> OperationJournal.LinkFacts {
    guard operations.wantsSecurity else { return OperationJournal.LinkFacts(generation) }
    return OperationJournal.LinkFacts(
      generation, security: link.capabilities.security,
      maySecure: link is any SecurableLink && !machine.isSecurityDeclined, bond: machine.bondInUse)
  }

  // MARK: What the link says

  func securityNeeded(_ level: SecurityLevel, on id: LinkID) {
    guard link?.id == id else { return }
    learnBond()
    perform(machine.securityNeeded(level, on: id, now: executor.now))
  }

  func secured(_ id: LinkID, to level: SecurityLevel) {
    guard link?.id == id else { return }
    endPairing()
    learnBond()
    perform(machine.linkSecured(id, to: level, now: executor.now))
    publisher.publish([], machine.snapshot)
    offerAll()
  }

  func notSecured(_ id: LinkID, _ loss: LinkLoss) {
    guard link?.id == id else { return }
    endPairing()
    learnBond()
    perform(machine.linkNotSecured(id, loss, now: executor.now))
    offerAll()
  }

  func asked(_ question: PairingQuestion, _ responder: PairingResponder, on id: LinkID) {
    guard link?.id == id else { return }
    guard let closure = configuration.pairing else {
      return responder(question == .consent ? .accept : .refuse)
    }
    endPairing()
    let task = AppTask.run(on: executor) { responder(await closure(question)) }
    pairing = AskedQuestion(task: task, responder: responder)
  }

  /// Nobody waits for the user's answer any more.
  func endPairing() {
    pairing?.task.cancel()
    // The link may live on for a while, and what the closure says by then must not pair it.
    pairing?.responder(.refuse)
    pairing = nil
  }

  // MARK: Identity

  /// The device was seen under another name: it is followed if the app says that it is the same one.
  func seen(as other: DeviceID, _ evidence: [Evidence]) {
    guard other != peer else { return }
    let isFollowed = configuration.identity?(other, evidence) == true && follow(other)
    publisher.publish([.seen(as: other, isFollowed: isFollowed, evidence)], machine.snapshot)
    if isFollowed { perform(machine.peerChanged(now: executor.now)) }
  }

  /// How many names a session answers to at most.
  private static let nameLimit = 8

  private func follow(_ other: DeviceID) -> Bool {
    if !names.contains(other) {
      guard names.count < Self.nameLimit, let receiver = receiver.withLock({ $0 }) else { return false }
      // Another session may have it.
      guard (try? transport.register(receiver, for: other)) != nil else { return false }
      names.append(other)
    }
    peer = other
    learnBond()
    return true
  }
}

extension RelinkError {
  fileprivate static let noAnswer = RelinkError(
    .deadlineExceeded, "The host did not say within 10 s whether the bond is removed; ask for `bond` to see.")
}

/// A question of a pairing that the user is being asked.
struct AskedQuestion {
  var task: AppTask
  var responder: PairingResponder
}

extension RecoveryAction {
  /// What a caller of `connect()` is told.
  var advice: String {
    switch self {
    case .removePairingAndPairAgain:
      "The keys of the pairing are of no use any more: remove the pairing here and on the device, pair again, and call "
        + "pairingWasRemoved()."
    case .retryPairing:
      "Pairing was refused: put the device into its pairing mode and connect again."
    case .retryOperation, .retryConnection, .waitForAdapter, .none:
      "The user has to act first; the disconnect information says how."
    }
  }
}
