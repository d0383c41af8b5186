/// The first octet of an ATT PDU (Core Specification Vol 3 Part F 3.3.1 and 3.4.8).
///
/// Open: any octet is a value, so that what a peer sends can be named and answered.
public struct ATTOpcode: RawRepresentable, Hashable, Sendable {
  /// The octet: bit 7 authentication signature, bit 6 command, bits 5 to 0 the method.
  public let rawValue: UInt8

  /// The opcode with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Error Response.
  public static let errorResponse = ATTOpcode(rawValue: 0x01)
  /// Exchange MTU Request.
  public static let exchangeMTURequest = ATTOpcode(rawValue: 0x02)
  /// Exchange MTU Response.
  public static let exchangeMTUResponse = ATTOpcode(rawValue: 0x03)
  /// Find Information Request.
  public static let findInformationRequest = ATTOpcode(rawValue: 0x04)
  /// Find Information Response.
  public static let findInformationResponse = ATTOpcode(rawValue: 0x05)
  /// Find By Type Value Request.
  public static let findByTypeValueRequest = ATTOpcode(rawValue: 0x06)
  /// Find By Type Value Response.
  public static let findByTypeValueResponse = ATTOpcode(rawValue: 0x07)
  /// Read By Type Request.
  public static let readByTypeRequest = ATTOpcode(rawValue: 0x08)
  /// Read By Type Response.
  public static let readByTypeResponse = ATTOpcode(rawValue: 0x09)
  /// Read Request.
  public static let readRequest = ATTOpcode(rawValue: 0x0A)
  /// Read Response.
  public static let readResponse = ATTOpcode(rawValue: 0x0B)
  /// Read Blob Request.
  public static let readBlobRequest = ATTOpcode(rawValue: 0x0C)
  /// Read Blob Response.
  public static let readBlobResponse = ATTOpcode(rawValue: 0x0D)
  /// Read Multiple Request.
  public static let readMultipleRequest = ATTOpcode(rawValue: 0x0E)
  /// Read Multiple Response.
  public static let readMultipleResponse = ATTOpcode(rawValue: 0x0F)
  /// Read By Group Type Request.
  public static let readByGroupTypeRequest = ATTOpcode(rawValue: 0x10)
  /// Read By Group Type Response.
  public static let readByGroupTypeResponse = ATTOpcode(rawValue: 0x11)
  /// Write Request.
  public static let writeRequest = ATTOpcode(rawValue: 0x12)
  /// Write Response.
  public static let writeResponse = ATTOpcode(rawValue: 0x13)
  /// Prepare Write Request.
  public static let prepareWriteRequest = ATTOpcode(rawValue: 0x16)
  /// Prepare Write Response.
  public static let prepareWriteResponse = ATTOpcode(rawValue: 0x17)
  /// Execute Write Request.
  public static let executeWriteRequest = ATTOpcode(rawValue: 0x18)
  /// Execute Write Response.
  public static let executeWriteResponse = ATTOpcode(rawValue: 0x19)
  /// Handle Value Notification.
  public static let handleValueNotification = ATTOpcode(rawValue: 0x1B)
  /// Handle Value Indication.
  public static let handleValueIndication = ATTOpcode(rawValue: 0x1D)
  /// Handle Value Confirmation.
  public static let handleValueConfirmation = ATTOpcode(rawValue: 0x1E)
  /// Read Multiple Variable Request.
  public static let readMultipleVariableRequest = ATTOpcode(rawValue: 0x20)
  /// Read Multiple Variable Response.
  public static let readMultipleVariableResponse = ATTOpcode(rawValue: 0x21)
  /// Multiple Handle Value Notification.
  public static let multipleHandleValueNotification = ATTOpcode(rawValue: 0x23)
  /// Write Command.
  public static let writeCommand = ATTOpcode(rawValue: 0x52)
  /// Signed Write Command.
  public static let signedWriteCommand = ATTOpcode(rawValue: 0xD2)

  /// What a PDU is in the exchange between client and server.
  @nonexhaustive
  public enum Kind: Hashable, Sendable {
    /// Client to server; the server owes exactly one response.
    case request
    /// Server to client; ends the client's request.
    case response
    /// Client to server; nothing comes back, also for a command that the server does not know.
    case command
    /// Server to client; nothing goes back.
    case notification
    /// Server to client; the client owes exactly one confirmation.
    case indication
    /// Client to server; ends the server's indication.
    case confirmation
    /// Not defined, and no command. A server answers it with ``ATTErrorCode/requestNotSupported``
    /// (Core Specification Vol 3 Part F 3.3).
    case unknown
  }

  /// True if the command flag is set: nothing is answered, known or not.
  @inlinable
  public var isCommand: Bool { rawValue & 0x40 != 0 }

  /// True if the authentication signature flag is set: the PDU ends in a signature of 12 octets.
  @inlinable
  public var isAuthenticated: Bool { rawValue & 0x80 != 0 }

  /// What a PDU with this opcode is in the exchange.
  @inlinable
  public var kind: Kind {
    switch rawValue {
    case 0x02, 0x04, 0x06, 0x08, 0x0A, 0x0C, 0x0E, 0x10, 0x12, 0x16, 0x18, 0x20: .request
    case 0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x13, 0x17, 0x19, 0x21: .response
    case 0x1B, 0x23: .notification
    case 0x1D: .indication
    case 0x1E: .confirmation
    default: isCommand ? .command : .unknown
    }
  }

  /// True for the opcodes that the Core Specification defines.
  @inlinable
  public var isKnown: Bool {
    switch kind {
    case .unknown: false
    case .command: self == .writeCommand || self == .signedWriteCommand
    case .request, .response, .notification, .indication, .confirmation: true
    }
  }

  /// The opcode of the response to this request, nil if this is no request.
  ///
  /// An Error Response that names this request ends it just as well.
  @inlinable
  public var responseOpcode: ATTOpcode? {
    kind == .request ? ATTOpcode(rawValue: rawValue + 1) : nil
  }
}

extension ATTOpcode: CustomStringConvertible {
  /// The octet in hexadecimal, such as `0x0A`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 2) }
}
