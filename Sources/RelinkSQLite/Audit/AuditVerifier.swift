internal import Relink

/// What a chain of records was found to be.
public struct AuditSummary: Hashable, Sendable {
  /// How many records there are.
  public var records: UInt64
  /// The hash of the last one, in hexadecimal.
  public var head: String
  /// How many transitions the log says that it lost for want of room.
  public var lost: UInt64
  /// How many times the log was opened.
  public var opened: UInt64
  /// How many times it was closed; the rest of the times its process was cut off, or has it open.
  public var closed: UInt64
  /// How many bytes are no records, and are accounted for as the traces of a writer that was cut off.
  public var tornBytes: UInt64
  /// Whether the last line was not complete, because a log was writing it.
  public var isBeingWritten: Bool
}

/// The first line of an audit log that does not hold.
public struct AuditFlaw: Error, Hashable, Sendable, CustomStringConvertible {
  /// The number of the line, from 1; one more than there are where something is missing at the end.
  public var line: UInt64
  /// What is wrong with it.
  public var message: String

  /// Place and flaw.
  public var description: String { "line \(line): \(message)" }
}

/// Checks a chain of records as its bytes come in; knows no files, and keeps no more than a line.
package struct AuditVerifier {
  /// What somebody kept elsewhere about an earlier state of the log.
  package struct Kept: Hashable, Sendable {
    /// How many records there were, if he kept that.
    package var records: UInt64?
    /// The hash of the last of them, in lower-case hexadecimal, if he kept that.
    package var head: String?

    /// Describes what was kept.
    package init(records: UInt64? = nil, head: String? = nil) {
      self.records = records
      self.head = head
    }
  }

  /// Bytes that may be the traces of a writer that was cut off: the next record has to say so.
  private struct Torn {
    var flaw: AuditFlaw
    var hash = SHA256()
    var length = 0

    mutating func take(_ bytes: ArraySlice<UInt8>) {
      hash.update(bytes)
      length += bytes.count
    }
  }

  private let kept: Kept
  private var chain = AuditChain()
  private var summary = AuditSummary(
    records: 0, head: AuditChain.start, lost: 0, opened: 0, closed: 0, tornBytes: 0, isBeingWritten: false)
  private var line: [UInt8] = []
  private var lineNumber: UInt64 = 1
  private var isOverlong = false
  private var torn: Torn?
  private var hasMetKeptHead = false

  /// Makes a verifier of a log from its first byte on.
  package init(_ kept: Kept = Kept()) {
    self.kept = kept
  }

  /// Takes the next bytes of the file.
  package mutating func take(_ bytes: ArraySlice<UInt8>) throws(AuditFlaw) {
    var rest = bytes
    while let end = rest.firstIndex(of: AuditLine.newline) {
      try takePiece(rest[..<end])
      try endLine()
      rest = rest[(end + 1)...]
    }
    try takePiece(rest)
  }

  /// Says what was found, after the last byte of the file.
  ///
  /// Where a log is writing the file, an incomplete last line is no flaw.
  package mutating func finish(isBeingWritten: Bool = false) throws(AuditFlaw) -> AuditSummary {
    if !line.isEmpty || isOverlong {
      guard isBeingWritten else {
        throw torn?.flaw
          ?? flaw(
            "this line is torn: the file ends in the middle of a record; a log that opens it accounts for that and goes on"
          )
      }
      summary.isBeingWritten = true
    }
    if let torn { throw torn.flaw }
    guard chain.records > 0 else { throw flaw("the file holds no record") }
    if let records = kept.records, chain.records < records {
      throw flaw("the end is missing: \(records) records were kept note of, and \(chain.records) are there")
    }
    if let head = kept.head, !hasMetKeptHead {
      throw flaw(
        "no record has the hash \(head): the log was cut off before it, or written anew")
    }
    summary.records = chain.records
    summary.head = chain.head
    return summary
  }

  // MARK: Lines

  private func flaw(_ message: String) -> AuditFlaw { AuditFlaw(line: lineNumber, message: message) }

  private mutating func takePiece(_ piece: ArraySlice<UInt8>) throws(AuditFlaw) {
    guard !isOverlong, line.count + piece.count <= AuditLine.limit else {
      if !isOverlong {
        isOverlong = true
        try tear(line[...], flaw("this line is longer than a record can be"))
        line.removeAll()
      }
      return try tear(piece, flaw("this line is longer than a record can be"))
    }
    line += piece
  }

  private mutating func endLine() throws(AuditFlaw) {
    defer {
      line.removeAll(keepingCapacity: true)
      isOverlong = false
      lineNumber += 1
    }
    guard !isOverlong else {
      return try tear([AuditLine.newline], flaw("this line is longer than a record can be"))
    }
    let record: ReadAuditRecord
    do throws(ReadAuditRecord.Flaw) {
      record = try ReadAuditRecord(line[...])
    } catch {
      switch error {
      // A torn line cannot end as a record does.
      case .unsealed: return try tear(line[...] + [AuditLine.newline], flaw("this line is not a record"))
      case .edited: throw torn?.flaw ?? flaw("this line was edited: its hash does not fit its text")
      case .malformed:
        throw torn?.flaw ?? flaw("this line has a hash that fits, but not the form of a record")
      }
    }
    try accept(record)
  }

  private mutating func tear(_ bytes: ArraySlice<UInt8>, _ flaw: AuditFlaw) throws(AuditFlaw) {
    var torn = torn ?? Torn(flaw: flaw)
    torn.take(bytes)
    self.torn = torn
    // More than any writer leaves behind: nothing that follows can account for it.
    if torn.length > AuditLine.tornLimit { throw torn.flaw }
  }

  private mutating func accept(_ record: ReadAuditRecord) throws(AuditFlaw) {
    if let torn {
      guard record.kind == .repaired, record.plain("torn") == "\(torn.length)",
        record.plain("digest") == torn.hash.digest.hexadecimal
      else { throw torn.flaw }
      summary.tornBytes += UInt64(torn.length)
      self.torn = nil
    } else if record.kind == .repaired, record.plain("torn") != "0" {
      throw flaw("this record accounts for torn bytes that are not there: they were removed or edited")
    }
    try follow(record)
    switch record.kind {
    case .opened:
      summary.opened += 1
      guard record.plain("format") == "\(AuditChain.format)" else {
        throw flaw("this record was written by a later version of the library: use that to verify the log")
      }
    case .closed: summary.closed += 1
    case .lost: summary.lost &+= UInt64(record.plain("transitions") ?? "") ?? 0
    default: break
    }
  }

  private mutating func follow(_ record: ReadAuditRecord) throws(AuditFlaw) {
    let expected = chain.records + 1
    if record.sequence > expected {
      let missing = record.sequence - 1
      throw flaw(
        (missing == expected ? "record \(expected) is" : "records \(expected) to \(missing) are")
          + " missing before this line")
    }
    if record.sequence < expected {
      throw flaw(
        "record \(record.sequence) comes again, or in the wrong place, after record \(chain.records)")
    }
    guard record.previous == chain.head else {
      throw flaw("this record does not continue the one before it: one of the two is another one than it was")
    }
    chain.records = expected
    chain.head = record.hash
    if record.hash == kept.head { hasMetKeptHead = true }
    if let head = kept.head, kept.records == expected, record.hash != head {
      throw flaw("this is another record than the one whose hash was kept: the log was written anew")
    }
  }
}
