import Foundation
import Relink
import RelinkSQLite
import Testing

@testable import relink_tool

@Suite("Audit command")
struct AuditCommandTests {
  private let path = FileManager.default.temporaryDirectory.path + "/relink-audit-\(UUID().uuidString).log"

  private func event(_ change: JournalEvent.Change, _ id: String) throws -> JournalEvent {
    JournalEvent(
      change,
      of: JournaledOperation(
        id: try #require(OperationID(id)), request: .write(Characteristic(.batteryLevel), [1]),
        idempotency: .nonIdempotent, state: .queued),
      at: Timestamp(monotonic: .zero, bootTime: 0, wall: 0))
  }

  /// A log of two devices, four records; gives its head.
  private func makeLog() async throws -> String {
    let log = try AuditLog(at: path)
    log.record(try event(.recorded, "a"), of: try #require(DeviceID("C0:DE:00:00:00:01/random")), owner: "me")
    log.record(try event(.recorded, "b\u{1B}[2J"), of: try #require(DeviceID("unix:/tmp/lock")), owner: "me")
    try await log.close()
    return log.status.head
  }

  private func verify(_ words: String...) throws -> (line: String, status: Int32) {
    try AuditCommand(Arguments(["verify", path] + words)).verified()
  }

  @Test("verify ends with the number of records and the head, or with the line that does not hold")
  func verify() async throws {
    defer { try? FileManager.default.removeItem(atPath: path) }
    let head = try await makeLog()
    #expect(try verify() == ("\(path): 4 records hold, head \(head)", 0))
    #expect(try verify("--head", head.uppercased(), "--records", "4").status == 0)
    #expect(try verify("--records", "5").status == 1)
    #expect(try verify("--head", String(repeating: "0", count: 64)).status == 1)
    var bytes = try Data(contentsOf: URL(filePath: path))
    let second = try #require(bytes.firstIndex(of: 10)) + 50
    bytes[second] ^= 1
    try bytes.write(to: URL(filePath: path))
    #expect(try verify() == ("\(path):2: this line was edited: its hash does not fit its text", 1))
  }

  @Test("A file that is not there fails")
  func missing() throws {
    let error = #expect(throws: AuditLogError.self) { try verify() }
    #expect(error?.code == .notAFile)
    #expect(error?.message.contains(path) == true)
    #expect(throws: AuditLogError.self) { try AuditCommand(Arguments(["show", path])).run() }
  }

  @Test("show prints what is asked for, and nothing that steers a terminal")
  func show() async throws {
    defer { try? FileManager.default.removeItem(atPath: path) }
    _ = try await makeLog()
    func lines(_ words: String...) throws -> [String] {
      let command = try AuditCommand(Arguments(["show", path] + words))
      var lines: [String] = []
      try AuditLog.forEachRecord(at: path) { number, record in
        if let line = command.shown(number, record) { lines.append(line) }
      }
      return lines
    }
    #expect(try lines().count == 4)
    #expect(try lines().allSatisfy { !$0.unicodeScalars.contains("\u{1B}") })
    let one = try lines("--device", "c0:de:00:00:00:01/RANDOM")
    #expect(one.count == 1)
    #expect(
      one.first?.hasPrefix("2  1970-01-01T00:00:00.000000000Z  C0:DE:00:00:00:01/random  a  recorded  ")
        == true)
    #expect(try lines("--operation", "a") == one)
    #expect(try lines("--operation", "c").isEmpty)
  }

  @Test(
    "A command line that cannot be understood says why",
    arguments: [
      [], ["erase"], ["verify"], ["verify", ""], ["verify", "a", "b"], ["verify", "a", "--head"],
      ["verify", "a", "--head", "12"], ["verify", "a", "--records", "0"], ["verify", "a", "--records", "-1"],
      ["verify", "a", "--device", "x"], ["show", "a", "--head", "x"], ["show"], ["show", "a", "--what"],
    ])
  func mistakes(words: [String]) {
    #expect(throws: UsageError.self) { try AuditCommand(Arguments(words)) }
  }
}
