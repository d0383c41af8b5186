// Which operation is offered next, and which is about to be.
extension OperationJournal {
  /// Which kinds of request a link can take at the moment.
  package enum Room: Hashable, Sendable {
    /// Any request.
    case any
    /// Only what flows beside the outstanding requests.
    case withoutResponse
  }

  /// What is known of the link in use when something is to be offered on it.
  package struct LinkFacts: Hashable, Sendable {
    /// The link.
    package var generation: Generation
    /// Its security.
    package var security: SecurityLevel
    /// Whether the link may still become more secure.
    package var maySecure: Bool
    /// The bond that secures it; nil without one.
    package var bond: UInt64?

    /// Describes a link.
    package init(
      _ generation: Generation, security: SecurityLevel = .none, maySecure: Bool = false, bond: UInt64? = nil
    ) {
      self.generation = generation
      self.security = security
      self.maySecure = maySecure
      self.bond = bond
    }
  }

  /// What is to be done next.
  package enum Next: Hashable, Sendable {
    /// Offer this operation.
    case offer(OperationNumber, GATTRequest)
    /// The link has to be secured to this level first, for the operation that is next in line.
    case secure(SecurityLevel)
    /// An operation cannot be offered any more, or not on this link; ask again.
    case settled(Settlement)
    /// Nothing.
    case nothing
  }

  /// The operation that is to be offered next, if there is one.
  package mutating func next(taking room: Room, on link: LinkFacts, now: Timestamp) -> Next {
    // Reads never wait for the disk: not for what an earlier process may have left, nor for an outcome that is known.
    while let index = first(for: .offer(on: link.generation, taking: room)) {
      guard let (notSent, doubt) = obstacle(toEntryAt: index, on: link, now: now) else {
        let needed = entries[index].options.security
        if link.security < needed { return .secure(needed) }
        return .offer(entries[index].number, entries[index].request)
      }
      let outcome = entries[index].unanswered(notSent: notSent, doubt: doubt)
      if let settled = settle(at: index, outcome, now: now) { return .settled(settled) }
    }
    return .nothing
  }

  /// The link is coming up, or something was offered on it: asks for the mark of the durable operation that is next in
  /// line, so that the disk works while the radio does.
  ///
  /// Only of that one: a mark without an offer makes a crash look worse than it was.
  package mutating func marksWanted(on generation: Generation, now: Timestamp) {
    guard special > 0, !isTakingOver, log.mayTry else { return }
    guard let next = first(for: .mark(on: generation)), entries[next].isDurable,
      entries[next].extras?.mark == JournalEntry.Mark.none
    else {
      return
    }
    requestMark(at: next, on: generation, now: now)
  }

  /// What an operation is chosen for.
  private enum Turn {
    /// To be handed over.
    case offer(on: Generation, taking: Room)
    /// To be marked: what is on the link by now is taken to be answered by then.
    case mark(on: Generation)
  }

  /// Whether it could be an operation's turn, were there no others.
  private func isEligible(_ index: Int, for turn: Turn) -> Bool {
    guard entries[index].state == .queued else { return false }
    switch turn {
    case .offer(let generation, let room):
      return (room == .any || entries[index].request.isWithoutResponse)
        && !(isTakingOver && entries[index].request.isWrite)
        && entries[index].special?.isOfferable(on: generation, storeWorks: log.isWorking) ?? true
    case .mark(let generation):
      return entries[index].special?.mayGo(on: generation) ?? true
    }
  }

  /// Whether younger operations with one of its keys have to wait for an operation.
  private func isBlocking(_ index: Int, for turn: Turn) -> Bool {
    switch (turn, entries[index].state) {
    case (.offer, _): true
    case (.mark, .offered), (.mark, .settling): false
    case (.mark, .recording), (.mark, .queued), (.mark, .inDoubt), (.mark, .probing), (.mark, .unresolved):
      true
    }
  }

  /// Whether an earlier operation shares one of its keys.
  private func isBlocked(_ index: Int, for turn: Turn) -> Bool {
    guard index > 0 else { return false }
    let isWrite = entries[index].request.isWrite
    let keys = OrderKeys(of: entries[index])
    return entries[..<index].indices.contains { earlier in
      keys.contains(keyOf: entries[earlier]) && isBlocking(earlier, for: turn)
        && (isWrite || !entries[earlier].isSettling)
    }
  }

  /// The first of those that may go: by priority, then by call order.
  private func first(for turn: Turn) -> Int? {
    guard prioritised > 0 else {
      return entries.indices.first {
        isEligible($0, for: turn) && !isAbandoned($0) && !isBlocked($0, for: turn)
      }
    }
    var found: Int?
    let priorities = inheritedPriorities()
    for index in entries.indices
    where isEligible(index, for: turn) && found.map({ priorities[$0] < priorities[index] }) ?? true {
      if !isAbandoned(index), !isBlocked(index, for: turn) { found = index }
    }
    return found
  }

  /// The priority of each operation: its own, or that of one that has to wait for it.
  private func inheritedPriorities() -> [OperationPriority] {
    var lent: [OrderKey: OperationPriority] = [:]
    var priorities = entries.map(\.options.priority)
    for index in entries.indices.reversed() {
      _ = entries[index].anyKey { key in
        if let one = lent[key], one > priorities[index] { priorities[index] = one }
        return false
      }
      _ = entries[index].anyKey { key in
        lent[key] = max(lent[key] ?? .low, priorities[index])
        return false
      }
    }
    return priorities
  }

  private func isAbandoned(_ index: Int) -> Bool {
    !abandoned.isEmpty && abandoned.values.contains { $0.contains(keyOf: entries[index]) }
  }

  /// Why an operation that may go must not: it came too late, or the link is not one for it.
  private func obstacle(
    toEntryAt index: Int, on link: LinkFacts, now: Timestamp
  ) -> (NotSentReason, Doubt.Cause)? {
    if let deadline = entries[index].deadline, deadline <= now.monotonic { return (.deadline, .deadline) }
    guard let extras = entries[index].special?.extras else { return nil }
    if let younger = extras.supersededBy { return (.superseded(by: younger), .superseded(by: younger)) }
    if let limit = extras.offerBefore, limit <= now.monotonic { return (.expired, .expired) }
    if link.security < extras.options.security, !link.maySecure {
      return (.securityTooLow(link.security), .securityTooLow(link.security))
    }
    if extras.options.continuity == .sameBond, entries[index].offers > 0 {
      let isSame = !extras.isRecovered && extras.bond != nil && extras.bond == link.bond
      if !isSame { return (.continuityBroken, .continuityBroken) }
    }
    if extras.options.continuity == .unbroken {
      // The links of an earlier process prove nothing about those of this one.
      let isBroken = extras.isRecovered || extras.bornOn.map { $0 < unbrokenSince } ?? false
      if isBroken { return (.continuityBroken, .continuityBroken) }
    }
    return nil
  }

  // MARK: Links

  /// The session is ready on a link, or the device's state became known: which link's operations still make sense.
  package mutating func becameReady(on generation: Generation, _ continuity: Continuity) {
    if continuity != .resumed { unbrokenSince = generation }
    guard special > 0 else { return }
    for index in entries.indices where entries[index].options.continuity == .unbroken {
      withExtras(at: index) { if $0.bornOn == nil { $0.bornOn = generation } }
    }
  }
}

extension JournalEntry {
  /// Whether it could be handed over, were it its turn.
  func isOfferable(on generation: Generation, storeWorks: Bool) -> Bool {
    state == .queued && special?.isOfferable(on: generation, storeWorks: storeWorks) ?? true
  }
}

extension JournalEntry.Special {
  /// Whether nothing but the store is in the way of handing it over.
  fileprivate func mayGo(on generation: Generation) -> Bool {
    extras.heldOn != generation && !extras.awaitsClock
  }

  /// Whether nothing that is special about it is in the way of handing it over.
  fileprivate func isOfferable(on generation: Generation, storeWorks: Bool) -> Bool {
    guard mayGo(on: generation) else { return false }
    return extras.options.durability == .inMemory || (extras.mark == .committed && storeWorks)
  }
}
