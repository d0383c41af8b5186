import Relink
import Testing

@testable import RelinkSQLite

@Suite("Audit records")
struct AuditRecordTests {
  private func record(_ event: JournalEvent, includesValues: Bool = false) throws -> ReadAuditRecord {
    let device = try #require(DeviceID.lock)
    var bytes: [UInt8] = []
    var chain = AuditChain()
    chain.append(
      AuditRecord(event, of: device, owner: "gate\"way\n", includesValues: includesValues), to: &bytes)
    return try ReadAuditRecord(bytes.dropLast())
  }

  private func text(_ event: JournalEvent, includesValues: Bool = false) throws -> String {
    try record(event, includesValues: includesValues).fields.map { "\($0.key)=\($0.value.plain)" }
      .joined(separator: "\n")
  }

  @Test("A record says when, what, whose and how far")
  func fields() throws {
    let read = try record(.sample(.offered(Generation(rawValue: 3), number: 2), state: .offered))
    let expected = [
      "wall": "2026-11-30T11:17:56.123456789Z", "boot": "7", "monotonic": "5",
      "device": "C0:DE:00:00:00:01/random", "owner": "gate\"way\n", "operation": "unlock-17",
      "change": "offered", "generation": "3", "number": "2", "state": "offered", "tag": "nonIdempotent",
      "request": "write", "characteristic": "180F/2A19", "length": "4",
    ]
    for (key, value) in expected { #expect(read.plain(key) == value) }
    #expect(read.sequence == 1)
    #expect(read.previous == String(repeating: "0", count: 64))
    #expect(read.plain("value") == nil)
    // printf 'write\0%s\0\xde\xad\xbe\xef' 180F/2A19 | sha256sum
    #expect(read.plain("digest") == "19cd7ab0b6337e89f92dfae2f1bd1cff5cb5138516dc6508932f850f25636619")
  }

  @Test("Values that are written together are told apart by where one ends")
  func reliableWrites() throws {
    func digest(_ writes: [ReliableWrite], isSensitive: Bool = false) throws -> ReadAuditRecord {
      var event = JournalEvent.sample(.recorded, isSensitive: isSensitive)
      event.operation.request = .writeReliably(writes)
      return try record(event)
    }
    let (one, two) = (Characteristic(BluetoothUUID(0x2A19)), Characteristic(BluetoothUUID(0x2A37)))
    let read = try digest([ReliableWrite(one, [1, 2]), ReliableWrite(two, [3])])
    #expect(read.plain("characteristic") == "2A19 2A37")
    #expect(read.plain("length") == "3")
    // printf 'writeReliably\0%s\0002\0\1\2%s\0001\0\3' 2A19 2A37 | sha256sum
    #expect(read.plain("digest") == "50428857ba0b0cac9fd71f3d8d4f6cb8279b2f0ebbdfa86deaa87907d37027dc")
    #expect(
      try digest([ReliableWrite(one, [1]), ReliableWrite(two, [2, 3])]).plain("digest")
        != read.plain("digest"))
    #expect(try digest([ReliableWrite(one, [1])], isSensitive: true).plain("digest") == "redacted")
  }

  /// Another program must come to the same: the text before `,"hash":"` under SHA-256.
  @Test("The hash is over the bytes of the line before its last member")
  func definition() throws {
    let log = SampleLog(transitions: 1)
    for line in log.lines {
      let text = line.dropLast(76)
      #expect(line[text.endIndex...].starts(with: Array(#","hash":""#.utf8)))
      let hash = String(decoding: line.dropLast(3).suffix(64), as: UTF8.self)
      #expect(hash == SHA256.digest(of: text).hexadecimal)
    }
  }

  @Test("Values stand in the file only when asked for, and those of sensitive operations never")
  func values() throws {
    let plain = JournalEvent.sample(.recorded)
    #expect(try !text(plain).contains("deadbeef"))
    #expect(try text(plain, includesValues: true).contains("value=deadbeef"))
    let probed = JournalEvent.sample(
      .recorded,
      idempotency: .verified(by: .value(of: Characteristic(BluetoothUUID(0x2A19)), is: [0xDE, 0xAD])))
    #expect(try !text(probed).contains("dead"))
    for includesValues in [false, true] {
      let secret = try record(.sample(.recorded, isSensitive: true), includesValues: includesValues)
      #expect(secret.plain("digest") == "redacted")
      #expect(secret.plain("length") == nil && secret.plain("value") == nil)
    }
  }

  @Test("What speaks for the loss of a link stands beside its reason")
  func evidence() throws {
    var event = JournalEvent.sample(.inDoubt(.supervisionTimeout))
    event.operation.lastOffer = JournaledOperation.Offer(
      generation: Generation(rawValue: 4), at: Timestamp(monotonic: .zero, bootTime: 0, wall: 0),
      lostTo: .supervisionTimeout, evidence: [.hci(.connectionTimeout), .system(110, call: .receive)])
    let written = try text(event)
    #expect(written.contains("lastLostTo=supervisionTimeout"))
    #expect(written.contains("lastEvidence=HCI: \(HCIErrorCode.connectionTimeout); errno 110 from receive"))
  }

  @Test("Every change and outcome has its words and codes")
  func changes() throws {
    let store = JournalStoreError(.full, "no room", isCertain: false)
    let doubt = Doubt(
      cause: .superseded(by: try #require(OperationID("b"))), generation: Generation(rawValue: 4),
      offeredAt: Timestamp(monotonic: .zero, bootTime: 0, wall: 0), offers: 2, lastPossibleEffect: .zero)
    let cases: [(JournalEvent.Change, [String])] = [
      (.recorded, ["change=recorded"]), (.recovered, ["change=recovered"]), (.joined, ["change=joined"]),
      (.marked, ["change=marked"]), (.notTaken, ["change=notTaken"]), (.delivered, ["change=delivered"]),
      (.superseded(by: try #require(OperationID("b"))), ["change=superseded", "by=b"]),
      (.inDoubt(.supervisionTimeout), ["change=inDoubt", "lostTo=supervisionTimeout"]),
      (.probing(Generation(rawValue: 9)), ["change=probing", "generation=9"]),
      (.judged(.applied, by: "anna"), ["change=judged", "verdict=applied", "by=anna"]),
      (.settled(.succeeded(.probed)), ["change=settled", "outcome=succeeded", "confirmation=probed"]),
      (
        .settled(.rejected(Rejection(code: .unlikelyError, provesNotApplied: false))),
        ["outcome=rejected", "attError=14", "error=unlikely error (0x0E)", "provesNotApplied=false"]
      ),
      (
        .settled(.notSent(.refused(.valueTooLong(limit: 20)))),
        ["outcome=notSent", "why=refused", "refusal=valueTooLong", "limit=20"]
      ),
      (.settled(.notSent(.storeFailed(store))), ["why=storeFailed", "store=full", "message=no room"]),
      (
        .settled(.indeterminate(doubt)),
        [
          "outcome=indeterminate", "why=superseded", "supersededBy=b", "doubtGeneration=4", "doubtOffers=2",
          "doubtOfferedAt=1970-01-01T00:00:00.000000000Z",
        ]
      ),
      (.storeFailed(store), ["change=storeFailed", "store=full", "isCertain=false"]),
    ]
    for (change, words) in cases {
      let lines = try text(.sample(change)).split(separator: "\n").map(String.init)
      for word in words { #expect(lines.contains(word), "\(word) of \(lines)") }
    }
  }

  @Test(
    "Times are those of the calendar",
    arguments: [
      (Int64(0), "1970-01-01T00:00:00.000000000Z"), (-1, "1969-12-31T23:59:59.999999999Z"),
      (951_782_399_000_000_001, "2000-02-28T23:59:59.000000001Z"),
      (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
      (1_709_251_199_000_000_000, "2024-02-29T23:59:59.000000000Z"),
      (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
      (.max, "2262-04-11T23:47:16.854775807Z"), (.min + 145_224_193, "1677-09-21T00:12:43.290448385Z"),
    ])
  func times(wall: Int64, text: String) {
    #expect(Timestamp(monotonic: .zero, bootTime: 0, wall: wall).rfc3339 == text)
  }

  @Test("The earliest and latest times do not stop the log")
  func extremes() {
    #expect(Timestamp(monotonic: .zero, bootTime: 0, wall: .min).rfc3339.hasPrefix("1677-09-21T00:12:43.1"))
  }

  @Test("Texts of others cannot leave their line, steer a terminal, or grow without bound")
  func hostileTexts() throws {
    let hostile = "\u{1B}[2J\n\r\u{0}\u{7F}\u{9B}\"\\,\"hash\":\"" + String(repeating: "é", count: 4000)
    let read = try record(.sample(.judged(.unknown, by: hostile)))
    let by = try #require(read.plain("by"))
    #expect(by.hasPrefix("\u{1B}[2J\n\r\u{0}\u{7F}\u{9B}\"\\,\"hash\":\"éé"))
    #expect(by.hasSuffix("é…"))
    #expect(by.utf8.count <= 512 + "…".utf8.count)
    var bytes: [UInt8] = []
    var chain = AuditChain()
    chain.append(AuditRecord(.opened, read.fields), to: &bytes)
    #expect(bytes.filter { $0 < 0x20 || $0 == 0x7F } == [10])
  }

  @Test("The longest record is far from the longest line that is read")
  func longest() throws {
    let long = String(repeating: "\u{1}", count: 4000)
    var event = JournalEvent.sample(
      .settled(.notSent(.storeFailed(JournalStoreError(JournalStoreError.Code(rawValue: long), long)))),
      id: String(repeating: "\u{1}", count: 128), value: [UInt8](repeating: 0xFF, count: 4000),
      idempotency: .verified(by: .named(long)))
    event.operation.lane = Lane(long)
    event.operation.supersedes = SupersedingKey(long)
    let device = try #require(DeviceID(long))
    var bytes: [UInt8] = []
    var chain = AuditChain()
    chain.append(AuditRecord(event, of: device, owner: long, includesValues: true), to: &bytes)
    #expect(bytes.count < AuditLine.limit / 2)
    #expect(try ReadAuditRecord(bytes.dropLast()).plain("value")?.utf8.count == 1024)
  }
}
