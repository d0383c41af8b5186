import BluetoothWire

/// SplitMix64: the same numbers for the same seed on every machine.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  mutating func octet() -> UInt8 { UInt8(truncatingIfNeeded: next()) }

  mutating func handle() -> UInt16 {
    // The ends of the range are where arithmetic goes wrong.
    switch next() % 8 {
    case 0: 0
    case 1: 0xFFFF
    default: UInt16(truncatingIfNeeded: next())
    }
  }

  mutating func bytes(_ range: ClosedRange<Int>) -> [UInt8] {
    (0..<Int.random(in: range, using: &self)).map { _ in octet() }
  }

  mutating func uuid() -> BluetoothUUID {
    switch next() % 4 {
    case 0: BluetoothUUID(handle())
    case 1: BluetoothUUID(handle()).expanded
    case 2: BluetoothUUID(UInt32(truncatingIfNeeded: next()))
    default: BluetoothUUID(next(), next())
    }
  }

  mutating func list<Item>(_ range: ClosedRange<Int>, _ item: (inout SeededGenerator) -> Item) -> [Item] {
    (0..<Int.random(in: range, using: &self)).map { _ in item(&self) }
  }
}

extension SeededGenerator {
  /// A PDU that the wire can say, of the kind with this opcode.
  mutating func pdu(_ opcode: ATTOpcode) -> ATTPDU {
    switch opcode {
    case .errorResponse:
      return .errorResponse(
        request: ATTOpcode(rawValue: octet()), handle: handle(), code: ATTErrorCode(rawValue: octet()))
    case .exchangeMTURequest: return .exchangeMTURequest(mtu: handle())
    case .exchangeMTUResponse: return .exchangeMTUResponse(mtu: handle())
    case .findInformationRequest: return .findInformationRequest(start: handle(), end: handle())
    case .findInformationResponse:
      let isShort = next().isMultiple(of: 2)
      return .findInformationResponse(
        list(1...8) {
          ATTHandleUUID(handle: $0.handle(), uuid: isShort ? BluetoothUUID($0.handle()) : $0.uuid().expanded)
        })
    case .findByTypeValueRequest:
      return .findByTypeValueRequest(start: handle(), end: handle(), type: handle(), value: bytes(0...20))
    case .findByTypeValueResponse:
      return .findByTypeValueResponse(list(1...8) { ATTHandleRange(start: $0.handle(), end: $0.handle()) })
    case .readByTypeRequest: return .readByTypeRequest(start: handle(), end: handle(), type: uuid())
    case .readByTypeResponse:
      let length = Int(next() % 254)
      return .readByTypeResponse(
        list(1...4) { ATTHandleValue(handle: $0.handle(), value: $0.bytes(length...length)) })
    case .readRequest: return .readRequest(handle: handle())
    case .readResponse: return .readResponse(value: bytes(0...40))
    case .readBlobRequest: return .readBlobRequest(handle: handle(), offset: handle())
    case .readBlobResponse: return .readBlobResponse(value: bytes(0...40))
    case .readMultipleRequest: return .readMultipleRequest(handles: list(2...8) { $0.handle() })
    case .readMultipleResponse: return .readMultipleResponse(value: bytes(0...40))
    case .readByGroupTypeRequest: return .readByGroupTypeRequest(start: handle(), end: handle(), type: uuid())
    case .readByGroupTypeResponse:
      let length = Int(next() % 252)
      return .readByGroupTypeResponse(
        list(1...4) {
          ATTGroupValue(start: $0.handle(), end: $0.handle(), value: $0.bytes(length...length))
        })
    case .readMultipleVariableRequest:
      return .readMultipleVariableRequest(handles: list(2...8) { $0.handle() })
    case .readMultipleVariableResponse:
      return .readMultipleVariableResponse(list(2...5) { ATTLengthValue(value: $0.bytes(0...20)) })
    case .writeRequest: return .writeRequest(handle: handle(), value: bytes(0...40))
    case .writeResponse: return .writeResponse
    case .writeCommand: return .writeCommand(handle: handle(), value: bytes(0...40))
    case .signedWriteCommand:
      return .signedWriteCommand(
        handle: handle(), value: bytes(0...40), signature: ATTSignature(bytes(12...12))!)
    case .prepareWriteRequest:
      return .prepareWriteRequest(handle: handle(), offset: handle(), value: bytes(0...40))
    case .prepareWriteResponse:
      return .prepareWriteResponse(handle: handle(), offset: handle(), value: bytes(0...40))
    case .executeWriteRequest: return .executeWriteRequest(commit: next().isMultiple(of: 2))
    case .executeWriteResponse: return .executeWriteResponse
    case .handleValueNotification: return .handleValueNotification(handle: handle(), value: bytes(0...40))
    case .multipleHandleValueNotification:
      return .multipleHandleValueNotification(
        list(2...5) { ATTHandleValue(handle: $0.handle(), value: $0.bytes(0...20)) })
    case .handleValueIndication: return .handleValueIndication(handle: handle(), value: bytes(0...40))
    case .handleValueConfirmation: return .handleValueConfirmation
    default: return .unknown(opcode: opcode, parameters: bytes(0...40))
    }
  }
}

extension ATTOpcode {
  static let every = (UInt8.min...UInt8.max).map { ATTOpcode(rawValue: $0) }
  static let known = every.filter(\.isKnown)
}
