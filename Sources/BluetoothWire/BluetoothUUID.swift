/// A Bluetooth UUID of 16, 32 or 128 bits, compared by value.
///
/// A 16-bit or 32-bit UUID *is* its 128-bit value on the Bluetooth base UUID
/// `00000000-0000-1000-8000-00805F9B34FB` (Core Specification Vol 3 Part B 2.5.1), so
/// `BluetoothUUID(0x180F)` equals the UUID read from `0000180F-0000-1000-8000-00805F9B34FB`.
///
/// A peer may send a short UUID in 16 octets. That form is kept, so that what was decoded encodes to the same
/// octets and a declaration found on a peer is asked for as the peer spells it; it takes no part in equality,
/// hashing, description or `Codable`, much as a `String` keeps its code units and compares by meaning.
///
/// Coded as its ``description``.
public struct BluetoothUUID: Hashable, Sendable {
  /// The most significant 64 bits of the 128-bit value.
  public let high: UInt64
  /// The least significant 64 bits of the 128-bit value.
  public let low: UInt64
  /// True if a UUID that has a 16-bit form was received in 16 octets.
  @usableFromInline let isExpanded: Bool

  /// The least significant 64 bits of the Bluetooth base UUID.
  @usableFromInline static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB
  /// The bits of `high` below the 32-bit value on the Bluetooth base UUID.
  @usableFromInline static let baseHigh: UInt64 = 0x0000_1000

  @inlinable
  init(high: UInt64, low: UInt64, isExpanded: Bool) {
    self.high = high
    self.low = low
    self.isExpanded = isExpanded
  }

  /// The 16-bit UUID with this value.
  ///
  /// - Parameter short: The assigned number, for example `0x180F` for the battery service.
  @inlinable
  public init(_ short: UInt16) {
    self.init(high: UInt64(short) << 32 | Self.baseHigh, low: Self.baseLow, isExpanded: false)
  }

  /// The 32-bit UUID with this value.
  ///
  /// ATT has no 32-bit form: such a UUID is sent in 16 octets (Core Specification Vol 3 Part F 3.2.1). A value below
  /// `0x1_0000` is the 16-bit UUID of that value.
  ///
  /// - Parameter value: The 32-bit value. An integer literal makes a 16-bit UUID unless it says `as UInt32`.
  @inlinable
  @_disfavoredOverload
  public init(_ value: UInt32) {
    self.init(high: UInt64(value) << 32 | Self.baseHigh, low: Self.baseLow, isExpanded: false)
  }

  /// The UUID with this 128-bit value.
  ///
  /// - Parameters:
  ///   - high: The most significant 64 bits, the first sixteen digits of the dashed form.
  ///   - low: The least significant 64 bits.
  @inlinable
  public init(_ high: UInt64, _ low: UInt64) {
    self.init(high: high, low: low, isExpanded: false)
  }

  /// The UUID in these octets, least significant first; nil unless there are 2, 4 or 16 of them.
  ///
  /// Four octets occur in advertising data, never in ATT.
  ///
  /// - Parameter bytes: The octets as they are on the wire.
  public init?(littleEndian bytes: borrowing RawSpan) {
    switch bytes.byteCount {
    case 2: self.init(bytes.uint16(at: 0))
    case 4: self.init(bytes.uint32(at: 0))
    case 16: self.init(expanded: bytes, at: 0)
    default: return nil
    }
  }

  /// The UUID in these octets, least significant first; nil unless there are 2, 4 or 16 of them.
  ///
  /// - Parameter bytes: The octets as they are on the wire.
  public init?(littleEndian bytes: some Collection<UInt8>) {
    let copy = [UInt8](bytes)
    self.init(littleEndian: copy.span.bytes)
  }

  /// The UUID in the 16 octets that start at `offset`.
  @inline(__always)
  init(expanded bytes: borrowing RawSpan, at offset: Int) {
    let high = bytes.uint64(at: offset + 8)
    let low = bytes.uint64(at: offset)
    let hasShortForm = low == Self.baseLow && high & 0xFFFF_0000_FFFF_FFFF == Self.baseHigh
    self.init(high: high, low: low, isExpanded: hasShortForm)
  }

  /// Compares the 128-bit values.
  ///
  /// - Parameters:
  ///   - left: A UUID of any form.
  ///   - right: A UUID of any form.
  /// - Returns: True if both have the same 128-bit value, whatever their form.
  @inlinable
  public static func == (left: Self, right: Self) -> Bool {
    left.high == right.high && left.low == right.low
  }

  /// Feeds the 128-bit value.
  ///
  /// - Parameter hasher: The hasher to feed.
  @inlinable
  public func hash(into hasher: inout Hasher) {
    hasher.combine(high)
    hasher.combine(low)
  }

  /// The 16-bit form, nil if the value has none.
  @inlinable
  public var short: UInt16? {
    guard low == Self.baseLow, high & 0xFFFF_0000_FFFF_FFFF == Self.baseHigh else { return nil }
    return UInt16(truncatingIfNeeded: high >> 32)
  }

  /// The number of octets in ATT: 2 for a UUID with a 16-bit form unless it was received in 16, else 16.
  @inlinable
  public var wireLength: Int {
    short == nil || isExpanded ? 16 : 2
  }

  /// The same UUID in the shortest form that ATT has for it.
  @inlinable
  public var shortened: BluetoothUUID { BluetoothUUID(high, low) }

  /// The same UUID in sixteen octets, as a peer may spell a 16-bit one too.
  @inlinable
  public var expanded: BluetoothUUID { BluetoothUUID(high: high, low: low, isExpanded: short != nil) }

  /// The octets on the wire, ``wireLength`` of them, least significant first.
  ///
  /// - Returns: 2 or 16 octets.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(wireLength)
    appendEncoded(to: &bytes)
    return bytes
  }

  /// Appends the octets of ``encoded()``.
  ///
  /// - Parameter bytes: The array to append to.
  public func appendEncoded(to bytes: inout [UInt8]) {
    if let short, !isExpanded {
      bytes.append(littleEndian: short)
    } else {
      appendExpanded(to: &bytes)
    }
  }

  func appendExpanded(to bytes: inout [UInt8]) {
    bytes.append(littleEndian: low)
    bytes.append(littleEndian: high)
  }
}

extension BluetoothUUID: LosslessStringConvertible, CustomStringConvertible {
  /// Reads `180F`, `0x180F`, eight digits of either kind, or the dashed form of 36 characters; case does not matter.
  ///
  /// - Parameter text: The text; anything else around the digits makes it nil.
  public init?(_ text: String) {
    var utf8 = text.utf8[...]
    if utf8.count == 36 {
      self.init(dashed: utf8)
      return
    }
    if utf8.starts(with: "0x".utf8) || utf8.starts(with: "0X".utf8) { utf8 = utf8.dropFirst(2) }
    guard utf8.count == 4 || utf8.count == 8 else { return nil }
    var value: UInt64 = 0
    for character in utf8 {
      guard let digit = hexadecimalDigit(character) else { return nil }
      value = value << 4 | digit
    }
    self.init(UInt32(truncatingIfNeeded: value))
  }

  private init?(dashed utf8: Substring.UTF8View) {
    var high: UInt64 = 0
    var low: UInt64 = 0
    for (position, character) in utf8.enumerated() {
      switch position {
      case 8, 13, 18, 23:
        guard character == UInt8(ascii: "-") else { return nil }
      default:
        guard let digit = hexadecimalDigit(character) else { return nil }
        high = high << 4 | low >> 60
        low = low << 4 | digit
      }
    }
    self.init(high, low)
  }

  /// Four upper-case digits such as `180F` for a 16-bit UUID, otherwise the dashed form in upper case.
  public var description: String {
    if let short { return hexadecimal(short, digits: 4) }
    let head = hexadecimal(high >> 32, digits: 8)
    let second = hexadecimal(high >> 16 & 0xFFFF, digits: 4)
    let third = hexadecimal(high & 0xFFFF, digits: 4)
    let fourth = hexadecimal(low >> 48, digits: 4)
    let tail = hexadecimal(low & 0xFFFF_FFFF_FFFF, digits: 12)
    return "\(head)-\(second)-\(third)-\(fourth)-\(tail)"
  }
}

extension BluetoothUUID: Codable {
  /// Decodes the text form.
  ///
  /// - Parameter decoder: A decoder at a single string value.
  /// - Throws: `DecodingError.dataCorrupted` if the text is no UUID.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let uuid = BluetoothUUID(text) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is no Bluetooth UUID")
    }
    self = uuid
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
