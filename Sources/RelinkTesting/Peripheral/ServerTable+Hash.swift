internal import BluetoothWire
internal import Relink

extension ServerTable {
  /// What the hash of the table is made of, in the order of the handles (Core Specification Vol 3 Part G 7.3.1).
  ///
  /// Service, include and characteristic declarations and extended properties go in with handle, type and value; the
  /// other descriptors that a profile knows go in with handle and type alone; values do not go in.
  var hashInput: [UInt8] {
    var input: [UInt8] = []
    for attribute in attributes {
      switch attribute.type {
      case .primaryService, .secondaryService, .include, .characteristic, .characteristicExtendedProperties:
        input += attribute.handle.littleEndianOctets + attribute.type.encoded() + hashedValue(of: attribute)
      case .characteristicUserDescription, .clientCharacteristicConfiguration,
        .serverCharacteristicConfiguration,
        .characteristicPresentationFormat, .characteristicAggregateFormat:
        input += attribute.handle.littleEndianOctets + attribute.type.encoded()
      default: continue
      }
    }
    return input
  }

  private func hashedValue(of attribute: Attribute) -> [UInt8] {
    guard case .descriptor(let key, let index) = attribute.role else { return attribute.fixedValue }
    return entries[key]?.declared.descriptors[index].value ?? []
  }

  /// Sixteen octets that differ for tables that differ.
  ///
  /// The specification asks for an AES-CMAC with a key of zeros; a client cannot tell the difference, because it never
  /// computes the hash and only compares it with one that it read before. This is FNV-1a over the same input, twice.
  var hash: [UInt8] {
    var first: UInt64 = 0xCBF2_9CE4_8422_2325
    var second: UInt64 = 0x8422_2325_CBF2_9CE4
    for octet in hashInput {
      first = (first ^ UInt64(octet)) &* 0x100_0000_01B3
      second = (second ^ UInt64(~octet)) &* 0x100_0000_01B3
    }
    return [first, second].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> ($0 * 8)) } }
  }
}
