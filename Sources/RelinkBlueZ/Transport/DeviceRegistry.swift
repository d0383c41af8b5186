internal import BluetoothWire
internal import Relink
internal import Synchronization

/// The devices of a transport that have somebody to receive what happens to them.
final class DeviceRegistry: Sendable {
  private struct Entry {
    weak var handler: (any LinkHandler)?
    weak var channel: SeqPacketChannel?
    let tables = AttributeTableMemory()
  }

  private let entries = Locked<[DeviceID: Entry]>([:])

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    let isTaken = entries.withLock { entries in
      if let other = entries[device]?.handler, other !== handler { return true }
      entries[device, default: Entry()].handler = handler
      return false
    }
    if isTaken {
      throw RelinkError(.sessionExists, "There is a session for \(device) in this process; use that one.")
    }
  }

  func unregister(_ device: DeviceID) {
    entries.withLock { $0[device] = nil }
  }

  /// The receiver for a device; nil when it is gone.
  func handler(for device: DeviceID) -> (any LinkHandler)? {
    entries.withLock { $0[device]?.handler }
  }

  /// The receivers that there are.
  var handlers: [(device: DeviceID, handler: any LinkHandler)] {
    entries.withLock { entries in
      entries.compactMap { device, entry in entry.handler.map { (device, $0) } }
    }
  }

  /// The devices that have a link from here; to be called on the loop.
  var linked: [DeviceID] {
    let channels = entries.withLock { entries in
      entries.compactMap { device, entry in entry.channel.map { (device: device, channel: $0) } }
    }
    return channels.filter { !$0.channel.isClosed }.map(\.device)
  }

  /// Makes a link over a connected channel, for whoever receives what happens to the device.
  func link(to device: DeviceID, over channel: SeqPacketChannel, on loop: RadioLoop) -> (
    ATTLink, any LinkHandler
  )? {
    let entry = entries.withLock { entries in
      entries[device]?.channel = channel
      return entries[device].flatMap { entry in entry.handler.map { (tables: entry.tables, handler: $0) } }
    }
    guard let entry else { return nil }
    let link = ATTLink(
      id: DeviceRegistry.nextLinkID(), over: channel, on: loop, for: entry.handler, tables: entry.tables)
  /// Whether a device with this address, of either type, has a receiver.
  func hasHandler(at address: BluetoothAddress) -> Bool {
    [DeviceID.AddressType.public, .random].contains {
      handler(for: DeviceID(address: address, type: $0)) != nil
    }
  }

    return (link, entry.handler)
  }

  private static let linkCount = Atomic<UInt64>(0)

  private static func nextLinkID() -> LinkID {
    LinkID(rawValue: linkCount.add(1, ordering: .relaxed).newValue)
  }
}
