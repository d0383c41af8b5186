// The security of the link in use: what the policy asks for before ready, and what the device or an operation asks for
// at any time.
extension SessionStateMachine {
  /// The first request of the link was answered: what comes next depends on the security that it has to have.
  mutating func secureOrDiscover(_ preparing: Preparing, now: MonotonicInstant) -> [Action] {
    var preparing = preparing
    guard preparing.isSecurable, preparing.security < security.level else {
      return begin(.discovering, in: preparing)
    }
    preparing.phase = .securing
    state = .preparing(preparing)
    // The device may have asked for it already.
    let begun = securing == nil ? secure(preparing.link, to: security.level, now: now) : []
    return [.publish(.phase(.securing))] + begun
  }

  /// The device, or an operation, wants the link in use to be more secure.
  ///
  /// - Returns: what to do; nothing where the link is being secured already.
  package mutating func securityNeeded(
    _ level: SecurityLevel, on link: LinkID, now: MonotonicInstant
  ) -> [Action] {
    guard currentLink?.id == link, securing == nil else { return [] }
    return isSecurityDeclined ? [.declineSecurity(link)] : secure(link, to: level, now: now)
  }

  /// The link is secured, to this level.
  package mutating func linkSecured(_ link: LinkID, to level: SecurityLevel, now: MonotonicInstant)
    -> [Action]
  {
    guard currentLink?.id == link else { return [] }
    let wanted = securing?.level ?? .none
    securing = nil
    if level > .none, encryptedSince == nil { encryptedSince = now }
    switch state {
    case .preparing(var preparing):
      preparing.security = level
      state = .preparing(preparing)
      guard preparing.phase == .securing else { return raised(link, to: level, wanted, now: now) }
      guard level >= security.level else {
        if wanted < security.level { return secure(link, to: security.level, now: now) }
        let seen = Evidence.observation("the link is secured to \(level), and \(wanted) is asked for")
        return notSecured(link, LinkLoss(.pairingFailed, evidence: [seen]), now: now)
      }
      protectedSince = now
      return [.cancelTimer(.securing)] + begin(.discovering, in: preparing)
    case .ready(var ready):
      ready.readiness.security = level
      state = .ready(ready)
      return raised(link, to: level, wanted, now: now)
    case .idle, .waiting, .dialling, .ended:
      return []
    }
  }

  /// The link could not be secured.
  package mutating func linkNotSecured(_ link: LinkID, _ loss: LinkLoss, now: MonotonicInstant) -> [Action] {
    guard currentLink?.id == link, securing != nil else { return [] }
    securing = nil
    return notSecured(link, loss, now: now)
  }

  /// The time for securing the link is over.
  mutating func securingExpired(now: MonotonicInstant) -> [Action] {
    guard let securing else { return [] }
    guard now >= securing.until else { return [.setTimer(.securing, at: securing.until)] }
    self.securing = nil
    let seen = Evidence.observation("the link was not secured within \(security.limit)")
    return notSecured(securing.link, LinkLoss(.securityTimeout, evidence: [seen]), now: now)
  }

  // MARK: Parts

  /// The device, or an operation, has what it asked for; where it has not, asking again would bring no more.
  private mutating func raised(
    _ link: LinkID, to level: SecurityLevel, _ wanted: SecurityLevel, now: MonotonicInstant
  ) -> [Action] {
    guard level < wanted else { return [.cancelTimer(.securing)] }
    let seen = Evidence.observation("the link is secured to \(level), and \(wanted) is asked for")
    return notSecured(link, LinkLoss(.pairingFailed, evidence: [seen]), now: now)
  }

  /// Nobody waits for the security of the link any more.
  mutating func securingEnded() -> [Action] {
    guard securing != nil else { return [] }
    securing = nil
    return [.cancelTimer(.securing)]
  }

  private mutating func secure(_ link: LinkID, to level: SecurityLevel, now: MonotonicInstant) -> [Action] {
    let until = now.advanced(by: security.limit)
    securing = Securing(link: link, level: level, until: until)
    history.wasEncryptionAsked = true
    protectedSince = now
    return [.setTimer(.securing, at: until), .secure(link, level, security.keys)]
  }

  private mutating func notSecured(_ link: LinkID, _ loss: LinkLoss, now: MonotonicInstant) -> [Action] {
    switch state {
    case .preparing(let preparing) where preparing.phase == .securing:
      return [.cancelTimer(.securing)] + preparationFailed(on: link, loss, inDoubt: 0, now: now)
    case .preparing, .ready:
      // What was refused for want of security gets the device's answer; the link goes on as it is.
      protectedSince = nil
      isSecurityDeclined = true
      return [.cancelTimer(.securing), .declineSecurity(link)]
    case .idle, .waiting, .dialling, .ended:
      return []
    }
  }
}
