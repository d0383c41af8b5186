package import BluetoothWire

/// The attribute table of a device, as far as a client needs it: primary services, characteristics, descriptors.
///
/// A table is made whole, by ``DiscoveryProcedure``, or not at all.
package struct AttributeTable: Sendable, Equatable {
  /// A service and the handles it spans.
  package struct Service: Hashable, Sendable {
    package var uuid: BluetoothUUID
    package var start: UInt16
    package var end: UInt16

    package init(uuid: BluetoothUUID, start: UInt16, end: UInt16) {
      self.uuid = uuid
      self.start = start
      self.end = end
    }
  }

  /// A characteristic with its handles.
  package struct Entry: Hashable, Sendable {
    /// The unambiguous name: UUID, service, and which of those in services of that UUID.
    package var name: Characteristic
    package var properties: CharacteristicProperties
    /// The handle of the declaration.
    package var declaration: UInt16
    /// The handle of the value.
    package var value: UInt16
    /// The descriptors in the order of their handles.
    package var descriptors: [ATTHandleUUID]

    /// The handle of the Client Characteristic Configuration descriptor (Vol 3 Part G 3.3.3.3), if there is one.
    package var configuration: UInt16? {
      descriptors.first { $0.uuid == .clientCharacteristicConfiguration }?.handle
    }
  }

  /// The primary services in the order of their handles.
  package let services: [Service]
  /// The characteristics in the order of their handles.
  package let entries: [Entry]
  /// The value of the Database Hash that belongs to the table (Vol 3 Part G 7.3), if the device gave one.
  package let databaseHash: [UInt8]?
  /// What a session is shown.
  package let discovered: [DiscoveredService]

  /// Where names lead to: those with a service and those without.
  private let index: [Characteristic: Int]

  /// A characteristic as it was found, before it has a name.
  package struct Found: Hashable, Sendable {
    package var service: Int
    package var uuid: BluetoothUUID
    package var properties: CharacteristicProperties
    package var declaration: UInt16
    package var value: UInt16
    package var descriptors: [ATTHandleUUID] = []

    package init(
      service: Int, uuid: BluetoothUUID, properties: CharacteristicProperties, declaration: UInt16,
      value: UInt16
    ) {
      self.service = service
      self.uuid = uuid
      self.properties = properties
      self.declaration = declaration
      self.value = value
    }
  }

  /// Makes a table of what was found; both lists in the order of their handles, `Found.service` an index of `services`.
  package init(services: [Service], characteristics: [Found], databaseHash: [UInt8]?) {
    var index: [Characteristic: Int] = [:]
    var occurrences: [Characteristic: Int] = [:]
    var entries: [Entry] = []
    var discovered = services.map { DiscoveredService(uuid: $0.uuid, characteristics: []) }
    entries.reserveCapacity(characteristics.count)
    for found in characteristics {
      var name = Characteristic(found.uuid, in: services[found.service].uuid)
      name.occurrence = occurrences[name, default: 0]
      occurrences[Characteristic(name.uuid, in: name.service), default: 0] += 1
      var anywhere = Characteristic(found.uuid)
      anywhere.occurrence = occurrences[anywhere, default: 0]
      occurrences[Characteristic(name.uuid), default: 0] += 1
      index[name] = entries.count
      index[anywhere] = entries.count
      entries.append(
        Entry(
          name: name, properties: found.properties, declaration: found.declaration, value: found.value,
          descriptors: found.descriptors))
      discovered[found.service].characteristics.append(
        DiscoveredCharacteristic(
          name: name, properties: found.properties, descriptors: found.descriptors.map(\.uuid)))
    }
    self.services = services
    self.entries = entries
    self.databaseHash = databaseHash
    self.discovered = discovered
    self.index = index
  }

  /// The characteristic of a name; the service may be left open.
  package func entry(of name: Characteristic) -> Entry? {
    index[name].map { entries[$0] }
  }

  /// The handle of the value of a characteristic.
  package func valueHandle(of name: Characteristic) -> UInt16? {
    index[name].map { entries[$0].value }
  }

  /// The characteristic whose value has this handle.
  package func entry(ofValue handle: UInt16) -> Entry? {
    // Value handles grow with the declarations, so the entries are sorted by them too.
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].value < handle { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count, entries[low].value == handle else { return nil }
    return entries[low]
  }

  /// Whether the device has a Database Hash, readable or not.
  package var hasDatabaseHash: Bool {
    index[Characteristic(.databaseHash)] != nil
  }

  /// Whether the other table has the same attributes at the same handles; the hashes are not compared.
  package func hasSameAttributes(as other: AttributeTable) -> Bool {
    services == other.services && entries == other.entries
  }

  package static func == (left: AttributeTable, right: AttributeTable) -> Bool {
    left.hasSameAttributes(as: right) && left.databaseHash == right.databaseHash
  }
}
