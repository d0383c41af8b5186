import BluetoothWire
import Testing

@Suite struct ATTPDUTests {
  @Test(arguments: PublishedLayout.all)
  func decodesThePublishedLayout(_ layout: PublishedLayout) throws {
    #expect(try ATTPDU(decoding: layout.octets) == layout.pdu)
    #expect(try ATTPDU(decoding: layout.octets.span.bytes) == layout.pdu)
  }

  @Test(arguments: PublishedLayout.all)
  func encodesThePublishedLayout(_ layout: PublishedLayout) {
    #expect(layout.pdu.encoded() == layout.octets)
    #expect(layout.pdu.opcode.rawValue == layout.octets[0])
  }

  @Test func theLayoutsCoverEveryOpcode() {
    let covered = Set(PublishedLayout.all.map(\.pdu.opcode))
    #expect(ATTOpcode.known.filter { !covered.contains($0) } == [])
    #expect(ATTOpcode.known.count == 31)
  }

  @Test(arguments: ATTOpcode.known)
  func generatedPDUsComeBackEqual(_ opcode: ATTOpcode) throws {
    var random = SeededGenerator(seed: UInt64(opcode.rawValue))
    for _ in 0..<500 {
      let pdu = random.pdu(opcode)
      let octets = pdu.encoded()
      #expect(try ATTPDU(decoding: octets) == pdu)
      #expect(pdu.opcode == opcode)
      // Equal PDUs may differ in the form of a UUID; the octets must not.
      #expect(try ATTPDU(decoding: octets).encoded() == octets)
    }
  }

  @Test func anEncodedPDUNeedsNoMoreRoomThanItsOctets() {
    var random = SeededGenerator(seed: 7)
    for opcode in ATTOpcode.known {
      let pdu = random.pdu(opcode)
      let octets = pdu.encoded()
      var room: [UInt8] = []
      room.reserveCapacity(octets.count)
      let capacity = room.capacity
      pdu.appendEncoded(to: &room)
      #expect(room == octets)
      #expect(room.capacity == capacity)
    }
  }

  @Test func appendingKeepsWhatIsThere() {
    var octets: [UInt8] = [0xEE]
    ATTPDU.readRequest(handle: 0x1234).appendEncoded(to: &octets)
    #expect(octets == [0xEE, 0x0A, 0x34, 0x12])
  }

  @Test func theOpcodeIsReadWithoutTheRest() {
    #expect(ATTPDU.opcode(of: []) == nil)
    #expect(ATTPDU.opcode(of: [0x0A]) == .readRequest)
    #expect(ATTPDU.opcode(of: [0x0A, 0x01].span.bytes) == .readRequest)
    #expect(ATTPDU.opcode(of: [UInt8]().span.bytes) == nil)
  }

  @Test func aSpanInsideABufferIsReadFromItsOwnStart() throws {
    let buffer = hex("FF FF 1B 2A00 0648 FF")
    let part = buffer.span.bytes.extracting(2..<7)
    #expect(try ATTPDU(decoding: part) == .handleValueNotification(handle: 0x2A, value: [0x06, 0x48]))
  }
}

/// What the wire cannot say is fitted to it as the specification asks of a server.
@Suite struct ATTEncodingRuleTests {
  @Test func aListEndsBeforeTheFirstItemOfAnotherLength() throws {
    let octets = ATTPDU.readByTypeResponse([
      ATTHandleValue(handle: 1, value: [1, 2]), ATTHandleValue(handle: 2, value: [3, 4]),
      ATTHandleValue(handle: 3, value: [5]), ATTHandleValue(handle: 4, value: [6, 7]),
    ]).encoded()
    #expect(octets == hex("09 04 0100 0102 0200 0304"))
    let groups = ATTPDU.readByGroupTypeResponse([
      ATTGroupValue(start: 1, end: 2, value: [1, 2]), ATTGroupValue(start: 3, end: 4, value: [3]),
    ]).encoded()
    #expect(groups == hex("11 06 0100 0200 0102"))
  }

  @Test func aValueThatItsLengthOctetCannotSayIsCut() throws {
    let value = [UInt8](repeating: 9, count: 300)
    let octets = ATTPDU.readByTypeResponse([
      ATTHandleValue(handle: 1, value: value), ATTHandleValue(handle: 2, value: value),
    ]).encoded()
    #expect(octets.count == 2 + 2 * 255)
    #expect(octets[1] == 255)
    let groups = ATTPDU.readByGroupTypeResponse([ATTGroupValue(start: 1, end: 2, value: value)]).encoded()
    #expect(groups.count == 2 + 255)
    #expect(groups[1] == 255)
  }

  @Test func aLengthOf65535IsTheMost() throws {
    let value = [UInt8](repeating: 9, count: 65_540)
    #expect(ATTLengthValue(value: value).value.count == 65_535)
    let octets = ATTPDU.multipleHandleValueNotification([
      ATTHandleValue(handle: 1, value: value), ATTHandleValue(handle: 2, value: [1]),
    ]).encoded()
    #expect(octets.count == 1 + 4 + 65_535 + 4 + 1)
    #expect(try ATTPDU(decoding: octets).encoded() == octets)
  }

  @Test func typesOfBothFormsAreAllSaidIn128Bits() throws {
    let long = BluetoothUUID(1, 2)
    let items = [
      ATTHandleUUID(handle: 1, uuid: .batteryLevel), ATTHandleUUID(handle: 2, uuid: long),
    ]
    let octets = ATTPDU.findInformationResponse(items).encoded()
    #expect(octets.count == 2 + 2 * 18)
    #expect(try ATTPDU(decoding: octets) == .findInformationResponse(items))
  }

  @Test func anEmptyListIsNoPDU() {
    let empty: [ATTPDU] = [
      .findInformationResponse([]), .findByTypeValueResponse([]), .readByTypeResponse([]),
      .readByGroupTypeResponse([]), .readMultipleRequest(handles: []),
      .readMultipleVariableRequest(handles: []),
      .readMultipleVariableResponse([]), .multipleHandleValueNotification([]),
    ]
    for pdu in empty {
      #expect(throws: ATTDecodingError.self, "\(pdu)") { try ATTPDU(decoding: pdu.encoded()) }
    }
  }
}

@Suite struct ATTLengthValueTests {
  @Test func aCutResponseKeepsTheLengthThatWasSaid() throws {
    let octets = hex("21 0200 0102 0500 AABB")
    guard case .readMultipleVariableResponse(let items) = try ATTPDU(decoding: octets) else {
      Issue.record("decoded to another PDU")
      return
    }
    #expect(items.map(\.length) == [2, 5])
    #expect(items.map(\.value) == [[1, 2], [0xAA, 0xBB]])
    #expect(items.map(\.isTruncated) == [false, true])
    #expect(try ATTPDU(decoding: octets).encoded() == octets)
  }

  @Test func aResponseCutInsideALengthIsRead() throws {
    let octets = hex("21 0200 0102 05")
    guard case .readMultipleVariableResponse(let items) = try ATTPDU(decoding: octets) else {
      Issue.record("decoded to another PDU")
      return
    }
    #expect(items.map(\.value) == [[1, 2], []])
    #expect(items.map(\.isTruncated) == [false, true])
    #expect(try ATTPDU(decoding: octets).encoded() == octets)
  }

  @Test func aWholeValueIsNotTruncated() {
    #expect(ATTLengthValue(value: []).isTruncated == false)
    #expect(ATTLengthValue(value: [1]) == [1])
  }
}

@Suite struct ATTSignatureTests {
  @Test func twelveOctetsAreKeptAsTheyAre() {
    let octets = [UInt8](1...12)
    #expect(ATTSignature(octets)?.bytes == octets)
    for count in [0, 11, 13] {
      #expect(ATTSignature([UInt8](repeating: 1, count: count)) == nil)
    }
  }
}
