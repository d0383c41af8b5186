/// A packet of the kernel's Bluetooth management socket: a header of three numbers and parameters.
///
/// Commands go to the kernel and events come from it in this one form (BlueZ `doc/mgmt-api.txt`, "Packet
/// structures"). One `recv` yields one packet.
public struct ManagementPacket: Hashable, Sendable {
  /// The index of packets that belong to no controller.
  public static let noController: UInt16 = 0xFFFF
  /// The length of the header, in octets.
  public static let headerLength = 6

  /// The opcode of a command or the code of an event.
  public var code: UInt16
  /// The index of the controller, or ``noController``.
  public var index: UInt16
  /// What follows the header; at most 65535 octets can be sent.
  public var parameters: [UInt8]

  /// A packet with these fields.
  ///
  /// - Parameters:
  ///   - code: The opcode of a command or the code of an event.
  ///   - index: The index of the controller, or ``noController``.
  ///   - parameters: What follows the header.
  public init(code: UInt16, index: UInt16, parameters: [UInt8]) {
    self.code = code
    self.index = index
    self.parameters = parameters
  }

  /// Decodes a packet; any octets are answered, none trap.
  ///
  /// - Parameter bytes: All octets of one packet.
  /// - Throws: ``ManagementDecodingError`` if the header is not whole or says another length than there is.
  public init(decoding bytes: borrowing RawSpan) throws(ManagementDecodingError) {
    guard bytes.byteCount >= Self.headerLength else { throw .truncatedHeader }
    let length = Int(bytes.uint16(at: 4))
    guard bytes.byteCount - Self.headerLength == length else {
      throw .badLength(stated: length, actual: bytes.byteCount - Self.headerLength)
    }
    self.init(
      code: bytes.uint16(at: 0), index: bytes.uint16(at: 2), parameters: bytes.array(from: Self.headerLength))
  }

  /// Decodes a packet; any octets are answered, none trap.
  ///
  /// - Parameter bytes: All octets of one packet.
  /// - Throws: ``ManagementDecodingError`` if the header is not whole or says another length than there is.
  public init(decoding bytes: [UInt8]) throws(ManagementDecodingError) {
    try self.init(decoding: bytes.span.bytes)
  }

  /// The octets for the socket; parameters beyond 65535 octets are cut.
  ///
  /// - Returns: Header and parameters.
  public func encoded() -> [UInt8] {
    let sent = parameters.prefix(0xFFFF)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.headerLength + sent.count)
    bytes.append(littleEndian: code)
    bytes.append(littleEndian: index)
    bytes.append(littleEndian: UInt16(sent.count))
    bytes.append(contentsOf: sent)
    return bytes
  }
}

/// Why octets are no management packet.
@nonexhaustive
public enum ManagementDecodingError: Error, Hashable, Sendable {
  /// Fewer octets than the header has.
  case truncatedHeader
  /// The header says another number of parameter octets than there are.
  case badLength(stated: Int, actual: Int)
}
