import Relink
import Testing

@testable import RelinkTesting

@Suite struct DatabaseHashTests {
  let key = digits("2b7e1516 28aed2a6 abf71588 09cf4f3c")

  @Test func aBlockIsEncryptedAsTheStandardSays() {
    // FIPS 197, appendix B.
    #expect(
      AESCMAC(key: key).encrypt(digits("3243f6a8 885a308d 313198a2 e0370734"))
        == digits("3925841d 02dc09fb dc118597 196a0b32"))
  }

  @Test(arguments: [
    (0, "bb1d6929 e9593728 7fa37d12 9b756746"),
    (16, "070a16b4 6b4d4144 f79bdd9d d04a287c"),
    (40, "dfa66747 de9ae630 30ca3261 1497c827"),
    (64, "51f0bebf 7e3b9d92 fc497417 79363cfe"),
  ])
  func aMessageIsAuthenticatedAsTheStandardSays(length: Int, result: String) {
    // RFC 4493, section 4.
    let message = digits(
      """
      6bc1bee2 2e409f96 e93d7e11 7393172a ae2d8a57 1e03ac9c 9eb76fac 45af8e51 30c81c46 a35ce411 e5fbc119 1a0a52ef \
      f69f2445 df4f9b17 ad2b417b e66c3710
      """)
    #expect(AESCMAC(key: key).authenticate(Array(message.prefix(length))) == digits(result))
  }

  @Test func theTableOfTheSpecificationHasItsHash() throws {
    // Core Specification Vol 3 Part G, appendix B.
    let input = digits(
      """
      0100002800180200 03280A0300002A04 0003280205 00012A0600002801180700 032820080005 2A090002290A0003280A \
      0B00292B0C000328020D002A2B0E00 002808180F0002281400160 00F18100003 28A2110018 2A120002291300002900001400 \
      01280F181500032802160 0192A
      """)
    let hash = AESCMAC(key: [UInt8](repeating: 0, count: 16)).authenticate(input)
    #expect(hash == digits("F1CA2D48 ECF58BAC 8A8830BB B9FBA990"))
  }

  @Test func theHashCoversDeclarationsAndNotValues() {
    let table = ServerTable([
      PlacedService(
        service: VirtualService(
          .battery,
          characteristics: [
            VirtualCharacteristic(
              .batteryLevel, [.read, .notify], value: [5],
              descriptors: [VirtualDescriptor(BluetoothUUID(0x2901 as UInt16), value: [1])])
          ]), keys: [CharacteristicKey(number: 0)])
    ])
    #expect(
      table.hashInput
        == digits("0100 0028 0f18  0200 0328 12 0300 192a  0400 0229  0500 0129"))
  }
}

/// Octets as two digits each; spaces are skipped.
private func digits(_ text: String) -> [UInt8] {
  let digits = text.compactMap(\.hexDigitValue).map { UInt8($0) }
  return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
