internal import BluetoothWire
internal import Relink
internal import Synchronization

/// The devices of a transport that have somebody to receive what happens to them.
///
/// A device has one receiver in the process, whatever transport it is reached through: there is one kernel beneath all
/// of them. So each transport has its own entries, and all of them share the claims.
final class DeviceRegistry: Sendable {
  private struct Entry {
    weak var handler: (any LinkHandler)?
    weak var channel: SeqPacketChannel?
    let tables = AttributeTableMemory()
  }

  private struct Claim {
    weak var handler: (any LinkHandler)?
    let owner: ObjectIdentifier
  }

  /// Who receives what happens to a device, in this process; to be locked before `entries`.
  private static let claims = Locked<[DeviceID: Claim]>([:])

  private let entries = Locked<[DeviceID: Entry]>([:])

  deinit {
    let owner = ObjectIdentifier(self)
    Self.claims.withLock { claims in claims = claims.filter { $0.value.owner != owner } }
  }

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    let owner = ObjectIdentifier(self)
    // Let go of outside the lock, where it may die.
    let other: (any LinkHandler)? = Self.claims.withLock { claims in
      if let claim = claims[device], let other = claim.handler, other !== handler || claim.owner != owner {
        return other
      }
      claims[device] = Claim(handler: handler, owner: owner)
      entries.withLock { $0[device, default: Entry()].handler = handler }
      return nil
    }
    if other != nil {
      throw RelinkError(.sessionExists, "There is a session for \(device) in this process; use that one.")
    }
  }

  func unregister(_ device: DeviceID) {
    let owner = ObjectIdentifier(self)
    Self.claims.withLock { claims in
      // The device may have a receiver by another transport since this one's is gone.
      if claims[device]?.owner == owner { claims[device] = nil }
      entries.withLock { $0[device] = nil }
    }
  }

  /// The receiver for a device; nil when it is gone.
  func handler(for device: DeviceID) -> (any LinkHandler)? {
    entries.withLock { $0[device]?.handler }
  }

  /// Whether a device with this address, of either type, has a receiver.
  func hasHandler(at address: BluetoothAddress) -> Bool {
    [DeviceID.AddressType.public, .random].contains {
      handler(for: DeviceID(address: address, type: $0)) != nil
    }
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
    return (link, entry.handler)
  }

  private static let linkCount = Atomic<UInt64>(0)

  private static func nextLinkID() -> LinkID {
    LinkID(rawValue: linkCount.add(1, ordering: .relaxed).newValue)
  }
}
