/// Which command of the kernel's Bluetooth management interface (BlueZ `doc/mgmt-api.txt`).
///
/// Open: any number is a value; the numbers that a host of LE links may meet have names.
public struct ManagementOpcode: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16

  /// The code with this number.
  ///
  /// - Parameter rawValue: Any number.
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Read Management Version Information.
  public static let readVersion = ManagementOpcode(rawValue: 0x0001)
  /// Read Management Supported Commands.
  public static let readCommands = ManagementOpcode(rawValue: 0x0002)
  /// Read Controller Index List.
  public static let readControllerIndexList = ManagementOpcode(rawValue: 0x0003)
  /// Read Controller Information.
  public static let readControllerInformation = ManagementOpcode(rawValue: 0x0004)
  /// Set Powered.
  public static let setPowered = ManagementOpcode(rawValue: 0x0005)
  /// Set Discoverable.
  public static let setDiscoverable = ManagementOpcode(rawValue: 0x0006)
  /// Set Connectable.
  public static let setConnectable = ManagementOpcode(rawValue: 0x0007)
  /// Set Fast Connectable.
  public static let setFastConnectable = ManagementOpcode(rawValue: 0x0008)
  /// Set Bondable.
  public static let setBondable = ManagementOpcode(rawValue: 0x0009)
  /// Set Link Security.
  public static let setLinkSecurity = ManagementOpcode(rawValue: 0x000A)
  /// Set Secure Simple Pairing.
  public static let setSecureSimplePairing = ManagementOpcode(rawValue: 0x000B)
  /// Set Low Energy.
  public static let setLowEnergy = ManagementOpcode(rawValue: 0x000D)
  /// Set Local Name.
  public static let setLocalName = ManagementOpcode(rawValue: 0x000F)
  /// Load Link Keys.
  public static let loadLinkKeys = ManagementOpcode(rawValue: 0x0012)
  /// Load Long Term Keys.
  public static let loadLongTermKeys = ManagementOpcode(rawValue: 0x0013)
  /// Disconnect.
  public static let disconnect = ManagementOpcode(rawValue: 0x0014)
  /// Get Connections.
  public static let getConnections = ManagementOpcode(rawValue: 0x0015)
  /// Set IO Capability.
  public static let setIOCapability = ManagementOpcode(rawValue: 0x0018)
  /// Pair Device.
  public static let pairDevice = ManagementOpcode(rawValue: 0x0019)
  /// Cancel Pair Device.
  public static let cancelPairDevice = ManagementOpcode(rawValue: 0x001A)
  /// Unpair Device.
  public static let unpairDevice = ManagementOpcode(rawValue: 0x001B)
  /// User Confirmation Reply.
  public static let userConfirmationReply = ManagementOpcode(rawValue: 0x001C)
  /// User Confirmation Negative Reply.
  public static let userConfirmationNegativeReply = ManagementOpcode(rawValue: 0x001D)
  /// User Passkey Reply.
  public static let userPasskeyReply = ManagementOpcode(rawValue: 0x001E)
  /// User Passkey Negative Reply.
  public static let userPasskeyNegativeReply = ManagementOpcode(rawValue: 0x001F)
  /// Start Discovery.
  public static let startDiscovery = ManagementOpcode(rawValue: 0x0023)
  /// Stop Discovery.
  public static let stopDiscovery = ManagementOpcode(rawValue: 0x0024)
  /// Set Advertising.
  public static let setAdvertising = ManagementOpcode(rawValue: 0x0029)
  /// Set BR/EDR.
  public static let setBREDR = ManagementOpcode(rawValue: 0x002A)
  /// Set Static Address.
  public static let setStaticAddress = ManagementOpcode(rawValue: 0x002B)
  /// Set Scan Parameters.
  public static let setScanParameters = ManagementOpcode(rawValue: 0x002C)
  /// Set Secure Connections.
  public static let setSecureConnections = ManagementOpcode(rawValue: 0x002D)
  /// Set Privacy.
  public static let setPrivacy = ManagementOpcode(rawValue: 0x002F)
  /// Load Identity Resolving Keys.
  public static let loadIdentityResolvingKeys = ManagementOpcode(rawValue: 0x0030)
  /// Get Connection Information.
  public static let getConnectionInformation = ManagementOpcode(rawValue: 0x0031)
  /// Add Device.
  public static let addDevice = ManagementOpcode(rawValue: 0x0033)
  /// Remove Device.
  public static let removeDevice = ManagementOpcode(rawValue: 0x0034)
  /// Load Connection Parameters.
  public static let loadConnectionParameters = ManagementOpcode(rawValue: 0x0035)
  /// Start Service Discovery.
  public static let startServiceDiscovery = ManagementOpcode(rawValue: 0x003A)
  /// Read Extended Controller Index List.
  public static let readExtendedControllerIndexList = ManagementOpcode(rawValue: 0x003C)
  /// Read Extended Controller Information.
  public static let readExtendedControllerInformation = ManagementOpcode(rawValue: 0x0042)
  /// Read Default System Configuration.
  public static let readDefaultSystemConfiguration = ManagementOpcode(rawValue: 0x004B)
  /// Set Default System Configuration.
  public static let setDefaultSystemConfiguration = ManagementOpcode(rawValue: 0x004C)
  /// Get Device Flags.
  public static let getDeviceFlags = ManagementOpcode(rawValue: 0x004F)
  /// Set Device Flags.
  public static let setDeviceFlags = ManagementOpcode(rawValue: 0x0050)
  /// HCI Command Sync.
  public static let sendHCICommand = ManagementOpcode(rawValue: 0x005B)
}

extension ManagementOpcode: CustomStringConvertible {
  /// The number in hexadecimal, such as `0x0014`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 4) }
}
