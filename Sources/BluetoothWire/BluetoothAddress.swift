/// A Bluetooth device address of 48 bits.
///
/// It says nothing about its type: whether it is public or random travels beside it (``ManagementAddressType``). Coded
/// as its ``description``.
public struct BluetoothAddress: Hashable, Sendable {
  /// The 48 bits; the octet that is written first in text is the most significant one.
  public let value: UInt64

  /// The address with these bits.
  ///
  /// - Parameter value: The 48 bits; higher ones are dropped.
  @inlinable
  public init(_ value: UInt64) { self.value = value & 0xFFFF_FFFF_FFFF }

  /// The address in these octets, least significant first as HCI and mgmt send it; nil unless there are six.
  ///
  /// - Parameter bytes: The octets as they are on the wire.
  public init?(littleEndian bytes: some Collection<UInt8>) {
    guard bytes.count == 6 else { return nil }
    var value: UInt64 = 0
    var shift: UInt64 = 0
    for octet in bytes {
      value |= UInt64(octet) << shift
      shift += 8
    }
    self.init(value)
  }

  init(_ bytes: borrowing RawSpan, at offset: Int) {
    self.init(UInt64(bytes.uint32(at: offset)) | UInt64(bytes.uint16(at: offset + 4)) << 32)
  }

  /// The six octets on the wire, least significant first.
  public var littleEndianBytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(6)
    append(to: &bytes)
    return bytes
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(littleEndian: UInt32(truncatingIfNeeded: value))
    bytes.append(littleEndian: UInt16(truncatingIfNeeded: value >> 32))
  }

  /// What kind of random address these bits are (Core Specification Vol 6 Part B 1.3.2).
  @nonexhaustive
  public enum RandomKind: Hashable, Sendable {
    /// The same at least until the device restarts; the top bits are 11.
    case `static`
    /// Changes, and who knows the device's identity key recognises it; the top bits are 01.
    case resolvablePrivate
    /// Changes, and nobody recognises it; the top bits are 00.
    case nonResolvablePrivate
    /// The top bits are 10, which is not defined.
    case reserved
  }

  /// What the two top bits mean if this is a random address; for a public address they mean nothing.
  public var randomKind: RandomKind {
    switch value >> 46 {
    case 0b11: .static
    case 0b01: .resolvablePrivate
    case 0b00: .nonResolvablePrivate
    default: .reserved
    }
  }
}

extension BluetoothAddress: Comparable {
  /// Orders by the 48 bits, as the text form does.
  ///
  /// - Parameters:
  ///   - left: An address.
  ///   - right: An address.
  /// - Returns: True if the bits of `left` are the smaller number.
  @inlinable
  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

extension BluetoothAddress: LosslessStringConvertible, CustomStringConvertible {
  /// Reads six pairs of hexadecimal digits with colons between them, such as `C0:DE:00:00:00:01`.
  ///
  /// - Parameter text: The text; case does not matter, and anything else makes it nil.
  public init?(_ text: String) {
    let utf8 = text.utf8
    guard utf8.count == 17 else { return nil }
    var value: UInt64 = 0
    for (position, character) in utf8.enumerated() {
      if position % 3 == 2 {
        guard character == UInt8(ascii: ":") else { return nil }
      } else {
        guard let digit = hexadecimalDigit(character) else { return nil }
        value = value << 4 | digit
      }
    }
    self.init(value)
  }

  /// Six pairs of upper-case hexadecimal digits with colons between them.
  public var description: String {
    let digits = hexadecimal(value, digits: 12)
    var text = ""
    text.reserveCapacity(17)
    for (position, digit) in digits.enumerated() {
      if position > 0 && position.isMultiple(of: 2) { text.append(":") }
      text.append(digit)
    }
    return text
  }
}

extension BluetoothAddress: Codable {
  /// Decodes the text form.
  ///
  /// - Parameter decoder: A decoder at a single string value.
  /// - Throws: `DecodingError.dataCorrupted` if the text is no address.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let address = BluetoothAddress(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "\(text) is no Bluetooth device address")
    }
    self = address
  }

  /// Encodes ``description``.
  ///
  /// - Parameter encoder: The encoder to write a single string value to.
  /// - Throws: What the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
