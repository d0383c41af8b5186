/// Why a part of a journal row cannot be encoded, or bytes from a store are no such part.
package enum JournalCodingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The bytes end before the value does.
  case truncated
  /// So many bytes follow the value.
  case trailing(Int)
  /// The bytes have a version that is not known here.
  case unsupportedVersion(UInt8)
  /// The bytes hold a case that is not known here: a later version of the library may have written it.
  case unknownCase(of: String, String)
  /// The bytes hold something that no encoder writes.
  case malformed(String)
  /// A value or a text has so many bytes, or a request so many values: more than a row takes.
  case tooLong(Int)
  /// The probe is a closure, which does not outlive its process.
  case notLasting

  /// What is wrong and what to do.
  package var description: String {
    switch self {
    case .truncated: "the record is cut short: the store is damaged"
    case .trailing(let count): "\(count) bytes follow the record: the store is damaged"
    case .unsupportedVersion(let version):
      "the record has version \(version), and \(JournalCoding.version) is the latest known: use the version of the library "
        + "that wrote it"
    case .unknownCase(let type, let value):
      "the record holds \(value), which is not known as \(type): use the version of the library that wrote it"
    case .malformed(let what): "the record holds \(what): the store is damaged"
    case .tooLong(let count):
      "a value, a text or a list of values has a length of \(count), and a record takes \(JournalCoding.longestPart)"
    case .notLasting:
      "a probe that is a closure cannot be recorded: give it a name in the configuration and use `.named`"
    }
  }

  /// Whether a later version of the library can have written the record, and read it.
  var isOfLaterVersion: Bool {
    switch self {
    case .unsupportedVersion, .unknownCase: true
    case .truncated, .trailing, .malformed, .tooLong, .notLasting: false
    }
  }
}
