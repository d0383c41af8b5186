internal import BluetoothWire
internal import Relink

/// A service with names for its characteristics that outlive changes of the table.
struct PlacedService {
  var service: VirtualService
  var keys: [CharacteristicKey]
}

/// The name of a characteristic for as long as a peripheral has it, whatever its handles are.
struct CharacteristicKey: Hashable {
  var number: Int
}

/// The attributes of a server in the order of their handles, as built from declarations.
struct ServerTable {
  enum Role: Hashable {
    case service
    case declaration(CharacteristicKey)
    case value(CharacteristicKey)
    case configuration(CharacteristicKey)
    case descriptor(CharacteristicKey, Int)
  }

  struct Attribute {
    var handle: UInt16
    var type: BluetoothUUID
    var role: Role
    /// What a declaration says; values live in the server.
    var fixedValue: [UInt8]
  }

  /// What is known of one characteristic.
  struct Entry {
    var declared: VirtualCharacteristic
    var service: BluetoothUUID
    var valueHandle: UInt16
    var configurationHandle: UInt16?
    /// The name by which it is found, with the number among those of the same service and UUID.
    var name: Characteristic
  }

  private(set) var attributes: [Attribute] = []
  private(set) var entries: [CharacteristicKey: Entry] = [:]
  /// The characteristics in the order of their handles.
  private(set) var order: [CharacteristicKey] = []
  /// The services with the ends of their groups.
  private(set) var groups: [(uuid: BluetoothUUID, isPrimary: Bool, start: UInt16, end: UInt16)] = []
  private var positions: [UInt16: Int] = [:]

  init(_ services: [PlacedService]) {
    var next: UInt16 = 1
    for placed in services { place(placed, next: &next) }
    for (index, attribute) in attributes.enumerated() { positions[attribute.handle] = index }
  }

  /// Lays one service out; handles that a declaration fixes must not lie behind the place they would have by order.
  private mutating func place(_ placed: PlacedService, next: inout UInt16) {
    let service = placed.service
    let implied = service.characteristics.first?.valueHandle.map { $0 - 2 }
    let start = service.handle ?? implied ?? next
    precondition(start >= next, "service \(service.uuid) is to stand at \(start), which is taken")
    next = start
    append(
      service.isPrimary ? .primaryService : .secondaryService, .service, service.uuid.encoded(), next: &next)
    var occurrences: [BluetoothUUID: Int] =
      groups.filter { $0.uuid == service.uuid }.isEmpty ? [:] : counts(service.uuid)
    for (key, declared) in zip(placed.keys, service.characteristics) {
      let valueHandle = declared.valueHandle ?? next + 1
      precondition(
        valueHandle > next, "characteristic \(declared.uuid) is to stand at \(valueHandle), which is taken")
      next = valueHandle - 1
      let low = UInt8(truncatingIfNeeded: valueHandle)
      let high = UInt8(truncatingIfNeeded: valueHandle >> 8)
      append(
        .characteristic, .declaration(key),
        [declared.properties.rawValue, low, high] + declared.uuid.encoded(),
        next: &next)
      append(declared.uuid, .value(key), [], next: &next)
      var configurationHandle: UInt16?
      if declared.hasConfiguration {
        configurationHandle = next
        append(.clientCharacteristicConfiguration, .configuration(key), [], next: &next)
      }
      for (index, descriptor) in declared.descriptors.enumerated() {
        append(descriptor.uuid, .descriptor(key, index), [], next: &next)
      }
      let occurrence = occurrences[declared.uuid, default: 0]
      occurrences[declared.uuid] = occurrence + 1
      order.append(key)
      entries[key] = Entry(
        declared: declared, service: service.uuid, valueHandle: valueHandle,
        configurationHandle: configurationHandle,
        name: Characteristic(declared.uuid, in: service.uuid, occurrence: occurrence))
    }
    groups.append((service.uuid, service.isPrimary, start, next - 1))
  }

  /// How often each characteristic occurs so far in services of this UUID.
  private func counts(_ service: BluetoothUUID) -> [BluetoothUUID: Int] {
    var counts: [BluetoothUUID: Int] = [:]
    for entry in entries.values where entry.service == service {
      counts[entry.declared.uuid, default: 0] += 1
    }
    return counts
  }

  private mutating func append(
    _ type: BluetoothUUID, _ role: Role, _ fixedValue: [UInt8], next: inout UInt16
  ) {
    precondition(next < UInt16.max, "the table is full")
    attributes.append(Attribute(handle: next, type: type, role: role, fixedValue: fixedValue))
    next += 1
  }

  /// The attribute at a handle.
  func attribute(at handle: UInt16) -> Attribute? {
    positions[handle].map { attributes[$0] }
  }

  /// The attributes in a range of handles.
  func attributes(from start: UInt16, through end: UInt16) -> ArraySlice<Attribute> {
    let first = attributes.firstIndex { $0.handle >= start } ?? attributes.endIndex
    return attributes[first...].prefix { $0.handle <= end }
  }

  /// The last handle of the group that a service declaration starts; otherwise the handle itself.
  func groupEnd(of attribute: Attribute) -> UInt16 {
    guard attribute.role == .service else { return attribute.handle }
    return groups.first { $0.start == attribute.handle }?.end ?? attribute.handle
  }

  /// The characteristic of a name.
  func key(of name: Characteristic) -> CharacteristicKey? {
    var occurrence = 0
    for key in order {
      guard let entry = entries[key], entry.declared.uuid == name.uuid else { continue }
      if let service = name.service, service != entry.service { continue }
      if occurrence == name.occurrence { return key }
      occurrence += 1
    }
    return nil
  }

  /// The characteristic to which an attribute belongs: by its value, its declaration or one of its descriptors.
  func key(at handle: UInt16) -> CharacteristicKey? {
    guard let attribute = attribute(at: handle) else { return nil }
    switch attribute.role {
    case .service: return nil
    case .declaration(let key), .value(let key), .configuration(let key), .descriptor(let key, _): return key
    }
  }

  /// The table as a link shows it, without handles.
  var discovered: [DiscoveredService] {
    groups.map { group in
      let members = order.compactMap { entries[$0] }.filter { group.start...group.end ~= $0.valueHandle }
      return DiscoveredService(
        uuid: group.uuid,
        characteristics: members.map { entry in
          let configuration: [BluetoothUUID] =
            entry.configurationHandle == nil ? [] : [.clientCharacteristicConfiguration]
          return DiscoveredCharacteristic(
            name: entry.name, properties: entry.declared.properties,
            descriptors: configuration + entry.declared.descriptors.map(\.uuid))
        })
    }
  }
}
