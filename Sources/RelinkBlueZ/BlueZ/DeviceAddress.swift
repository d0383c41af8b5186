internal import BluetoothWire
internal import Relink

/// The Bluetooth address of a device with its type, as the kernel takes it.
struct DeviceAddress: Hashable, Sendable {
  let address: BluetoothAddress
  let type: DeviceID.AddressType

  /// Nil for a device that is not named by an address.
  init?(_ device: DeviceID) {
    guard let address = device.address, let type = device.addressType else { return nil }
    self.address = address
    self.type = type
  }

  /// The octets in the order of the wire.
  var bytes: [UInt8] { address.littleEndianBytes }

  /// As sockets and mgmt number it.
  var managementType: ManagementAddressType {
    switch type {
    case .public: .lePublic
    case .random: .leRandom
    }
  }

  /// As sockets number it.
  var kernelType: UInt8 { managementType.rawValue }

  /// Why there can be no such device; nil where there can.
  var fault: String? {
    // Core Specification Vol 6 Part B 1.3.2: the two top bits of a random address are 11, 01 or 00.
    guard type == .random, address.randomKind == .reserved else { return nil }
    return "\(address)/random cannot be: no random address begins with the bits 10. Is it \(address)/public?"
  }

  /// What has the same address and the other type.
  var other: DeviceID {
    DeviceID(address: address, type: type == .public ? .random : .public)
  }
}

/// An adapter of the host at one moment.
struct AdapterRecord: Hashable, Sendable {
  var index: UInt16
  /// The public address; zero where the controller has none.
  var address: BluetoothAddress
  var isUp: Bool
  /// A switch of this machine forbids it (rfkill).
  var isBlocked = false
  /// The host is about to sleep, or sleeps.
  var isAsleep = false
}

/// A link of the host at one moment.
struct LinkRecord: Hashable, Sendable {
  var address: BluetoothAddress
  /// Where its controller has it.
  var place = ControllerLedger.Place(adapter: 0, handle: 0)
  /// As the kernel numbers it (`include/net/bluetooth/bluetooth.h`).
  var state: UInt16

  var presence: LinkPresence {
    switch state {
    // BT_CONNECTED, BT_CONFIG
    case 1, 7: .alive
    // BT_DISCONN
    case 8: .ending
    // One that is only being connected has no past.
    default: .none
    }
  }
}

/// What link the host has to a device.
enum LinkPresence: Comparable, Sendable {
  case none
  /// It is going, and has to be gone before the next one.
  case ending
  case alive
}
