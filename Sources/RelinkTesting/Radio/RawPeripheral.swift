public import Relink

/// A peer that is written PDU by PDU: it answers what its script says, and sends anything at any time.
///
/// It knows nothing of ATT, so it can be as wrong as a test wants. A PDU that arrives is looked for in this order: the
/// next ``expect(_:answer:after:)`` step, the standing answers, the closure of ``otherwise(_:)``; what none of them
/// takes is swallowed and listed as ``unexpected``.
///
/// ```swift
/// let peer = RawPeripheral()
/// peer.always("02 ....", answer: "03 1700")             // the ATT_MTU stays at 23
/// peer.expect("12 1000 01", answer: "1b 1000 41", "13")  // a notification before the response
/// radio.add(peer, as: device)
/// ```
public final class RawPeripheral: VirtualPeer {
  /// A PDU that came.
  public struct Received: Hashable, Sendable {
    /// The bytes.
    public var pdu: [UInt8]
    /// The number of the ACL link.
    public var linkNumber: Int
    /// When it came.
    public var at: MonotonicInstant
  }

  /// An ACL link that ended.
  public struct Ended: Hashable, Sendable {
    /// The number of the link.
    public var linkNumber: Int
    /// Why, as the peer's own controller says it.
    public var reason: HCIErrorCode
    /// When it ended.
    public var at: MonotonicInstant
  }

  private struct Step {
    var pattern: PDUPattern
    var react: @Sendable (PeerLink) -> Void
  }

  private struct State {
    var script: [Step] = []
    var standing: [Step] = []
    var otherwise: (@Sendable ([UInt8], PeerLink) -> Bool)?
    var opened: (@Sendable (PeerLink) -> Void)?
    var received: [Received] = []
    var unexpected: [Received] = []
    var ended: [Ended] = []
    var links: [PeerLink] = []
    var opens = 0
  }

  private let state = Locked(State())

  /// Makes a peer that swallows everything.
  public init() {}

  // MARK: - The script

  /// Writes down the next PDU, and what is sent when it comes.
  ///
  /// - Parameters:
  ///   - pattern: The PDU. One that does not fit is no step of the script; the step waits on.
  ///   - answers: What is sent, in order; nothing swallows the PDU.
  ///   - delay: How long the peer takes for it.
  public func expect(_ pattern: PDUPattern, answer answers: PDUBytes..., after delay: Duration = .zero) {
    expect(pattern, Self.sending(answers, after: delay))
  }

  /// Writes down the next PDU, and what is done when it comes.
  ///
  /// - Parameters:
  ///   - pattern: The PDU.
  ///   - react: What to do; it is called on the radio's executor.
  public func expect(_ pattern: PDUPattern, _ react: @escaping @Sendable (PeerLink) -> Void) {
    state.withLock { $0.script.append(Step(pattern: pattern, react: react)) }
  }

  /// Answers a kind of PDU each time it comes, where the script does not want it.
  ///
  /// - Parameters:
  ///   - pattern: The PDUs; of two patterns that fit, the later one counts.
  ///   - answers: What is sent, in order.
  ///   - delay: How long the peer takes for it.
  public func always(_ pattern: PDUPattern, answer answers: PDUBytes..., after delay: Duration = .zero) {
    let step = Step(pattern: pattern, react: Self.sending(answers, after: delay))
    state.withLock { $0.standing.append(step) }
  }

  /// Decides on everything that neither the script nor a standing answer takes.
  ///
  /// - Parameter react: It returns whether it took the PDU; what it does not take is unexpected.
  public func otherwise(_ react: @escaping @Sendable ([UInt8], PeerLink) -> Bool) {
    state.withLock { $0.otherwise = react }
  }

  /// Does something whenever a link is up.
  ///
  /// - Parameter react: What to do, such as to send before anything was asked.
  public func whenOpened(_ react: @escaping @Sendable (PeerLink) -> Void) {
    state.withLock { $0.opened = react }
  }

  private static func sending(_ answers: [PDUBytes], after delay: Duration) -> @Sendable (PeerLink) -> Void {
    { link in
      guard delay > .zero else {
        for answer in answers { link.send(answer.bytes) }
        return
      }
      link.later(delay) { for answer in answers { link.send(answer.bytes) } }
    }
  }

  // MARK: - On its own

  /// Sends a PDU, asked or not.
  ///
  /// - Parameters:
  ///   - pdu: The bytes.
  ///   - number: The number of the link; nil for the latest one that is up.
  /// - Returns: Whether there was such a link.
  @discardableResult
  public func send(_ pdu: PDUBytes, on number: Int? = nil) -> Bool {
    guard let link = link(number) else { return false }
    link.send(pdu.bytes)
    return true
  }

  /// Ends a link, behind everything that was sent before.
  ///
  /// - Parameters:
  ///   - reason: What the central is told.
  ///   - number: The number of the link; nil for the latest one that is up.
  /// - Returns: Whether there was such a link.
  @discardableResult
  public func terminate(_ reason: HCIErrorCode, on number: Int? = nil) -> Bool {
    guard let link = link(number) else { return false }
    link.terminate(reason)
    return true
  }

  private func link(_ number: Int?) -> PeerLink? {
    state.withLock { state in
      guard let number else { return state.links.last }
      return state.links.first { $0.number == number }
    }
  }

  // MARK: - What came

  /// Everything that came, in order.
  public var received: [Received] { state.withLock { $0.received } }

  /// Everything that came, in hexadecimal.
  public var receivedText: [String] { received.map { hexadecimal($0.pdu) } }

  /// What came and nothing was written for.
  public var unexpected: [Received] { state.withLock { $0.unexpected } }

  /// The steps of the script whose PDUs have not come.
  public var awaited: [PDUPattern] { state.withLock { $0.script.map(\.pattern) } }

  /// The links that are up, oldest first.
  public var links: [PeerLink] { state.withLock { $0.links } }

  /// How many links have come up so far.
  public var linksOpened: Int { state.withLock { $0.opens } }

  /// The links that ended, in order.
  public var endedLinks: [Ended] { state.withLock { $0.ended } }

  // MARK: - VirtualPeer

  /// Notes the link.
  ///
  /// - Parameter link: The link.
  public func linkOpened(_ link: PeerLink) {
    let react = state.withLock { state in
      state.links.append(link)
      state.opens += 1
      return state.opened
    }
    react?(link)
  }

  /// Notes the PDU and does what is written for it.
  ///
  /// - Parameters:
  ///   - pdu: The bytes.
  ///   - link: The link.
  public func received(_ pdu: [UInt8], on link: PeerLink) {
    let arrival = Received(pdu: pdu, linkNumber: link.number, at: link.now)
    let step = state.withLock { state -> Step? in
      state.received.append(arrival)
      if let next = state.script.first, next.pattern.matches(pdu) { return state.script.removeFirst() }
      return state.standing.last { $0.pattern.matches(pdu) }
    }
    if let step { return step.react(link) }
    let otherwise = state.withLock { $0.otherwise }
    if otherwise?(pdu, link) == true { return }
    state.withLock { $0.unexpected.append(arrival) }
  }

  /// Notes the end of the link.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - reason: Why it ended.
  public func linkClosed(_ link: PeerLink, reason: HCIErrorCode) {
    let end = Ended(linkNumber: link.number, reason: reason, at: link.now)
    state.withLock { state in
      state.links.removeAll { $0 === link }
      state.ended.append(end)
    }
  }
}
