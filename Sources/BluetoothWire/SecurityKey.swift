/// A secret of 128 bits, as pairing makes them (Core Specification Vol 3 Part H 2.4.1).
///
/// Printing, dumping or reflecting it, or anything that holds it, shows none of its octets. Only ``bytes`` does, for the
/// socket and for a store that keeps bonds.
public struct SecurityKey: Hashable, Sendable {
  /// The first eight octets, little endian.
  private let head: UInt64
  /// The last eight octets, little endian.
  private let tail: UInt64

  /// The number of octets.
  public static let length = 16

  /// The key in these octets, nil unless there are ``length``.
  ///
  /// - Parameter bytes: The octets as they are on the wire, least significant first.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.length else { return nil }
    self.init(bytes.span.bytes, at: 0)
  }

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    head = bytes.uint64(at: offset)
    tail = bytes.uint64(at: offset + 8)
  }

  /// The octets as they are on the wire, least significant first; not for logs.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    append(to: &bytes)
    return bytes
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(littleEndian: head)
    bytes.append(littleEndian: tail)
  }
}

extension SecurityKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The same words for every key.
  public var description: String { "key not shown" }

  /// The same words for every key.
  public var debugDescription: String { description }

  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
