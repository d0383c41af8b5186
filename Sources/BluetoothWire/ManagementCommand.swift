/// A command to the kernel's Bluetooth management interface (BlueZ `doc/mgmt-api.txt`).
///
/// Sent to one controller, except ``readVersion`` and ``readControllerIndexList``, which go to
/// ``ManagementPacket/noController``. Each is answered by ``ManagementEvent/commandComplete(opcode:status:result:)`` or
/// ``ManagementEvent/commandStatus(opcode:status:)`` with the same opcode and index.
@nonexhaustive
public enum ManagementCommand: Hashable, Sendable {
  /// Asks for the version of the interface.
  case readVersion
  /// Asks which controllers there are.
  case readControllerIndexList
  /// Asks what a controller is and can.
  case readControllerInformation
  /// Switches a controller on or off.
  case setPowered(Bool)
  /// Lets a controller accept connections or not.
  case setConnectable(Bool)
  /// Lets a controller bond when it pairs or not.
  case setBondable(Bool)
  /// Switches LE on or off.
  case setLowEnergy(Bool)
  /// Switches BR/EDR on or off.
  case setBREDR(Bool)
  /// Switches Secure Connections on or off.
  case setSecureConnections(Bool)
  /// Ends the link to a device.
  case disconnect(address: BluetoothAddress, type: ManagementAddressType)
  /// Asks which devices have a link.
  case getConnections
  /// Asks for the signal strength of a link.
  case getConnectionInformation(address: BluetoothAddress, type: ManagementAddressType)
  /// Pairs with a device; `ioCapability` is numbered as in Core Specification Vol 3 Part H 3.5.1.
  case pairDevice(address: BluetoothAddress, type: ManagementAddressType, ioCapability: UInt8)
  /// Stops pairing with a device.
  case cancelPairDevice(address: BluetoothAddress, type: ManagementAddressType)
  /// Removes the keys of a device and, if asked, ends its link.
  case unpairDevice(address: BluetoothAddress, type: ManagementAddressType, disconnect: Bool)
  /// Sets what this host can show and ask when a device starts pairing: 0 shows, 1 shows and asks yes or no, 2 asks for
  /// digits, 3 neither, 4 shows and asks for digits.
  case setIOCapability(UInt8)
  /// Answers ``ManagementEvent/userConfirmationRequest(device:isYesNoOnly:value:)`` with yes.
  case userConfirmationReply(address: BluetoothAddress, type: ManagementAddressType)
  /// Answers ``ManagementEvent/userConfirmationRequest(device:isYesNoOnly:value:)`` with no.
  case userConfirmationNegativeReply(address: BluetoothAddress, type: ManagementAddressType)
  /// Answers ``ManagementEvent/userPasskeyRequest(device:)``; `passkey` is 0 to 999999.
  case userPasskeyReply(address: BluetoothAddress, type: ManagementAddressType, passkey: UInt32)
  /// Refuses ``ManagementEvent/userPasskeyRequest(device:)``.
  case userPasskeyNegativeReply(address: BluetoothAddress, type: ManagementAddressType)
  /// Replaces all long term keys that the kernel holds for a controller; no key in the list means that none is left.
  /// One packet holds at most 1820 keys, and keys beyond that are not sent.
  case loadLongTermKeys([ManagementLongTermKey])
  /// Replaces all identity resolving keys that the kernel holds for a controller; no key in the list means that none is
  /// left. One packet holds at most 2849 keys, and keys beyond that are not sent.
  case loadIdentityResolvingKeys([ManagementIdentityResolvingKey])
  /// Lets a controller use private addresses made with this key: 0 no, 1 always, 2 except while it is bondable and can be
  /// found.
  case setPrivacy(mode: UInt8, key: SecurityKey)
  /// Starts discovery of the address types whose bits are set: 1 BR/EDR, 2 LE public, 4 LE random.
  case startDiscovery(types: UInt8)
  /// Stops discovery that was started with the same bits.
  case stopDiscovery(types: UInt8)
  /// Adds a device to the kernel's list: 0 report it, 1 accept its connections, 2 connect to it whenever it advertises.
  case addDevice(address: BluetoothAddress, type: ManagementAddressType, action: UInt8)
  /// Removes a device from the kernel's list.
  case removeDevice(address: BluetoothAddress, type: ManagementAddressType)
  /// Asks for the flags of a device on the kernel's list.
  case getDeviceFlags(address: BluetoothAddress, type: ManagementAddressType)
  /// Replaces the connection parameters that the kernel keeps for devices.
  case loadConnectionParameters([ManagementConnectionParameters])
  /// Any other command.
  case other(opcode: ManagementOpcode, parameters: [UInt8])

  /// The number of the command.
  public var opcode: ManagementOpcode {
    switch self {
    case .readVersion: .readVersion
    case .readControllerIndexList: .readControllerIndexList
    case .readControllerInformation: .readControllerInformation
    case .setPowered: .setPowered
    case .setConnectable: .setConnectable
    case .setBondable: .setBondable
    case .setLowEnergy: .setLowEnergy
    case .setBREDR: .setBREDR
    case .setSecureConnections: .setSecureConnections
    case .disconnect: .disconnect
    case .getConnections: .getConnections
    case .getConnectionInformation: .getConnectionInformation
    case .pairDevice: .pairDevice
    case .cancelPairDevice: .cancelPairDevice
    case .unpairDevice: .unpairDevice
    case .setIOCapability: .setIOCapability
    case .userConfirmationReply: .userConfirmationReply
    case .userConfirmationNegativeReply: .userConfirmationNegativeReply
    case .userPasskeyReply: .userPasskeyReply
    case .userPasskeyNegativeReply: .userPasskeyNegativeReply
    case .loadLongTermKeys: .loadLongTermKeys
    case .loadIdentityResolvingKeys: .loadIdentityResolvingKeys
    case .setPrivacy: .setPrivacy
    case .startDiscovery: .startDiscovery
    case .stopDiscovery: .stopDiscovery
    case .addDevice: .addDevice
    case .removeDevice: .removeDevice
    case .getDeviceFlags: .getDeviceFlags
    case .loadConnectionParameters: .loadConnectionParameters
    case .other(let opcode, _): opcode
    }
  }

  /// The octets for the socket.
  ///
  /// - Parameter index: The index of the controller, or ``ManagementPacket/noController``.
  /// - Returns: One packet.
  public func encoded(index: UInt16) -> [UInt8] {
    ManagementPacket(code: opcode.rawValue, index: index, parameters: parameters).encoded()
  }

  /// What follows the header.
  public var parameters: [UInt8] {
    var bytes: [UInt8] = []
    switch self {
    case .readVersion, .readControllerIndexList, .readControllerInformation, .getConnections: break
    case .setPowered(let on), .setConnectable(let on), .setBondable(let on), .setLowEnergy(let on),
      .setBREDR(let on), .setSecureConnections(let on):
      bytes.append(on ? 1 : 0)
    case .disconnect(let address, let type), .getConnectionInformation(let address, let type),
      .cancelPairDevice(let address, let type), .removeDevice(let address, let type),
      .userConfirmationReply(let address, let type), .userConfirmationNegativeReply(let address, let type),
      .userPasskeyNegativeReply(let address, let type), .getDeviceFlags(let address, let type):
      ManagementAddress(address, type).append(to: &bytes)
    case .pairDevice(let address, let type, let octet), .addDevice(let address, let type, let octet):
      ManagementAddress(address, type).append(to: &bytes)
      bytes.append(octet)
    case .unpairDevice(let address, let type, let disconnect):
      ManagementAddress(address, type).append(to: &bytes)
      bytes.append(disconnect ? 1 : 0)
    case .userPasskeyReply(let address, let type, let passkey):
      ManagementAddress(address, type).append(to: &bytes)
      bytes.append(littleEndian: passkey)
    case .startDiscovery(let octet), .stopDiscovery(let octet), .setIOCapability(let octet):
      bytes.append(octet)
    case .loadConnectionParameters(let list):
      for item in Self.sent(list, ManagementConnectionParameters.length, &bytes) { item.append(to: &bytes) }
    case .loadLongTermKeys(let list):
      for item in Self.sent(list, ManagementLongTermKey.length, &bytes) { item.append(to: &bytes) }
    case .loadIdentityResolvingKeys(let list):
      for item in Self.sent(list, ManagementIdentityResolvingKey.length, &bytes) { item.append(to: &bytes) }
    case .setPrivacy(let mode, let key):
      bytes.append(mode)
      key.append(to: &bytes)
    case .other(_, let parameters): bytes = parameters
    }
    return bytes
  }

  /// The items that a packet has room for, after their count: a packet says its length in 16 bits.
  private static func sent<Item>(
    _ list: [Item], _ itemLength: Int, _ bytes: inout [UInt8]
  ) -> ArraySlice<Item> {
    let sent = list.prefix((0xFFFF - 2) / itemLength)
    bytes.append(littleEndian: UInt16(sent.count))
    return sent
  }
}
