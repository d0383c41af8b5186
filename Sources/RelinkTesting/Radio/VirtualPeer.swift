public import BluetoothWire
public import Relink

/// Something at the other end of a virtual link: a peripheral with a GATT server, or a script of PDUs.
///
/// Every call is made on the radio's executor, and never inside a call that the peer makes. A peer may have several
/// links, one for each radio that reaches it; what belongs to a link (the prepare queue, the ATT_MTU) lives and dies
/// with its ``PeerLink``.
public protocol VirtualPeer: AnyObject, Sendable {
  /// An ACL link is up.
  ///
  /// - Parameter link: The peer's end of it.
  func linkOpened(_ link: PeerLink)

  /// A PDU has arrived.
  ///
  /// - Parameters:
  ///   - pdu: The bytes, as the central sent them.
  ///   - link: The link on which they came.
  func received(_ pdu: [UInt8], on link: PeerLink)

  /// An ACL link is gone, and with it the peer's state that belonged to it.
  ///
  /// That is later than the moment at which the central closed its channel: the link outlives the channel.
  ///
  /// - Parameters:
  ///   - link: The peer's end of it.
  ///   - reason: Why, as the peer's own controller says it.
  func linkClosed(_ link: PeerLink, reason: HCIErrorCode)

  /// The central asks to be paired with; what the device makes of it is
  /// ``VirtualRadio/setPairing(_:of:)``'s business.
  ///
  /// - Parameter link: The peer's end of the link.
  func pairingRequested(on link: PeerLink)

  /// A link is encrypted.
  ///
  /// - Parameters:
  ///   - link: The peer's end of it.
  ///   - level: How far, by the keys.
  func linkEncrypted(_ link: PeerLink, to level: SecurityLevel)

  /// The device has keys for a central from now on.
  ///
  /// - Parameter client: The name of the central.
  func bondMade(with client: String)

  /// The device has no keys for a central any more.
  ///
  /// - Parameter client: The name of the central.
  func bondForgotten(with client: String)
}

extension VirtualPeer {
  /// Ignored by a peer that knows nothing of security.
  public func pairingRequested(on link: PeerLink) {}
  /// Ignored by a peer that knows nothing of security.
  public func linkEncrypted(_ link: PeerLink, to level: SecurityLevel) {}
  /// Ignored by a peer that knows nothing of security.
  public func bondMade(with client: String) {}
  /// Ignored by a peer that knows nothing of security.
  public func bondForgotten(with client: String) {}
}

/// The peer's end of one ACL link.
///
/// To be used on the radio's executor. Once the link is gone, what is sent on it vanishes.
public final class PeerLink: Sendable {
  /// The number of the link: 1, 2 and so on over the life of its radio.
  public let number: Int

  /// Names the central; what a server keeps for each client and across links goes by it.
  public let client: String

  /// The longest PDU that the link carries, in bytes, at least 23.
  public let mtuLimit: Int

  private let executor: any SessionExecutor
  private let sending: @Sendable ([UInt8]) -> Void
  private let terminating: @Sendable (HCIErrorCode) -> Void
  private let timers = Locked(0)

  /// Makes an end of a link out of what it can do, for a medium other than ``VirtualRadio``, or for a test of a peer.
  ///
  /// - Parameters:
  ///   - number: The number of the link.
  ///   - client: Names the central.
  ///   - mtuLimit: The longest PDU that the link carries, in bytes.
  ///   - executor: Where the peer is called, and its source of time.
  ///   - send: Takes a PDU towards the central.
  ///   - terminate: Ends the link, behind what was sent before.
  public init(
    number: Int, client: String = "central", mtuLimit: Int = 517, on executor: any SessionExecutor,
    send: @escaping @Sendable ([UInt8]) -> Void, terminate: @escaping @Sendable (HCIErrorCode) -> Void
  ) {
    self.number = number
    self.client = client
    self.mtuLimit = mtuLimit
    self.executor = executor
    sending = send
    terminating = terminate
  }

  /// The monotonic clock of the radio's executor.
  public var now: MonotonicInstant { executor.now }

  /// Sends a PDU towards the central, with the latency and the faults of the radio.
  ///
  /// - Parameter pdu: Any bytes; the radio does not look into them.
  public func send(_ pdu: [UInt8]) { sending(pdu) }

  /// Ends the link from the peer's side, behind everything that was sent before.
  ///
  /// - Parameter reason: What the central is told, such as 0x13 (Core Specification Vol 1 Part F).
  public func terminate(_ reason: HCIErrorCode) { terminating(reason) }

  /// Runs work on the radio's executor after a delay, also when the link is gone by then.
  ///
  /// - Parameters:
  ///   - delay: How long to wait; zero or less waits for one turn of the executor.
  ///   - work: What to run.
  public func later(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
    guard delay > .zero else { return executor.post(work) }
    let number = timers.withLock { count in
      count += 1
      return count
    }
    executor.setTimer(TimerID(owner: self, number: number), at: now.advanced(by: delay)) {
      // The timer is named after this object, which lives until it has fired.
      withExtendedLifetime(self, work)
    }
  }
}
