internal import BluetoothWire
internal import Relink

// Discovery and reads (Core Specification Vol 3 Part F 3.4.3 and 3.4.4).
extension GATTServer {
  /// A range has to start above zero and not behind its end (3.4.3.1).
  private func checkRange(_ start: UInt16, _ end: UInt16) throws(Fault) {
    guard start > 0, start <= end else { throw Fault(handle: start, code: .invalidHandle) }
  }

  func findInformation(_ start: UInt16, _ end: UInt16, _ state: LinkState) throws(Fault) -> [UInt8] {
    try checkRange(start, end)
    let found = table.attributes(from: start, through: end)
    guard let length = found.first?.type.wireLength else {
      throw Fault(handle: start, code: .attributeNotFound)
    }
    let items =
      found
      .prefix { $0.type.wireLength == length }
      .prefix(ATTLimits.maximumFindInformationItems(mtu: state.mtu, uuidLength: length))
      .map { ATTHandleUUID(handle: $0.handle, uuid: $0.type) }
    return ATTPDU.findInformationResponse(items).encoded()
  }

  func findByTypeValue(
    _ start: UInt16, _ end: UInt16, _ type: UInt16, _ value: [UInt8], _ state: LinkState
  ) throws(Fault) -> [UInt8] {
    try checkRange(start, end)
    let wanted = BluetoothUUID(type)
    let found = table.attributes(from: start, through: end).filter {
      $0.type == wanted && self.value(of: $0, for: state) == value && readFault($0, state) == nil
    }
    guard !found.isEmpty else { throw Fault(handle: start, code: .attributeNotFound) }
    let items = found.prefix(ATTLimits.maximumFindByTypeValueItems(mtu: state.mtu)).map {
      ATTHandleRange(start: $0.handle, end: table.groupEnd(of: $0))
    }
    return ATTPDU.findByTypeValueResponse(Array(items)).encoded()
  }

  mutating func readByType(
    _ start: UInt16, _ end: UInt16, _ type: BluetoothUUID, _ state: LinkState
  ) throws(Fault) -> [UInt8] {
    try checkRange(start, end)
    let found = table.attributes(from: start, through: end).filter { $0.type == type }
    guard let first = found.first else { throw Fault(handle: start, code: .attributeNotFound) }
    if let code = readFault(first, state) { throw Fault(handle: first.handle, code: code) }
    let limit = ATTLimits.maximumReadByTypeValueLength(mtu: state.mtu)
    var items: [ATTHandleValue] = []
    for attribute in found {
      // The list ends before the first value that may not be read or has another length (3.4.4.2).
      let value = Array(self.value(of: attribute, for: state).prefix(limit))
      guard readFault(attribute, state) == nil, value.count == items.first?.value.count ?? value.count,
        items.count < ATTLimits.maximumReadByTypeItems(mtu: state.mtu, valueLength: value.count)
      else { break }
      countRead(attribute)
      items.append(ATTHandleValue(handle: attribute.handle, value: value))
    }
    return ATTPDU.readByTypeResponse(items).encoded()
  }

  func readByGroupType(
    _ start: UInt16, _ end: UInt16, _ type: BluetoothUUID, _ state: LinkState
  ) throws(Fault) -> [UInt8] {
    try checkRange(start, end)
    guard type == .primaryService || type == .secondaryService else {
      throw Fault(handle: start, code: .unsupportedGroupType)
    }
    let found = table.attributes(from: start, through: end).filter { $0.type == type }
    guard let length = found.first?.fixedValue.count else {
      throw Fault(handle: start, code: .attributeNotFound)
    }
    let items =
      found
      .prefix { $0.fixedValue.count == length }
      .prefix(ATTLimits.maximumReadByGroupTypeItems(mtu: state.mtu, valueLength: length))
      .map { ATTGroupValue(start: $0.handle, end: table.groupEnd(of: $0), value: $0.fixedValue) }
    return ATTPDU.readByGroupTypeResponse(items).encoded()
  }

  mutating func read(_ handle: UInt16, _ state: LinkState) throws(Fault) -> [UInt8] {
    let attribute = try readable(handle, state)
    countRead(attribute)
    let value = value(of: attribute, for: state).prefix(ATTLimits.maximumReadLength(mtu: state.mtu))
    return ATTPDU.readResponse(value: Array(value)).encoded()
  }

  func readBlob(_ handle: UInt16, _ offset: Int, _ state: LinkState) throws(Fault) -> [UInt8] {
    let value = value(of: try readable(handle, state), for: state)
    guard offset <= value.count else { throw Fault(handle: handle, code: .invalidOffset) }
    let part = value.dropFirst(offset).prefix(ATTLimits.maximumReadLength(mtu: state.mtu))
    return ATTPDU.readBlobResponse(value: Array(part)).encoded()
  }

  mutating func readMultiple(_ handles: [UInt16], _ state: LinkState) throws(Fault) -> [UInt8] {
    let value = try readEach(handles, state).flatMap { $0 }
    let part = value.prefix(ATTLimits.maximumReadLength(mtu: state.mtu))
    return ATTPDU.readMultipleResponse(value: Array(part)).encoded()
  }

  mutating func readMultipleVariable(_ handles: [UInt16], _ state: LinkState) throws(Fault) -> [UInt8] {
    let items = try readEach(handles, state).map { ATTLengthValue(value: $0) }
    // Cut where the PDU is full, be it within a length (3.4.4.12).
    return Array(ATTPDU.readMultipleVariableResponse(items).encoded().prefix(state.mtu))
  }

  private mutating func readEach(_ handles: [UInt16], _ state: LinkState) throws(Fault) -> [[UInt8]] {
    var attributes: [ServerTable.Attribute] = []
    for handle in handles { attributes.append(try readable(handle, state)) }
    attributes.forEach { countRead($0) }
    return attributes.map { value(of: $0, for: state) }
  }

  private func readable(_ handle: UInt16, _ state: LinkState) throws(Fault) -> ServerTable.Attribute {
    guard let attribute = table.attribute(at: handle) else {
      throw Fault(handle: handle, code: .invalidHandle)
    }
    if let code = readFault(attribute, state) { throw Fault(handle: handle, code: code) }
    return attribute
  }

  /// Why an attribute may not be read on a link; nil if it may.
  private func readFault(_ attribute: ServerTable.Attribute, _ state: LinkState) -> ATTErrorCode? {
    guard case .value(let key) = attribute.role, let declared = table.entries[key]?.declared else {
      return nil
    }
    guard declared.properties.contains(.read) else { return .readNotPermitted }
    return shortfall(of: state, for: declared.security)
  }

  private mutating func countRead(_ attribute: ServerTable.Attribute) {
    guard case .value = attribute.role else { return }
    counters.reads[attribute.handle, default: 0] += 1
  }

  /// The value of an attribute as this client sees it.
  private func value(of attribute: ServerTable.Attribute, for state: LinkState) -> [UInt8] {
    switch attribute.role {
    case .service, .declaration: attribute.fixedValue
    case .value(let key): currentValue(of: key)
    case .configuration(let key): state.configurations[key, default: 0].littleEndianOctets
    case .descriptor(let key, let index): descriptorValues[DescriptorKey(key: key, index: index)] ?? []
    }
  }

  /// The value of a characteristic; the hash of the table is made when it is asked for.
  func currentValue(of key: CharacteristicKey) -> [UInt8] {
    if table.entries[key]?.declared.uuid == .databaseHash { return table.hash }
    return values[key] ?? []
  }
}

extension UInt16 {
  /// The two octets, the least significant first.
  var littleEndianOctets: [UInt8] {
    [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)]
  }
}
