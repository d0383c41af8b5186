package import BluetoothWire

/// Reads a value however long it is (Core Specification Vol 3 Part G 4.8.1 and 4.8.3).
///
/// A part that fills its PDU goes on with Read Blob. An error that says that there is no more (Invalid Offset,
/// Attribute Not Long, or at once Request Not Supported from servers without long values) ends the value.
package struct ReadProcedure: Hashable, Sendable {
  private let handle: UInt16
  private var value: [UInt8] = []

  package init(handle: UInt16) {
    self.handle = handle
  }

  /// The request to begin with.
  package var first: ATTPDU { .readRequest(handle: handle) }

  package mutating func received(_ pdu: ATTPDU, mtu: Int) -> ProcedureAction {
    let part: [UInt8]
    switch pdu {
    case .readResponse(let bytes): part = bytes
    case .readBlobResponse(let bytes): part = bytes
    case .errorResponse(.readBlobRequest, _, let code) where endsValue(code, mtu: mtu):
      return .finished(.success(.value(value)))
    case .errorResponse(_, _, let code):
      return .finished(.failure(.rejected(code)))
    default:
      return .failed(.malformedAnswer, .malformedResponse(pdu.opcode))
    }
    if value.isEmpty { value = part } else { value += part }
    guard value.count <= ATTLimits.maximumAttributeLength else {
      return .failed(.malformedAnswer, .valueTooLong(limit: ATTLimits.maximumAttributeLength))
    }
    guard part.count >= ATTLimits.maximumReadLength(mtu: mtu), value.count < ATTLimits.maximumAttributeLength
    else { return .finished(.success(.value(value))) }
    return .request(.readBlobRequest(handle: handle, offset: UInt16(value.count)))
  }

  private func endsValue(_ code: ATTErrorCode, mtu: Int) -> Bool {
    switch code {
    case .invalidOffset, .attributeNotLong: true
    case .requestNotSupported: value.count == ATTLimits.maximumReadLength(mtu: mtu)
    default: false
    }
  }
}
