internal import Relink

/// The keys of a bond as they are kept.
///
/// A version, the number of keys, then of each: flags (1 authenticated, 2 Secure Connections, 4 central), size,
/// diversifier, random number, 16 octets; then 16 octets of the identity key, or none. Numbers are little endian.
struct BondSecret {
  private static let version: UInt8 = 1
  private static let keyLength = 12 + SecurityKey.length

  var longTermKeys: [Bond.LongTermKey]
  var identityKey: SecurityKey?

  init(_ bond: Bond) {
    // More than pairing ever makes.
    longTermKeys = Array(bond.longTermKeys.prefix(255))
    identityKey = bond.identityKey
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = [Self.version, UInt8(longTermKeys.count)]
    for key in longTermKeys {
      let flags: UInt8 =
        (key.isAuthenticated ? 1 : 0) | (key.isSecureConnections ? 2 : 0) | (key.isCentral ? 4 : 0)
      bytes += [flags, UInt8(clamping: key.size)]
      bytes += (0..<2).map { UInt8(truncatingIfNeeded: key.diversifier >> (8 * $0)) }
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: key.randomNumber >> (8 * $0)) }
      bytes += key.value.bytes
    }
    return bytes + (identityKey?.bytes ?? [])
  }

  /// Nil for bytes that are no keys.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count >= 2, bytes[bytes.startIndex] == Self.version else { return nil }
    let count = Int(bytes[bytes.startIndex + 1])
    var rest = bytes.dropFirst(2)
    guard [count * Self.keyLength, count * Self.keyLength + SecurityKey.length].contains(rest.count) else {
      return nil
    }
    longTermKeys = []
    for _ in 0..<count {
      let key = Array(rest.prefix(Self.keyLength))
      rest = rest.dropFirst(Self.keyLength)
      guard let value = SecurityKey(Array(key[12...])), (7...16).contains(key[1]) else { return nil }
      longTermKeys.append(
        Bond.LongTermKey(
          value, isAuthenticated: key[0] & 1 != 0, isSecureConnections: key[0] & 2 != 0,
          isCentral: key[0] & 4 != 0, size: Int(key[1]),
          diversifier: key[2..<4].reversed().reduce(0) { $0 << 8 | UInt16($1) },
          randomNumber: key[4..<12].reversed().reduce(0) { $0 << 8 | UInt64($1) }))
    }
    identityKey = SecurityKey(Array(rest))
  }
}
