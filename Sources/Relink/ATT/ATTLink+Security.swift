internal import BluetoothWire
public import RelinkCore

/// A request that the device refused for want of security.
struct SetAside {
  var id: RequestID
  var request: GATTRequest
  var answer: Result<GATTAnswer, GATTFailure>
  /// Nobody waits for it: it is not asked again.
  var isAbandoned = false
  /// The link is secured: it goes out as soon as the channel has room.
  var isDue = false
}

// MARK: - SecurableLink

extension ATTLink {
  /// Has the channel secure its link; `notSecured` follows where it cannot.
  ///
  /// - Parameters:
  ///   - level: What the link is to offer at least.
  ///   - keys: Where the keys may come from.
  public nonisolated func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource) {
    assumeIsolated { $0.beginSecuring(level, keys) }
  }

  /// Delivers the answer to what was set aside.
  public nonisolated func declineSecurity() {
    assumeIsolated { link in
      link.executor.post { [weak link] in link?.assumeIsolated { $0.giveUpSetAside() } }
    }
  }

  private func beginSecuring(_ level: SecurityLevel, _ keys: SecurityPolicy.KeySource) {
    guard bearer.end == nil, !isSecuring else { return }
    isSecuring = true
    guard let securable else {
      executor.post { [weak self] in
        let reason = Evidence.observation("this kind of link cannot be secured")
        self?.channelNotSecured(LinkLoss(.notPermitted, evidence: [reason]))
      }
      return
    }
    securable.secure(to: level, keys: keys)
  }

  // MARK: What was refused for want of security

  /// Whether the request that was just answered is kept, to be asked again on a link that is secured.
  ///
  /// Each level is tried once: an answer that asks for more than there is to be had is the device's last word.
  func setAside(for result: Result<GATTAnswer, GATTFailure>) -> Bool {
    guard case .failure(.rejected(let code)) = result, bearer.end == nil, !isClosedHere,
      let level = code.levelAsked(of: channel.security), let current, !current.isAbandoned,
      let request = current.request
    else { return false }
    setAside = SetAside(id: current.id, request: request, answer: result)
    self.current = nil
    bearer.requestSetAside()
    handler?.link(id, needs: level)
    return true
  }

  /// Whether the device has refused to notify this value, and was not asked again yet.
  func isRefused(_ handle: UInt16) -> Bool {
    guard case .setNotifying(let name, true) = setAside?.request else { return false }
    return table?.valueHandle(of: name) == handle
  }

  func askAgain() {
    guard let kept = setAside, kept.isDue, !isClosedHere else { return }
    // Somebody may have stopped waiting while the channel had no room.
    if kept.isAbandoned { return giveUpSetAside() }
    setAside = nil
    bearer.setAsideEnded()
    switch begin(kept.request, kept.id) {
    case .accepted: break
    case .later:
      setAside = kept
      bearer.requestSetAside()
    case .refused(let refusal):
      handler?.link(id, answered: kept.id, with: .failure(.refused(refusal)))
    }
  }

  private func giveUpSetAside() {
    guard let kept = setAside, !isClosedHere else { return }
    setAside = nil
    bearer.setAsideEnded()
    handler?.link(id, answered: kept.id, with: kept.answer)
  }
}

// MARK: - What the channel says about it

extension ATTLink {
  /// The link is secured: what was set aside is asked again.
  ///
  /// - Parameter level: How far the link is secured.
  public nonisolated func channelSecured(_ level: SecurityLevel) {
    assumeIsolated {
      $0.isSecuring = false
      guard $0.bearer.end == nil, !$0.isClosedHere else { return }
      $0.handler?.link($0.id, secured: level)
      if $0.setAside?.isAbandoned == true { $0.giveUpSetAside() }
      $0.setAside?.isDue = true
      $0.askAgain()
    }
  }

  /// The link could not be secured: what was set aside gets the device's answer.
  ///
  /// - Parameter loss: Why.
  public nonisolated func channelNotSecured(_ loss: LinkLoss) {
    assumeIsolated {
      $0.isSecuring = false
      guard $0.bearer.end == nil, !$0.isClosedHere else { return }
      $0.handler?.link($0.id, notSecured: loss)
      $0.giveUpSetAside()
    }
  }

  /// Passes a question of the pairing on.
  ///
  /// - Parameters:
  ///   - question: What is asked.
  ///   - responder: What takes the answer.
  public nonisolated func channelAsks(_ question: PairingQuestion, _ responder: PairingResponder) {
    assumeIsolated { $0.handler?.link($0.id, asks: question, responder) }
  }
}

extension ATTErrorCode {
  /// The level that a link of this level has to be raised to before the request is asked again; nil where more
  /// security is not what the device misses, or where there is no more (Core Specification Vol 3 Part C 10.3.1).
  func levelAsked(of level: SecurityLevel) -> SecurityLevel? {
    switch self {
    case .insufficientEncryption: level < .encrypted ? .encrypted : nil
    case .insufficientAuthentication:
      switch level {
      case .none: .encrypted
      case .encrypted: .authenticated
      case .authenticated: .secureConnections
      case .secureConnections: nil
      }
    default: nil
    }
  }
}
