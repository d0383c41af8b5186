internal import Glibc
package import Relink

/// What went wrong with a crash run itself, in words.
package struct CrashFailure: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) { self.description = description }
}

/// What a process that may be killed has begun and was told, a line each.
///
/// A line is written with one system call before the process goes on, so whatever kills it leaves the line.
package final class CrashLedger: Sendable {
  private let descriptor: Int32

  package init(at path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CrashFailure("\(path) cannot be written: error \(errno)") }
  }

  deinit { close(descriptor) }

  package func write(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      // A line that is missing would be taken for a lost command.
      print("the ledger cannot be written: error \(errno)")
      exit(3)
    }
  }
}

/// How a process came to know an outcome.
package enum CrashSource: String, Sendable {
  /// The call of the command, in this process or after a restart.
  case told
  /// The stream of recovered operations.
  case recovered
  /// The command was asked for once more after its outcome was known.
  case again
}

/// An outcome as the ledger keeps it.
package struct CrashOutcome: Hashable, Sendable {
  package enum Word: String, CaseIterable, Sendable {
    case succeeded, rejected, notSent, indeterminate
  }

  package var word: Word
  /// The confirmation, the error, the reason or the cause; empty where the call does not say.
  package var detail: String

  package init(word: Word, detail: String) {
    self.word = word
    self.detail = detail
  }

  package init(_ outcome: Outcome<Confirmation>) {
    switch outcome {
    case .succeeded(let confirmation): self.init(word: .succeeded, detail: confirmation.rawValue)
    case .rejected(let rejection): self.init(rejection)
    case .notSent(let reason): self.init(word: .notSent, detail: "\(reason)")
    case .indeterminate(let doubt): self.init(doubt)
    }
  }

  /// The outcome in an error; nil where it has none.
  package init?(_ error: RelinkError) {
    switch error.outcome {
    case .rejected(let rejection): self.init(rejection)
    case .notSent(let reason): self.init(word: .notSent, detail: "\(reason)")
    case .indeterminate(let doubt): self.init(doubt)
    case .succeeded, nil: return nil
    }
  }

  private init(_ rejection: Rejection) {
    self.init(
      word: .rejected, detail: "\(rejection.code.rawValue) \(rejection.provesNotApplied ? "proof" : "open")")
  }

  private init(_ doubt: Doubt) {
    self.init(word: .indeterminate, detail: "\(doubt.cause)")
  }

  /// Whether the caller was told that nothing certain is recorded: the store took too long, or failed.
  var isProvisional: Bool { word == .indeterminate && detail.hasPrefix("storeFailed") }

  /// Whether both may be said of the same command.
  func agrees(with other: CrashOutcome) -> Bool {
    word == other.word && (detail == other.detail || detail.isEmpty || other.detail.isEmpty)
  }
}

/// What a ledger says.
package struct CrashRecord: Sendable {
  /// The commands that were begun.
  package private(set) var issued: Set<Int> = []
  /// What was told of each, in order, with how.
  package private(set) var outcomes: [Int: [(source: CrashSource, outcome: CrashOutcome)]] = [:]
  /// Lines of the processes about things that must not be.
  package private(set) var faults: [String] = []
  /// How many processes began.
  package private(set) var starts = 0

  package init(at path: String) throws {
    for line in try CrashRecord.lines(of: path) {
      let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
      switch words[0] {
      case "start": starts += 1
      case "issued" where words.count == 2: if let number = Int(words[1]) { issued.insert(number) }
      case "fault": faults.append(line)
      default:
        guard words.count >= 3, let source = CrashSource(rawValue: words[0]), let number = Int(words[1]),
          let word = CrashOutcome.Word(rawValue: words[2])
        else { continue }
        let outcome = CrashOutcome(word: word, detail: words.count > 3 ? words[3] : "")
        outcomes[number, default: []].append((source, outcome))
      }
    }
  }

  /// The whole lines of a file; none where there is no file.
  package static func lines(of path: String) throws -> [String] {
    guard let file = fopen(path, "re") else {
      guard errno == ENOENT else { throw CrashFailure("\(path) cannot be read: error \(errno)") }
      return []
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      guard count > 0 else { break }
      bytes.append(contentsOf: chunk[..<count])
    }
    return bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
  }
}
