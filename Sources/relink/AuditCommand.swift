internal import Foundation
internal import Relink
internal import RelinkSQLite

/// Verifies an audit log, or prints its records for people.
struct AuditCommand: Sendable {
  enum Action: String, Hashable {
    case verify
    case show
  }

  var action: Action
  var path: String
  /// What was kept elsewhere.
  var head: String?
  var records: UInt64?
  /// What is shown; nil for everything.
  var device: String?
  var operation: String?

  init(_ arguments: Arguments) throws(UsageError) {
    var arguments = arguments
    guard let word = arguments.next() else { throw UsageError(message: "audit needs verify or show") }
    guard let action = Action(rawValue: word) else {
      throw UsageError(message: "audit has no command \(word): it has verify and show")
    }
    var path: String?
    while let word = arguments.next() {
      switch (action, word) {
      case (.verify, "--head"):
        let text = try arguments.value(of: word).lowercased()
        guard text.utf8.count == 64, text.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
          throw UsageError(message: "\(text) is not a hash of 64 hexadecimal digits")
        }
        head = text
      case (.verify, "--records"):
        let text = try arguments.value(of: word)
        guard let number = UInt64(text), number > 0 else {
          throw UsageError(message: "\(text) is not a number of records")
        }
        records = number
      case (.show, "--device"):
        let text = try arguments.value(of: word)
        // As the log spells it, where it is an address.
        device = DeviceID(text)?.description ?? text
      case (.show, "--operation"): operation = try arguments.value(of: word)
      case (_, _) where word.hasPrefix("-"):
        throw UsageError(message: "audit \(action.rawValue) has no option \(word)")
      case (_, _) where path != nil:
        throw UsageError(message: "audit \(action.rawValue) takes one file, not also \(word)")
      default: path = word
      }
    }
    guard let path, !path.isEmpty else {
      throw UsageError(message: "audit \(action.rawValue) needs a file")
    }
    self.action = action
    self.path = path
  }

  func run() throws(AuditLogError) -> Int32 {
    switch action {
    case .verify:
      let (line, status) = try verified()
      write(line)
      return status
    case .show:
      try AuditLog.forEachRecord(at: path) { number, record in
        if let line = shown(number, record) { write(line) }
      }
      return 0
    }
  }

  /// The closing line, and the exit status.
  func verified() throws(AuditLogError) -> (line: String, status: Int32) {
    do throws(AuditLog.VerificationError) {
      let summary = try AuditLog.verify(at: path, head: head, records: records)
      var notes: [String] = []
      if summary.lost > 0 { notes.append("\(summary.lost) transitions lost for want of room") }
      if summary.tornBytes > 0 { notes.append("\(summary.tornBytes) torn bytes accounted for") }
      if summary.isBeingWritten { notes.append("being written") }
      let note = notes.isEmpty ? "" : " (" + notes.joined(separator: ", ") + ")"
      return ("\(path): \(summary.records) records hold\(note), head \(summary.head)", 0)
    } catch {
      switch error {
      case .unreadable(let error): throw error
      case .flawed(let flaw): return ("\(path):\(flaw.line): \(flaw.message)", 1)
      }
    }
  }

  /// A record in a line, if it is asked for.
  func shown(_ number: UInt64, _ record: ReadAuditRecord?) -> String? {
    let isFiltered = device != nil || operation != nil
    guard let record else { return isFiltered ? nil : "line \(number) is not a record" }
    if let device, record.plain("device") != device { return nil }
    if let operation, record.plain("operation") != operation { return nil }
    guard record.kind.rawValue == "transition" else {
      return "\(record.sequence)  \(record.kind.rawValue)  " + Self.words(record.fields, without: [])
    }
    let ahead = ["wall", "device", "operation", "change"].map { Self.printable(record.plain($0) ?? "?") }
    return "\(record.sequence)  " + ahead.joined(separator: "  ") + "  "
      + Self.words(
        record.fields, without: ["wall", "boot", "monotonic", "device", "operation", "change", "digest"])
  }

  private static func words(_ fields: [AuditField], without hidden: Set<String>) -> String {
    fields.filter { !hidden.contains($0.key) }
      .map { "\(printable($0.key))=\(printable($0.value.plain))" }
      .joined(separator: " ")
  }

  /// What would steer the terminal is shown as an escape: a log is written by many.
  private static func printable(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control ? scalar.escaped(asASCII: true) : String(scalar)
    }.joined()
  }

  private func write(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}
