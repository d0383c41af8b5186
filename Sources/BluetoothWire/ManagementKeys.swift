/// How a long term key was made, as mgmt numbers it (BlueZ `doc/mgmt-api.txt`, New Long Term Key Event).
///
/// Open: any octet is a value.
public struct ManagementLongTermKeyType: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The type with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Made by legacy pairing that nobody could confirm.
  public static let unauthenticatedLegacy = ManagementLongTermKeyType(rawValue: 0)
  /// Made by legacy pairing with a passkey or out of band.
  public static let authenticatedLegacy = ManagementLongTermKeyType(rawValue: 1)
  /// Made by Secure Connections that nobody could confirm.
  public static let unauthenticatedP256 = ManagementLongTermKeyType(rawValue: 2)
  /// Made by Secure Connections with a comparison, a passkey or out of band.
  public static let authenticatedP256 = ManagementLongTermKeyType(rawValue: 3)
  /// Made by Secure Connections with the published debug key: it protects nothing.
  public static let debugP256 = ManagementLongTermKeyType(rawValue: 4)

  /// True if somebody in the middle was excluded when the key was made.
  public var isAuthenticated: Bool { self == .authenticatedLegacy || self == .authenticatedP256 }

  /// True if Secure Connections made the key, the debug key included.
  public var isSecureConnections: Bool {
    self == .unauthenticatedP256 || self == .authenticatedP256 || self == .debugP256
  }
}

/// A key that encrypts the links to a bonded device (BlueZ `doc/mgmt-api.txt`, Load Long Term Keys).
public struct ManagementLongTermKey: Hashable, Sendable {
  /// The identity of the device: its public or static random address.
  public var device: ManagementAddress
  /// How the key was made.
  public var type: ManagementLongTermKeyType
  /// True if the key is for links on which this host is the central.
  ///
  /// Keys of Secure Connections serve both roles.
  public var isCentral: Bool
  /// How many octets of the key count: 7 to 16 (Core Specification Vol 3 Part H 2.3.4).
  public var encryptionSize: UInt8
  /// Names the key to the device that made it; 0 with Secure Connections.
  public var encryptedDiversifier: UInt16
  /// Names the key to the device that made it; 0 with Secure Connections.
  public var randomNumber: UInt64
  /// The secret.
  public var value: SecurityKey

  /// A key for a device.
  ///
  /// - Parameters:
  ///   - device: The identity of the device.
  ///   - type: How the key was made.
  ///   - isCentral: True if the key is for links on which this host is the central.
  ///   - encryptionSize: How many octets of the key count, 7 to 16.
  ///   - encryptedDiversifier: Names the key to the device that made it; 0 with Secure Connections.
  ///   - randomNumber: Names the key to the device that made it; 0 with Secure Connections.
  ///   - value: The secret.
  public init(
    device: ManagementAddress, type: ManagementLongTermKeyType, isCentral: Bool, encryptionSize: UInt8,
    encryptedDiversifier: UInt16, randomNumber: UInt64, value: SecurityKey
  ) {
    self.device = device
    self.type = type
    self.isCentral = isCentral
    self.encryptionSize = encryptionSize
    self.encryptedDiversifier = encryptedDiversifier
    self.randomNumber = randomNumber
    self.value = value
  }

  static let length = 36

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    device = ManagementAddress(bytes, at: offset)
    type = ManagementLongTermKeyType(rawValue: bytes.octet(at: offset + 7))
    isCentral = bytes.octet(at: offset + 8) != 0
    encryptionSize = bytes.octet(at: offset + 9)
    encryptedDiversifier = bytes.uint16(at: offset + 10)
    randomNumber = bytes.uint64(at: offset + 12)
    value = SecurityKey(bytes, at: offset + 20)
  }

  func append(to bytes: inout [UInt8]) {
    device.append(to: &bytes)
    bytes.append(type.rawValue)
    bytes.append(isCentral ? 1 : 0)
    bytes.append(encryptionSize)
    bytes.append(littleEndian: encryptedDiversifier)
    bytes.append(littleEndian: randomNumber)
    value.append(to: &bytes)
  }
}

/// A key that recognises a bonded device behind its private addresses (BlueZ `doc/mgmt-api.txt`, Load Identity
/// Resolving Keys).
public struct ManagementIdentityResolvingKey: Hashable, Sendable {
  /// The identity of the device: its public or static random address.
  public var device: ManagementAddress
  /// The secret.
  public var value: SecurityKey

  /// A key for a device.
  ///
  /// - Parameters:
  ///   - device: The identity of the device.
  ///   - value: The secret.
  public init(device: ManagementAddress, value: SecurityKey) {
    self.device = device
    self.value = value
  }

  static let length = 23

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    device = ManagementAddress(bytes, at: offset)
    value = SecurityKey(bytes, at: offset + ManagementAddress.length)
  }

  func append(to bytes: inout [UInt8]) {
    device.append(to: &bytes)
    value.append(to: &bytes)
  }
}

/// A key that signs Signed Write Commands (BlueZ `doc/mgmt-api.txt`, New Signature Resolving Key Event).
public struct ManagementSignatureResolvingKey: Hashable, Sendable {
  /// The identity of the device: its public or static random address.
  public var device: ManagementAddress
  /// Whose key it is, and how it was made: 0 unauthenticated of this host, 1 unauthenticated of the device, 2
  /// authenticated of this host, 3 authenticated of the device.
  public var type: UInt8
  /// The secret.
  public var value: SecurityKey

  /// A key for a device.
  ///
  /// - Parameters:
  ///   - device: The identity of the device.
  ///   - type: Whose key it is, and how it was made, 0 to 3.
  ///   - value: The secret.
  public init(device: ManagementAddress, type: UInt8, value: SecurityKey) {
    self.device = device
    self.type = type
    self.value = value
  }

  static let length = 24

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    device = ManagementAddress(bytes, at: offset)
    type = bytes.octet(at: offset + 7)
    value = SecurityKey(bytes, at: offset + 8)
  }
}
