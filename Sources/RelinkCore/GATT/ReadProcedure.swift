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
    if case .readResponse(let bytes) = pdu {
      part = bytes
    } else if case .readBlobResponse(let bytes) = pdu {
      part = bytes
    } else if case .errorResponse(let request, _, let code) = pdu {
      let isWhole = request == .readBlobRequest && endsValue(code, mtu: mtu)
      return .finished(isWhole ? .success(.value(value)) : .failure(.rejected(code)))
    } else {
      return .malformed(pdu)
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
