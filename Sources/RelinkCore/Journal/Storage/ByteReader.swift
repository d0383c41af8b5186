/// Takes values out of bytes as ``ByteWriter`` put them in, and throws where none is there.
///
/// It accepts one spelling of each value only, and copies nothing that the bytes do not hold.
package struct ByteReader {
  private let bytes: [UInt8]
  private var position = 0

  /// Reads bytes from their start.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Takes the next bytes out.
  private mutating func take(_ count: Int) throws(JournalCodingError) -> ArraySlice<UInt8> {
    guard count <= bytes.count - position else { throw .truncated }
    defer { position += count }
    return bytes[position..<position + count]
  }

  /// Takes an integer out.
  package mutating func integer<Value: FixedWidthInteger>(
    _ type: Value.Type = Value.self
  ) throws(JournalCodingError) -> Value {
    try take(MemoryLayout<Value>.size).reversed().reduce(0) { $0 << 8 | Value(truncatingIfNeeded: $1) }
  }

  /// Takes an integer out that has eight bytes whatever the machine.
  package mutating func wideInteger() throws(JournalCodingError) -> Int {
    let value = try integer(Int64.self)
    guard let narrow = Int(exactly: value) else { throw .malformed("the number \(value)") }
    return narrow
  }

  /// Takes 0 or 1 out.
  package mutating func bool() throws(JournalCodingError) -> Bool {
    let value = try integer(UInt8.self)
    guard value <= 1 else { throw .malformed("\(value) where 0 or 1 belongs") }
    return value == 1
  }

  /// Takes a byte string out.
  package mutating func string() throws(JournalCodingError) -> [UInt8] {
    Array(try take(try length()))
  }

  private mutating func length() throws(JournalCodingError) -> Int {
    let length = try integer(UInt32.self)
    guard length <= JournalCoding.longestPart else { throw .tooLong(Int(clamping: length)) }
    return Int(length)
  }

  /// Takes a text out.
  package mutating func text() throws(JournalCodingError) -> String {
    guard let text = String(validating: try string(), as: UTF8.self) else {
      throw .malformed("a text that is not UTF-8")
    }
    return text
  }

  /// Takes a case out by its number.
  package mutating func enumeration<Case: RawRepresentable>(
    _ type: Case.Type = Case.self
  ) throws(JournalCodingError) -> Case where Case.RawValue: FixedWidthInteger {
    let number = try integer(Case.RawValue.self)
    guard let value = Case(rawValue: number) else { throw .unknownCase(of: "\(type)", "\(number)") }
    return value
  }

  /// Takes a case out by its name.
  package mutating func named<Case: RawRepresentable>(
    _ type: Case.Type = Case.self
  ) throws(JournalCodingError) -> Case where Case.RawValue == String {
    let name = try text()
    guard let value = Case(rawValue: name) else {
      throw .unknownCase(of: "\(type)", String(reflecting: String(name.prefix(40))))
    }
    return value
  }

  /// Takes out whether there is a value, and the value.
  package mutating func optional<Value>(
    _ body: (inout ByteReader) throws(JournalCodingError) -> Value
  ) throws(JournalCodingError) -> Value? {
    try bool() ? try body(&self) : nil
  }

  /// Takes the number of values out, and the values.
  package mutating func list<Value>(
    _ body: (inout ByteReader) throws(JournalCodingError) -> Value
  ) throws(JournalCodingError) -> [Value] {
    // No room is made beforehand: the number may be more than the bytes can hold.
    var values: [Value] = []
    for _ in 0..<(try length()) { values.append(try body(&self)) }
    return values
  }

  /// Takes the version out and refuses every one but the present.
  package mutating func version() throws(JournalCodingError) {
    let version = try integer(UInt8.self)
    guard version == JournalCoding.version else { throw .unsupportedVersion(version) }
  }

  /// Throws unless everything was taken out.
  package func end() throws(JournalCodingError) {
    guard position == bytes.count else { throw .trailing(bytes.count - position) }
  }
}
