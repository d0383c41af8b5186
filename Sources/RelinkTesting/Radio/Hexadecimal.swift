/// Two lower-case digits for each octet, without spaces.
func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  text.reserveCapacity(2 * bytes.count)
  for octet in bytes {
    text.append(digits[Int(octet >> 4)])
    text.append(digits[Int(octet & 15)])
  }
  return String(decoding: text, as: UTF8.self)
}

/// The octets that pairs of hexadecimal digits stand for, or nil; spaces are skipped.
func octets(_ text: String) -> [UInt8]? {
  var octets: [UInt8] = []
  var half: UInt8?
  for character in text where !character.isWhitespace {
    guard let digit = character.hexDigitValue.map(UInt8.init) else { return nil }
    if let high = half {
      octets.append(high << 4 | digit)
      half = nil
    } else {
      half = digit
    }
  }
  return half == nil ? octets : nil
}
