/// Whether a device address is BR/EDR, LE public or LE random, as mgmt numbers it (BlueZ `doc/mgmt-api.txt`).
///
/// Open: any octet is a value.
public struct ManagementAddressType: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The type with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A BR/EDR address.
  public static let bredr = ManagementAddressType(rawValue: 0)
  /// A public LE address.
  public static let lePublic = ManagementAddressType(rawValue: 1)
  /// A random LE address.
  public static let leRandom = ManagementAddressType(rawValue: 2)
}

/// A device address with its type, as mgmt sends the two together.
public struct ManagementAddress: Hashable, Sendable {
  /// The 48 bits.
  public var address: BluetoothAddress
  /// What kind of address the bits are.
  public var type: ManagementAddressType

  /// An address of this type.
  ///
  /// - Parameters:
  ///   - address: The 48 bits.
  ///   - type: What kind of address the bits are.
  public init(_ address: BluetoothAddress, _ type: ManagementAddressType) {
    self.address = address
    self.type = type
  }

  /// The octets that an address with its type takes.
  static let length = 7

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    self.init(
      BluetoothAddress(bytes, at: offset), ManagementAddressType(rawValue: bytes.octet(at: offset + 6)))
  }

  func append(to bytes: inout [UInt8]) {
    address.append(to: &bytes)
    bytes.append(type.rawValue)
  }
}
