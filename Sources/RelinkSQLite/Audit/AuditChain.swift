internal import Relink

/// Where a chain of records has come to: the place of its last record, and that record's hash.
package struct AuditChain: Hashable, Sendable {
  /// How many records there are.
  package var records: UInt64 = 0
  /// The hash of the last one, in hexadecimal.
  package var head = Self.start

  /// What stands in place of a hash before the first record.
  package static let start = String(repeating: "0", count: 64)
  /// The version of the form of the records.
  static let format = 1

  /// Appends the next record to `bytes`, with the newline that ends it.
  mutating func append(_ record: AuditRecord, to bytes: inout [UInt8]) {
    records += 1
    var line: [UInt8] = [UInt8(ascii: "{")]
    let ahead = [
      AuditField("sequence", records), AuditField("previous", head),
      AuditField("record", record.kind.rawValue),
    ]
    for field in ahead + record.fields {
      if line.count > 1 { line.append(UInt8(ascii: ",")) }
      line.appendAudit(field)
    }
    head = SHA256.digest(of: line).hexadecimal
    line += AuditLine.hashMark
    line += head.utf8
    line += AuditLine.end
    bytes += line
    bytes.append(AuditLine.newline)
  }
}

/// What is put down in an audit log: everything of a line but its place in the chain.
package struct AuditRecord: Hashable, Sendable {
  /// What a record is about.
  package struct Kind: RawRepresentable, Hashable, Sendable {
    /// The word for it in the file.
    package var rawValue: String

    /// Makes a kind from its word.
    package init(rawValue: String) { self.rawValue = rawValue }

    /// A process opened the log.
    static let opened = Kind(rawValue: "opened")
    /// A transition of an operation.
    static let transition = Kind(rawValue: "transition")
    /// Transitions that there was no room for.
    static let lost = Kind(rawValue: "lost")
    /// Bytes before it that are no record, because their writer was cut off.
    static let repaired = Kind(rawValue: "repaired")
    /// The system could not say that the records before are on disk.
    static let unsynced = Kind(rawValue: "unsynced")
    /// The log was closed.
    static let closed = Kind(rawValue: "closed")
  }

  package var kind: Kind
  package var fields: [AuditField]

  init(_ kind: Kind, _ fields: [AuditField] = []) {
    self.kind = kind
    self.fields = fields
  }
}

/// The outer form of a line: an object whose last member is the hash of what stands before that member.
enum AuditLine {
  static let newline = UInt8(ascii: "\n")
  static let hashMark = [UInt8](#","hash":""#.utf8)
  static let end = [UInt8](#""}"#.utf8)
  static let beginning = [UInt8](#"{"sequence":"#.utf8)
  /// The longest line that a reader accepts: several times the longest that is written.
  static let limit = 1 << 16
  /// How much the writer of a log may leave behind that is no record.
  static let tornLimit = 1 << 20

  private static let sealLength = hashMark.count + 64 + end.count

  /// The text under the hash, and the hash, where a line ends as a record does.
  static func parts(of line: ArraySlice<UInt8>) -> (text: ArraySlice<UInt8>, hash: ArraySlice<UInt8>)? {
    guard line.count > sealLength else { return nil }
    let text = line.dropLast(sealLength)
    let seal = line[text.endIndex...]
    let hash = seal.dropFirst(hashMark.count).dropLast(end.count)
    guard seal.starts(with: hashMark), seal.suffix(end.count).elementsEqual(end),
      hash.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
    else { return nil }
    return (text, hash)
  }
}
