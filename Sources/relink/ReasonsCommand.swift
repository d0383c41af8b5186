internal import Foundation
internal import Relink

/// Prints what codes mean by themselves, or what comes of each reason.
struct ReasonsCommand: Equatable, Sendable {
  enum Subject: Equatable, Sendable {
    case sources([CodeSource])
    case actions
  }

  enum Format: Equatable, Sendable {
    case text
    case json
    case markdown
  }

  var subject: Subject
  var format = Format.text

  init(_ arguments: Arguments) throws(UsageError) {
    var arguments = arguments
    var subject: Subject?
    while let word = arguments.next() {
      switch word {
      case "--json": format = .json
      case "--markdown": format = .markdown
      case _ where word.hasPrefix("-"): throw UsageError(message: "reasons has no option \(word)")
      case _ where subject != nil: throw UsageError(message: "reasons takes one source, not also \(word)")
      case "actions": subject = .actions
      default:
        guard let source = CodeSource(rawValue: word) else {
          let names = CodeSource.allCases.map(\.rawValue).joined(separator: ", ")
          throw UsageError(message: "there is no source \(word): there are \(names), and actions")
        }
        subject = .sources([source])
      }
    }
    self.subject = subject ?? .sources(CodeSource.allCases)
  }

  func run() -> Int32 {
    FileHandle.standardOutput.write(Data((lines.joined(separator: "\n") + "\n").utf8))
    return 0
  }

  /// Everything that is printed.
  var lines: [String] {
    let tables: [(title: String, table: ReasonTable)] =
      switch subject {
      case .sources(let sources):
        sources.map { ("\($0.rawValue): \($0.title)", .codes(of: $0, eachMoment: format == .json)) }
      case .actions: [("actions: what comes of each reason", .actions())]
      }
    let printed = tables.map { title, table in
      switch format {
      case .text: [title] + table.text
      case .json: table.json
      case .markdown: tables.count == 1 ? table.markdown : ["## \(title)", ""] + table.markdown
      }
    }
    return Array(printed.joined(separator: format == .json ? [] : [""]))
  }
}
