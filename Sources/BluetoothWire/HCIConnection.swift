/// An LE link that came up, or an attempt that ended without one (Core Specification Vol 4 Part E 7.7.65.1, 7.7.65.10).
///
/// What a controller says in LE Connection Complete and in both versions of LE Enhanced Connection Complete. If
/// ``status`` is not success, the other fields mean nothing.
public struct HCIConnection: Hashable, Sendable {
  /// Whether there is a link.
  public var status: HCIErrorCode
  /// The number of the link on its controller until it is gone; a later link may have it again.
  public var handle: UInt16
  /// True if this host is the central of the link.
  public var isCentral: Bool
  /// What kind of address ``peerAddress`` is.
  public var peerAddressType: HCIAddressType
  /// The address of the device at the other end; its identity if the controller resolved it.
  public var peerAddress: BluetoothAddress
  /// The private address that this host used, nil if it used none or the controller does not tell.
  public var localPrivateAddress: BluetoothAddress?
  /// The private address that the controller resolved, nil if it resolved none or does not tell.
  public var peerPrivateAddress: BluetoothAddress?
  /// The connection interval, in units of 1.25 ms.
  public var interval: UInt16
  /// How many connection events the peripheral may leave out.
  public var latency: UInt16
  /// The supervision timeout, in units of 10 ms.
  public var supervisionTimeout: UInt16

  /// A link, or an attempt that ended without one.
  ///
  /// - Parameters:
  ///   - status: Whether there is a link.
  ///   - handle: The number of the link on its controller.
  ///   - isCentral: True if this host is the central of the link.
  ///   - peerAddressType: What kind of address `peerAddress` is.
  ///   - peerAddress: The address of the device at the other end.
  ///   - localPrivateAddress: The private address that this host used.
  ///   - peerPrivateAddress: The private address that the controller resolved.
  ///   - interval: The connection interval, in units of 1.25 ms.
  ///   - latency: How many connection events the peripheral may leave out.
  ///   - supervisionTimeout: The supervision timeout, in units of 10 ms.
  public init(
    status: HCIErrorCode, handle: UInt16, isCentral: Bool, peerAddressType: HCIAddressType,
    peerAddress: BluetoothAddress, localPrivateAddress: BluetoothAddress? = nil,
    peerPrivateAddress: BluetoothAddress? = nil, interval: UInt16, latency: UInt16, supervisionTimeout: UInt16
  ) {
    self.status = status
    self.handle = handle
    self.isCentral = isCentral
    self.peerAddressType = peerAddressType
    self.peerAddress = peerAddress
    self.localPrivateAddress = localPrivateAddress
    self.peerPrivateAddress = peerPrivateAddress
    self.interval = interval
    self.latency = latency
    self.supervisionTimeout = supervisionTimeout
  }

  /// The device as mgmt names it, nil if the address is of a kind that mgmt has not.
  public var peer: ManagementAddress? {
    peerAddressType.managementType.map { ManagementAddress(peerAddress, $0) }
  }
}

/// What kind of address an HCI event carries (Core Specification Vol 4 Part E 7.7.65).
///
/// Open: any octet is a value. mgmt numbers address types in another way, see ``ManagementAddressType``.
public struct HCIAddressType: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The type with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A public address.
  public static let publicDevice = HCIAddressType(rawValue: 0x00)
  /// A random address, as it was on the air.
  public static let randomDevice = HCIAddressType(rawValue: 0x01)
  /// The public address of a device that the controller recognised behind a private one.
  public static let publicIdentity = HCIAddressType(rawValue: 0x02)
  /// The static random address of a device that the controller recognised behind a private one.
  public static let randomIdentity = HCIAddressType(rawValue: 0x03)
  /// No address: the advertisement was anonymous.
  public static let anonymous = HCIAddressType(rawValue: 0xFF)

  /// The same type as mgmt numbers it, nil for those that mgmt has not.
  public var managementType: ManagementAddressType? {
    switch self {
    case .publicDevice, .publicIdentity: .lePublic
    case .randomDevice, .randomIdentity: .leRandom
    default: nil
    }
  }
}
