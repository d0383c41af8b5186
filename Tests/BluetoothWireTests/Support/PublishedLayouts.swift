import BluetoothWire
import Testing

/// One PDU in octets, written by hand from the tables of Core Specification Vol 3 Part F 3.4.
struct PublishedLayout: Sendable, CustomTestStringConvertible {
  let octets: [UInt8]
  let pdu: ATTPDU
  var testDescription: String { hex(octets) }

  init(_ octets: String, _ pdu: ATTPDU) {
    self.octets = hex(octets)
    self.pdu = pdu
  }

  private static let long = BluetoothUUID("F0000001-0451-4000-B000-0123456789AB")!
  private static let wide = BluetoothUUID(0x2A37).expanded

  static let all: [PublishedLayout] = [
    PublishedLayout(
      "01 0A 2500 0A", .errorResponse(request: .readRequest, handle: 0x25, code: .attributeNotFound)),
    PublishedLayout(
      "01 FF FFFF 80",
      .errorResponse(
        request: ATTOpcode(rawValue: 0xFF), handle: 0xFFFF, code: ATTErrorCode(rawValue: 0x80))),
    PublishedLayout("02 1702", .exchangeMTURequest(mtu: 535)),
    PublishedLayout("03 1700", .exchangeMTUResponse(mtu: 23)),
    PublishedLayout("04 0100 FFFF", .findInformationRequest(start: 1, end: 0xFFFF)),
    PublishedLayout(
      "05 01 1000 0028 1100 0328",
      .findInformationResponse([
        ATTHandleUUID(handle: 0x10, uuid: .primaryService),
        ATTHandleUUID(handle: 0x11, uuid: .characteristic),
      ])),
    PublishedLayout(
      "05 02 1200 AB89674523 0100B0 0040 5104 010000F0",
      .findInformationResponse([
        ATTHandleUUID(handle: 0x12, uuid: long)
      ])),
    PublishedLayout(
      "05 02 1200 FB349B5F80000080 00100000 372A0000",
      .findInformationResponse([
        ATTHandleUUID(handle: 0x12, uuid: wide)
      ])),
    PublishedLayout(
      "06 0100 FFFF 0028 0F18",
      .findByTypeValueRequest(
        start: 1, end: 0xFFFF, type: 0x2800, value: [0x0F, 0x18])),
    PublishedLayout(
      "06 0100 FFFF 0028", .findByTypeValueRequest(start: 1, end: 0xFFFF, type: 0x2800, value: [])),
    PublishedLayout(
      "07 0100 0500 1000 FFFF",
      .findByTypeValueResponse([
        ATTHandleRange(start: 1, end: 5), ATTHandleRange(start: 0x10, end: 0xFFFF),
      ])),
    PublishedLayout("08 0100 0A00 0328", .readByTypeRequest(start: 1, end: 10, type: .characteristic)),
    PublishedLayout(
      "08 0100 0A00 AB89674523 0100B0 0040 5104 010000F0",
      .readByTypeRequest(
        start: 1, end: 10, type: long)),
    PublishedLayout(
      "08 0100 0A00 FB349B5F80000080 00100000 372A0000",
      .readByTypeRequest(
        start: 1, end: 10, type: wide)),
    PublishedLayout(
      "09 07 0200 020300 002A 0400 020500 012A",
      .readByTypeResponse([
        ATTHandleValue(handle: 2, value: [0x02, 0x03, 0x00, 0x00, 0x2A]),
        ATTHandleValue(handle: 4, value: [0x02, 0x05, 0x00, 0x01, 0x2A]),
      ])),
    PublishedLayout("09 02 0200", .readByTypeResponse([ATTHandleValue(handle: 2, value: [])])),
    PublishedLayout("0A 0300", .readRequest(handle: 3)),
    PublishedLayout("0B", .readResponse(value: [])),
    PublishedLayout("0B 64", .readResponse(value: [100])),
    PublishedLayout("0C 0300 1600", .readBlobRequest(handle: 3, offset: 22)),
    PublishedLayout("0D", .readBlobResponse(value: [])),
    PublishedLayout("0D 0102", .readBlobResponse(value: [1, 2])),
    PublishedLayout("0E 0300 0500", .readMultipleRequest(handles: [3, 5])),
    PublishedLayout("0F 010203", .readMultipleResponse(value: [1, 2, 3])),
    PublishedLayout(
      "10 0100 FFFF 0028", .readByGroupTypeRequest(start: 1, end: 0xFFFF, type: .primaryService)),
    PublishedLayout(
      "10 0100 FFFF AB89674523 0100B0 0040 5104 010000F0",
      .readByGroupTypeRequest(
        start: 1, end: 0xFFFF, type: long)),
    PublishedLayout(
      "11 06 0100 0700 0018 0800 FFFF 0118",
      .readByGroupTypeResponse([
        ATTGroupValue(start: 1, end: 7, value: [0x00, 0x18]),
        ATTGroupValue(start: 8, end: 0xFFFF, value: [0x01, 0x18]),
      ])),
    PublishedLayout("12 0300 01", .writeRequest(handle: 3, value: [1])),
    PublishedLayout("12 0300", .writeRequest(handle: 3, value: [])),
    PublishedLayout("13", .writeResponse),
    PublishedLayout("16 0300 1200 0102", .prepareWriteRequest(handle: 3, offset: 18, value: [1, 2])),
    PublishedLayout("17 0300 1200 0102", .prepareWriteResponse(handle: 3, offset: 18, value: [1, 2])),
    PublishedLayout("18 00", .executeWriteRequest(commit: false)),
    PublishedLayout("18 01", .executeWriteRequest(commit: true)),
    PublishedLayout("19", .executeWriteResponse),
    PublishedLayout("1B 2A00 0648", .handleValueNotification(handle: 0x2A, value: [0x06, 0x48])),
    PublishedLayout("1B 2A00", .handleValueNotification(handle: 0x2A, value: [])),
    PublishedLayout("1D 2A00 0648", .handleValueIndication(handle: 0x2A, value: [0x06, 0x48])),
    PublishedLayout("1E", .handleValueConfirmation),
    PublishedLayout("20 0300 0500", .readMultipleVariableRequest(handles: [3, 5])),
    PublishedLayout("21 0200 0102 0000", .readMultipleVariableResponse([[1, 2], []])),
    PublishedLayout(
      "23 0300 0100 07 0500 0000",
      .multipleHandleValueNotification([
        ATTHandleValue(handle: 3, value: [7]), ATTHandleValue(handle: 5, value: []),
      ])),
    PublishedLayout("52 0300 01", .writeCommand(handle: 3, value: [1])),
    PublishedLayout(
      "D2 0300 0102 A0A1A2A3A4A5A6A7A8A9AAAB",
      .signedWriteCommand(
        handle: 3, value: [1, 2], signature: ATTSignature(hex("A0A1A2A3A4A5A6A7A8A9AAAB"))!)),
    PublishedLayout(
      "D2 0300 A0A1A2A3A4A5A6A7A8A9AAAB",
      .signedWriteCommand(
        handle: 3, value: [], signature: ATTSignature(hex("A0A1A2A3A4A5A6A7A8A9AAAB"))!)),
    PublishedLayout("00", .unknown(opcode: ATTOpcode(rawValue: 0x00), parameters: [])),
    PublishedLayout("14 0102", .unknown(opcode: ATTOpcode(rawValue: 0x14), parameters: [1, 2])),
    PublishedLayout("7F 01", .unknown(opcode: ATTOpcode(rawValue: 0x7F), parameters: [1])),
  ]
}
