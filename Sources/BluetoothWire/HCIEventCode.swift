/// Which event of a controller (Core Specification Vol 4 Part E 7.7).
///
/// Open: any octet is a value; the events that ``HCIEvent`` reads have names.
public struct HCIEventCode: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The code with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Disconnection Complete.
  public static let disconnectionComplete = HCIEventCode(rawValue: 0x05)
  /// Encryption Change, version 1.
  public static let encryptionChange = HCIEventCode(rawValue: 0x08)
  /// Command Complete.
  public static let commandComplete = HCIEventCode(rawValue: 0x0E)
  /// Command Status.
  public static let commandStatus = HCIEventCode(rawValue: 0x0F)
  /// Hardware Error.
  public static let hardwareError = HCIEventCode(rawValue: 0x10)
  /// Encryption Key Refresh Complete.
  public static let encryptionKeyRefreshComplete = HCIEventCode(rawValue: 0x30)
  /// LE Meta: the first parameter says which event of an LE controller it is.
  public static let lowEnergyMeta = HCIEventCode(rawValue: 0x3E)
  /// Encryption Change, version 2, which tells the size of the key.
  public static let encryptionChangeV2 = HCIEventCode(rawValue: 0x59)
}

extension HCIEventCode: CustomStringConvertible {
  /// The octet in hexadecimal, such as `0x3E`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 2) }
}

/// Which event of an LE controller, inside LE Meta (Core Specification Vol 4 Part E 7.7.65).
///
/// Open: any octet is a value; the events that ``HCIEvent`` reads have names.
public struct HCISubeventCode: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The code with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// LE Connection Complete.
  public static let connectionComplete = HCISubeventCode(rawValue: 0x01)
  /// LE Advertising Report.
  public static let advertisingReport = HCISubeventCode(rawValue: 0x02)
  /// LE Connection Update Complete.
  public static let connectionUpdateComplete = HCISubeventCode(rawValue: 0x03)
  /// LE Long Term Key Request.
  public static let longTermKeyRequest = HCISubeventCode(rawValue: 0x05)
  /// LE Enhanced Connection Complete, version 1.
  public static let enhancedConnectionComplete = HCISubeventCode(rawValue: 0x0A)
  /// LE Extended Advertising Report.
  public static let extendedAdvertisingReport = HCISubeventCode(rawValue: 0x0D)
  /// LE Enhanced Connection Complete, version 2.
  public static let enhancedConnectionCompleteV2 = HCISubeventCode(rawValue: 0x29)
}

extension HCISubeventCode: CustomStringConvertible {
  /// The octet in hexadecimal, such as `0x0A`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 2) }
}

/// Which command to a controller (Core Specification Vol 4 Part E 5.4.1): six bits for its group, ten for its number.
///
/// Open: any number is a value; the commands that tell of an LE link's life have names.
public struct HCIOpcode: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16

  /// The opcode with this number.
  ///
  /// - Parameter rawValue: Any number.
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// No command: the controller only tells that it takes commands again.
  public static let none = HCIOpcode(rawValue: 0x0000)
  /// Disconnect.
  public static let disconnect = HCIOpcode(rawValue: 0x0406)
  /// Reset.
  public static let reset = HCIOpcode(rawValue: 0x0C03)
  /// LE Create Connection.
  public static let createConnection = HCIOpcode(rawValue: 0x200D)
  /// LE Create Connection Cancel.
  public static let createConnectionCancel = HCIOpcode(rawValue: 0x200E)
  /// LE Connection Update.
  public static let connectionUpdate = HCIOpcode(rawValue: 0x2013)
  /// LE Enable Encryption.
  public static let enableEncryption = HCIOpcode(rawValue: 0x2019)
  /// LE Long Term Key Request Reply.
  public static let longTermKeyRequestReply = HCIOpcode(rawValue: 0x201A)
  /// LE Long Term Key Request Negative Reply.
  public static let longTermKeyRequestNegativeReply = HCIOpcode(rawValue: 0x201B)
  /// LE Extended Create Connection, version 1.
  public static let extendedCreateConnection = HCIOpcode(rawValue: 0x2043)
}

extension HCIOpcode: CustomStringConvertible {
  /// The number in hexadecimal, such as `0x200D`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 4) }
}
