/// Why a server refused a request (Core Specification Vol 3 Part F 3.4.1.1, Supplement Part B).
///
/// Open: any octet is a value. 0x80 to 0x9F belong to the application, 0xE0 to 0xFF are common to all profiles.
public struct ATTErrorCode: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The code with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The handle is not valid on this server.
  public static let invalidHandle = ATTErrorCode(rawValue: 0x01)
  /// The attribute cannot be read.
  public static let readNotPermitted = ATTErrorCode(rawValue: 0x02)
  /// The attribute cannot be written.
  public static let writeNotPermitted = ATTErrorCode(rawValue: 0x03)
  /// The PDU was not well formed.
  public static let invalidPDU = ATTErrorCode(rawValue: 0x04)
  /// The attribute asks for an authenticated link first.
  public static let insufficientAuthentication = ATTErrorCode(rawValue: 0x05)
  /// The server does not support the request.
  public static let requestNotSupported = ATTErrorCode(rawValue: 0x06)
  /// The offset is past the end of the value.
  public static let invalidOffset = ATTErrorCode(rawValue: 0x07)
  /// The attribute asks for authorization first.
  public static let insufficientAuthorization = ATTErrorCode(rawValue: 0x08)
  /// The prepare queue is full.
  public static let prepareQueueFull = ATTErrorCode(rawValue: 0x09)
  /// No attribute in the range matches.
  public static let attributeNotFound = ATTErrorCode(rawValue: 0x0A)
  /// The value cannot be read with a Read Blob Request.
  public static let attributeNotLong = ATTErrorCode(rawValue: 0x0B)
  /// The key of the encrypted link is too short.
  public static let encryptionKeySizeTooShort = ATTErrorCode(rawValue: 0x0C)
  /// The length of the value is not valid for the attribute.
  public static let invalidAttributeValueLength = ATTErrorCode(rawValue: 0x0D)
  /// Something unlikely went wrong on the server; it proves nothing about what was carried out.
  public static let unlikelyError = ATTErrorCode(rawValue: 0x0E)
  /// The attribute asks for an encrypted link first.
  public static let insufficientEncryption = ATTErrorCode(rawValue: 0x0F)
  /// The type is no grouping attribute of a higher layer.
  public static let unsupportedGroupType = ATTErrorCode(rawValue: 0x10)
  /// The server lacks resources for the request.
  public static let insufficientResources = ATTErrorCode(rawValue: 0x11)
  /// The client asked by handles of an older attribute table and must discover it again.
  public static let databaseOutOfSync = ATTErrorCode(rawValue: 0x12)
  /// The value is not allowed for the attribute.
  public static let valueNotAllowed = ATTErrorCode(rawValue: 0x13)
  /// A profile rejected the write for a reason that no other code names.
  public static let writeRequestRejected = ATTErrorCode(rawValue: 0xFC)
  /// A Client Characteristic Configuration is not set as the profile asks.
  public static let clientCharacteristicConfigurationImproper = ATTErrorCode(rawValue: 0xFD)
  /// An earlier procedure of the profile is still running.
  public static let procedureAlreadyInProgress = ATTErrorCode(rawValue: 0xFE)
  /// The value is out of the range that the profile defines.
  public static let outOfRange = ATTErrorCode(rawValue: 0xFF)

  /// True for 0x80 to 0x9F, whose meaning the application defines.
  @inlinable
  public var isApplicationError: Bool { 0x80...0x9F ~= rawValue }

  /// True for 0xE0 to 0xFF, which all profiles share.
  @inlinable
  public var isCommonProfileError: Bool { rawValue >= 0xE0 }
}

extension ATTErrorCode: CustomStringConvertible {
  /// The name in words and the octet, such as `attribute not found (0x0A)`.
  public var description: String { "\(name) (0x\(hexadecimal(rawValue, digits: 2)))" }

  private var name: String {
    switch self {
    case .invalidHandle: "invalid handle"
    case .readNotPermitted: "read not permitted"
    case .writeNotPermitted: "write not permitted"
    case .invalidPDU: "invalid PDU"
    case .insufficientAuthentication: "insufficient authentication"
    case .requestNotSupported: "request not supported"
    case .invalidOffset: "invalid offset"
    case .insufficientAuthorization: "insufficient authorization"
    case .prepareQueueFull: "prepare queue full"
    case .attributeNotFound: "attribute not found"
    case .attributeNotLong: "attribute not long"
    case .encryptionKeySizeTooShort: "encryption key size too short"
    case .invalidAttributeValueLength: "invalid attribute value length"
    case .unlikelyError: "unlikely error"
    case .insufficientEncryption: "insufficient encryption"
    case .unsupportedGroupType: "unsupported group type"
    case .insufficientResources: "insufficient resources"
    case .databaseOutOfSync: "database out of sync"
    case .valueNotAllowed: "value not allowed"
    case .writeRequestRejected: "write request rejected"
    case .clientCharacteristicConfigurationImproper:
      "client characteristic configuration improperly configured"
    case .procedureAlreadyInProgress: "procedure already in progress"
    case .outOfRange: "out of range"
    default:
      if isApplicationError {
        "application error"
      } else if isCommonProfileError {
        "common profile error"
      } else {
        "reserved error"
      }
    }
  }
}
