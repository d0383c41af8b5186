import Testing

@testable import Relink

/// The tables of the article "Will it be done twice?", each cell of them played.
@Suite struct OutcomeTableTests {
  private static func article() throws -> Article { try Article("Outcomes") }
  private static let links = "what happened to the write"
  private static let processes = "what ended the process"

  @Test("each cell is what happens", arguments: LinkCase.allCases, WriteTag.allCases)
  func linkCellIsTrue(_ row: LinkCase, _ tag: WriteTag) throws {
    let cell = try Self.article().table(Self.links).cell(row.rawValue, tag.rawValue)
    let played = try row.play(tag)
    #expect(played.description == cell)
    try expectPromised(played, tag, isCommand: row == .withoutResponse)
  }

  @Test(
    "each cell is what happens across the end of a process", arguments: ProcessCase.allCases,
    WriteTag.allCases)
  func processCellIsTrue(_ row: ProcessCase, _ tag: WriteTag) throws {
    let table = try Self.article().table(Self.processes)
    let (played, isRecovered) = try row.play(tag)
    #expect(played.description == (try table.cell(row.rawValue, tag.rawValue)))
    #expect((isRecovered ? "yes" : "no") == (try table.cell(row.rawValue, "recovered")))
    try expectPromised(played, tag, isCommand: false)
  }

  @Test func noRowAndNoColumnIsLeftOut() throws {
    let tags = WriteTag.allCases.map(\.rawValue)
    let links = try Self.article().table(Self.links)
    #expect(links.header == [Self.links] + tags)
    #expect(links.rows.map { $0[0] } == LinkCase.allCases.map(\.rawValue))
    let processes = try Self.article().table(Self.processes)
    #expect(processes.header == [Self.processes, "recovered"] + tags)
    #expect(processes.rows.map { $0[0] } == ProcessCase.allCases.map(\.rawValue))
  }

  /// What the article promises of each outcome; a write without response promises nothing.
  private func expectPromised(_ played: PlayedOutcome, _ tag: WriteTag, isCommand: Bool) throws {
    guard !isCommand, tag == .idempotent || tag == .nonIdempotent else { return }
    let promise = try Self.article().table("outcome").cell(played.row, tag.rawValue)
    let allowed: ClosedRange<Int>
    switch promise {
    case "0": allowed = 0...0
    case "1": allowed = 1...1
    case "0 or 1": allowed = 0...1
    case "1 or more": allowed = 1...Int.max
    case "0 or more": allowed = 0...Int.max
    default:
      Issue.record("the article promises something unknown: \(promise)")
      return
    }
    #expect(allowed.contains(played.applied), "\(played.row) promises \(promise)")
  }
}
