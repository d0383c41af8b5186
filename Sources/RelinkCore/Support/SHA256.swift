/// The Secure Hash Algorithm with a digest of 256 bits (FIPS 180-4).
///
/// It keeps no secrets: it tells whether bytes are the same bytes.
package struct SHA256: Sendable {
  /// The number of bytes of a digest.
  package static let length = 32

  private var state = initialState
  /// The block in hand in its first 16 words, and room for the schedule that is made of it.
  private var schedule = [UInt32](repeating: 0, count: 64)
  private var word: UInt32 = 0
  private var byteCount: UInt64 = 0

  /// Makes a hash of nothing yet.
  package init() {}

  /// The digest of these bytes.
  package static func digest(of bytes: some Sequence<UInt8>) -> [UInt8] {
    var hash = SHA256()
    hash.update(bytes)
    return hash.digest
  }

  /// Takes the next bytes in.
  package mutating func update(_ bytes: some Sequence<UInt8>) {
    // Not generic where it can be: the callers are in other modules.
    let isDone: Void? = bytes.withContiguousStorageIfAvailable { for byte in $0 { update(byte) } }
    if isDone == nil { for byte in bytes { update(byte) } }
  }

  /// Takes the next byte in.
  package mutating func update(_ byte: UInt8) {
    word = word << 8 | UInt32(byte)
    byteCount &+= 1
    guard byteCount % 4 == 0 else { return }
    let filled = Int(byteCount / 4 % 16)
    schedule[filled == 0 ? 15 : filled - 1] = word
    if filled == 0 { compress() }
  }

  /// The digest of what has been taken in; more may follow.
  package var digest: [UInt8] {
    var last = self
    let bitCount = byteCount &* 8
    last.update(0x80)
    while last.byteCount % 64 != 56 { last.update(0) }
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
      last.update(UInt8(truncatingIfNeeded: bitCount >> shift))
    }
    return last.state.flatMap { word in
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
    }
  }

  /// Works a whole block into the state (FIPS 180-4 6.2.2).
  private mutating func compress() {
    schedule.withUnsafeMutableBufferPointer { schedule in
      for index in 16..<64 {
        let before = schedule[index - 15]
        let latest = schedule[index - 2]
        let small = Self.rotated(before, 7) ^ Self.rotated(before, 18) ^ before >> 3
        let large = Self.rotated(latest, 17) ^ Self.rotated(latest, 19) ^ latest >> 10
        schedule[index] = schedule[index - 16] &+ small &+ schedule[index - 7] &+ large
      }
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      var (e, f, g, h) = (state[4], state[5], state[6], state[7])
      Self.constants.withUnsafeBufferPointer { constants in
        for round in 0..<64 {
          let choice = e & f ^ ~e & g
          let majority = a & b ^ a & c ^ b & c
          let large = Self.rotated(e, 6) ^ Self.rotated(e, 11) ^ Self.rotated(e, 25)
          let small = Self.rotated(a, 2) ^ Self.rotated(a, 13) ^ Self.rotated(a, 22)
          let first = h &+ large &+ choice &+ constants[round] &+ schedule[round]
          (h, g, f, e) = (g, f, e, d &+ first)
          (d, c, b, a) = (c, b, a, first &+ small &+ majority)
        }
      }
      for (index, word) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= word }
    }
  }

  @inline(__always)
  private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word >> count | word << (32 - count)
  }

  /// The fractions of the square roots of the first 8 primes (FIPS 180-4 5.3.3).
  private static let initialState: [UInt32] = [
    0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
  ]

  /// The fractions of the cube roots of the first 64 primes (FIPS 180-4 4.2.2).
  private static let constants: [UInt32] = [
    0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
    0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
    0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
    0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
    0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
    0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
    0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
    0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
  ]
}
