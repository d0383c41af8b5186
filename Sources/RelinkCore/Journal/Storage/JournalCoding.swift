internal import BluetoothWire

/// The encoding of what a journal store keeps, version 1: a byte for the version, then the parts in a fixed order.
///
/// Each value has one encoding, and bytes that no encoder writes are refused. What was written stays readable: numbers
/// and names of cases are never given to something else, and a change of the order is a new version.
package enum JournalCoding {
  /// The version that is written.
  package static let version: UInt8 = 1
  /// How many bytes a value or a text may have, and how many values a request: more than an attribute can hold, which is 512 (Core Specification Vol 3
  /// Part F 3.2.9), and little enough for a row.
  package static let longestPart = 65_535
  /// How many bytes are kept of a text for people: those of errors have far fewer.
  package static let longestRemark = 4_096

  /// Encodes how an operation ended.
  ///
  /// Code and message of a store's error are cut to 4,096 bytes each.
  package static func encode(_ outcome: Outcome<Confirmation>) -> [UInt8] {
    var writer = ByteWriter()
    writer.put(version)
    switch outcome {
    case .succeeded(let confirmation):
      writer.put(case: OutcomeKind.succeeded)
      writer.put(name: confirmation)
    case .rejected(let rejection):
      writer.put(case: OutcomeKind.rejected)
      writer.put(rejection.code.rawValue)
      writer.put(rejection.provesNotApplied)
    case .notSent(let reason):
      writer.put(case: OutcomeKind.notSent)
      writer.put(reason)
    case .indeterminate(let doubt):
      writer.put(case: OutcomeKind.indeterminate)
      writer.put(doubt)
    }
    return writer.bytes
  }

  /// Decodes how an operation ended.
  package static func decode(_ bytes: [UInt8]) throws(JournalCodingError) -> Outcome<Confirmation> {
    var reader = ByteReader(bytes)
    try reader.version()
    let outcome = try reader.outcome()
    try reader.end()
    return outcome
  }
}

/// The number of an outcome.
private enum OutcomeKind: UInt8 {
  case succeeded = 1
  case rejected
  case notSent
  case indeterminate
}

extension ByteReader {
  fileprivate mutating func outcome() throws(JournalCodingError) -> Outcome<Confirmation> {
    switch try enumeration(OutcomeKind.self) {
    case .succeeded: .succeeded(try named())
    case .rejected:
      .rejected(Rejection(code: ATTErrorCode(rawValue: try integer()), provesNotApplied: try bool()))
    case .notSent: .notSent(try notSentReason())
    case .indeterminate: .indeterminate(try doubt())
    }
  }
}
