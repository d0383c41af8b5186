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

  /// The Database Hash, as it is on the wire: AES-CMAC of the table with a key of zeros, the least significant octet
  /// first (Part G 7.3.1, Part H 2.2.5).
  var hash: [UInt8] {
    Array(Self.hashFunction.authenticate(hashInput).reversed())
  }

  private static let hashFunction = AESCMAC(key: [UInt8](repeating: 0, count: 16))
}
