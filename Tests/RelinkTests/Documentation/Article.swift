import Foundation
import Testing

/// The tables of an article in `Docs.docc`, as they stand in the repository.
struct Article {
  struct Table {
    var header: [String]
    var rows: [[String]]

    /// The row that begins with this text; none may be there twice.
    func row(_ first: String) throws -> [String] {
      let found = rows.filter { $0.first == first }
      try #require(found.count == 1, "the article has \(found.count) rows for: \(first)")
      return found[0]
    }

    /// The cell in the row and the column that begin with these texts.
    func cell(_ row: String, _ column: String) throws -> String {
      let index = try #require(header.firstIndex(of: column), "the table has no column \(column)")
      return try self.row(row)[index]
    }
  }

  private let tables: [Table]

  init(_ name: String) throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Docs.docc/\(name).md").standardizedFileURL
    var tables: [Table] = []
    var lines: [[String]] = []
    for line in try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n") + [""] {
      if line.hasPrefix("|"), line.hasSuffix("|") {
        lines.append(
          line.dropFirst().dropLast().components(separatedBy: "|").map {
            $0.trimmingCharacters(in: .whitespaces)
          })
      } else if lines.count >= 2 {
        let width = lines[0].count
        for cells in lines { try #require(cells.count == width, "a row of another length: \(cells)") }
        try #require(lines[1].allSatisfy { $0.allSatisfy { $0 == "-" } })
        tables.append(Table(header: lines[0], rows: Array(lines.dropFirst(2))))
        lines = []
      }
    }
    self.tables = tables
  }

  /// The table whose first column has this header.
  func table(_ first: String) throws -> Table {
    let found = tables.filter { $0.header.first == first }
    try #require(found.count == 1, "the article has \(found.count) tables that begin with: \(first)")
    return found[0]
  }
}
