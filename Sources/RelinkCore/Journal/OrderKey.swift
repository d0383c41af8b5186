package import BluetoothWire

/// What two operations must share to be kept in call order: an attribute that they concern, or a lane.
///
/// Names may leave the service out, so characteristics with one UUID share a key, whatever their service. A request
/// without a characteristic shares a key with its own kind only.
package enum OrderKey: Hashable, Sendable {
  /// A characteristic, by its UUID.
  case attribute(BluetoothUUID)
  /// A lane that the app has named.
  case lane(Lane)
  /// The table of the device.
  case table
  /// The ATT_MTU of a link.
  case mtu
}

extension GATTRequest {
  /// Calls `body` with each key of the request's own; stops and returns true where one of the calls does.
  func anyKey(_ body: (OrderKey) -> Bool) -> Bool {
    switch self {
    case .exchangeMTU: body(.mtu)
    case .discover: body(.table)
    case .read(let name), .write(let name, _), .writeLong(let name, _), .writeWithoutResponse(let name, _),
      .setNotifying(let name, _):
      body(.attribute(name.uuid))
    case .writeReliably(let writes): writes.contains { body(.attribute($0.characteristic.uuid)) }
    }
  }
}

/// A set of order keys that is small and short-lived.
struct OrderKeys: Hashable, Sendable {
  private var keys: [OrderKey] = []

  init() {}

  init(of entry: JournalEntry) {
    insert(keysOf: entry)
  }

  mutating func insert(keysOf entry: JournalEntry) {
    _ = entry.anyKey { key in
      if !keys.contains(key) { keys.append(key) }
      return false
    }
  }

  func contains(keyOf entry: JournalEntry) -> Bool {
    !keys.isEmpty && entry.anyKey { keys.contains($0) }
  }
}
