// What the app asks for: a link, no link, the end.
extension SessionStateMachine {
  /// The app calls `connect()`.
  ///
  /// It does not wait for a delay after failures: who asks now gets an attempt now. Its deadline is in nanoseconds of boot
  /// time.
  package mutating func connectRequested(
    _ waiter: ConnectWaiterID, deadline: Int64?, now: MonotonicInstant
  ) -> [Action] {
    switch state {
    case .ended: return [.resume([waiter], .ended)]
    case .ready(let ready): return [.resume([waiter], .ready(ready.readiness))]
    case .idle, .waiting, .dialling, .preparing: break
    }
    let actions = want(now: now)
    guard adapter == .on else {
      return actions + proceed(now: now) + [.resume([waiter], .adapterUnavailable(adapter))]
    }
    // Who asks again after a pairing that was refused has the device in its pairing mode by now.
    if userAction == .retryPairing { userAction = nil }
    if let userAction {
      return actions + proceed(now: now) + [.resume([waiter], .userActionNeeded(userAction))]
    }
    waiters.append(ConnectWaiter(id: waiter, deadline: deadline))
    backoffUntil = nil
    return actions + proceed(now: now) + armConnectTimer()
  }

  /// A caller of `connect()` was cancelled.
  ///
  /// `hasOtherWork`: whether operations or subscriptions want the link too. Where they do not, and this was
  ///   the only caller before the session was ready for the first time, the wish for a link goes with it.
  package mutating func connectCancelled(
    _ waiter: ConnectWaiterID, hasOtherWork: Bool, now: MonotonicInstant
  ) -> [Action] {
    guard let index = waiters.firstIndex(where: { $0.id == waiter }) else { return [] }
    waiters.remove(at: index)
    var actions: [Action] = []
    if waiters.isEmpty && !wasEverReady && !hasOtherWork {
      actions = giveUp(.withdrawn, inDoubt: 0, now: now)
    }
    return actions + [.resume([waiter], .cancelled)]
  }

  /// Whether an operation or a subscription that has just come may wait for a link.
  package enum WorkAdmission: Hashable, Sendable {
    /// Somebody is going to bring a link; these actions start it where it was not wanted before.
    case wait([Action])
    /// Nobody is going to bring one.
    case refuse(NotSentReason)
  }

  /// An operation or a subscription needs a link: it dials by itself, unless the app has disconnected.
  package mutating func workArrived(now: MonotonicInstant) -> WorkAdmission {
    switch state {
    case .ended: return .refuse(.ended)
    case .idle(.disconnected): return .refuse(.disconnected)
    case .idle: return .wait(want(now: now) + proceed(now: now))
    case .waiting, .dialling, .preparing, .ready: return .wait([])
    }
  }

  /// The app calls `disconnect()`.
  ///
  /// It wins over everything: nothing is dialled after it until the app asks again.
  ///
  /// `inDoubt`: how many operations the link in use owes an answer.
  package mutating func disconnectRequested(inDoubt: OpenOffers, now: MonotonicInstant) -> [Action] {
    if case .ended = state { return [] }
    return giveUp(.disconnected, inDoubt: inDoubt, now: now) + resumeAll(.disconnected)
  }

  /// The session ends, for good.
  package mutating func endRequested(_ reason: EndReason, inDoubt: OpenOffers, now: MonotonicInstant)
    -> [Action]
  {
    if case .ended = state { return [] }
    var actions = leaveLinkOrAttempt(inDoubt: inDoubt, now: now)
    wanted = false
    enter(.ended(reason), now: now)
    actions.append(.settleOperations(.ended, .ended))
    actions.append(.publish(.ended(reason)))
    return actions + resumeAll(.ended)
  }

  // MARK: Parts

  /// Takes down that a link is wanted; a new outage begins where it was not.
  private mutating func want(now: MonotonicInstant) -> [Action] {
    guard !wanted else { return [] }
    wanted = true
    outage = Outage(startedAt: now)
    return []
  }

  /// Takes down that no link is wanted, and lets go of what there is.
  mutating func giveUp(_ reason: IdleReason, inDoubt: OpenOffers, now: MonotonicInstant) -> [Action] {
    wanted = false
    backoffUntil = nil
    if state == .idle(reason) { return [] }
    var actions = leaveLinkOrAttempt(inDoubt: inDoubt, now: now)
    enter(.idle(reason), now: now)
    if let (notSent, doubt) = reason.settlement {
      actions.append(.settleOperations(notSent, doubt))
    }
    actions.append(.publish(.idle(reason)))
    return actions
  }

  /// Ends the link or calls off the dial that there is, and tells that it was asked for.
  private mutating func leaveLinkOrAttempt(inDoubt: OpenOffers, now: MonotonicInstant) -> [Action] {
    let loss = LinkLoss(.requested)
    switch state {
    case .idle, .ended:
      return []
    case .waiting:
      return [.cancelTimer(.backoff), .cancelTimer(.adapter)]
    case .dialling(let dialling):
      retiring.append(dialling.id)
      let info = record(
        judge(loss, at: .dialling, now: now), loss, generation: nil, willReconnect: false, inDoubt: 0)
      return [.cancelAttempt(dialling.id), .publish(.attemptFailed(info))]
    case .preparing(let preparing):
      closing.append(preparing.link)
      let info = record(
        judge(loss, at: .preparing, now: now), loss, generation: preparing.generation, willReconnect: false,
        inDoubt: inDoubt)
      return [.closeLink(preparing.link)] + preparing.disarming + [.publish(.attemptFailed(info))]
        + securingEnded()
    case .ready(let ready):
      closing.append(ready.link)
      let info = record(
        judge(loss, at: .ready, now: now), loss, generation: ready.readiness.generation, willReconnect: false,
        inDoubt: inDoubt)
      return [.closeLink(ready.link), .publish(.disconnected(info))] + securingEnded()
    }
  }

  mutating func resumeAll(_ result: ConnectResult) -> [Action] {
    guard !waiters.isEmpty else { return [] }
    let ids = waiters.map(\.id)
    waiters.removeAll()
    return [.cancelTimer(.connect), .resume(ids, result)]
  }

  func armConnectTimer() -> [Action] {
    guard let first = waiters.compactMap(\.deadline).min() else { return [] }
    return [.setConnectTimer(atBootTime: first)]
  }
}

extension IdleReason {
  /// How the operations that wait for a link settle; nil where they may go on waiting.
  fileprivate var settlement: (NotSentReason, Doubt.Cause)? {
    switch self {
    case .neverAsked, .withdrawn: nil
    case .disconnected: (.disconnected, .disconnected)
    case .attemptsExhausted: (.attemptsExhausted, .attemptsExhausted)
    case .notReconnecting: (.notReconnecting, .notReconnecting)
    }
  }
}
