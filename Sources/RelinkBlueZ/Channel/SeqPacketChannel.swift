internal import CBlueZ
public import Relink

/// An ATT channel over any connected SEQPACKET descriptor: an L2CAP socket, a Unix socket, one end of a socket pair.
///
/// Each datagram is one PDU. End of file, and every error that the descriptor reports, is the end of the link; PDUs
/// that came before it are delivered first. The channel is used on its loop. Dropping it ends its link.
public final class SeqPacketChannel: PDUChannel {
  /// How much the kernel is asked to keep for a channel that is read late; the rest it drops silently.
  private static let receiveBufferSize: Int32 = 4 << 20

  /// The longest PDU that the channel carries, in bytes.
  public let maximumPDULength: Int

  // The loop holds the port, and nobody but its user holds the channel.
  let port: SeqPacketPort

  /// Makes a channel over a connected descriptor, which belongs to the channel from now on.
  ///
  /// It need not be non-blocking. Its receive buffer is raised to 4 MiB, or to what the system allows.
  ///
  /// - Parameters:
  ///   - descriptor: A connected socket of type SEQPACKET.
  ///   - loop: The loop that serves it.
  ///   - maximumPDULength: The longest PDU that the channel carries, in bytes, at least 23; 517 takes the longest
  ///     attribute value (512 bytes, Core Specification Vol 3 Part F 3.2.9) in any PDU.
  public convenience init(
    adopting descriptor: consuming OwnedDescriptor, on loop: RadioLoop, maximumPDULength: Int = 517
  ) {
    self.init(descriptor, on: loop, maximumPDULength: maximumPDULength, ending: nil, securing: nil)
  }

  init(
    _ descriptor: consuming OwnedDescriptor, on loop: RadioLoop, maximumPDULength: Int,
    ending: (any LinkEnding)?, securing: (any LinkSecuring)?
  ) {
    self.maximumPDULength = max(maximumPDULength, 23)
    _ = relink_socket_set_receive_buffer(descriptor.rawValue, SeqPacketChannel.receiveBufferSize)
    port = SeqPacketPort(descriptor, on: loop, ending: ending, securing: securing)
  }

  /// Whether its link may still be there; to be read on the loop.
  var isClosed: Bool { port.isClosed }

  deinit {
    port.loop.post { [port] in port.close() }
  }

  /// What the kernel says of the link at the moment, in one system call; none for a descriptor without such a link.
  ///
  /// Needs no privilege. None before `open` and once the channel is closed.
  public var security: SecurityLevel { port.security }

  /// Names the receiver, which is held weakly; deliveries begin.
  public func open(_ handler: any PDUChannelHandler) {
    port.open(handler)
  }

  /// Hands a PDU over, whole or not at all.
  ///
  /// A full socket, an L2CAP socket whose security is being raised (`ENOTCONN`), and a system that is out of memory for
  /// it (`ENOBUFS`, `ENOMEM`; asked again after 20 ms) take it later.
  public func send(_ pdu: [UInt8]) -> PDUSendResult {
    port.send(pdu)
  }

  /// Ends the channel and its link from here.
  ///
  /// `channelClosed` follows when the link is seen gone: where nothing lies beneath the descriptor, at once.
  public func close() {
    port.close()
  }
}
