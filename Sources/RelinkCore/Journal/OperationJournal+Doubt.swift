// What becomes of operations when a link dies, when time is up, and when nobody waits or will bring a link.
extension OperationJournal {
  // MARK: Losses

  /// What a lost link leaves.
  package struct Loss: Hashable, Sendable {
    /// The operations that are settled by it.
    package var settled: [Settlement] = []
    /// How many operations it owed an answer that may have reached the device.
    package var inDoubt = 0
    /// How many writes without response were handed over on it after the last request that was answered.
    package var unconfirmed = 0
  }

  /// The link is gone: what it owed cannot be answered any more.
  ///
  /// `inDoubt`: the requests that may have reached the device. The others did not: their marks go. `isGone`: whether
  /// nothing that was handed over can take effect any more; otherwise it is being ended from here.
  package mutating func linkLost(
    _ generation: Generation, reason: DisconnectReason, evidence: [Evidence] = [], inDoubt: [RequestID],
    isGone: Bool = true, now: Timestamp
  ) -> Loss {
    abandoned.removeAll()
    var loss = Loss(unconfirmed: commands.handedOver - commands.confirmed)
    commands = (0, 0)
    let isAlone = inDoubt.count == 1
    for number in entries.map(\.number) {
      guard let index = index(of: number) else { continue }
      switch entries[index].state {
      case .offered(let request):
        guard inDoubt.contains(request) else {
          takeOfferBack(at: index)
          note(.notTaken, at: index, now)
          if let one = settledIfSuperfluous(at: index, now: now) { loss.settled.append(one) }
          continue
        }
        loss.inDoubt += 1
        entries[index].lastOffer?.lastPossibleEffect =
          isGone ? now.monotonic : now.monotonic.advanced(by: Self.longestEnd)
        entries[index].lastOffer?.lostTo = reason
        entries[index].lastOffer?.evidence = evidence
        let isPoisonous = countPoisoning(at: index, reason, isAlone: isAlone, now: now)
        if let one = unanswered(at: index, reason, isPoisonous: isPoisonous, now: now) {
          loss.settled.append(one)
        }
      case .probing(generation):
        if let one = probeInterrupted(at: index, now: now) { loss.settled.append(one) }
      case .queued:
        // The link took nothing of it, and was lost before it could be asked once more.
        if let one = settledIfSuperfluous(at: index, now: now) { loss.settled.append(one) }
      case .recording, .inDoubt, .probing, .unresolved, .settling:
        continue
      }
    }
    return loss
  }

  /// How long a link lives at most that is ended from here: the system may keep it for two seconds more (Linux does:
  /// `HCI_DISCONN_TIMEOUT`), and where the device does not answer, its supervision timeout ends it, at most 32 s (Core
  /// Specification Vol 6 Part B 4.5.2 and 5.1.6).
  static let longestEnd = Duration.seconds(34)

  /// An offer will not be answered any more: the tag decides what follows.
  private mutating func unanswered(
    at index: Int, _ reason: DisconnectReason, isPoisonous: Bool, now: Timestamp
  ) -> Settlement? {
    let entry = entries[index]
    entries[index].state = .queued
    if !isPoisonous, case .verified(let probe) = entry.idempotency {
      entries[index].state = probe.kind == .app ? .unresolved : .inDoubt
    }
    if entry.extras != nil {
      withExtras(at: index) { extras in
        extras.refusals = 0
        extras.mark = .none
      }
    }
    note(.inDoubt(reason), at: index, now)
    func settled(_ cause: Doubt.Cause) -> Settlement? {
      settle(at: index, entry.unanswered(notSent: .linkLost, doubt: cause), now: now)
    }
    switch entry.idempotency {
    case .nonIdempotent:
      return settled(.linkLost(reason))
    case .idempotent:
      return isPoisonous ? settled(.poisonous) : settledIfSuperfluous(at: index, now: now)
    case .verified:
      return isPoisonous ? settled(.poisonous) : nil
    }
  }

  /// Counts a loss against the operation that was alone when it happened, and says whether it is one too many.
  ///
  /// A loss of the radio says nothing about it.
  private mutating func countPoisoning(
    at index: Int, _ reason: DisconnectReason, isAlone: Bool, now: Timestamp
  ) -> Bool {
    // Suspended time counts: what is found lost after a sleep was not lost over this operation.
    let offeredAt = entries[index].lastOffer?.at.bootTime ?? now.bootTime
    let isSoon = .nanoseconds(now.bootTime &- offeredAt) <= policy.poisonInterval
    guard isAlone, reason.blamesRequest(isSoon: isSoon) else {
      if entries[index].extras != nil { withExtras(at: index) { $0.poisonings = 0 } }
      return false
    }
    let count = withExtras(at: index) { extras in
      extras.poisonings += 1
      return extras.poisonings
    }
    return count >= policy.poisonOffers
  }

  // MARK: The ends of waiting

  /// What follows when a caller's wait ends before the answer.
  package struct Abandonment: Hashable, Sendable {
    /// The outcome that the caller gets; nil where it has to be committed first.
    package var settlement: Settlement?
    /// The request that the link should know nobody waits for; nil where none is outstanding.
    package var abandon: RequestID?
    /// The link is to be dropped, so that the request cannot take effect any more.
    package var dropsLink = false
  }

  /// The caller of an operation was cancelled.
  package mutating func cancelled(_ number: OperationNumber, now: Timestamp) -> Abandonment? {
    guard let index = index(of: number), !entries[index].isSettling else { return nil }
    return abandon(at: index, notSent: .cancelled, doubt: .cancelled, now: now)
  }

  /// The last caller who waited for an operation does so no longer: his own deadline has passed, before that of the call
  /// which the operation began with.
  package mutating func deadlinePassed(_ number: OperationNumber, now: Timestamp) -> Abandonment? {
    guard let index = index(of: number), !entries[index].isSettling else { return nil }
    return expire(at: index, now: now)
  }

  /// A timer for deadlines went off.
  ///
  /// - Returns: the operations whose time is up, and the instant of the next timer.
  package mutating func timerFired(
    now: Timestamp
  ) -> (expired: [Abandonment], timer: MonotonicInstant?) {
    noteSuspension(now)
    armed = nil
    let present = limitClock(now)
    var expired: [Abandonment] = []
    for number in entries.map(\.number) {
      guard let index = index(of: number), let due = entries[index].nextInstant, due <= present else {
        continue
      }
      let entry = entries[index]
      if entry.isSettling {
        expired.append(Abandonment(settlement: toldAtLast(at: index, now: now)))
      } else if let deadline = entry.deadline, deadline <= present {
        expired.append(expire(at: index, now: now))
      } else if entry.state == .queued || entry.state == .recording {
        expired.append(abandon(at: index, notSent: .expired, doubt: .expired, now: now))
      } else {
        // It is out, or being looked at: what comes of that is told, and it is not offered once more.
        withExtras(at: index) { $0.hasExpired = true }
      }
    }
    expired += lookUpsOverdue(now: now)
    let next = nextInstant
    (armed, wantedTimer) = (next, nil)
    return (expired, next)
  }

  /// Nobody is going to bring a link: everything settles; with `keepingDurable`, all but what the store keeps for the
  /// next session.
  package mutating func settleAll(
    notSent: NotSentReason, doubt: Doubt.Cause, keepingDurable: Bool = false, now: Timestamp
  ) -> [Abandonment] {
    var settled: [Abandonment] = []
    for number in entries.map(\.number) {
      guard let index = index(of: number), !entries[index].isSettling else { continue }
      if keepingDurable && entries[index].isDurable { continue }
      settled.append(abandon(at: index, notSent: notSent, doubt: doubt, now: now))
    }
    if isEmpty { armed = nil }
    // The link that owes those answers is closed, and nothing is offered before it is gone: its last word, which would
    // free the keys, does not come here any more once the session has let go of it.
    abandoned.removeAll()
    return settled
  }

  /// No link can come for now: those settle that were not to wait for one.
  package mutating func linkUnavailable(_ cause: Unavailability, now: Timestamp) -> [Abandonment] {
    guard special > 0 else { return [] }
    var settled: [Abandonment] = []
    for number in entries.map(\.number) {
      guard let index = index(of: number), !entries[index].isSettling else { continue }
      guard entries[index].options.ifUnavailable == .fail else { continue }
      if case .offered = entries[index].state { continue }
      settled.append(
        abandon(at: index, notSent: cause.notSent, doubt: cause.doubt, now: now))
    }
    return settled
  }

  /// By how much the difference of two clocks must have changed to be taken for a suspension, in nanoseconds: more than
  /// the time between two readings, less than any sleep.
  static let clockSkew: UInt64 = 10_000_000

  /// The time was read: where the system was suspended since the last time, all instants come that much earlier.
  ///
  /// - Returns: whether it was, so that a timer is to be set anew.
  @discardableResult
  package mutating func noteSuspension(_ now: Timestamp) -> Bool {
    let slept = now.suspended &- suspended
    // The two clocks are read one after the other, so their difference is never quite the same.
    guard slept.magnitude >= Self.clockSkew else { return false }
    suspended = now.suspended
    let shift = Duration.nanoseconds(0 &- slept)
    for index in entries.indices {
      entries[index].deadline = entries[index].deadline?.advanced(by: shift)
      if entries[index].extras != nil {
        withExtras(at: index) {
          $0.offerBefore = $0.offerBefore?.advanced(by: shift)
          // The store slept as well: it gets the time of a commit, and is not blamed for the night.
          let grace = now.monotonic.advanced(by: Self.settleGrace)
          $0.settleLimit = $0.settleLimit.map { max($0.advanced(by: shift), min($0, grace)) }
        }
      }
    }
    for index in lookUps.indices { lookUps[index].limit = lookUps[index].limit.advanced(by: shift) }
    armed = nil
    want(timer: nextInstant)
    return slept > 0
  }

  /// A reading of the clock that the journal's limits are on: the monotonic one, put forward by what the system was
  /// suspended and nobody has noted yet.
  package func limitClock(_ now: Timestamp) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: now.bootTime).advanced(by: .nanoseconds(0 &- suspended))
  }

  /// When a limit of the journal is reached, in nanoseconds of boot time; a suspension does not change it.
  package func bootTime(of limit: MonotonicInstant) -> Int64 {
    limit.advanced(by: .nanoseconds(suspended)).nanoseconds
  }

  // MARK: Parts

  /// The next instant at which time alone changes something.
  private var nextInstant: MonotonicInstant? {
    let first = entries.lazy.compactMap(\.nextInstant).min()
    guard let limit = lookUps.lazy.map(\.limit).min() else { return first }
    return first.map { min($0, limit) } ?? limit
  }

  /// An operation that was out waits again: it settles where time or a younger one has made it superfluous meanwhile.
  mutating func settledIfSuperfluous(at index: Int, now: Timestamp) -> Settlement? {
    let entry = entries[index]
    guard let extras = entry.extras else { return nil }
    if let younger = extras.supersededBy {
      let outcome = entry.unanswered(
        notSent: .superseded(by: younger), doubt: .superseded(by: younger))
      return settle(at: index, outcome, now: now)
    }
    guard extras.hasExpired else { return nil }
    return settle(at: index, entry.unanswered(notSent: .expired, doubt: .expired), now: now)
  }

  private mutating func expire(at index: Int, now: Timestamp) -> Abandonment {
    let dropsLink = entries[index].options.onExpiry == .dropLink
    // An offer that is disproven leaves the doubt about the one before, whose link is gone.
    if dropsLink, case .offered = entries[index].state,
      entries[index].lastOffer != entries[index].previousOffer
    {
      entries[index].lastOffer?.lastPossibleEffect = now.monotonic.advanced(by: Self.longestEnd)
    }
    var one = abandon(at: index, notSent: .deadline, doubt: .deadline, now: now)
    one.dropsLink = one.abandon != nil && dropsLink
    return one
  }

  mutating func abandon(
    at index: Int, notSent: NotSentReason, doubt: Doubt.Cause, now: Timestamp
  ) -> Abandonment {
    let entry = entries[index]
    var request: RequestID?
    if case .offered(let outstanding) = entry.state {
      request = outstanding
      abandoned[outstanding] = OrderKeys(of: entry)
    }
    let settlement = settle(at: index, entry.unanswered(notSent: notSent, doubt: doubt), now: now)
    if settlement == nil {
      // Whoever gave up does not wait for the disk as long as he would have waited for the device.
      withExtras(at: index) { $0.settleLimit = now.monotonic.advanced(by: Self.settleGrace) }
      want(timer: entries[index].nextInstant)
    }
    return Abandonment(settlement: settlement, abandon: request)
  }
}

extension DisconnectReason {
  /// Whether the loss of a link may be the work of the one request that was outstanding: the device ended the link, or
  /// answered nothing or nonsense.
  func blamesRequest(isSoon: Bool) -> Bool {
    switch self {
    case .transactionTimeout: true
    case .remoteUserTerminated, .remoteLowResources, .remotePowerOff, .protocolViolation: isSoon
    case .requested, .notFound, .failedToEstablish, .supervisionTimeout, .localHostTerminated,
      .linkLayerFault, .authenticationFailure, .keyMissing, .micFailure, .connectionParameters, .bondMissing,
      .pairingFailed, .securityTimeout, .adapterOff, .adapterBlocked, .daemonStopped, .suspended,
      .adapterMissing, .notPermitted, .busy, .channelInUse, .outOfSlots, .adapterStuck, .phantomLink,
      .wrongAddressType, .setupFailed, .preparationTimeout, .refused, .operationExpired, .unknown:
      false
    }
  }
}
