extension ATTPDU {
  /// The octets of the PDU, in one allocation.
  ///
  /// Every value encodes. Where the wire cannot say what a value says, the server's rules of Core Specification Vol 3
  /// Part F 3.4 decide: a list whose items must have one length ends before the first item of another length, a value
  /// longer than its length field can say is cut, and a Find Information Response with types of both forms says all
  /// of them in 128 bits. An empty list encodes to a PDU that no decoder accepts. Nothing is fitted to an MTU.
  ///
  /// - Returns: The octets to hand to the channel.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(encodedLength)
    appendEncoded(to: &bytes)
    return bytes
  }

  /// Appends the octets of ``encoded()``, without an allocation if the array has the capacity.
  ///
  /// - Parameter bytes: The array to append to.
  public func appendEncoded(to bytes: inout [UInt8]) {
    bytes.append(opcode.rawValue)
    switch self {
    case .writeResponse, .executeWriteResponse, .handleValueConfirmation: break
    case .readRequest(let handle): bytes.append(littleEndian: handle)
    case .readResponse(let value), .readBlobResponse(let value), .readMultipleResponse(let value),
      .unknown(_, let value):
      bytes.append(contentsOf: value)
    case .writeRequest(let handle, let value), .writeCommand(let handle, let value),
      .handleValueNotification(let handle, let value), .handleValueIndication(let handle, let value):
      bytes.append(littleEndian: handle)
      bytes.append(contentsOf: value)
    case .errorResponse(let request, let handle, let code):
      bytes.append(request.rawValue)
      bytes.append(littleEndian: handle)
      bytes.append(code.rawValue)
    case .exchangeMTURequest(let mtu), .exchangeMTUResponse(let mtu): bytes.append(littleEndian: mtu)
    case .findInformationRequest(let first, let second), .readBlobRequest(let first, let second):
      bytes.append(littleEndian: first)
      bytes.append(littleEndian: second)
    case .findInformationResponse(let items): Self.append(items, to: &bytes)
    case .findByTypeValueRequest(let start, let end, let type, let value):
      bytes.append(littleEndian: start)
      bytes.append(littleEndian: end)
      bytes.append(littleEndian: type)
      bytes.append(contentsOf: value)
    case .findByTypeValueResponse(let items):
      for item in items {
        bytes.append(littleEndian: item.start)
        bytes.append(littleEndian: item.end)
      }
    case .readByTypeRequest(let start, let end, let type),
      .readByGroupTypeRequest(let start, let end, let type):
      bytes.append(littleEndian: start)
      bytes.append(littleEndian: end)
      type.appendEncoded(to: &bytes)
    case .readByTypeResponse(let items): Self.append(items, to: &bytes)
    case .readMultipleRequest(let handles), .readMultipleVariableRequest(let handles):
      for handle in handles { bytes.append(littleEndian: handle) }
    case .readByGroupTypeResponse(let items): Self.append(items, to: &bytes)
    case .readMultipleVariableResponse(let items):
      for item in items {
        if item.isLengthCut {
          bytes.append(UInt8(truncatingIfNeeded: item.length))
        } else {
          bytes.append(littleEndian: item.length)
          bytes.append(contentsOf: item.value)
        }
      }
    case .signedWriteCommand(let handle, let value, let signature):
      bytes.append(littleEndian: handle)
      bytes.append(contentsOf: value)
      signature.append(to: &bytes)
    case .prepareWriteRequest(let handle, let offset, let value),
      .prepareWriteResponse(let handle, let offset, let value):
      bytes.append(littleEndian: handle)
      bytes.append(littleEndian: offset)
      bytes.append(contentsOf: value)
    case .executeWriteRequest(let commit): bytes.append(commit ? 1 : 0)
    case .multipleHandleValueNotification(let items):
      for item in items {
        let value = item.value.prefix(0xFFFF)
        bytes.append(littleEndian: item.handle)
        bytes.append(littleEndian: UInt16(value.count))
        bytes.append(contentsOf: value)
      }
    }
  }

  /// The number of octets that ``encoded()`` reserves: exact, but for lists that break a rule, where it is more.
  private var encodedLength: Int {
    switch self {
    case .writeResponse, .executeWriteResponse, .handleValueConfirmation: 1
    case .executeWriteRequest: 2
    case .readRequest, .exchangeMTURequest, .exchangeMTUResponse: 3
    case .errorResponse, .findInformationRequest, .readBlobRequest: 5
    case .readResponse(let value), .readBlobResponse(let value), .readMultipleResponse(let value),
      .unknown(_, let value):
      1 + value.count
    case .writeRequest(_, let value), .writeCommand(_, let value), .handleValueNotification(_, let value),
      .handleValueIndication(_, let value):
      3 + value.count
    case .prepareWriteRequest(_, _, let value), .prepareWriteResponse(_, _, let value): 5 + value.count
    case .findByTypeValueRequest(_, _, _, let value): 7 + value.count
    case .signedWriteCommand(_, let value, _): 3 + value.count + ATTLimits.signatureLength
    case .readByTypeRequest(_, _, let type), .readByGroupTypeRequest(_, _, let type): 5 + type.wireLength
    case .findInformationResponse(let items): 2 + items.count * (Self.fitsShortForm(items) ? 4 : 18)
    case .findByTypeValueResponse(let items): 1 + items.count * 4
    case .readMultipleRequest(let handles), .readMultipleVariableRequest(let handles): 1 + handles.count * 2
    case .readByTypeResponse(let items): items.reduce(2) { $0 + 2 + $1.value.count }
    case .readByGroupTypeResponse(let items): items.reduce(2) { $0 + 4 + $1.value.count }
    case .readMultipleVariableResponse(let items): items.reduce(1) { $0 + 2 + $1.value.count }
    case .multipleHandleValueNotification(let items): items.reduce(1) { $0 + 4 + $1.value.count }
    }
  }

  private static func fitsShortForm(_ items: [ATTHandleUUID]) -> Bool {
    items.allSatisfy { $0.uuid.wireLength == 2 }
  }

  private static func append(_ items: [ATTHandleUUID], to bytes: inout [UInt8]) {
    let isShort = fitsShortForm(items)
    bytes.append(isShort ? 1 : 2)
    for item in items {
      bytes.append(littleEndian: item.handle)
      if isShort {
        item.uuid.appendEncoded(to: &bytes)
      } else {
        item.uuid.appendExpanded(to: &bytes)
      }
    }
  }

  private static func append(_ items: [ATTHandleValue], to bytes: inout [UInt8]) {
    let length = min(items.first?.value.count ?? 0, 253)
    bytes.append(UInt8(2 + length))
    for item in items {
      guard min(item.value.count, 253) == length else { break }
      bytes.append(littleEndian: item.handle)
      bytes.append(contentsOf: item.value.prefix(length))
    }
  }

  private static func append(_ items: [ATTGroupValue], to bytes: inout [UInt8]) {
    let length = min(items.first?.value.count ?? 0, 251)
    bytes.append(UInt8(4 + length))
    for item in items {
      guard min(item.value.count, 251) == length else { break }
      bytes.append(littleEndian: item.start)
      bytes.append(littleEndian: item.end)
      bytes.append(contentsOf: item.value.prefix(length))
    }
  }
}
