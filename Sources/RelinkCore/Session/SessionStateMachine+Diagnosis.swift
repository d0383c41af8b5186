// What a loss means for this session: the facts that the diagnosis needs beside the codes, and what follows from it.
extension SessionStateMachine {
  /// What the host says about its bond with the device.
  package mutating func bondKnown(_ bond: BondKnowledge) {
    history.bond = bond
  }

  /// Something that needs the bond was asked of the device, and waits for its answer.
  package mutating func protectedRequestSent(now: MonotonicInstant) {
    if protectedSince == nil { protectedSince = now }
  }

  /// The device answered: what needs the bond was answered with it, so it knows this host.
  package mutating func deviceAnswered() {
    guard protectedSince != nil, securing == nil else { return }
    protectedSince = nil
    history.protectedCloses = 0
  }

  /// The app says that the device will end the link by itself within a span, and why.
  ///
  /// The first mark wins while it lasts; the next ready clears it.
  package mutating func disconnectionExpected(
    within span: Duration, because reason: String, now: MonotonicInstant
  ) {
    if let expectation, expectation.until > now { return }
    expectation = Expectation(reason: reason, until: now.advanced(by: max(span, .zero)))
  }

  /// The user has done what had to be done; what is remembered of the keys is forgotten.
  package mutating func userActed(now: MonotonicInstant) -> [Action] {
    history.keyFailures = 0
    history.protectedCloses = 0
    // A link that is up may have its security from now on.
    isSecurityDeclined = false
    guard userAction != nil else { return [] }
    userAction = nil
    backoffUntil = nil
    return proceed(now: now)
  }

  /// The bond that secures the link in use, if one does.
  package var bondInUse: UInt64? {
    guard encryptedSince != nil, case .bonded(let record) = history.bond else { return nil }
    return record.id
  }

  /// What a loss of the link in use will be said to mean; nothing is taken down yet.
  package func reading(of loss: LinkLoss, now: MonotonicInstant) -> DisconnectReason {
    let moment: LinkMoment = isPreparing ? .preparing : .ready
    return Diagnosis.diagnose(loss, at: moment, history: facts(now: now), table: table).reason
  }

  private func facts(now: MonotonicInstant) -> DiagnosisHistory {
    var facts = history
    facts.wasEverReady = wasEverReady
    facts.encryptedFor = encryptedSince.map { $0.duration(to: now) }
    facts.protectedFor = protectedSince.map { $0.duration(to: now) }
    if let expectation, expectation.until > now { facts.expectation = expectation.reason }
    return facts
  }

  /// Says what a loss means, and takes down what later losses need to know of it.
  mutating func judge(_ loss: LinkLoss, at moment: LinkMoment, now: MonotonicInstant) -> Diagnosis.Finding {
    let facts = facts(now: now)
    let finding = Diagnosis.diagnose(loss, at: moment, history: facts, table: table)
    if finding.reason != .requested { remember(finding, facts) }
    history.wasEncryptionAsked = false
    encryptedSince = nil
    protectedSince = nil
    if finding.needsUser { userAction = finding.recovery }
    return finding
  }

  private mutating func remember(_ finding: Diagnosis.Finding, _ facts: DiagnosisHistory) {
    if finding.speaksAgainstKeys {
      history.keyFailures += 1
    } else if let span = facts.encryptedFor, span > Diagnosis.micWindow {
      // The keys were good enough for a link that lasted.
      history.keyFailures = 0
    }
    if finding.isProtectedClose { history.protectedCloses += 1 }
    let isBusy = finding.reason == .busy || finding.reason == .adapterStuck
    history.busyDials = isBusy ? history.busyDials + 1 : 0
  }

  /// What is told of a loss.
  mutating func record(
    _ finding: Diagnosis.Finding, _ loss: LinkLoss, generation: Generation?, willReconnect: Bool,
    inDoubt: OpenOffers
  ) -> DisconnectInfo {
    let info = DisconnectInfo(
      reason: finding.reason, evidence: loss.evidence, confidence: finding.confidence,
      recovery: finding.recovery, willReconnect: willReconnect, generation: generation,
      inDoubt: inDoubt.inDoubt, unconfirmed: inDoubt.unconfirmed, expectation: finding.expectation)
    lastDisconnect = info
    return info
  }

  mutating func waitForUser(_ action: RecoveryAction, now: MonotonicInstant) -> [Action] {
    guard state != .waiting(.userAction(action), until: nil) else { return [] }
    enter(.waiting(.userAction(action), until: nil), now: now)
    return [.cancelTimer(.backoff), .publish(.waiting(for: .userAction(action), until: nil))]
  }
}
