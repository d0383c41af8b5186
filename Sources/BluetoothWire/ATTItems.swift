/// A handle with the type of its attribute, an item of a Find Information Response.
public struct ATTHandleUUID: Hashable, Sendable {
  /// The handle of the attribute.
  public var handle: UInt16
  /// The type of the attribute.
  public var uuid: BluetoothUUID

  /// An item with these fields.
  ///
  /// - Parameters:
  ///   - handle: The handle of the attribute.
  ///   - uuid: The type of the attribute.
  public init(handle: UInt16, uuid: BluetoothUUID) {
    self.handle = handle
    self.uuid = uuid
  }
}

/// A range of handles, an item of a Find By Type Value Response.
public struct ATTHandleRange: Hashable, Sendable {
  /// The handle of the attribute that was found.
  public var start: UInt16
  /// The last handle of its group, or the same handle if the type is no grouping type.
  public var end: UInt16

  /// An item with these fields.
  ///
  /// - Parameters:
  ///   - start: The handle of the attribute that was found.
  ///   - end: The last handle of its group.
  public init(start: UInt16, end: UInt16) {
    self.start = start
    self.end = end
  }
}

/// A handle with a value, an item of a Read By Type Response or of a Multiple Handle Value Notification.
public struct ATTHandleValue: Hashable, Sendable {
  /// The handle of the attribute.
  public var handle: UInt16
  /// The value, or the part of it that was sent.
  public var value: [UInt8]

  /// An item with these fields.
  ///
  /// - Parameters:
  ///   - handle: The handle of the attribute.
  ///   - value: The value.
  public init(handle: UInt16, value: [UInt8]) {
    self.handle = handle
    self.value = value
  }
}

/// A group of attributes with the value of its first one, an item of a Read By Group Type Response.
public struct ATTGroupValue: Hashable, Sendable {
  /// The handle of the grouping attribute.
  public var start: UInt16
  /// The last handle of the group.
  public var end: UInt16
  /// The value of the grouping attribute, or the part of it that was sent.
  public var value: [UInt8]

  /// An item with these fields.
  ///
  /// - Parameters:
  ///   - start: The handle of the grouping attribute.
  ///   - end: The last handle of the group.
  ///   - value: The value of the grouping attribute.
  public init(start: UInt16, end: UInt16, value: [UInt8]) {
    self.start = start
    self.end = end
    self.value = value
  }
}

/// A value with its length, an item of a Read Multiple Variable Response.
///
/// A response that does not fit the MTU is cut anywhere, so the last item may hold less than its length says
/// (Core Specification Vol 3 Part F 3.4.4.12).
public struct ATTLengthValue: Hashable, Sendable {
  /// The length of the whole value as the server says it, at least the length of `value`.
  public let length: UInt16
  /// The value, or the part of it that was sent.
  public let value: [UInt8]
  /// True if the response ended after the first octet of the length.
  let isLengthCut: Bool

  /// An item whose value fits.
  ///
  /// - Parameter value: The value, of which at most 65535 octets are kept.
  public init(value: [UInt8]) {
    let kept = value.count > 0xFFFF ? Array(value.prefix(0xFFFF)) : value
    self.init(length: UInt16(kept.count), value: kept, isLengthCut: false)
  }

  init(length: UInt16, value: [UInt8], isLengthCut: Bool) {
    self.length = length
    self.value = value
    self.isLengthCut = isLengthCut
  }

  /// True if the server had more to say than fitted: ``value`` is not the whole value.
  public var isTruncated: Bool { isLengthCut || value.count < Int(length) }
}

extension ATTLengthValue: ExpressibleByArrayLiteral {
  /// An item whose value fits.
  ///
  /// - Parameter elements: The octets of the value.
  public init(arrayLiteral elements: UInt8...) { self.init(value: elements) }
}

/// The 12 octets that sign a Signed Write Command: a counter and a message authentication code.
///
/// Kept as received (Core Specification Vol 3 Part H 2.4.5); this package neither makes nor checks signatures.
public struct ATTSignature: Hashable, Sendable {
  /// The first eight octets, little endian.
  private let head: UInt64
  /// The last four octets, little endian.
  private let tail: UInt32

  /// The signature in these octets, nil unless there are 12.
  ///
  /// - Parameter bytes: The octets as they are on the wire.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == ATTLimits.signatureLength else { return nil }
    self.init(bytes.span.bytes, at: 0)
  }

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    head = bytes.uint64(at: offset)
    tail = bytes.uint32(at: offset + 8)
  }

  /// The 12 octets as they are on the wire.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(ATTLimits.signatureLength)
    append(to: &bytes)
    return bytes
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(littleEndian: head)
    bytes.append(littleEndian: tail)
  }
}
