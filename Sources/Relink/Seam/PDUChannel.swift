public import RelinkCore

/// A connected channel that carries whole ATT PDUs in order: an L2CAP socket, a Unix socket, a simulated radio.
///
/// Used on the executor. Deliveries are posted, never made inside a call of the channel's user. A channel belongs to
/// one link and dies with it.
public protocol PDUChannel: AnyObject, Sendable {
  /// The longest PDU that the channel carries, in bytes, at least 23.
  var maximumPDULength: Int { get }

  /// How far the link beneath the channel is secured at the moment; asked again whenever it matters, since it may rise.
  ///
  /// Never more than is known: `none` where the channel cannot tell, and once it is closed.
  var security: SecurityLevel { get }

  /// Names the receiver, once; deliveries begin. Held weakly.
  func open(_ handler: any PDUChannelHandler)

  /// Hands a PDU over, whole or not at all.
  func send(_ pdu: [UInt8]) -> PDUSendResult

  /// Ends the channel and its link from here. `channelClosed` follows once the link is seen gone; nothing else does.
  func close()
}

extension PDUChannel {
  /// None, as of a channel that cannot tell.
  public var security: SecurityLevel { .none }
}

/// What became of a PDU that was to be sent.
@nonexhaustive
public enum PDUSendResult: Hashable, Sendable {
  /// Handed over.
  case sent
  /// The channel is full; nothing left. `channelWritable` follows.
  case later
  /// The system refused it with this error number; nothing left.
  case failed(Int32)
}

/// The receiver of what a channel delivers.
public protocol PDUChannelHandler: AnyObject, Sendable {
  /// One PDU from the device. The bytes are valid during the call only.
  func channelReceived(_ pdu: borrowing RawSpan)

  /// The channel takes PDUs again.
  func channelWritable()

  /// The link beneath is secured as asked, to this level.
  func channelSecured(_ level: SecurityLevel)

  /// The link beneath could not be secured: why. The channel may end right after.
  func channelNotSecured(_ loss: LinkLoss)

  /// Pairing has to know something from the user, or to show something.
  func channelAsks(_ question: PairingQuestion, _ responder: PairingResponder)

  /// The last word of a channel, once: its link is gone.
  func channelClosed(_ loss: LinkLoss)
}
