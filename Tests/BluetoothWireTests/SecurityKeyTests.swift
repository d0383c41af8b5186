import BluetoothWire
import Testing

@Suite struct SecurityKeyTests {
  private let octets = [UInt8](0xA0...0xAF)

  @Test func sixteenOctetsAreAKey() throws {
    let key = try #require(SecurityKey(octets))
    #expect(key.bytes == octets)
    #expect(SecurityKey(Array(octets.dropLast())) == nil)
    #expect(SecurityKey(octets + [0]) == nil)
    for position in octets.indices {
      var other = octets
      other[position] ^= 1
      #expect(SecurityKey(other) != key)
    }
  }

  /// Whatever prints a value that holds a key, none of its octets may be read in a log.
  @Test func nothingThatHoldsAKeyShowsIt() throws {
    let key = try #require(SecurityKey(octets))
    let longTerm = ManagementLongTermKey(
      device: device, type: .authenticatedP256, isCentral: true, encryptionSize: 16, encryptedDiversifier: 0,
      randomNumber: 0, value: key)
    let identity = ManagementIdentityResolvingKey(device: device, value: key)
    let signature = ManagementSignatureResolvingKey(device: device, type: 3, value: key)
    let holders: [Any] = [
      key, longTerm, identity, signature, ManagementCommand.loadLongTermKeys([longTerm]),
      ManagementCommand.loadIdentityResolvingKeys([identity]),
      ManagementCommand.setPrivacy(mode: 1, key: key),
      ManagementEvent.newLongTermKey(shouldStore: true, key: longTerm),
      ManagementEvent.newIdentityResolvingKey(shouldStore: true, randomAddress: nil, key: identity),
      ManagementEvent.newSignatureResolvingKey(shouldStore: true, key: signature),
    ]
    for holder in holders {
      var dumped = ""
      dump(holder, to: &dumped)
      for text in ["\(holder)", String(reflecting: holder), dumped] {
        #expect(text.contains("key not shown"))
        for word in ["a0a1", "A0A1", "160", "161", "175", "\(head)", "\(tail)"] {
          #expect(!text.contains(word), "\(word) is in \(text)")
        }
      }
    }
  }

  private var head: UInt64 { octets.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) } }
  private var tail: UInt64 { octets.suffix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}

@Suite struct ManagementLongTermKeyTypeTests {
  @Test func whatATypeProves() {
    let types = (UInt8(0)...5).map { ManagementLongTermKeyType(rawValue: $0) }
    #expect(types.map(\.isAuthenticated) == [false, true, false, true, false, false])
    #expect(types.map(\.isSecureConnections) == [false, false, true, true, true, false])
  }
}
