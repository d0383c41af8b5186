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
}

/// An adapter of the host at one moment.
struct AdapterRecord: Hashable, Sendable {
  var index: UInt16
  /// The public address; zero where the controller has none.
  var address: BluetoothAddress
  var isUp: Bool
}

/// A link of the host at one moment.
struct LinkRecord: Hashable, Sendable {
  var address: BluetoothAddress
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
