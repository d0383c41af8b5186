public import RelinkCore

/// A link whose security can be raised.
///
/// When the device refuses a request for want of security (ATT error 0x05 or 0x0F), the link keeps the request and says
/// `needs`; after `secured` it asks the device again, after `notSecured` it delivers the device's answer.
public protocol SecurableLink: Link {
  /// Secures the link to at least this level.
  ///
  /// Exactly one of `secured` and `notSecured` follows, posted, unless the link ends before; where the link has the
  /// level already, `secured` follows too. One try at a time: a call during another changes nothing. To be called on the
  /// executor, and only after the first request of the link was answered.
  func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource)

  /// Nobody waits for the security of the link any more: what the device refused for want of it is delivered.
  func declineSecurity()
}

/// A channel whose link can be secured.
public protocol SecurableChannel: PDUChannel {
  /// Secures the link beneath the channel to at least this level.
  ///
  /// Exactly one of `channelSecured` and `channelNotSecured` follows, posted, unless the channel is closed before.
  func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource)
}

/// A transport that knows bonds.
public protocol BondingTransport: Transport {
  /// What is known here of a bond with the device. To be called on the executor.
  func bond(with device: DeviceID) -> BondKnowledge

  /// Removes the bond with the device, here only: the device has to be told by its own means.
  ///
  /// `done` is called once, on the executor, in a later job: nil when no bond is left. To be called on the executor.
  func removeBond(with device: DeviceID, _ done: @escaping @Sendable (RelinkError?) -> Void)
}

/// Takes the answer to one question of a pairing, once; later answers change nothing.
///
/// May be used on any thread. An answer that comes when the pairing is over changes nothing. A responder that is
/// dropped without an answer refuses.
public final class PairingResponder: Sendable {
  private let answer: Locked<(@Sendable (PairingAnswer) -> Void)?>

  /// Makes a responder; `answer` is called at most once, on the thread that answers.
  public init(_ answer: @escaping @Sendable (PairingAnswer) -> Void) {
    self.answer = Locked(answer)
  }

  deinit {
    answer.withLock { $0 }?(.refuse)
  }

  /// Gives the answer.
  public func callAsFunction(_ answer: PairingAnswer) {
    self.answer.withLock { $0.take() }?(answer)
  }
}

extension LinkHandler {
  /// Ignored by a handler that never secures links.
  public func link(_ link: LinkID, needs level: SecurityLevel) {}
  /// Ignored by a handler that never secures links.
  public func link(_ link: LinkID, secured level: SecurityLevel) {}
  /// Ignored by a handler that never secures links.
  public func link(_ link: LinkID, notSecured loss: LinkLoss) {}
  /// Refused by a handler that never pairs: the responder is dropped.
  public func link(_ link: LinkID, asks question: PairingQuestion, _ responder: PairingResponder) {}
  /// Ignored by a handler that knows its device by one name.
  public func deviceSeen(as other: DeviceID, _ evidence: [Evidence]) {}
}

extension PDUChannelHandler {
  /// Ignored by a handler that never secures links.
  public func channelSecured(_ level: SecurityLevel) {}
  /// Ignored by a handler that never secures links.
  public func channelNotSecured(_ loss: LinkLoss) {}
  /// Refused by a handler that never pairs: the responder is dropped.
  public func channelAsks(_ question: PairingQuestion, _ responder: PairingResponder) {}
}
