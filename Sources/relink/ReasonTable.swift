internal import Relink

/// Rows of named cells, to be printed in several ways.
struct ReasonTable {
  /// What a column is called, for people and for programs.
  struct Column {
    enum Place: Equatable {
      /// As wide as its widest cell.
      case aligned
      /// At the end of the line, as long as it is.
      case trailing
      /// For programs alone.
      case hidden
    }

    var title: String
    var key: String
    var place = Place.aligned
    /// Whether the documentation leaves it out where the row above has it.
    var isGrouped = false
  }

  /// What stands in a column.
  enum Cell: Equatable {
    case text(String)
    /// A name of the API.
    case name(String)
    /// A number as it is written, and its value.
    case code(String, value: UInt8?)

    var plain: String {
      switch self {
      case .text(let text), .name(let text), .code(let text, _): text
      }
    }
  }

  var columns: [Column]
  /// As many cells to a row as there are columns.
  var rows: [[Cell]]

  /// The meaning of every code of a source: a row for each meaning that it has, or for each moment.
  static func codes(of source: CodeSource, eachMoment: Bool) -> ReasonTable {
    let rows = source.readings().flatMap { reading in
      let parts = eachMoment ? reading.rows.map { ($0.rawValue, $1) } : reading.parts
      return parts.map { when, row -> [Cell] in
        [
          .text(source.rawValue), .code(reading.code, value: reading.number), .text(when),
          .name(row.reason.rawValue), .name("\(row.recovery)"), .text("\(row.confidence)"),
          .text(reading.name), .text(row.note),
        ]
      }
    }
    return ReasonTable(
      columns: [
        Column(title: "Source", key: "source", place: .hidden), Column(title: "Code", key: "code"),
        Column(title: "When", key: "moment"), Column(title: "Reason", key: "reason"),
        Column(title: "Next step", key: "recovery"), Column(title: "Confidence", key: "confidence"),
        Column(title: "Name", key: "name", place: .trailing),
        Column(title: "Note", key: "note", place: .trailing),
      ], rows: rows)
  }

  /// What comes of every reason.
  static func actions() -> ReasonTable {
    let rows = ReasonAdvice.all().flatMap { advice in
      advice.rows.map { row -> [Cell] in
        [
          .name(advice.reason.rawValue), .text(row.when),
          row.reason == advice.reason ? .text("") : .name(row.reason.rawValue), .name("\(row.recovery)"),
          .text(row.course.words), .text(advice.reason.meaning),
        ]
      }
    }
    return ReasonTable(
      columns: [
        Column(title: "Reason", key: "reason", isGrouped: true), Column(title: "When", key: "when"),
        Column(title: "Told as", key: "told"), Column(title: "Next step", key: "recovery"),
        Column(title: "What the session does", key: "session"),
        Column(title: "Meaning", key: "meaning", place: .trailing, isGrouped: true),
      ], rows: rows)
  }

  /// Lines for people.
  var text: [String] {
    let lines = [columns.map(\.title)] + rows.map { $0.map(\.plain) }
    let widths = columns.indices.map { column in lines.map { $0[column].count }.reduce(0, max) }
    return lines.map { cells in
      let aligned = cells.indices.filter { columns[$0].place == .aligned }
      let start = aligned.map { cells[$0].padding(to: widths[$0] + 2) }.joined()
      let rest = cells.indices.filter { columns[$0].place == .trailing && !cells[$0].isEmpty }
      return start + rest.map { cells[$0] }.joined(separator: ": ")
    }
  }

  /// A JSON object a line.
  var json: [String] {
    rows.map { row in
      let fields = zip(columns, row).map { column, cell in
        let value =
          switch cell {
          case .code(_, let number?): "\(number)"
          case .code, .text, .name: EventLine.quoted(cell.plain)
          }
        return "\(EventLine.quoted(column.key)):\(value)"
      }
      return "{" + fields.joined(separator: ",") + "}"
    }
  }

  /// A table as the documentation has it.
  var markdown: [String] {
    let shown = columns.indices.filter { columns[$0].place != .hidden }
    func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }
    var lines = [line(shown.map { columns[$0].title }), line(shown.map { _ in "---" })]
    var above: [Cell]?
    for row in rows {
      let isSame = above?.first == row.first
      lines.append(line(shown.map { isSame && columns[$0].isGrouped ? "" : row[$0].markdown }))
      above = row
    }
    return lines
  }
}

extension ReasonTable.Cell {
  fileprivate var markdown: String {
    switch self {
    case .name(let name): "`\(name)`"
    case .text, .code: plain.replacing("|", with: "\\|")
    }
  }
}

extension String {
  fileprivate func padding(to width: Int) -> String {
    self + String(repeating: " ", count: max(width - count, 0))
  }
}
