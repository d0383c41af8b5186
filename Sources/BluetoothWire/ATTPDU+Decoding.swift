extension ATTPDU {
  /// Decodes a PDU.
  ///
  /// Any octets are answered; none trap. A value costs one allocation, a PDU without a value none. Lengths are checked
  /// as Core Specification Vol 3 Part F 3.4 states them for each PDU, without regard to the MTU of the bearer.
  ///
  /// - Parameter bytes: All octets of one PDU, as the channel delivered them.
  /// - Throws: ``ATTDecodingError``, which says whether the peer is owed an answer.
  public init(decoding bytes: borrowing RawSpan) throws(ATTDecodingError) {
    guard bytes.byteCount > 0 else { throw ATTDecodingError(opcode: nil, problem: .empty) }
    // The opcode numbers are those of ATTOpcode; a switch over integers becomes one jump table.
    switch bytes.octet(at: 0) {
    case 0x0B: self = .readResponse(value: bytes.array(from: 1))
    case 0x1B:
      try bytes.require(atLeast: 3)
      self = .handleValueNotification(handle: bytes.uint16(at: 1), value: bytes.array(from: 3))
    case 0x13:
      try bytes.require(exactly: 1)
      self = .writeResponse
    case 0x01:
      try bytes.require(exactly: 5)
      self = .errorResponse(
        request: ATTOpcode(rawValue: bytes.octet(at: 1)), handle: bytes.uint16(at: 2),
        code: ATTErrorCode(rawValue: bytes.octet(at: 4)))
    case 0x02:
      try bytes.require(exactly: 3)
      self = .exchangeMTURequest(mtu: bytes.uint16(at: 1))
    case 0x03:
      try bytes.require(exactly: 3)
      self = .exchangeMTUResponse(mtu: bytes.uint16(at: 1))
    case 0x04:
      try bytes.require(exactly: 5)
      self = .findInformationRequest(start: bytes.uint16(at: 1), end: bytes.uint16(at: 3))
    case 0x05: self = .findInformationResponse(try Self.handleUUIDs(bytes))
    case 0x06:
      try bytes.require(atLeast: 7)
      self = .findByTypeValueRequest(
        start: bytes.uint16(at: 1), end: bytes.uint16(at: 3), type: bytes.uint16(at: 5),
        value: bytes.array(from: 7))
    case 0x07: self = .findByTypeValueResponse(try Self.handleRanges(bytes))
    case 0x08:
      self = .readByTypeRequest(
        start: try Self.rangeStart(bytes), end: bytes.uint16(at: 3), type: Self.attributeType(bytes))
    case 0x09: self = .readByTypeResponse(try Self.handleValues(bytes))
    case 0x0A:
      try bytes.require(exactly: 3)
      self = .readRequest(handle: bytes.uint16(at: 1))
    case 0x0C:
      try bytes.require(exactly: 5)
      self = .readBlobRequest(handle: bytes.uint16(at: 1), offset: bytes.uint16(at: 3))
    case 0x0D: self = .readBlobResponse(value: bytes.array(from: 1))
    case 0x0E: self = .readMultipleRequest(handles: try Self.handles(bytes))
    case 0x0F: self = .readMultipleResponse(value: bytes.array(from: 1))
    case 0x10:
      self = .readByGroupTypeRequest(
        start: try Self.rangeStart(bytes), end: bytes.uint16(at: 3), type: Self.attributeType(bytes))
    case 0x11: self = .readByGroupTypeResponse(try Self.groupValues(bytes))
    case 0x12:
      try bytes.require(atLeast: 3)
      self = .writeRequest(handle: bytes.uint16(at: 1), value: bytes.array(from: 3))
    case 0x16:
      try bytes.require(atLeast: 5)
      self = .prepareWriteRequest(
        handle: bytes.uint16(at: 1), offset: bytes.uint16(at: 3), value: bytes.array(from: 5))
    case 0x17:
      try bytes.require(atLeast: 5)
      self = .prepareWriteResponse(
        handle: bytes.uint16(at: 1), offset: bytes.uint16(at: 3), value: bytes.array(from: 5))
    case 0x18:
      try bytes.require(exactly: 2)
      let flags = bytes.octet(at: 1)
      guard flags <= 1 else { throw bytes.error(.invalidField) }
      self = .executeWriteRequest(commit: flags == 1)
    case 0x19:
      try bytes.require(exactly: 1)
      self = .executeWriteResponse
    case 0x1D:
      try bytes.require(atLeast: 3)
      self = .handleValueIndication(handle: bytes.uint16(at: 1), value: bytes.array(from: 3))
    case 0x1E:
      try bytes.require(exactly: 1)
      self = .handleValueConfirmation
    case 0x20: self = .readMultipleVariableRequest(handles: try Self.handles(bytes))
    case 0x21: self = .readMultipleVariableResponse(try Self.lengthValues(bytes))
    case 0x23: self = .multipleHandleValueNotification(try Self.handleLengthValues(bytes))
    case 0x52:
      try bytes.require(atLeast: 3)
      self = .writeCommand(handle: bytes.uint16(at: 1), value: bytes.array(from: 3))
    case 0xD2:
      let fixed = 3 + ATTLimits.signatureLength
      try bytes.require(atLeast: fixed)
      self = .signedWriteCommand(
        handle: bytes.uint16(at: 1), value: bytes.array(from: 3, count: bytes.byteCount - fixed),
        signature: ATTSignature(bytes, at: bytes.byteCount - ATTLimits.signatureLength))
    case let opcode:
      self = .unknown(opcode: ATTOpcode(rawValue: opcode), parameters: bytes.array(from: 1))
    }
  }

  /// Decodes a PDU.
  ///
  /// - Parameter bytes: All octets of one PDU, as the channel delivered them.
  /// - Throws: ``ATTDecodingError``, which says whether the peer is owed an answer.
  public init(decoding bytes: [UInt8]) throws(ATTDecodingError) {
    try self.init(decoding: bytes.span.bytes)
  }
}

// Lists. Item counts are known before the first item is made, so each list is allocated once.
extension ATTPDU {
  private static func handleUUIDs(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> [ATTHandleUUID] {
    try bytes.require(atLeast: 2)
    let format = bytes.octet(at: 1)
    guard format == 1 || format == 2 else { throw bytes.error(.invalidField) }
    let itemLength = format == 1 ? 4 : 18
    let count = try bytes.itemCount(from: 2, itemLength: itemLength)
    var items: [ATTHandleUUID] = []
    items.reserveCapacity(count)
    for index in 0..<count {
      let offset = 2 + index * itemLength
      let uuid =
        format == 1
        ? BluetoothUUID(bytes.uint16(at: offset + 2)) : BluetoothUUID(expanded: bytes, at: offset + 2)
      items.append(ATTHandleUUID(handle: bytes.uint16(at: offset), uuid: uuid))
    }
    return items
  }

  private static func handleRanges(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> [ATTHandleRange] {
    let count = try bytes.itemCount(from: 1, itemLength: 4)
    var items: [ATTHandleRange] = []
    items.reserveCapacity(count)
    for index in 0..<count {
      let offset = 1 + index * 4
      items.append(ATTHandleRange(start: bytes.uint16(at: offset), end: bytes.uint16(at: offset + 2)))
    }
    return items
  }

  private static func handleValues(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> [ATTHandleValue] {
    try bytes.require(atLeast: 2)
    let itemLength = Int(bytes.octet(at: 1))
    guard itemLength >= 2 else { throw bytes.error(.inconsistentList) }
    let count = try bytes.itemCount(from: 2, itemLength: itemLength)
    var items: [ATTHandleValue] = []
    items.reserveCapacity(count)
    for index in 0..<count {
      let offset = 2 + index * itemLength
      let value = bytes.array(from: offset + 2, count: itemLength - 2)
      items.append(ATTHandleValue(handle: bytes.uint16(at: offset), value: value))
    }
    return items
  }

  private static func groupValues(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> [ATTGroupValue] {
    try bytes.require(atLeast: 2)
    let itemLength = Int(bytes.octet(at: 1))
    guard itemLength >= 4 else { throw bytes.error(.inconsistentList) }
    let count = try bytes.itemCount(from: 2, itemLength: itemLength)
    var items: [ATTGroupValue] = []
    items.reserveCapacity(count)
    for index in 0..<count {
      let offset = 2 + index * itemLength
      let value = bytes.array(from: offset + 4, count: itemLength - 4)
      items.append(
        ATTGroupValue(start: bytes.uint16(at: offset), end: bytes.uint16(at: offset + 2), value: value))
    }
    return items
  }

  /// Two or more handles, as 3.4.4.7 and 3.4.4.11 ask for.
  private static func handles(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> [UInt16] {
    try bytes.require(atLeast: 5)
    let count = try bytes.itemCount(from: 1, itemLength: 2)
    var handles: [UInt16] = []
    handles.reserveCapacity(count)
    for index in 0..<count { handles.append(bytes.uint16(at: 1 + index * 2)) }
    return handles
  }

  /// Two lengths at least, the shortest list that 3.4.4.12 allows; the list may end anywhere after that.
  private static func lengthValues(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> [ATTLengthValue] {
    try bytes.require(atLeast: 5)
    let end = bytes.byteCount
    var items: [ATTLengthValue] = []
    var offset = 1
    while offset < end {
      guard end - offset >= 2 else {
        items.append(ATTLengthValue(length: UInt16(bytes.octet(at: offset)), value: [], isLengthCut: true))
        break
      }
      let length = bytes.uint16(at: offset)
      let count = min(Int(length), end - offset - 2)
      let value = bytes.array(from: offset + 2, count: count)
      items.append(ATTLengthValue(length: length, value: value, isLengthCut: false))
      offset += 2 + count
    }
    return items
  }

  /// Two or more whole values (3.4.7.4); unlike a response such a list is never cut.
  private static func handleLengthValues(
    _ bytes: borrowing RawSpan
  ) throws(ATTDecodingError) -> [ATTHandleValue] {
    try bytes.require(atLeast: 9)
    let end = bytes.byteCount
    var items: [ATTHandleValue] = []
    var offset = 1
    while offset < end {
      guard end - offset >= 4 else { throw bytes.error(.inconsistentList) }
      let count = Int(bytes.uint16(at: offset + 2))
      guard end - offset - 4 >= count else { throw bytes.error(.inconsistentList) }
      let value = bytes.array(from: offset + 4, count: count)
      items.append(ATTHandleValue(handle: bytes.uint16(at: offset), value: value))
      offset += 4 + count
    }
    guard items.count >= 2 else { throw bytes.error(.badLength) }
    return items
  }

  /// Checks the length of a request for a type in a range, then reads the start of the range.
  @inline(__always)
  private static func rangeStart(_ bytes: borrowing RawSpan) throws(ATTDecodingError) -> UInt16 {
    try bytes.require(atLeast: 7)
    guard bytes.byteCount == 7 || bytes.byteCount == 21 else { throw bytes.error(.badLength) }
    return bytes.uint16(at: 1)
  }

  @inline(__always)
  private static func attributeType(_ bytes: borrowing RawSpan) -> BluetoothUUID {
    bytes.byteCount == 7 ? BluetoothUUID(bytes.uint16(at: 5)) : BluetoothUUID(expanded: bytes, at: 5)
  }
}

extension RawSpan {
  fileprivate func error(_ problem: ATTDecodingError.Problem) -> ATTDecodingError {
    ATTDecodingError(opcode: ATTPDU.opcode(of: self), problem: problem)
  }

  @inline(__always)
  fileprivate func require(exactly count: Int) throws(ATTDecodingError) {
    guard byteCount == count else { throw error(byteCount < count ? .truncated : .badLength) }
  }

  @inline(__always)
  fileprivate func require(atLeast count: Int) throws(ATTDecodingError) {
    guard byteCount >= count else { throw error(.truncated) }
  }

  /// The number of items of one length that fill the PDU from `start` on, at least one.
  fileprivate func itemCount(from start: Int, itemLength: Int) throws(ATTDecodingError) -> Int {
    guard byteCount > start else { throw error(.emptyList) }
    let (count, rest) = (byteCount - start).quotientAndRemainder(dividingBy: itemLength)
    guard rest == 0 else { throw error(.inconsistentList) }
    return count
  }
}
