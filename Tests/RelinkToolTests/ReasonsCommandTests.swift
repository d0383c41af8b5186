import Foundation
import Relink
import Testing

@testable import relink_tool

@Suite("Reasons command")
struct ReasonsCommandTests {
  private func lines(_ words: String...) throws -> [String] {
    try ReasonsCommand(Arguments(words)).lines
  }

  private func objects(_ words: String...) throws -> [[String: Any]] {
    try Self.parsed(ReasonsCommand(Arguments(words + ["--json"])).lines)
  }

  private static func parsed(_ lines: [String]) throws -> [[String: Any]] {
    try lines.map { line in
      try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  @Test("Every code of every source is printed, for every moment", arguments: CodeSource.allCases)
  func everyCode(of source: CodeSource) throws {
    let objects = try objects(source.rawValue)
    let codes: Range<Int> = [.connect, .socket].contains(source) ? 0..<134 : 0..<256
    for moment in LinkMoment.allCases {
      let ofMoment = objects.filter { $0["moment"] as? String == moment.rawValue }
      #expect(ofMoment.compactMap { $0["code"] as? Int } == Array(codes))
    }
    #expect(objects.allSatisfy { $0["source"] as? String == source.rawValue })
    // The socket's end of file has no number.
    #expect(objects.count { $0["code"] as? String == "EOF" } == (source == .socket ? 3 : 0))
  }

  private static let keys: [(source: String, key: @Sendable (UInt8) -> DiagnosisTable.Key)] = [
    ("hci", { .hci(HCIErrorCode(rawValue: $0)) }),
    ("encryption", { .encryption(HCIErrorCode(rawValue: $0)) }),
    ("mgmt", { .management($0) }), ("pairing", { .pairing($0) }),
    ("att", { .att(ATTErrorCode(rawValue: $0)) }), ("connect", { .dial(Int32($0)) }),
    ("socket", { .socket(Int32($0)) }),
  ]

  @Test("What is printed is what the table says")
  func table() throws {
    for (source, key) in Self.keys {
      for object in try objects(source) {
        guard let code = object["code"] as? Int else { continue }
        let moment = try #require(LinkMoment(rawValue: object["moment"] as? String ?? ""))
        let row = DiagnosisTable.standard.row(for: key(UInt8(code)), at: moment)
        let printed = ["reason", "recovery", "confidence", "note"].compactMap { object[$0] as? String }
        #expect(
          printed == [row.reason.rawValue, "\(row.recovery)", "\(row.confidence)", row.note],
          "\(source) \(code)")
      }
    }
  }

  @Test(
    "A line has the code, when it holds, what it means, and its name",
    arguments: [
      ("hci", "0x08  always", "supervisionTimeout", "connection timeout: Out of range"),
      ("hci", "0x13  dialling", "refused", "remote user terminated connection"),
      ("hci", "0x13  preparing, ready", "remoteUserTerminated", "remote user terminated connection"),
      ("encryption", "0x06  always", "keyMissing", "PIN or key missing"),
      ("mgmt", "0x02  always", "localHostTerminated", "ended by local host"),
      ("pairing", "0x02  always", "pairingFailed", "not connected"),
      ("att", "0x0F  always", "authenticationFailure", "insufficient encryption"),
      ("connect", "16    always", "busy", "EBUSY"),
      ("socket", "104   always", "remoteUserTerminated", "ECONNRESET"),
      ("socket", "EOF   always", "remoteUserTerminated", "end of file"),
    ])
  func line(source: String, start: String, reason: String, name: String) throws {
    let line = try lines(source).first { $0.hasPrefix(start) }
    #expect(line?.contains("  \(reason)  ") == true)
    #expect(line?.contains("  \(name)") == true)
  }

  @Test("Without a source, all of them follow one another")
  func all() throws {
    let alone = try CodeSource.allCases.flatMap { try lines($0.rawValue, "--json") }
    #expect(try lines("--json") == alone)
    #expect(try CodeSource.allCases.allSatisfy { try lines().contains("\($0.rawValue): \($0.title)") })
  }

  @Test("Every row of a table in Markdown has as many cells as its head")
  func markdown() throws {
    for subject in CodeSource.allCases.map(\.rawValue) + ["actions"] {
      let lines = try lines(subject, "--markdown")
      let counts = Set(lines.map { $0.replacing("\\|", with: "").count { $0 == "|" } })
      #expect(counts.count == 1 && lines.count > 3, "\(subject)")
      #expect(lines[1].allSatisfy { "|- ".contains($0) })
      // A page of the documentation is bounded.
      #expect(lines.count < 550)
    }
  }

  @Test("Linux's error numbers have Linux's names, wherever the tool runs")
  func errors() {
    #expect(
      [1, 13, 16, 38, 52, 104, 110, 111, 112, 113, 132, 133].map { LinuxError.name(of: $0) } == [
        "EPERM", "EACCES", "EBUSY", "ENOSYS", "EBADE", "ECONNRESET", "ETIMEDOUT", "ECONNREFUSED", "EHOSTDOWN",
        "EHOSTUNREACH", "ERFKILL", "EHWPOISON",
      ])
    #expect([41, 58, 134, 255].allSatisfy { LinuxError.name(of: $0) == nil })
  }

  // MARK: Actions

  /// Played once for all that ask.
  private static let played = Result { try ReasonsCommand(Arguments(["actions", "--json"])).lines }

  private func actions(_ reason: DisconnectReason) throws -> [[String]] {
    try Self.parsed(Self.played.get()).filter { $0["reason"] as? String == reason.rawValue }.map { object in
      ["when", "told", "recovery", "session"].compactMap { object[$0] as? String }
    }
  }

  @Test("Every reason has its next step and a meaning")
  func everyReason() throws {
    let objects = try objects("actions")
    for reason in DisconnectReason.allCases {
      let rows = objects.filter { $0["reason"] as? String == reason.rawValue }
      #expect(!rows.isEmpty, "\(reason)")
      #expect(rows.allSatisfy { ($0["meaning"] as? String)?.hasSuffix(".") == true }, "\(reason)")
      let places = rows.compactMap { $0["when"] as? String }
      #expect(Set(places).count == rows.count, "\(reason): one line for each situation")
    }
  }

  @Test("Keys that do not fit are tried twice, and only with a bond")
  func keys() throws {
    #expect(
      try actions(.keyMissing) == [
        ["without a bond", "", "retryConnection", "dials again"],
        ["with a bond, the first time", "", "retryConnection", "dials again"],
        [
          "with a bond, from time 2 in a row", "", "removePairingAndPairAgain",
          "waits for the user: pairingWasRemoved()",
        ],
      ])
  }

  @Test(
    "A device that closes each link straight after it was to be secured has lost its bond, the third time")
  func closes() throws {
    #expect(
      try actions(.remoteUserTerminated) == [
        ["with a bond, preparing, the first 2 times in a row", "", "retryConnection", "dials again"],
        [
          "with a bond, preparing, from time 3 in a row", "keyMissing", "removePairingAndPairAgain",
          "waits for the user: pairingWasRemoved()",
        ],
        ["otherwise", "", "retryConnection", "dials again"],
      ])
  }

  @Test("What the session does by itself is told apart")
  func courses() throws {
    #expect(try actions(.requested) == [["always", "", "none", "stays away until it is asked again"]])
    #expect(
      try actions(.notFound) == [["always", "", "retryConnection", "dials again, and uses up no attempt"]])
    #expect(try actions(.adapterOff) == [["always", "", "waitForAdapter", "waits until the adapter is on"]])
    #expect(try actions(.supervisionTimeout) == [["always", "", "retryConnection", "dials again"]])
    #expect(
      try actions(.busy) == [
        ["the first 4 times in a row", "", "retryConnection", "dials again, and uses up no attempt"],
        [
          "from time 5 in a row", "adapterStuck", "retryConnection", "dials again, and uses up no attempt",
        ],
      ])
    #expect(
      try actions(.authenticationFailure).contains([
        "by att 0x05, 0x08, 0x0C, 0x0F, without a bond", "", "retryPairing",
        "waits for the user: connect() or pairingWasRemoved()",
      ]))
  }

  // MARK: Command lines

  @Test(
    "A command line that cannot be understood says why",
    arguments: [
      ["usb"], ["hci", "att"], ["actions", "hci"], ["hci", "--what"], [""], ["HCI"], ["--json", "0x08"],
    ])
  func mistakes(words: [String]) {
    #expect(throws: UsageError.self) { try ReasonsCommand(Arguments(words)) }
  }

  @Test("The help names every source")
  func help() throws {
    let sources = CodeSource.allCases.map(\.rawValue).joined(separator: "|")
    #expect(Main.usage.contains("relink reasons [\(sources)] [--json|--markdown]"))
    #expect(Main.usage.contains("relink reasons actions [--json|--markdown]"))
  }
}
