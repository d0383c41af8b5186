// What the transport reports: links and attempts that come and go, and the adapter.
extension SessionStateMachine {
  /// A link is up, by a dial or without one.
  package mutating func linkUp(
    _ link: LinkID, attempt: AttemptID?, capabilities: LinkTraits, now: MonotonicInstant
  ) -> [Action] {
    if let attempt, let index = retiring.firstIndex(of: attempt) {
      retiring.remove(at: index)
      return refuse(link, now: now)
    }
    switch state {
    case .dialling(let dialling) where attempt == dialling.id:
      return adopt(
        link, as: dialling.info, capabilities: capabilities, isSuspect: dialling.isListed, now: now)
    case .dialling(let dialling) where attempt == nil:
      retiring.append(dialling.id)
      return [.cancelAttempt(dialling.id)]
        + adopt(link, as: dialling.info, capabilities: capabilities, isSuspect: true, now: now)
    case .waiting where attempt == nil && userAction == nil:
      let info = nextAttempt()
      return [.cancelTimer(.backoff), .publish(.connecting(info))]
        + adopt(link, as: info, capabilities: capabilities, isSuspect: true, now: now)
    case .idle, .waiting, .dialling, .preparing, .ready, .ended:
      if attempt != nil { staleDeliveries += 1 }
      return refuse(link, now: now)
    }
  }

  /// The host lists a link to the device that this session does not use: a dial may get that one.
  package mutating func linkListed(before attempt: AttemptID) {
    guard case .dialling(var dialling) = state, dialling.id == attempt else { return }
    dialling.isListed = true
    state = .dialling(dialling)
  }

  /// A dial ended without a link.
  package mutating func attemptFailed(
    _ attempt: AttemptID, _ loss: LinkLoss, now: MonotonicInstant
  ) -> [Action] {
    if let index = retiring.firstIndex(of: attempt) {
      retiring.remove(at: index)
      return proceed(now: now)
    }
    guard case .dialling(let dialling) = state, dialling.id == attempt else {
      staleDeliveries += 1
      return []
    }
    let listened = dialling.startedAt.duration(to: now)
    return failed(loss, generation: nil, inDoubt: 0, listened: listened, now: now)
  }

  /// A link is gone: its last word.
  ///
  /// `inDoubt`: how many operations it owed an answer.
  package mutating func linkClosed(
    _ link: LinkID, _ loss: LinkLoss, inDoubt: OpenOffers, now: MonotonicInstant
  ) -> [Action] {
    if let index = closing.firstIndex(of: link) {
      closing.remove(at: index)
      return proceed(now: now)
    }
    switch state {
    case .preparing(let preparing) where preparing.link == link:
      return preparing.disarming + securingEnded()
        + failed(loss, generation: preparing.generation, inDoubt: inDoubt, listened: nil, now: now)
    case .ready(let ready) where ready.link == link:
      return lost(ready, loss, inDoubt: inDoubt, now: now)
    case .idle, .waiting, .dialling, .preparing, .ready, .ended:
      staleDeliveries += 1
      return []
    }
  }

  /// Something came from a link that is not in use.
  ///
  /// It changes nothing and is counted.
  package mutating func staleDelivery() {
    staleDeliveries += 1
  }

  /// The adapter changed its state, or the transport was asked for it.
  package mutating func adapterChanged(_ new: AdapterState, now: MonotonicInstant) -> [Action] {
    guard new != adapter else { return new == .on ? [] : armAdapterTimer(now: now) }
    adapter = new
    guard new == .on else {
      return proceed(now: now) + resumeAll(.adapterUnavailable(new))
    }
    backoffUntil = nil
    return proceed(now: now)
  }

  /// The device has another name from now on: a dial under way begins anew, so that it is dialled there.
  package mutating func peerChanged(now: MonotonicInstant) -> [Action] {
    guard case .dialling(let dialling) = state else { return [] }
    retiring.append(dialling.id)
    let loss = LinkLoss(.requested, evidence: [.observation("the device has another name")])
    let info = record(
      judge(loss, at: .dialling, now: now), loss, generation: nil, willReconnect: true, inDoubt: 0)
    enter(.idle(.withdrawn), now: now)
    return [.cancelAttempt(dialling.id), .publish(.attemptFailed(info))] + proceed(now: now)
  }

  /// A timer went off.
  package mutating func timerFired(_ timer: Timer, now moment: Timestamp) -> [Action] {
    let now = moment.monotonic
    switch timer {
    case .backoff:
      if let until = backoffUntil, until > now { return [.setTimer(.backoff, at: until)] }
      backoffUntil = nil
      return proceed(now: now)
    case .adapter:
      guard case .waiting = state, adapter != .on else { return [] }
      return [.askAdapterState]
    case .preparation:
      guard case .preparing(let preparing) = state else { return [] }
      // One that was set for the link before this one says nothing about this one.
      let limit = stateSince.advanced(by: policy.preparationLimit)
      guard now >= limit else { return [.setTimer(.preparation, at: limit)] }
      return preparationFailed(on: preparing.link, LinkLoss(.preparationTimeout), inDoubt: 0, now: now)
    case .securing:
      return securingExpired(now: now)
    case .validation:
      guard case .preparing(let preparing) = state, preparing.isSuspect else { return [] }
      let limit = stateSince.advanced(by: Self.validationLimit)
      guard now >= limit else { return [.setTimer(.validation, at: limit)] }
      return preparationFailed(on: preparing.link, LinkLoss(.transactionTimeout), inDoubt: 0, now: now)
    case .connect:
      let expired = waiters.filter { $0.deadline.map { $0 <= moment.bootTime } ?? false }.map(\.id)
      waiters.removeAll { expired.contains($0.id) }
      return (expired.isEmpty ? [] : [.resume(expired, .deadlineExceeded)]) + armConnectTimer()
    }
  }

  // MARK: Parts

  private mutating func refuse(_ link: LinkID, now: MonotonicInstant) -> [Action] {
    closing.append(link)
    return [.closeLink(link)] + proceed(now: now)
  }

  private mutating func nextAttempt() -> AttemptInfo {
    outage.attempts += 1
    return AttemptInfo(
      number: outage.attempts, remaining: policy.attemptsPerOutage.map { max($0 - outage.failures - 1, 0) },
      isReconnection: wasEverReady, after: outage.lastReason)
  }

  private mutating func adopt(
    _ link: LinkID, as info: AttemptInfo, capabilities: LinkTraits, isSuspect: Bool, now: MonotonicInstant
  ) -> [Action] {
    lastGeneration += 1
    // Whatever was heard of the adapter before, it carries a link now.
    adapter = .on
    let generation = Generation(rawValue: lastGeneration)
    let phase: ConnectionPhase = capabilities.needsMTUExchange ? .exchangingMTU : .discovering
    var preparing = Preparing(
      link: link, generation: generation, info: info, phase: phase, mtu: capabilities.mtu)
    preparing.isSecurable = capabilities.isSecurable
    preparing.isSuspect = isSuspect
    securing = nil
    isSecurityDeclined = false
    encryptedSince = nil
    protectedSince = nil
    history.wasEncryptionAsked = false
    enter(.preparing(preparing), now: now)
    let begun: [Action] = [
      .adoptLink(link, generation), .setTimer(.preparation, at: now.advanced(by: policy.preparationLimit)),
    ]
    guard phase == .exchangingMTU else { return begun + secureOrDiscover(preparing, now: now) }
    let limit = now.advanced(by: Self.validationLimit)
    return begun + (isSuspect ? [.setTimer(.validation, at: limit)] : [])
      + [.publish(.phase(phase)), .prepare(phase)]
  }

  /// An attempt has failed: tells so and decides what comes next.
  mutating func failed(
    _ loss: LinkLoss, generation: Generation?, inDoubt: OpenOffers, listened: Duration?, now: MonotonicInstant
  ) -> [Action] {
    let loss = validated(loss)
    let finding = judge(loss, at: generation == nil ? .dialling : .preparing, now: now)
    outage.lastReason = finding.reason
    let isAbsence = finding.reason == .notFound && (listened ?? .zero) >= Self.shortestAbsence
    if let state = finding.reason.adapterState {
      adapter = state
    } else if !isAbsence {
      // What the radio was busy with, or the host made up, is not this device's failure.
      if ![.busy, .adapterStuck, .phantomLink].contains(finding.reason) { outage.failures += 1 }
      let delay: Duration
      if finding.reason == .setupFailed {
        setupStreak += 1
        let backoff = policy.setupBackoff ?? policy.backoff
        delay = backoff.delay(afterFailures: setupStreak, using: &generator)
      } else {
        streak += 1
        delay = policy.backoff.delay(afterFailures: streak, using: &generator)
      }
      backoffUntil = now.advanced(by: delay)
    }
    let isExhausted = policy.attemptsPerOutage.map { outage.failures >= $0 } ?? false
    let info = record(
      finding, loss, generation: generation, willReconnect: !isExhausted && userAction == nil,
      inDoubt: inDoubt)
    enter(.idle(.attemptsExhausted), now: now)
    if isExhausted {
      wanted = false
      return [
        .publish(.attemptFailed(info)), .settleOperations(.attemptsExhausted, .attemptsExhausted),
        .publish(.idle(.attemptsExhausted)),
      ] + resumeAll(.attemptsExhausted)
    }
    var actions: [Action] = [.publish(.attemptFailed(info))] + proceed(now: now)
    if adapter != .on { actions += resumeAll(.adapterUnavailable(adapter)) }
    if let userAction { actions += resumeAll(.userActionNeeded(userAction)) }
    return actions
  }

  /// The same loss, where it is that of a link which the host only believed in.
  private func validated(_ loss: LinkLoss) -> LinkLoss {
    guard case .preparing(let preparing) = state, preparing.isSuspect, loss.reason == .transactionTimeout
    else { return loss }
    let seen = Evidence.observation("nothing was answered on a link that was there before it was dialled")
    return LinkLoss(.phantomLink, evidence: [seen] + loss.evidence)
  }

  /// The link of a ready session is gone: tells so and decides what comes next.
  mutating func lost(
    _ ready: Ready, _ loss: LinkLoss, inDoubt: OpenOffers, now: MonotonicInstant
  ) -> [Action] {
    let ended = securingEnded()
    let isExpected = expectation.map { $0.until > now } ?? false
    let finding = judge(loss, at: .ready, now: now)
    outage = Outage(startedAt: now, lastReason: finding.reason)
    let isStable = ready.since.duration(to: now) >= policy.stability
    streak = isStable || isExpected ? 0 : streak + 1
    // The first loss costs no delay: only a link that is lost again and again waits for the next try.
    let delay = policy.backoff.delay(afterFailures: streak - 1, using: &generator)
    backoffUntil = now.advanced(by: delay)
    if let state = finding.reason.adapterState { adapter = state }
    let info = record(
      finding, loss, generation: ready.readiness.generation,
      willReconnect: policy.isAutomatic && userAction == nil, inDoubt: inDoubt)
    enter(.idle(.notReconnecting), now: now)
    guard policy.isAutomatic else {
      wanted = false
      return ended + [
        .publish(.disconnected(info)), .settleOperations(.notReconnecting, .notReconnecting),
        .publish(.idle(.notReconnecting)),
      ]
    }
    return ended + [.publish(.disconnected(info))] + proceed(now: now)
  }

  /// Goes on towards a link as far as it can: to a dial, or to the reason why there is none.
  mutating func proceed(now: MonotonicInstant) -> [Action] {
    guard wanted else { return [] }
    switch state {
    case .dialling, .preparing, .ready, .ended: return []
    case .idle, .waiting: break
    }
    if !closing.isEmpty || !retiring.isEmpty { return wait(for: .previousLink, until: nil, now: now) }
    switch adapter {
    case .on: break
    case .off: return waitForAdapter(.adapterOff, now: now)
    case .blocked: return waitForAdapter(.adapterBlocked, now: now)
    case .suspended: return waitForAdapter(.suspended, now: now)
    case .missing: return waitForAdapter(.adapterMissing, now: now)
    case .notPermitted: return waitForAdapter(.notPermitted, now: now)
    }
    if let userAction { return waitForUser(userAction, now: now) }
    if let until = backoffUntil, until > now { return wait(for: .backoff, until: until, now: now) }
    var actions: [Action] = []
    if case .waiting(_, until: .some) = state { actions.append(.cancelTimer(.backoff)) }
    backoffUntil = nil
    lastAttempt += 1
    let attempt = AttemptID(rawValue: lastAttempt)
    let info = nextAttempt()
    enter(.dialling(Dialling(id: attempt, info: info, startedAt: now)), now: now)
    return actions + [.publish(.connecting(info)), .dial(attempt)]
  }

  /// The timer starts with the wait and not with each call that finds it: an app that calls `connect()` more often
  /// than the adapter is asked for would put that off for ever.
  private mutating func waitForAdapter(_ reason: WaitReason, now: MonotonicInstant) -> [Action] {
    let actions = wait(for: reason, until: nil, now: now)
    return actions.isEmpty ? [] : actions + armAdapterTimer(now: now)
  }

  /// Not every transport can announce that an adapter is back, so it is asked from time to time.
  private func armAdapterTimer(now: MonotonicInstant) -> [Action] {
    guard wanted else { return [] }
    return [.setTimer(.adapter, at: now.advanced(by: Self.adapterRetry))]
  }

  private mutating func wait(
    for reason: WaitReason, until: MonotonicInstant?, now: MonotonicInstant
  ) -> [Action] {
    guard state != .waiting(reason, until: until) else { return [] }
    enter(.waiting(reason, until: until), now: now)
    let timer: Action = until.map { .setTimer(.backoff, at: $0) } ?? .cancelTimer(.backoff)
    return [timer, .publish(.waiting(for: reason, until: until))]
  }

  mutating func enter(_ new: State, now: MonotonicInstant) {
    state = new
    stateSince = now
  }
}

/// What the machine needs to know of a link that came up.
package struct LinkTraits: Hashable, Sendable {
  /// Whether the ATT_MTU has to be asked for.
  package var needsMTUExchange: Bool
  /// The ATT_MTU at first, in bytes.
  package var mtu: Int

  /// Whether the session can have it secured.
  package var isSecurable: Bool

  /// Describes a link.
  package init(needsMTUExchange: Bool, mtu: Int, isSecurable: Bool = false) {
    self.needsMTUExchange = needsMTUExchange
    self.mtu = mtu
    self.isSecurable = isSecurable
  }
}

extension DisconnectReason {
  /// The state of the adapter that the reason proves, if it proves one.
  var adapterState: AdapterState? {
    switch self {
    case .adapterOff, .daemonStopped: .off
    case .adapterBlocked: .blocked
    case .suspended: .suspended
    case .adapterMissing: .missing
    case .notPermitted: .notPermitted
    case .requested, .notFound, .failedToEstablish, .supervisionTimeout, .remoteUserTerminated,
      .remoteLowResources, .remotePowerOff, .localHostTerminated, .linkLayerFault, .authenticationFailure,
      .keyMissing, .micFailure, .connectionParameters, .bondMissing, .pairingFailed, .securityTimeout, .busy,
      .channelInUse, .outOfSlots, .adapterStuck, .phantomLink, .wrongAddressType, .transactionTimeout,
      .protocolViolation, .setupFailed, .preparationTimeout, .refused, .operationExpired, .unknown:
      nil
    }
  }
}
