internal import Relink

/// A value in a record of an audit log.
package enum AuditValue: Hashable, Sendable {
  case text(String)
  /// A text that is bounded by what it is: it is never cut.
  case code(String)
  /// An integer, as its digits.
  case number(String)
  case flag(Bool)

  static func number(_ number: some BinaryInteger) -> AuditValue { .number(String(number)) }

  /// The value without the marks of its notation.
  package var plain: String {
    switch self {
    case .text(let text), .code(let text), .number(let text): text
    case .flag(let flag): "\(flag)"
    }
  }
}

/// A named value in a record of an audit log.
package struct AuditField: Hashable, Sendable {
  package var key: String
  package var value: AuditValue

  init(_ key: String, _ value: AuditValue) {
    self.key = key
    self.value = value
  }

  init(_ key: String, _ text: String) { self.init(key, .text(text)) }

  init(_ key: String, _ number: some BinaryInteger) { self.init(key, .number(number)) }
}

extension [UInt8] {
  /// The longest text in a record, in bytes of UTF-8; a longer one is cut, and ends in an ellipsis.
  package static let auditTextLimit = 512

  mutating func appendAudit(_ field: AuditField) {
    appendAudit(quoted: field.key, limit: .max)
    append(UInt8(ascii: ":"))
    switch field.value {
    case .text(let text): appendAudit(quoted: text, limit: Self.auditTextLimit)
    case .code(let text): appendAudit(quoted: text, limit: .max)
    case .number(let digits): append(contentsOf: digits.utf8)
    case .flag(let flag): append(contentsOf: flag ? "true".utf8 : "false".utf8)
    }
  }

  /// Appends a JSON string; what would steer a terminal is escaped too.
  private mutating func appendAudit(quoted text: String, limit: Int) {
    append(UInt8(ascii: "\""))
    var room = limit
    for scalar in text.unicodeScalars {
      let utf8 = UTF8.encode(scalar)
      room -= utf8?.count ?? 0
      guard room >= 0 else {
        append(contentsOf: "…".utf8)
        break
      }
      switch scalar.value {
      case 0x22, 0x5C:
        append(UInt8(ascii: "\\"))
        append(UInt8(truncatingIfNeeded: scalar.value))
      case ..<0x20, 0x7F..<0xA0:
        append(contentsOf: "\\u00".utf8)
        appendAudit(hexadecimal: [UInt8(truncatingIfNeeded: scalar.value)])
      default: append(contentsOf: utf8 ?? UTF8.encodedReplacementCharacter)
      }
    }
    append(UInt8(ascii: "\""))
  }

  private mutating func appendAudit(hexadecimal bytes: [UInt8]) {
    for byte in bytes {
      for digit in [byte >> 4, byte & 15] {
        append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      }
    }
  }

  /// The bytes in lower-case hexadecimal.
  package var hexadecimal: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(count * 2)
    digits.appendAudit(hexadecimal: self)
    return String(decoding: digits, as: UTF8.self)
  }
}

extension Timestamp {
  /// The time of day on the system clock in UTC, as RFC 3339 writes it, with nanoseconds.
  package var rfc3339: String {
    let second: Int64 = 1_000_000_000
    let nanoseconds = (wall % second + second) % second
    let seconds = wall / second - (wall % second < 0 ? 1 : 0)
    let inDay = (seconds % 86_400 + 86_400) % 86_400
    let date = CivilDate(daysSince1970: (seconds - inDay) / 86_400)
    return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T"
      + "\(padded(inDay / 3600, 2)):\(padded(inDay / 60 % 60, 2)):\(padded(inDay % 60, 2))."
      + "\(padded(nanoseconds, 9))Z"
  }
}

private func padded(_ number: Int64, _ width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
}

/// A day of the Gregorian calendar, also before it was introduced.
private struct CivilDate {
  var year: Int64
  var month: Int64
  var day: Int64

  /// Counts in years that begin on the first of March, so that a leap day is the last of its year.
  init(daysSince1970 days: Int64) {
    // 719468 days lie between 0000-03-01 and 1970-01-01; 146097 are 400 years.
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }
}
