internal import BluetoothWire
internal import Relink

// Notifications, indications and changes of the table (Core Specification Vol 3 Part F 3.4.7, Part G 7.1).
extension GATTServer {
  /// Sends a value to every client that asked for it, in the way it asked for; answers how many there were.
  mutating func announce(_ value: [UInt8], of key: CharacteristicKey) -> (effects: [Effect], count: Int) {
    guard let handle = table.entries[key]?.valueHandle else { return ([], 0) }
    var effects: [Effect] = []
    var count = 0
    // In the order in which the links came up, so that a run can be repeated.
    for id in linksInOrder {
      let bits = links[id]?.configurations[key, default: 0] ?? 0
      guard bits & 3 != 0 else { continue }
      count += 1
      effects += push(handle, value, on: id, isIndication: bits & 1 == 0)
    }
    return (effects, count)
  }

  /// Sends a value on one link, whether its client asked for it or not.
  mutating func push(
    _ handle: UInt16, _ value: [UInt8], on id: ObjectIdentifier, isIndication: Bool
  ) -> [Effect] {
    guard let state = links[id], !state.isTerminated else { return [] }
    let part = Array(value.prefix(ATTLimits.maximumWriteLength(mtu: state.mtu)))
    guard isIndication else {
      counters.notifications += 1
      return [.push(state.link, ATTPDU.handleValueNotification(handle: handle, value: part).encoded())]
    }
    links[id]?.indications.append((handle, part))
    return nextIndication(on: id)
  }

  /// The client has confirmed the outstanding indication.
  mutating func confirmed(_ id: ObjectIdentifier) -> [Effect] {
    guard links[id]?.isAwaitingConfirmation == true else {
      counters.violations[.unexpectedConfirmation, default: 0] += 1
      return []
    }
    counters.confirmations += 1
    links[id]?.isAwaitingConfirmation = false
    return nextIndication(on: id)
  }

  private mutating func nextIndication(on id: ObjectIdentifier) -> [Effect] {
    guard let state = links[id], !state.isAwaitingConfirmation, let next = state.indications.first else {
      return []
    }
    links[id]?.indications.removeFirst()
    links[id]?.isAwaitingConfirmation = true
    counters.indications += 1
    return [.push(state.link, ATTPDU.handleValueIndication(handle: next.handle, value: next.value).encoded())]
  }

  // MARK: The table

  /// Replaces the services; characteristics that stay keep their values and subscriptions.
  mutating func rebuild(_ services: [PlacedService]) -> [Effect] {
    self.services = services
    table = ServerTable(services)
    values = values.filter { table.entries[$0.key] != nil }
    descriptorValues = descriptorValues.filter { table.entries[$0.key.key] != nil }
    for client in bonds.keys { bonds[client]?.isTableStale = true }
    return linksInOrder.flatMap { announceTable(on: $0) }
  }

  /// Indicates Service Changed for the whole table, if the client asked for it.
  ///
  /// A bonded client that is away is told on its next link (Part G 7.1).
  mutating func announceTable(on id: ObjectIdentifier) -> [Effect] {
    guard let state = links[id] else { return [] }
    bonds[state.link.client]?.isTableStale = false
    guard let key = table.key(of: Characteristic(.serviceChanged, in: .genericAttribute)),
      let handle = table.entries[key]?.valueHandle, state.configurations[key, default: 0] & 2 != 0
    else { return [] }
    return push(handle, [0x01, 0x00, 0xFF, 0xFF], on: id, isIndication: true)
  }

  /// Inserts a service, and moves what stands behind it up by `distance`, or by as many handles as it takes.
  mutating func insert(_ service: VirtualService, at index: Int, distance: UInt16?) -> [Effect] {
    var changed = services
    let position = min(max(index, 0), changed.count)
    let shift = distance ?? UInt16(clamping: service.attributeCount)
    for later in position..<changed.count {
      changed[later].service = changed[later].service.shifted(by: shift)
    }
    changed.insert(adopt(service), at: position)
    return rebuild(changed)
  }
}
