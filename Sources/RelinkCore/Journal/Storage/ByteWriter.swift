/// Puts values one behind the other into bytes: integers least significant byte first, byte strings behind their
/// length of four bytes.
package struct ByteWriter {
  /// What was put in so far.
  package private(set) var bytes: [UInt8] = []
  /// The length of the first value, text or list that is longer than ``JournalCoding/longestPart``.
  package private(set) var excess: Int?

  /// Makes an empty one.
  package init() { bytes.reserveCapacity(128) }

  /// Puts an integer in.
  package mutating func put(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Puts an integer in, in eight bytes whatever the machine.
  package mutating func put(wide value: Int) { put(Int64(value)) }

  /// Puts 0 or 1 in.
  package mutating func put(_ value: Bool) { bytes.append(value ? 1 : 0) }

  /// Puts a byte string in.
  package mutating func put(string value: some Collection<UInt8>) {
    put(length: value.count)
    bytes.append(contentsOf: value)
  }

  private mutating func put(length: Int) {
    if length > JournalCoding.longestPart, excess == nil { excess = length }
    put(UInt32(truncatingIfNeeded: length))
  }

  /// Puts a text in, in UTF-8.
  package mutating func put(text: String) { put(string: text.utf8) }

  /// Puts a text in that is for people; what is too long of it is left out.
  package mutating func put(remark text: String) {
    guard text.utf8.count > JournalCoding.longestRemark else { return put(text: text) }
    var end = text.utf8.index(text.utf8.startIndex, offsetBy: JournalCoding.longestRemark)
    while end.samePosition(in: text.unicodeScalars) == nil { text.utf8.formIndex(before: &end) }
    put(text: String(text[..<end]))
  }

  /// Puts the number of a case in.
  package mutating func put<Case: RawRepresentable>(case value: Case) where Case.RawValue: FixedWidthInteger {
    put(value.rawValue)
  }

  /// Puts the name of a case in.
  package mutating func put<Case: RawRepresentable>(name value: Case) where Case.RawValue == String {
    put(text: value.rawValue)
  }

  /// Puts in whether there is a value, and the value.
  package mutating func put<Value>(_ value: Value?, _ body: (inout ByteWriter, Value) -> Void) {
    put(value != nil)
    if let value { body(&self, value) }
  }

  /// Puts the number of values in, and the values.
  package mutating func put<Value>(list values: [Value], _ body: (inout ByteWriter, Value) -> Void) {
    put(length: values.count)
    for value in values { body(&self, value) }
  }
}
