/// AES-CMAC with a 128-bit key (RFC 4493), on AES as in FIPS 197.
///
/// It serves the Database Hash alone, over a few hundred octets that are no secret; it is neither fast nor safe against
/// somebody who measures time.
struct AESCMAC {
  private static let blockLength = 16
  private let roundKeys: [[UInt8]]

  /// - Parameter key: 16 octets.
  init(key: [UInt8]) {
    precondition(key.count == Self.blockLength, "the key has 128 bits")
    roundKeys = Self.expand(key)
  }

  /// The 16 octets that authenticate a message, the most significant first.
  func authenticate(_ message: [UInt8]) -> [UInt8] {
    let first = Self.doubled(encrypt([UInt8](repeating: 0, count: Self.blockLength)))
    let wholeBlocks = message.count / Self.blockLength
    let isWhole = message.count > 0 && message.count % Self.blockLength == 0
    let lastStart = (isWhole ? wholeBlocks - 1 : wholeBlocks) * Self.blockLength
    var last = Array(message[lastStart...])
    if !isWhole {
      last.append(0x80)
      last += [UInt8](repeating: 0, count: Self.blockLength - last.count)
    }
    var state = [UInt8](repeating: 0, count: Self.blockLength)
    for start in stride(from: 0, to: lastStart, by: Self.blockLength) {
      state = encrypt(Self.xor(state, Array(message[start..<start + Self.blockLength])))
    }
    let key = isWhole ? first : Self.doubled(first)
    return encrypt(Self.xor(state, Self.xor(last, key)))
  }

  /// Encrypts one block.
  func encrypt(_ block: [UInt8]) -> [UInt8] {
    var state = Self.xor(block, roundKeys[0])
    for round in 1...10 {
      state = state.map { Self.substitution[Int($0)] }
      state = (0..<16).map { state[($0 + 4 * ($0 % 4)) % 16] }
      if round < 10 { state = Self.mixColumns(state) }
      state = Self.xor(state, roundKeys[round])
    }
    return state
  }

  private static func xor(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    zip(left, right).map { $0 ^ $1 }
  }

  /// Twice a block as an element of GF(2^128), as the subkeys are made (RFC 4493 2.3).
  private static func doubled(_ block: [UInt8]) -> [UInt8] {
    var shifted = block.indices.map { index in
      block[index] << 1 | (index + 1 < block.count ? block[index + 1] >> 7 : 0)
    }
    if block[0] & 0x80 != 0 { shifted[shifted.count - 1] ^= 0x87 }
    return shifted
  }

  private static func mixColumns(_ state: [UInt8]) -> [UInt8] {
    (0..<16).map { index in
      let column = index / 4 * 4
      let row = index % 4
      let octet = { (offset: Int) in state[column + (row + offset) % 4] }
      return product(octet(0), 2) ^ product(octet(1), 3) ^ octet(2) ^ octet(3)
    }
  }

  private static func expand(_ key: [UInt8]) -> [[UInt8]] {
    var words = stride(from: 0, to: 16, by: 4).map { Array(key[$0..<$0 + 4]) }
    var constant: UInt8 = 1
    for index in 4..<44 {
      var word = words[index - 1]
      if index % 4 == 0 {
        word = (0..<4).map { substitution[Int(word[($0 + 1) % 4])] }
        word[0] ^= constant
        constant = product(constant, 2)
      }
      words.append(xor(words[index - 4], word))
    }
    return stride(from: 0, to: 44, by: 4).map { words[$0..<$0 + 4].flatMap { $0 } }
  }

  /// The product of two octets in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
  private static func product(_ left: UInt8, _ right: UInt8) -> UInt8 {
    var (left, right, sum) = (left, right, UInt8(0))
    while right != 0 {
      if right & 1 != 0 { sum ^= left }
      left = left << 1 ^ (left & 0x80 != 0 ? 0x1B : 0)
      right >>= 1
    }
    return sum
  }

  /// The S-box: the inverse in GF(2^8) and an affine map (FIPS 197 5.1.1).
  private static let substitution: [UInt8] = (0..<256).map { number in
    let octet = UInt8(number)
    // The inverse is the 254th power; zero stays zero.
    let inverse = (0..<253).reduce(octet) { power, _ in product(power, octet) }
    return (1...4).reduce(inverse) { sum, turn in sum ^ (inverse << turn | inverse >> (8 - turn)) } ^ 0x63
  }
}
