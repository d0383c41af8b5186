// Little-endian access. Bluetooth sends every multi-octet field of ATT, HCI and mgmt least significant octet
// first (Core Specification Vol 3 Part F 3.3.1). Callers check lengths before they read; the loads check again,
// so that a mistake in a length rule can never read past the packet.

extension RawSpan {
  @inline(__always)
  func octet(at offset: Int) -> UInt8 {
    unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  @inline(__always)
  func uint16(at offset: Int) -> UInt16 {
    UInt16(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }

  @inline(__always)
  func uint32(at offset: Int) -> UInt32 {
    UInt32(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inline(__always)
  func uint64(at offset: Int) -> UInt64 {
    UInt64(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// Copies octets out with the one allocation that an array needs.
  @inline(__always)
  func array(from start: Int, count: Int) -> [UInt8] {
    guard count > 0 else { return [] }
    let part = extracting(start..<(start + count))
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      part.withUnsafeBytes { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      initialized = count
    }
  }

  @inline(__always)
  func array(from start: Int) -> [UInt8] {
    array(from: start, count: byteCount - start)
  }
}

extension Array<UInt8> {
  @inline(__always)
  mutating func append(littleEndian value: UInt16) {
    append(UInt8(truncatingIfNeeded: value))
    append(UInt8(truncatingIfNeeded: value >> 8))
  }

  @inline(__always)
  mutating func append(littleEndian value: UInt32) {
    append(littleEndian: UInt16(truncatingIfNeeded: value))
    append(littleEndian: UInt16(truncatingIfNeeded: value >> 16))
  }

  @inline(__always)
  mutating func append(littleEndian value: UInt64) {
    append(littleEndian: UInt32(truncatingIfNeeded: value))
    append(littleEndian: UInt32(truncatingIfNeeded: value >> 32))
  }
}

/// The hexadecimal digits of `value`, upper case, padded with zeros to `digits`.
func hexadecimal(_ value: some UnsignedInteger, digits: Int) -> String {
  let text = String(value, radix: 16, uppercase: true)
  return String(repeating: "0", count: Swift.max(0, digits - text.utf8.count)) + text
}

/// The value of one ASCII hexadecimal digit, nil for any other octet.
@inline(__always)
func hexadecimalDigit(_ character: UInt8) -> UInt64? {
  switch character {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(character - UInt8(ascii: "0"))
  case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(character - UInt8(ascii: "A") + 10)
  case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(character - UInt8(ascii: "a") + 10)
  default: nil
  }
}
