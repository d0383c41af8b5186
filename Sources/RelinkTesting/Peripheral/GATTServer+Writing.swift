internal import BluetoothWire
internal import Relink

// Writes (Core Specification Vol 3 Part F 3.4.5 and 3.4.6).
extension GATTServer {
  mutating func write(
    _ handle: UInt16, _ value: [UInt8], _ way: AppliedWrite.Way, on state: inout LinkState, applies: Bool,
    _ effects: inout [Effect]
  ) throws(Fault) -> [UInt8] {
    let attribute = try writable(handle, way, state)
    if let code = lengthFault(attribute, value) { throw Fault(handle: handle, code: code) }
    if applies { apply(value, to: attribute, way, on: &state, &effects) }
    return way == .command ? [] : ATTPDU.writeResponse.encoded()
  }

  mutating func prepare(
    _ handle: UInt16, _ offset: Int, _ value: [UInt8], on state: inout LinkState, bearer: Int
  ) throws(Fault) -> [UInt8] {
    _ = try writable(handle, .prepared, state)
    guard state.bearers[bearer, default: Bearer()].prepared.count < prepareLimit else {
      throw Fault(handle: handle, code: .prepareQueueFull)
    }
    let part = Prepared(handle: handle, offset: offset, value: value)
    state.bearers[bearer, default: Bearer()].prepared.append(part)
    let echo = ATTPDU.prepareWriteResponse(handle: handle, offset: UInt16(clamping: offset), value: value)
    return echo.encoded()
  }

  /// Writes what is queued, all of it or nothing; the queue is empty after it in every case (3.4.6.3).
  mutating func execute(
    _ commit: Bool, on state: inout LinkState, bearer: Int, applies: Bool, _ effects: inout [Effect]
  ) throws(Fault) -> [UInt8] {
    let queue = state.bearers[bearer]?.prepared ?? []
    state.bearers[bearer]?.prepared = []
    guard commit else { return ATTPDU.executeWriteResponse.encoded() }

    var results: [(attribute: ServerTable.Attribute, value: [UInt8])] = []
    for part in queue {
      let attribute = try writable(part.handle, .prepared, state)
      let index = results.lastIndex { $0.attribute.handle == part.handle }
      // The first part takes the place of the old value if it stands at the start; the others go on from what is there.
      var value = index.map { results[$0].value } ?? (part.offset == 0 ? [] : stored(attribute))
      guard part.offset <= value.count else { throw Fault(handle: part.handle, code: .invalidOffset) }
      value.replaceSubrange(part.offset..<min(part.offset + part.value.count, value.count), with: part.value)
      // A part at the start of a value that has parts already is another write of it, and counts as one.
      if let index, part.offset > 0 {
        results[index].value = value
      } else {
        results.append((attribute, value))
      }
    }
    for (attribute, value) in results {
      if let code = lengthFault(attribute, value) { throw Fault(handle: attribute.handle, code: code) }
    }
    if applies, !results.isEmpty {
      counters.executions += 1
      for (attribute, value) in results { apply(value, to: attribute, .prepared, on: &state, &effects) }
    }
    return ATTPDU.executeWriteResponse.encoded()
  }

  private func stored(_ attribute: ServerTable.Attribute) -> [UInt8] {
    switch attribute.role {
    case .service, .declaration, .configuration: []
    case .value(let key): currentValue(of: key)
    case .descriptor(let key, let index): descriptorValues[DescriptorKey(key: key, index: index)] ?? []
    }
  }

  private func writable(
    _ handle: UInt16, _ way: AppliedWrite.Way, _ state: LinkState
  ) throws(Fault) -> ServerTable.Attribute {
    guard let attribute = table.attribute(at: handle) else {
      throw Fault(handle: handle, code: .invalidHandle)
    }
    let isAllowed: Bool
    switch attribute.role {
    case .service, .declaration: isAllowed = false
    case .configuration: isAllowed = way == .request
    case .value(let key):
      let needed: CharacteristicProperties = way == .command ? .writeWithoutResponse : .write
      isAllowed = table.entries[key]?.declared.properties.contains(needed) ?? false
    case .descriptor(let key, let index):
      isAllowed = way != .command && table.entries[key]?.declared.descriptors[index].isWritable ?? false
    }
    guard isAllowed else { throw Fault(handle: handle, code: .writeNotPermitted) }
    if let key = table.key(at: handle), let declared = table.entries[key]?.declared,
      let code = shortfall(of: state, for: declared.security)
    {
      throw Fault(handle: handle, code: code)
    }
    return attribute
  }

  /// Why a value does not suit an attribute; nil if it does.
  private func lengthFault(_ attribute: ServerTable.Attribute, _ value: [UInt8]) -> ATTErrorCode? {
    switch attribute.role {
    case .service, .declaration: return nil
    case .value(let key):
      let lengths = table.entries[key]?.declared.lengths ?? 0...ATTLimits.maximumAttributeLength
      return lengths.contains(value.count) ? nil : .invalidAttributeValueLength
    case .descriptor:
      return value.count <= ATTLimits.maximumAttributeLength ? nil : .invalidAttributeValueLength
    case .configuration(let key):
      guard value.count == 2 else { return .invalidAttributeValueLength }
      let properties = table.entries[key]?.declared.properties ?? []
      let bits = UInt16(value[0]) | UInt16(value[1]) << 8
      let allowed: UInt16 = (properties.contains(.notify) ? 1 : 0) | (properties.contains(.indicate) ? 2 : 0)
      return bits & ~allowed == 0 ? nil : .valueNotAllowed
    }
  }

  private mutating func apply(
    _ value: [UInt8], to attribute: ServerTable.Attribute, _ way: AppliedWrite.Way, on state: inout LinkState,
    _ effects: inout [Effect]
  ) {
    switch attribute.role {
    case .service, .declaration: return
    case .descriptor(let key, let index): descriptorValues[DescriptorKey(key: key, index: index)] = value
    case .value(let key):
      guard let entry = table.entries[key] else { return }
      values[key] = value
      let write = AppliedWrite(
        handle: attribute.handle, characteristic: entry.name, value: value, way: way, link: state.link.number,
        client: state.link.client, at: state.link.now)
      counters.applied.append(write)
      effects.append(.applied(write))
    case .configuration(let key):
      guard let entry = table.entries[key] else { return }
      let bits = UInt16(value[0]) | UInt16(value[1]) << 8
      state.configurations[key] = bits
      bonds[state.link.client]?.configurations[key] = bits
      counters.subscriptions.append(
        SubscriptionWrite(
          handle: attribute.handle, characteristic: entry.name, bits: bits, link: state.link.number,
          at: state.link.now))
    }
  }
}
