/// Which PDUs a script means: octets in hexadecimal, `..` for any octet, and `*` at the end for any rest.
public struct PDUPattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The pattern as it was written.
  public let description: String

  private let octets: [UInt8?]
  private let isOpen: Bool

  /// Reads a pattern such as `12 1000 ..` or `0a*`; spaces do not count.
  ///
  /// - Parameter text: The pattern; nil for anything else.
  public init?(reading text: String) {
    description = text
    var characters = text.filter { !$0.isWhitespace }
    isOpen = characters.last == "*"
    if isOpen { characters.removeLast() }
    guard characters.count.isMultiple(of: 2) else { return nil }
    var octets: [UInt8?] = []
    while !characters.isEmpty {
      let pair = String(characters.prefix(2))
      characters.removeFirst(2)
      if pair == ".." {
        octets.append(nil)
      } else {
        guard let octet = UInt8(pair, radix: 16) else { return nil }
        octets.append(octet)
      }
    }
    self.octets = octets
  }

  /// Reads a pattern out of the source; one that cannot be read is a mistake in the test and stops it.
  ///
  /// - Parameter value: The pattern.
  public init(stringLiteral value: String) {
    guard let pattern = PDUPattern(reading: value) else {
      preconditionFailure("\(value) is no pattern of a PDU")
    }
    self = pattern
  }

  /// The pattern that means exactly these octets.
  ///
  /// - Parameter pdu: The octets.
  public init(_ pdu: [UInt8]) {
    description = hexadecimal(pdu)
    octets = pdu
    isOpen = false
  }

  /// Whether a PDU is meant.
  ///
  /// - Parameter pdu: The bytes.
  /// - Returns: Whether it is.
  public func matches(_ pdu: [UInt8]) -> Bool {
    guard isOpen ? pdu.count >= octets.count : pdu.count == octets.count else { return false }
    return zip(octets, pdu).allSatisfy { $0 == nil || $0 == $1 }
  }
}

/// The bytes of a PDU, written in hexadecimal where a test says them.
public struct PDUBytes: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
  /// The bytes.
  public let bytes: [UInt8]

  /// Takes bytes as they are.
  ///
  /// - Parameter bytes: The bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads pairs of hexadecimal digits; spaces do not count.
  ///
  /// Anything else is a mistake in the test and stops it.
  ///
  /// - Parameter value: The digits.
  public init(stringLiteral value: String) {
    guard let bytes = octets(value) else { preconditionFailure("\(value) is no hexadecimal text") }
    self.bytes = bytes
  }

  /// Takes octets as they are.
  ///
  /// - Parameter elements: The octets.
  public init(arrayLiteral elements: UInt8...) { bytes = elements }
}
