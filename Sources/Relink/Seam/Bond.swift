public import RelinkCore

/// A bond between an adapter of this host and a device: the keys that pairing made.
///
/// Printing, dumping or reflecting it shows no key.
public struct Bond: Hashable, Sendable {
  /// A key that encrypts links to the device (Core Specification Vol 3 Part H 2.4.2.3).
  public struct LongTermKey: Hashable, Sendable {
    /// The secret.
    public var value: SecurityKey
    /// Whether pairing excluded somebody in the middle.
    public var isAuthenticated: Bool
    /// Whether LE Secure Connections made it; such a key serves both roles.
    public var isSecureConnections: Bool
    /// Whether it is for links on which this host is the central; every key of Secure Connections counts as one.
    public var isCentral: Bool
    /// How many of its octets count, 7 to 16.
    public var size: Int
    /// Names the key to the device that made it; 0 with Secure Connections.
    public var diversifier: UInt16
    /// Names the key to the device that made it; 0 with Secure Connections.
    public var randomNumber: UInt64

    /// Describes a key.
    public init(
      _ value: SecurityKey, isAuthenticated: Bool, isSecureConnections: Bool, isCentral: Bool = true,
      size: Int = 16, diversifier: UInt16 = 0, randomNumber: UInt64 = 0
    ) {
      self.value = value
      self.isAuthenticated = isAuthenticated
      self.isSecureConnections = isSecureConnections
      self.isCentral = isCentral
      self.size = size
      self.diversifier = diversifier
      self.randomNumber = randomNumber
    }

    /// The level of a link that this key encrypts (Core Specification Vol 3 Part C 10.2.1).
    public var level: SecurityLevel {
      guard isAuthenticated else { return .encrypted }
      return isSecureConnections && size >= 16 ? .secureConnections : .authenticated
    }
  }

  /// The device, by its identity address.
  public var device: DeviceID
  /// The public address of the adapter that the device knows; zero for an adapter without one.
  public var adapter: BluetoothAddress
  /// Which of all the bonds that were ever made here: a new pairing gets a higher number.
  public var id: UInt64
  /// The keys that encrypt links.
  public var longTermKeys: [LongTermKey]
  /// The key that recognises the device behind its private addresses; nil for a device that has none.
  public var identityKey: SecurityKey?

  /// Describes a bond.
  public init(
    with device: DeviceID, of adapter: BluetoothAddress, id: UInt64, longTermKeys: [LongTermKey],
    identityKey: SecurityKey? = nil
  ) {
    self.device = device
    self.adapter = adapter
    self.id = id
    self.longTermKeys = longTermKeys
    self.identityKey = identityKey
  }

  /// The best key for links on which this host is the central; nil where there is none, and the bond secures nothing.
  private var key: LongTermKey? {
    longTermKeys.filter { $0.isCentral || $0.isSecureConnections }.max { $0.level < $1.level }
  }

  /// The level that a link secured with it has.
  public var level: SecurityLevel { key?.level ?? .none }

  /// What may be told of it.
  public var record: BondRecord {
    BondRecord(device: device, id: id, level: level, keySize: key?.size ?? 0)
  }
}

extension Bond: CustomStringConvertible {
  /// Number, device and level on one line; no key.
  public var description: String { "bond \(id) with \(device), \(level)" }
}
