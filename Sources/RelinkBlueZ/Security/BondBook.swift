internal import BluetoothWire
internal import Relink

/// The bonds that this host keeps by itself, in memory.
struct BondBook {
  enum Contents: Equatable {
    /// There is no store: bonds last as long as the transport.
    case unkept
    case loading
    case loaded
    /// The store could not be read: more bonds may be in it.
    case unreadable
  }

  private struct Place: Hashable {
    var device: DeviceID
    var adapter: BluetoothAddress
  }

  private(set) var contents: Contents
  private var bonds: [Place: Bond] = [:]
  private var lastID: UInt64 = 0

  init(isKept: Bool) {
    contents = isKept ? .loading : .unkept
  }

  /// The store has handed its bonds over; nil where it could not.
  mutating func loaded(_ kept: KeptBonds?) {
    guard contents == .loading else { return }
    guard let kept else {
      contents = .unreadable
      return
    }
    contents = .loaded
    lastID = max(lastID, kept.lastID)
    for bond in kept.bonds {
      let place = Place(device: bond.device, adapter: bond.adapter)
      // One that was made meanwhile is newer.
      if bonds[place] == nil { bonds[place] = bond }
      lastID = max(lastID, bond.id)
    }
  }

  /// Pairing made a bond; it gets the next number.
  mutating func made(_ bond: Bond) -> Bond {
    lastID += 1
    var bond = bond
    bond.id = lastID
    bonds[Place(device: bond.device, adapter: bond.adapter)] = bond
    return bond
  }

  /// The bonds with a device, of the adapter with this address or of all, are gone; the result is those.
  mutating func removed(_ device: DeviceID, of adapter: BluetoothAddress?) -> [Bond] {
    let gone = bonds.filter { $0.key.device == device && (adapter == nil || $0.key.adapter == adapter) }
    for place in gone.keys { bonds[place] = nil }
    return Array(gone.values)
  }

  /// The bond of a device with one of these adapters; nil for all adapters.
  func bond(with device: DeviceID, of adapter: BluetoothAddress?) -> Bond? {
    bonds.values.filter { $0.device == device && (adapter == nil || $0.adapter == adapter) }
      .max { $0.id < $1.id }
  }

  /// Every bond, in the order of the numbers.
  var all: [Bond] { bonds.values.sorted { $0.id < $1.id } }

  /// What the kernel is to hold for an adapter, without the device that is to be paired anew.
  func keys(
    of adapter: BluetoothAddress, without device: DeviceID? = nil
  ) -> (longTerm: [ManagementLongTermKey], identity: [ManagementIdentityResolvingKey]) {
    var keys: (longTerm: [ManagementLongTermKey], identity: [ManagementIdentityResolvingKey]) = ([], [])
    for bond in all where bond.adapter == adapter && bond.device != device {
      // The kernel refuses the whole list for one address that is no identity.
      guard let address = DeviceAddress(bond.device), address.isIdentity else { continue }
      let name = ManagementAddress(address.address, address.managementType)
      keys.longTerm += bond.longTermKeys.map { ManagementLongTermKey($0, of: name) }
      if let key = bond.identityKey {
        keys.identity.append(ManagementIdentityResolvingKey(device: name, value: key))
      }
    }
    return keys
  }

  /// What is known of a bond with a device.
  func knowledge(of device: DeviceID, adapter: BluetoothAddress?) -> BondKnowledge {
    if let bond = bond(with: device, of: adapter) { return .bonded(bond.record) }
    return contents == .loaded ? .none : .unknown
  }
}

extension DeviceAddress {
  /// Whether it may be the identity of a device: public, or static random (Core Specification Vol 6 Part B 1.3).
  var isIdentity: Bool { type == .public || address.randomKind == .static }

  init?(_ address: ManagementAddress) {
    switch address.type {
    case .lePublic: self.init(DeviceID(address: address.address, type: .public))
    case .leRandom: self.init(DeviceID(address: address.address, type: .random))
    default: return nil
    }
  }

  var device: DeviceID { DeviceID(address: address, type: type) }
}

extension ManagementLongTermKey {
  init(_ key: Bond.LongTermKey, of device: ManagementAddress) {
    let type: ManagementLongTermKeyType =
      switch (key.isSecureConnections, key.isAuthenticated) {
      case (true, true): .authenticatedP256
      case (true, false): .unauthenticatedP256
      case (false, true): .authenticatedLegacy
      case (false, false): .unauthenticatedLegacy
      }
    self.init(
      device: device, type: type, isCentral: key.isCentral, encryptionSize: UInt8(clamping: key.size),
      encryptedDiversifier: key.diversifier, randomNumber: key.randomNumber, value: key.value)
  }
}

extension Bond.LongTermKey {
  /// Nil for a key that is not worth being kept: made with the published debug key, or in a way that is not known here.
  init?(_ key: ManagementLongTermKey) {
    let known: [ManagementLongTermKeyType] = [
      .unauthenticatedLegacy, .authenticatedLegacy, .unauthenticatedP256, .authenticatedP256,
    ]
    guard known.contains(key.type), (7...16).contains(key.encryptionSize) else { return nil }
    self.init(
      key.value, isAuthenticated: key.type.isAuthenticated, isSecureConnections: key.type.isSecureConnections,
      isCentral: key.isCentral, size: Int(key.encryptionSize), diversifier: key.encryptedDiversifier,
      randomNumber: key.randomNumber)
  }
}
