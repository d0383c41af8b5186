/// What a controller can do, or what is switched on (BlueZ `doc/mgmt-api.txt`, Read Controller Information).
public struct ManagementSettings: OptionSet, Hashable, Sendable {
  /// The bits on the wire; bits without a name are kept.
  public let rawValue: UInt32

  /// The settings with these bits.
  ///
  /// - Parameter rawValue: Any bits.
  @inlinable
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// The controller is on.
  public static let powered = ManagementSettings(rawValue: 1 << 0)
  /// It accepts connections.
  public static let connectable = ManagementSettings(rawValue: 1 << 1)
  /// It accepts BR/EDR connections quickly.
  public static let fastConnectable = ManagementSettings(rawValue: 1 << 2)
  /// It can be found.
  public static let discoverable = ManagementSettings(rawValue: 1 << 3)
  /// It bonds when it pairs.
  public static let bondable = ManagementSettings(rawValue: 1 << 4)
  /// It asks for link level security on BR/EDR.
  public static let linkSecurity = ManagementSettings(rawValue: 1 << 5)
  /// It pairs with Secure Simple Pairing.
  public static let secureSimplePairing = ManagementSettings(rawValue: 1 << 6)
  /// BR/EDR is on.
  public static let bredr = ManagementSettings(rawValue: 1 << 7)
  /// High speed is on.
  public static let highSpeed = ManagementSettings(rawValue: 1 << 8)
  /// LE is on.
  public static let lowEnergy = ManagementSettings(rawValue: 1 << 9)
  /// It advertises.
  public static let advertising = ManagementSettings(rawValue: 1 << 10)
  /// It pairs with Secure Connections.
  public static let secureConnections = ManagementSettings(rawValue: 1 << 11)
  /// It accepts debug keys.
  public static let debugKeys = ManagementSettings(rawValue: 1 << 12)
  /// It uses private addresses.
  public static let privacy = ManagementSettings(rawValue: 1 << 13)
  /// It has to be configured before it can be used.
  public static let configuration = ManagementSettings(rawValue: 1 << 14)
  /// It uses a static random address.
  public static let staticAddress = ManagementSettings(rawValue: 1 << 15)
  /// Its PHYs can be chosen.
  public static let phyConfiguration = ManagementSettings(rawValue: 1 << 16)
  /// It carries wideband speech.
  public static let widebandSpeech = ManagementSettings(rawValue: 1 << 17)
  /// It can be the central of a Connected Isochronous Stream.
  public static let connectedIsochronousCentral = ManagementSettings(rawValue: 1 << 18)
  /// It can be the peripheral of a Connected Isochronous Stream.
  public static let connectedIsochronousPeripheral = ManagementSettings(rawValue: 1 << 19)
  /// It can send isochronous broadcasts.
  public static let isochronousBroadcaster = ManagementSettings(rawValue: 1 << 20)
  /// It can receive isochronous broadcasts.
  public static let isochronousReceiver = ManagementSettings(rawValue: 1 << 21)
  /// The controller resolves private addresses by itself.
  public static let linkLayerPrivacy = ManagementSettings(rawValue: 1 << 22)
}
