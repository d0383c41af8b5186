// The way from a link that is up to a session that is ready, and the table that changes later.
extension SessionStateMachine {
  /// The link has taken so many round trips by now, and is as secure as that.
  package mutating func roundTripsCounted(
    _ count: Int, security: SecurityLevel = .none, now: MonotonicInstant
  ) {
    guard case .preparing(var preparing) = state else { return }
    preparing.roundTrips = count
    preparing.security = security
    if security > .none, encryptedSince == nil { encryptedSince = now }
    state = .preparing(preparing)
  }

  /// The ATT_MTU of the link is known.
  package mutating func mtuExchanged(_ mtu: Int, now: MonotonicInstant) -> [Action] {
    guard case .preparing(var preparing) = state, preparing.phase == .exchangingMTU else { return [] }
    preparing.mtu = mtu
    guard preparing.isSuspect else { return secureOrDiscover(preparing, now: now) }
    preparing.isSuspect = false
    return [.cancelTimer(.validation)] + secureOrDiscover(preparing, now: now)
  }

  /// The attribute table of the link is known: first, or again after it changed.
  package mutating func tableLearnt(changed: Bool) -> [Action] {
    switch state {
    case .preparing(var preparing) where preparing.phase == .discovering:
      preparing.tableChanged = changed
      preparing.isSuspect = false
      return begin(.restoringSubscriptions, in: preparing)
    case .preparing(var preparing) where preparing.isRevalidating:
      preparing.isRevalidating = false
      preparing.tableChanged = true
      preparing.needsRestoring = true
      state = .preparing(preparing)
      return preparing.isSetUp ? begin(.restoringSubscriptions, in: preparing) : []
    case .ready(var ready) where ready.isRevalidating:
      ready.isRevalidating = false
      ready.readiness.tableChanged = true
      state = .ready(ready)
      return [.offerOperations]
    case .idle, .waiting, .dialling, .preparing, .ready, .ended:
      return []
    }
  }

  /// Every subscription that is wanted is armed, or has failed by itself.
  package mutating func subscriptionsRestored(now: MonotonicInstant) -> [Action] {
    guard case .preparing(let preparing) = state, preparing.phase == .restoringSubscriptions else {
      return []
    }
    let isSetupDue = hasSetup && !preparing.isSetUp
    return isSetupDue ? begin(.settingUp, in: preparing) : becomeReady(preparing, now: now)
  }

  /// The app's setup ended well on this link.
  package mutating func setupFinished(
    on generation: Generation, _ continuity: Continuity, now: MonotonicInstant
  ) -> [Action] {
    guard case .preparing(var preparing) = state, preparing.generation == generation,
      preparing.phase == .settingUp
    else { return [] }
    preparing.continuity = continuity
    preparing.isSetUp = true
    state = .preparing(preparing)
    // A table that changed meanwhile is learnt first, and its subscriptions are armed: ready means that they are.
    if preparing.isRevalidating { return [] }
    return preparing.needsRestoring
      ? begin(.restoringSubscriptions, in: preparing) : becomeReady(preparing, now: now)
  }

  /// A step of the preparation failed while the link is up: the link is of no use, and the attempt ends.
  package mutating func preparationFailed(
    on link: LinkID, _ loss: LinkLoss, inDoubt: OpenOffers, now: MonotonicInstant
  ) -> [Action] {
    guard case .preparing(let preparing) = state, preparing.link == link else { return [] }
    closing.append(link)
    return [.closeLink(link)] + preparing.disarming + securingEnded()
      + failed(loss, generation: preparing.generation, inDoubt: inDoubt, listened: nil, now: now)
  }

  /// The link of a ready session is of no use any more, and is given up: its table could not be learnt again, or what was
  /// handed over is not to take effect any more.
  ///
  /// `inDoubt`: how many operations it owed an answer.
  package mutating func linkGivenUp(
    on link: LinkID, _ loss: LinkLoss, inDoubt: OpenOffers, now: MonotonicInstant
  ) -> [Action] {
    guard case .ready(let ready) = state, ready.link == link else { return [] }
    closing.append(link)
    return [.closeLink(link)] + lost(ready, loss, inDoubt: inDoubt, now: now)
  }

  /// The device says that its table has changed.
  ///
  /// The link takes no request by name until it has learnt the table anew, so it is asked to in every state.
  package mutating func tableInvalidated(on link: LinkID) -> [Action] {
    switch state {
    case .preparing(var preparing) where preparing.link == link:
      switch preparing.phase {
      case .exchangingMTU, .securing: return []
      case .discovering: return [.prepare(.discovering)]
      case .restoringSubscriptions: return begin(.discovering, in: preparing)
      case .settingUp, .revalidating: break
      }
      // The setup goes on meanwhile: its requests wait in their link.
      preparing.isRevalidating = true
      state = .preparing(preparing)
      return [.prepare(.revalidating)]
    case .ready(var ready) where ready.link == link:
      guard !ready.isRevalidating else { return [.prepare(.revalidating)] }
      ready.isRevalidating = true
      state = .ready(ready)
      return [.publish(.phase(.revalidating)), .prepare(.revalidating)]
    case .idle, .waiting, .dialling, .preparing, .ready, .ended:
      return []
    }
  }

  // MARK: Parts

  mutating func begin(_ phase: ConnectionPhase, in preparing: Preparing) -> [Action] {
    var preparing = preparing
    preparing.phase = phase
    state = .preparing(preparing)
    return [.publish(.phase(phase)), .prepare(phase)]
  }

  private mutating func becomeReady(_ preparing: Preparing, now: MonotonicInstant) -> [Action] {
    // Of a session's first link nothing is known but what the app's setup proves: another process may have been there.
    let isFresh = !wasEverReady && preparing.continuity == .unknown
    let readiness = Readiness(
      generation: preparing.generation, outage: outage.startedAt.duration(to: now),
      attempts: outage.attempts, mtu: preparing.mtu, roundTrips: preparing.roundTrips,
      tableChanged: preparing.tableChanged, continuity: isFresh ? .fresh : preparing.continuity,
      security: preparing.security)
    wasEverReady = true
    expectation = nil
    outage.failures = 0
    setupStreak = 0
    enter(.ready(Ready(link: preparing.link, readiness: readiness, since: now)), now: now)
    return [.cancelTimer(.preparation), .publish(.ready(readiness)), .offerOperations]
      + resumeAll(.ready(readiness))
  }
}
