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
  /// Starts discovery of the address types whose bits are set: 1 BR/EDR, 2 LE public, 4 LE random.
  case startDiscovery(types: UInt8)
  /// Stops discovery that was started with the same bits.
  case stopDiscovery(types: UInt8)
  /// Adds a device to the kernel's list: 0 report it, 1 accept its connections, 2 connect to it whenever it advertises.
  case addDevice(address: BluetoothAddress, type: ManagementAddressType, action: UInt8)
  /// Removes a device from the kernel's list.
  case removeDevice(address: BluetoothAddress, type: ManagementAddressType)
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
    case .startDiscovery: .startDiscovery
    case .stopDiscovery: .stopDiscovery
    case .addDevice: .addDevice
    case .removeDevice: .removeDevice
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
      .cancelPairDevice(let address, let type), .removeDevice(let address, let type):
      ManagementAddress(address, type).append(to: &bytes)
    case .pairDevice(let address, let type, let octet), .addDevice(let address, let type, let octet):
      ManagementAddress(address, type).append(to: &bytes)
      bytes.append(octet)
    case .unpairDevice(let address, let type, let disconnect):
      ManagementAddress(address, type).append(to: &bytes)
      bytes.append(disconnect ? 1 : 0)
    case .startDiscovery(let types), .stopDiscovery(let types): bytes.append(types)
    case .loadConnectionParameters(let list):
      // A packet says its length in 16 bits, which bounds the list and the count before it.
      let sent = list.prefix((0xFFFF - 2) / ManagementConnectionParameters.length)
      bytes.append(littleEndian: UInt16(sent.count))
      for parameters in sent { parameters.append(to: &bytes) }
    case .other(_, let parameters): bytes = parameters
    }
    return bytes
  }
}

/// The connection parameters that the kernel keeps for a device (BlueZ `doc/mgmt-api.txt`, Load Connection Parameters).
public struct ManagementConnectionParameters: Hashable, Sendable {
  /// The device.
  public var device: ManagementAddress
  /// The shortest connection interval, in units of 1.25 ms.
  public var minimumInterval: UInt16
  /// The longest connection interval, in units of 1.25 ms.
  public var maximumInterval: UInt16
  /// How many connection events the peripheral may leave out.
  public var latency: UInt16
  /// The supervision timeout, in units of 10 ms.
  public var supervisionTimeout: UInt16

  /// Parameters for a device.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - minimumInterval: The shortest connection interval, in units of 1.25 ms.
  ///   - maximumInterval: The longest connection interval, in units of 1.25 ms.
  ///   - latency: How many connection events the peripheral may leave out.
  ///   - supervisionTimeout: The supervision timeout, in units of 10 ms.
  public init(
    device: ManagementAddress, minimumInterval: UInt16, maximumInterval: UInt16, latency: UInt16,
    supervisionTimeout: UInt16
  ) {
    self.device = device
    self.minimumInterval = minimumInterval
    self.maximumInterval = maximumInterval
    self.latency = latency
    self.supervisionTimeout = supervisionTimeout
  }

  static let length = 15

  func append(to bytes: inout [UInt8]) {
    device.append(to: &bytes)
    bytes.append(littleEndian: minimumInterval)
    bytes.append(littleEndian: maximumInterval)
    bytes.append(littleEndian: latency)
    bytes.append(littleEndian: supervisionTimeout)
  }
}
