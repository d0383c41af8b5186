internal import Relink

/// A record as it is read from a line.
package struct ReadAuditRecord: Hashable, Sendable {
  /// Its place in the chain.
  package var sequence: UInt64
  /// The hash of the record before it.
  package var previous: String
  /// What it is about.
  package var kind: AuditRecord.Kind
  /// What else it says, without its hash.
  package var fields: [AuditField]
  /// Its own hash.
  package var hash: String

  /// The value of a field, without the marks of its notation.
  package func plain(_ key: String) -> String? {
    fields.first { $0.key == key }?.value.plain
  }

  /// Why a line is not a record.
  package enum Flaw: Error, Hashable, Sendable {
    /// It does not end as a record does.
    case unsealed
    /// Its hash does not fit its text.
    case edited
    /// Its hash fits, and yet it is not of the form that a log writes.
    case malformed
  }

  /// Reads a line without its newline, whatever its bytes.
  package init(_ line: ArraySlice<UInt8>) throws(Flaw) {
    guard let (text, hash) = AuditLine.parts(of: line) else { throw .unsealed }
    guard SHA256.digest(of: text).hexadecimal.utf8.elementsEqual(hash) else { throw .edited }
    self.hash = String(decoding: hash, as: UTF8.self)
    var parser = AuditParser(text)
    guard var fields = parser.members(), fields.count >= 3,
      fields[0].key == "sequence", case .number(let digits) = fields[0].value, let sequence = UInt64(digits),
      fields[1].key == "previous", case .text(let previous) = fields[1].value,
      fields[2].key == "record", case .text(let kind) = fields[2].value
    else { throw .malformed }
    fields.removeFirst(3)
    self.sequence = sequence
    self.previous = previous
    self.kind = AuditRecord.Kind(rawValue: kind)
    self.fields = fields
  }
}

/// Reads the members of a JSON object that has texts, integers and truth values in it, and is cut off before its brace.
private struct AuditParser {
  private var rest: ArraySlice<UInt8>

  init(_ text: ArraySlice<UInt8>) {
    rest = text
  }

  /// The members in their order; nil for another form, or where two have the same name.
  mutating func members() -> [AuditField]? {
    guard take("{") else { return nil }
    var fields: [AuditField] = []
    var keys: Set<String> = []
    repeat {
      guard let key = string(), keys.insert(key).inserted, take(":"), let value = value() else { return nil }
      fields.append(AuditField(key, value))
    } while take(",")
    return rest.isEmpty ? fields : nil
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func take(word: StaticString) -> Bool {
    let isThere = word.withUTF8Buffer { rest.starts(with: $0) }
    if isThere { rest.removeFirst(word.utf8CodeUnitCount) }
    return isThere
  }

  private mutating func value() -> AuditValue? {
    if rest.first == UInt8(ascii: "\"") { return string().map { .text($0) } }
    if take(word: "true") { return .flag(true) }
    if take(word: "false") { return .flag(false) }
    let number = rest.prefix { (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") }
    let digits = String(decoding: number, as: UTF8.self)
    guard Int64(digits) != nil || UInt64(digits) != nil else { return nil }
    rest.removeFirst(number.count)
    return .number(digits)
  }

  private mutating func string() -> String? {
    guard take("\"") else { return nil }
    var text: [UInt8] = []
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case ..<0x20: return nil
      case UInt8(ascii: "\\"):
        guard let escaped = rest.popFirst() else { return nil }
        switch escaped {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): text.append(escaped)
        case UInt8(ascii: "u"):
          let digits = String(decoding: rest.prefix(4), as: UTF8.self)
          guard digits.utf8.count == 4, let number = UInt16(digits, radix: 16),
            let scalar = Unicode.Scalar(number)
          else { return nil }
          rest.removeFirst(4)
          text += Array(String(Character(scalar)).utf8)
        default: return nil
        }
      default: text.append(byte)
      }
    }
    return nil
  }
}
