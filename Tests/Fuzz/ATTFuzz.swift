// Compiled together with Sources/BluetoothWire by Tests/Fuzz/run, so there is no module to import.

/// Octets are a PDU that encodes to the same octets, or an error that fits them. Anything else ends the run.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzATT(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  do {
    let pdu = try ATTPDU(decoding: input.bytes)
    let encoded = pdu.encoded()
    guard encoded.elementsEqual(input) else { fatalError("\(pdu) encodes to other octets: \(encoded)") }
    guard pdu.opcode.rawValue == input[0] else { fatalError("\(pdu) has another opcode") }
    guard octets(in: pdu) <= count else { fatalError("\(pdu) holds more octets than it came in") }
    guard let again = try? ATTPDU(decoding: encoded), again == pdu else {
      fatalError("\(pdu) decodes differently")
    }
    if case .unknown(let opcode, _) = pdu, opcode.isKnown { fatalError("\(pdu) is known") }
  } catch {
    guard error.opcode?.rawValue == input.first else { fatalError("\(error) names another opcode") }
    guard (error.problem == .empty) == input.isEmpty else { fatalError("\(error) misjudges \(count) octets") }
    guard error.opcode?.isKnown ?? true else { fatalError("\(error) rejects an unknown opcode") }
    let answer = error.answer?.encoded()
    guard answer == (error.isRequest ? [0x01, input[0], 0, 0, 0x04] : nil) else {
      fatalError("\(error) is answered with \(String(describing: answer))")
    }
  }
  return 0
}

/// The octets of all values, as a bound on what a peer can make us keep.
private func octets(in pdu: ATTPDU) -> Int {
  switch pdu {
  case .readResponse(let value), .readBlobResponse(let value), .readMultipleResponse(let value),
    .writeRequest(_, let value), .writeCommand(_, let value), .signedWriteCommand(_, let value, _),
    .prepareWriteRequest(_, _, let value), .prepareWriteResponse(_, _, let value),
    .handleValueNotification(_, let value), .handleValueIndication(_, let value),
    .findByTypeValueRequest(_, _, _, let value), .unknown(_, let value):
    value.count
  case .readByTypeResponse(let items), .multipleHandleValueNotification(let items):
    items.reduce(0) { $0 + $1.value.count }
  case .readByGroupTypeResponse(let items): items.reduce(0) { $0 + $1.value.count }
  case .readMultipleVariableResponse(let items): items.reduce(0) { $0 + $1.value.count }
  case .findInformationResponse(let items): items.count * 4
  case .findByTypeValueResponse(let items): items.count * 4
  case .readMultipleRequest(let handles), .readMultipleVariableRequest(let handles): handles.count * 2
  default: 0
  }
}
