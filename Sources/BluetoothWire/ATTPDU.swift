/// One PDU of the Attribute Protocol (Core Specification Vol 3 Part F 3.4), of the client and of the server.
///
/// Handles are plain numbers, because a peer may send the reserved zero. Values are bounded only by the octets they
/// came in; limits of a bearer are in ``ATTLimits``.
///
/// Any octets decode to a PDU or to an ``ATTDecodingError``, and what was decoded encodes to the same octets.
@nonexhaustive
public enum ATTPDU: Equatable, Sendable {
  /// Ends the request with that opcode unsuccessfully (3.4.1.1).
  case errorResponse(request: ATTOpcode, handle: UInt16, code: ATTErrorCode)

  /// Says the client's receive MTU (3.4.2.1).
  case exchangeMTURequest(mtu: UInt16)
  /// Says the server's receive MTU (3.4.2.2).
  case exchangeMTUResponse(mtu: UInt16)

  /// Asks for the types of the attributes in a range (3.4.3.1).
  case findInformationRequest(start: UInt16, end: UInt16)
  /// Handles with their types, all of one form (3.4.3.2).
  case findInformationResponse([ATTHandleUUID])
  /// Asks for attributes of a 16-bit type with a value (3.4.3.3).
  case findByTypeValueRequest(start: UInt16, end: UInt16, type: UInt16, value: [UInt8])
  /// Ranges of handles (3.4.3.4).
  case findByTypeValueResponse([ATTHandleRange])

  /// Asks for the values of the attributes of a type in a range (3.4.4.1).
  case readByTypeRequest(start: UInt16, end: UInt16, type: BluetoothUUID)
  /// Handles with their values, all of one length (3.4.4.2).
  case readByTypeResponse([ATTHandleValue])
  /// Asks for a value (3.4.4.3).
  case readRequest(handle: UInt16)
  /// A value, or as much of it as fits (3.4.4.4).
  case readResponse(value: [UInt8])
  /// Asks for a value from an offset on (3.4.4.5).
  case readBlobRequest(handle: UInt16, offset: UInt16)
  /// A part of a value (3.4.4.6).
  case readBlobResponse(value: [UInt8])
  /// Asks for two or more values whose lengths are known, but for the last (3.4.4.7).
  case readMultipleRequest(handles: [UInt16])
  /// The values one after the other, cut where they do not fit (3.4.4.8).
  case readMultipleResponse(value: [UInt8])
  /// Asks for the values of the grouping attributes in a range (3.4.4.9).
  case readByGroupTypeRequest(start: UInt16, end: UInt16, type: BluetoothUUID)
  /// Groups with the values of their first attributes, all of one length (3.4.4.10).
  case readByGroupTypeResponse([ATTGroupValue])
  /// Asks for two or more values of any length (3.4.4.11).
  case readMultipleVariableRequest(handles: [UInt16])
  /// The values with their lengths, the last one cut where it does not fit (3.4.4.12).
  case readMultipleVariableResponse([ATTLengthValue])

  /// Asks to write a value (3.4.5.1).
  case writeRequest(handle: UInt16, value: [UInt8])
  /// The value was written (3.4.5.2).
  case writeResponse
  /// Writes a value without an answer (3.4.5.3).
  case writeCommand(handle: UInt16, value: [UInt8])
  /// Writes a value with a signature and without an answer (3.4.5.4).
  case signedWriteCommand(handle: UInt16, value: [UInt8], signature: ATTSignature)

  /// Asks to queue a part of a value (3.4.6.1).
  case prepareWriteRequest(handle: UInt16, offset: UInt16, value: [UInt8])
  /// The part as it was queued (3.4.6.2).
  case prepareWriteResponse(handle: UInt16, offset: UInt16, value: [UInt8])
  /// Asks to write all queued parts, or to drop them if `commit` is false (3.4.6.3).
  case executeWriteRequest(commit: Bool)
  /// The queued parts were written or dropped (3.4.6.4).
  case executeWriteResponse

  /// A value that the server sent by itself (3.4.7.1).
  case handleValueNotification(handle: UInt16, value: [UInt8])
  /// Two or more values that the server sent by itself (3.4.7.4).
  case multipleHandleValueNotification([ATTHandleValue])
  /// A value that the server sent by itself and wants confirmed (3.4.7.2).
  case handleValueIndication(handle: UInt16, value: [UInt8])
  /// Confirms an indication (3.4.7.3).
  case handleValueConfirmation

  /// A PDU with an opcode that the specification does not define.
  case unknown(opcode: ATTOpcode, parameters: [UInt8])
}

extension ATTPDU {
  /// The first octet of the PDU.
  public var opcode: ATTOpcode {
    switch self {
    case .errorResponse: .errorResponse
    case .exchangeMTURequest: .exchangeMTURequest
    case .exchangeMTUResponse: .exchangeMTUResponse
    case .findInformationRequest: .findInformationRequest
    case .findInformationResponse: .findInformationResponse
    case .findByTypeValueRequest: .findByTypeValueRequest
    case .findByTypeValueResponse: .findByTypeValueResponse
    case .readByTypeRequest: .readByTypeRequest
    case .readByTypeResponse: .readByTypeResponse
    case .readRequest: .readRequest
    case .readResponse: .readResponse
    case .readBlobRequest: .readBlobRequest
    case .readBlobResponse: .readBlobResponse
    case .readMultipleRequest: .readMultipleRequest
    case .readMultipleResponse: .readMultipleResponse
    case .readByGroupTypeRequest: .readByGroupTypeRequest
    case .readByGroupTypeResponse: .readByGroupTypeResponse
    case .readMultipleVariableRequest: .readMultipleVariableRequest
    case .readMultipleVariableResponse: .readMultipleVariableResponse
    case .writeRequest: .writeRequest
    case .writeResponse: .writeResponse
    case .writeCommand: .writeCommand
    case .signedWriteCommand: .signedWriteCommand
    case .prepareWriteRequest: .prepareWriteRequest
    case .prepareWriteResponse: .prepareWriteResponse
    case .executeWriteRequest: .executeWriteRequest
    case .executeWriteResponse: .executeWriteResponse
    case .handleValueNotification: .handleValueNotification
    case .multipleHandleValueNotification: .multipleHandleValueNotification
    case .handleValueIndication: .handleValueIndication
    case .handleValueConfirmation: .handleValueConfirmation
    case .unknown(let opcode, _): opcode
    }
  }

  /// The opcode in the first octet, nil if there is none; nothing else is looked at.
  ///
  /// - Parameter bytes: The octets of a PDU.
  /// - Returns: The opcode.
  @inlinable
  public static func opcode(of bytes: borrowing RawSpan) -> ATTOpcode? {
    bytes.isEmpty ? nil : ATTOpcode(rawValue: bytes.unsafeLoad(fromByteOffset: 0, as: UInt8.self))
  }

  /// The opcode in the first octet, nil if there is none; nothing else is looked at.
  ///
  /// - Parameter bytes: The octets of a PDU.
  /// - Returns: The opcode.
  @inlinable
  public static func opcode(of bytes: [UInt8]) -> ATTOpcode? {
    bytes.first.map { ATTOpcode(rawValue: $0) }
  }
}
