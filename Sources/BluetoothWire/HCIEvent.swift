/// What a controller tells its host (Core Specification Vol 4 Part E 7.7).
///
/// Which controller it is, is known from where the event was read. A known event with fewer octets than it needs is
/// ``unknown(code:parameters:)``; octets beyond the known ones are ignored, so that an event that a newer controller made
/// longer still means what it meant. Bits of a handle that are reserved are dropped.
@nonexhaustive
public enum HCIEvent: Hashable, Sendable {
  /// A link is gone, or with another `status` than success could not be ended.
  case disconnectionComplete(status: HCIErrorCode, handle: UInt16, reason: HCIErrorCode)
  /// Encryption of a link was switched, or with another `status` than success could not be.
  ///
  /// `keySize` is in octets, nil from a controller that does not tell.
  case encryptionChange(status: HCIErrorCode, handle: UInt16, isOn: Bool, keySize: UInt8?)
  /// The key of an encrypted link was replaced, or with another `status` than success could not be.
  case encryptionKeyRefreshComplete(status: HCIErrorCode, handle: UInt16)
  /// A command was carried out or refused.
  ///
  /// `status` is the first of the `returnParameters`, nil if there are none; the few commands that return none of their
  /// own use ``HCIOpcode/none``.
  case commandComplete(opcode: HCIOpcode, status: HCIErrorCode?, returnParameters: [UInt8])
  /// A command was refused, or was taken and will report later.
  case commandStatus(opcode: HCIOpcode, status: HCIErrorCode)
  /// The controller reported a fault that the specification does not number.
  case hardwareError(code: UInt8)
  /// An LE link came up, or with another status than success did not.
  case connectionComplete(HCIConnection)
  /// The parameters of an LE link changed, or with another `status` than success could not be changed.
  ///
  /// `interval` is in units of 1.25 ms, `latency` in connection events that the peripheral may leave out,
  /// `supervisionTimeout` in units of 10 ms.
  case connectionUpdateComplete(
    status: HCIErrorCode, handle: UInt16, interval: UInt16, latency: UInt16, supervisionTimeout: UInt16)
  /// A central asks this host for the key that these numbers name, to encrypt an LE link; both are 0 with Secure
  /// Connections.
  case longTermKeyRequest(handle: UInt16, randomNumber: UInt64, encryptedDiversifier: UInt16)
  /// Devices advertised with legacy PDUs; one event holds at most 25 reports.
  case advertisingReports([HCIAdvertisingReport])
  /// Devices advertised, told by a controller that can extended advertising; one event holds at most 10 reports.
  case extendedAdvertisingReports([HCIExtendedAdvertisingReport])
  /// Any other event, or one that is too short; the first octet of an LE Meta event is its ``HCISubeventCode``.
  ///
  /// The octets of Link Key Notification, Return Link Keys and LE Generate DHKey Complete hold secrets: they are not for
  /// logs.
  case unknown(code: HCIEventCode, parameters: [UInt8])

  /// The octet before every event on a socket or a serial line (Core Specification Vol 4 Part A 2).
  public static let packetType: UInt8 = 0x04
  /// The length of packet type, event code and parameter length, in octets.
  public static let headerLength = 3

  /// Decodes an event; any octets are answered, none trap.
  ///
  /// - Parameter bytes: One packet as a raw HCI socket yields it, from its type on.
  /// - Throws: ``HCIDecodingError`` if the packet is no event, its header is not whole, or it says another length than
  ///   there is.
  public init(decoding bytes: borrowing RawSpan) throws(HCIDecodingError) {
    guard bytes.byteCount > 0 else { throw .truncatedHeader }
    guard bytes.octet(at: 0) == Self.packetType else { throw .notAnEvent(packetType: bytes.octet(at: 0)) }
    guard bytes.byteCount >= Self.headerLength else { throw .truncatedHeader }
    let stated = Int(bytes.octet(at: 2))
    let actual = bytes.byteCount - Self.headerLength
    guard stated == actual else { throw .badLength(stated: stated, actual: actual) }
    self.init(
      code: HCIEventCode(rawValue: bytes.octet(at: 1)),
      parameters: bytes.extracting(Self.headerLength..<bytes.byteCount))
  }

  /// Decodes an event; any octets are answered, none trap.
  ///
  /// - Parameter bytes: One packet as a raw HCI socket yields it, from its type on.
  /// - Throws: ``HCIDecodingError`` if the packet is no event, its header is not whole, or it says another length than
  ///   there is.
  public init(decoding bytes: [UInt8]) throws(HCIDecodingError) {
    try self.init(decoding: bytes.span.bytes)
  }

  /// Reads the parameters of an event whose header is known; any octets are answered, none trap.
  ///
  /// - Parameters:
  ///   - code: Which event it is.
  ///   - parameters: What follows the header.
  public init(code: HCIEventCode, parameters: borrowing RawSpan) {
    self = Self.known(code, parameters) ?? .unknown(code: code, parameters: parameters.array(from: 0))
  }
}

/// Why octets are no HCI event.
@nonexhaustive
public enum HCIDecodingError: Error, Hashable, Sendable {
  /// The packet is of another type: 1 a command, 2 data of a link, 3 synchronous data, 5 isochronous data.
  case notAnEvent(packetType: UInt8)
  /// Fewer octets than the header has.
  case truncatedHeader
  /// The header says another number of parameter octets than there are.
  case badLength(stated: Int, actual: Int)
}
