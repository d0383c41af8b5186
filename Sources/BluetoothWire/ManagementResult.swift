/// What came back with a management command that was carried out (BlueZ `doc/mgmt-api.txt`).
@nonexhaustive
public enum ManagementResult: Hashable, Sendable {
  /// The version of the interface.
  case version(UInt8, revision: UInt16)
  /// The indices of the controllers.
  case controllerIndexList([UInt16])
  /// What a controller is and can.
  case controllerInformation(ManagementControllerInformation)
  /// The settings after a command that changes one.
  case settings(ManagementSettings)
  /// The devices that have a link.
  case connections([ManagementAddress])
  /// The device that the command was about. This also comes with commands that were refused.
  case device(ManagementAddress)
  /// The signal of a link.
  case connectionInformation(ManagementConnectionInformation)
  /// The flags of a device on the kernel's list, numbered as in
  /// ``ManagementEvent/deviceFlagsChanged(device:supported:current:)``.
  case deviceFlags(device: ManagementAddress, supported: UInt32, current: UInt32)
  /// Any other result, also of a command that was refused, and one that is too short.
  case other([UInt8])

  init(opcode: ManagementOpcode, status: ManagementStatus, bytes: [UInt8]) {
    self = Self.known(opcode: opcode, isSuccess: status == .success, bytes.span.bytes) ?? .other(bytes)
  }

  private static func known(
    opcode: ManagementOpcode, isSuccess: Bool, _ bytes: borrowing RawSpan
  ) -> ManagementResult? {
    let count = bytes.byteCount
    switch opcode {
    case .disconnect, .pairDevice, .cancelPairDevice, .unpairDevice, .addDevice, .removeDevice,
      .userConfirmationReply, .userConfirmationNegativeReply, .userPasskeyReply, .userPasskeyNegativeReply:
      return count >= ManagementAddress.length ? .device(ManagementAddress(bytes, at: 0)) : nil
    case .getConnectionInformation where !isSuccess:
      return count >= ManagementAddress.length ? .device(ManagementAddress(bytes, at: 0)) : nil
    case _ where !isSuccess: return nil
    case .getConnectionInformation:
      return ManagementConnectionInformation(bytes).map { .connectionInformation($0) }
    case .getDeviceFlags:
      guard count >= ManagementAddress.length + 8 else { return nil }
      return .deviceFlags(
        device: ManagementAddress(bytes, at: 0), supported: bytes.uint32(at: 7),
        current: bytes.uint32(at: 11))
    case .readVersion: return count >= 3 ? .version(bytes.octet(at: 0), revision: bytes.uint16(at: 1)) : nil
    case .readControllerIndexList:
      guard count >= 2, (count - 2) / 2 >= Int(bytes.uint16(at: 0)) else { return nil }
      return .controllerIndexList((0..<Int(bytes.uint16(at: 0))).map { bytes.uint16(at: 2 + $0 * 2) })
    case .readControllerInformation:
      return ManagementControllerInformation(bytes).map { .controllerInformation($0) }
    case .setPowered, .setDiscoverable, .setConnectable, .setFastConnectable, .setBondable, .setLinkSecurity,
      .setSecureSimplePairing, .setLowEnergy, .setAdvertising, .setBREDR, .setStaticAddress,
      .setSecureConnections, .setPrivacy:
      return count >= 4 ? .settings(ManagementSettings(rawValue: bytes.uint32(at: 0))) : nil
    case .getConnections:
      let length = ManagementAddress.length
      guard count >= 2, (count - 2) / length >= Int(bytes.uint16(at: 0)) else { return nil }
      return .connections(
        (0..<Int(bytes.uint16(at: 0))).map { ManagementAddress(bytes, at: 2 + $0 * length) })
    default: return nil
    }
  }
}

/// What a controller is and can (BlueZ `doc/mgmt-api.txt`, Read Controller Information).
public struct ManagementControllerInformation: Hashable, Sendable {
  /// The public address; all zero if the controller has none.
  public var address: BluetoothAddress
  /// The version of the Core Specification, as Assigned Numbers number it: 9 is 5.0.
  public var version: UInt8
  /// The company that made it, as Assigned Numbers number it.
  public var manufacturer: UInt16
  /// What can be switched on.
  public var supportedSettings: ManagementSettings
  /// What is switched on.
  public var currentSettings: ManagementSettings
  /// The class of device, 24 bits.
  public var classOfDevice: UInt32
  /// The name; octets that are no UTF-8 are repaired.
  public var name: String
  /// The short name.
  public var shortName: String

  /// 20 fixed octets, a name of 249 and a short name of 11, both ended by a zero octet.
  static let length = 280

  init?(_ bytes: borrowing RawSpan) {
    guard bytes.byteCount >= Self.length else { return nil }
    address = BluetoothAddress(bytes, at: 0)
    version = bytes.octet(at: 6)
    manufacturer = bytes.uint16(at: 7)
    supportedSettings = ManagementSettings(rawValue: bytes.uint32(at: 9))
    currentSettings = ManagementSettings(rawValue: bytes.uint32(at: 13))
    classOfDevice = UInt32(bytes.uint16(at: 17)) | UInt32(bytes.octet(at: 19)) << 16
    name = String(decoding: bytes.array(from: 20, count: 249).prefix { $0 != 0 }, as: UTF8.self)
    shortName = String(decoding: bytes.array(from: 269, count: 11).prefix { $0 != 0 }, as: UTF8.self)
  }
}

/// The signal of a link (BlueZ `doc/mgmt-api.txt`, Get Connection Information).
public struct ManagementConnectionInformation: Hashable, Sendable {
  /// The device at the other end.
  public var device: ManagementAddress
  /// The strength of what is received in dBm, nil if the kernel does not know it.
  public var rssi: Int8?
  /// The power of what is sent in dBm, nil if the kernel does not know it.
  public var transmitPower: Int8?
  /// The highest power in dBm, nil if the kernel does not know it.
  public var maximumTransmitPower: Int8?

  init?(_ bytes: borrowing RawSpan) {
    guard bytes.byteCount >= ManagementAddress.length + 3 else { return nil }
    device = ManagementAddress(bytes, at: 0)
    rssi = Self.known(bytes.octet(at: 7))
    transmitPower = Self.known(bytes.octet(at: 8))
    maximumTransmitPower = Self.known(bytes.octet(at: 9))
  }

  /// The kernel says 127 for a value that it does not know.
  private static func known(_ octet: UInt8) -> Int8? { octet == 127 ? nil : Int8(bitPattern: octet) }
}
