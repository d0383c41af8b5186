import Glibc
import Relink
import Testing

@testable import RelinkSQLite

@Suite("Audit log", .timeLimit(.minutes(1)))
struct AuditLogTests {
  private let folder = TemporaryFolder()
  private let device = DeviceID("C0:DE:00:00:00:01/random")

  private func record(_ change: JournalEvent.Change = .recorded, _ id: String = "a", in log: AuditLog) throws
  {
    log.record(.sample(change, id: id), of: try #require(device), owner: "gateway")
  }

  private func summary() throws -> AuditSummary { try AuditLog.verify(at: folder.file()) }

  private func operations() throws -> [String] {
    var operations: [String] = []
    try AuditLog.forEachRecord(at: folder.file()) { _, record in
      guard let record else { return operations.append("?") }
      operations.append(record.plain("operation") ?? record.kind.rawValue)
    }
    return operations
  }

  @Test("Transitions stand in the file in their order, and the status says where the chain is")
  func order() async throws {
    let log = try AuditLog(at: folder.file())
    #expect(log.status.records == 1)
    for number in 0..<500 { try record(.recorded, "op-\(number)", in: log) }
    try await log.flush()
    #expect(try operations() == ["opened"] + (0..<500).map { "op-\($0)" })
    let status = log.status
    #expect(status.records == 501 && status.lost == 0 && status.problem == nil && !log.isFailing)
    #expect(try AuditLog.verify(at: folder.file(), head: status.head, records: status.records).records == 501)
    try await log.close()
    #expect(try operations().last == "closed")
    let closed = try summary()
    #expect(closed.head == log.status.head && closed.opened == 1 && closed.closed == 1)
  }

  @Test("A log that is opened again continues the chain")
  func reopened() async throws {
    for number in 0..<3 {
      let log = try AuditLog(at: folder.file())
      try record(.recorded, "op-\(number)", in: log)
      try await log.close()
    }
    #expect(
      try operations() == [
        "opened", "op-0", "closed", "opened", "op-1", "closed", "opened", "op-2", "closed",
      ])
    #expect(try summary().records == 9)
  }

  @Test("A torn last line stays, and is accounted for")
  func torn() async throws {
    let log = try AuditLog(at: folder.file())
    try record(in: log)
    try await log.close()
    let cut = Array(contents(of: folder.file()).dropLast(20))
    write(cut, to: folder.file())
    let again = try AuditLog(at: folder.file())
    try record(.recorded, "b", in: again)
    try await again.close()
    #expect(contents(of: folder.file()).starts(with: cut))
    #expect(try operations() == ["opened", "a", "?", "repaired", "opened", "b", "closed"])
    #expect(try summary().tornBytes > 20)
  }

  @Test("An edited end is not continued, and not touched")
  func edited() async throws {
    let log = try AuditLog(at: folder.file())
    try record(in: log)
    try await log.close()
    var bytes = contents(of: folder.file())
    bytes[bytes.count - 100] ^= 0x01
    write(bytes, to: folder.file())
    let error = #expect(throws: AuditLogError.self) { try AuditLog(at: folder.file()) }
    #expect(error?.code == .corrupt)
    #expect(contents(of: folder.file()) == bytes)
  }

  @Test("A file has one writer, and others may read it meanwhile")
  func oneWriter() async throws {
    let log = try AuditLog(at: folder.file())
    let error = #expect(throws: AuditLogError.self) { try AuditLog(at: folder.file()) }
    #expect(error?.code == .locked)
    #expect(try summary().records == 1)
    try await log.close()
    let next = try AuditLog(at: folder.file())
    try await next.close()
  }

  @Test("The file is its owner's alone, whatever the process allows")
  func mode() async throws {
    let before = umask(0)
    defer { umask(before) }
    let log = try AuditLog(at: folder.file())
    var status = stat()
    #expect(stat(folder.file(), &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    try await log.close()
  }

  @Test("Sensitive bytes are not in the file")
  func sensitive() async throws {
    let log = try AuditLog(at: folder.file(), AuditLog.Options(includesValues: true))
    let secret: [UInt8] = [0x31, 0x39, 0x38, 0x34, 0x5A, 0xA5]
    for change in [JournalEvent.Change.recorded, .marked, .settled(.succeeded(.acknowledged))] {
      log.record(
        .sample(change, value: secret, isSensitive: true), of: try #require(device), owner: "gateway")
    }
    try await log.close()
    let bytes = contents(of: folder.file())
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.contains("redacted"))
    #expect(!text.contains(secret.hexadecimal) && !text.contains("1984"))
    #expect(!text.contains(SHA256.digest(of: secret).hexadecimal))
  }

  @Test(
    "What cannot be a log's file is refused with what to do",
    arguments: [("", AuditLogError.Code.notAFile), ("/missing/audit.log", .notAFile), ("/fifo", .notAFile)])
  func refused(name: String, code: AuditLogError.Code) {
    mkfifo(folder.file("fifo"), 0o600)
    let error = #expect(throws: AuditLogError.self) { try AuditLog(at: folder.path + name) }
    #expect(error?.code == code)
    #expect(error?.message.isEmpty == false)
    let device = #expect(throws: AuditLogError.self) { try AuditLog(at: "/dev/full") }
    #expect(device?.code == .notAFile)
  }

  // MARK: Disks that fail

  @Test("A full disk is seen, holds nobody up, and is written to when it has room again")
  func fullDisk() async throws {
    let disk = FaultyDisk()
    let log = try AuditLog(at: folder.file(), AuditLog.Options(retryInterval: .seconds(3600)), disk.disk)
    // In the middle of a line.
    disk.room.store(100, ordering: .sequentiallyConsistent)
    try record(.recorded, "a", in: log)
    let error = await #expect(throws: AuditLogError.self) { try await log.flush(within: .milliseconds(200)) }
    #expect(error?.code == .full)
    #expect(log.isFailing && log.status.problem?.code == .full)
    #expect(log.status.records == 1)
    #expect(disk.refusals.load(ordering: .sequentiallyConsistent) > 0)
    for number in 0..<10 { try record(.recorded, "b-\(number)", in: log) }
    disk.room.store(.max, ordering: .sequentiallyConsistent)
    try await log.flush()
    #expect(!log.isFailing)
    #expect(try operations() == ["opened", "a"] + (0..<10).map { "b-\($0)" })
    try await log.close()
    #expect(try summary().tornBytes == 0)
  }

  @Test("What there is no room for is counted, and the count stands in its place")
  func overflow() async throws {
    let disk = FaultyDisk()
    let options = AuditLog.Options(capacity: 4, retryInterval: .seconds(3600))
    let log = try AuditLog(at: folder.file(), options, disk.disk)
    disk.room.store(0, ordering: .sequentiallyConsistent)
    try record(.recorded, "held", in: log)
    await #expect(throws: AuditLogError.self) { try await log.flush(within: .milliseconds(100)) }
    for number in 0..<10 { try record(.recorded, "op-\(number)", in: log) }
    #expect(log.status.lost == 6)
    disk.room.store(.max, ordering: .sequentiallyConsistent)
    try await log.flush()
    try record(.recorded, "later", in: log)
    try await log.close()
    #expect(
      try operations() == ["opened", "held", "op-0", "op-1", "op-2", "op-3", "lost", "later", "closed"])
    #expect(try summary().lost == 6)
  }

  @Test("A log that is closed on a full disk says so, and its torn line is accounted for later")
  func closedWhileFull() async throws {
    let disk = FaultyDisk()
    let log = try AuditLog(at: folder.file(), AuditLog.Options(retryInterval: .seconds(3600)), disk.disk)
    disk.room.store(100, ordering: .sequentiallyConsistent)
    try record(in: log)
    let error = await #expect(throws: AuditLogError.self) { try await log.close() }
    #expect(error?.code == .full)
    #expect(log.status.lost == 1)
    try record(in: log)
    #expect(log.status.lost == 2)
    let again = try AuditLog(at: folder.file())
    try await again.close()
    #expect(try summary().tornBytes == 101)
  }

  @Test("A disk that cannot say that it stored something leaves a record of that")
  func unsynchronized() async throws {
    let disk = FaultyDisk()
    let log = try AuditLog(at: folder.file(), AuditLog.Options(retryInterval: .seconds(3600)), disk.disk)
    disk.failsToSynchronize.store(true, ordering: .sequentiallyConsistent)
    try record(in: log)
    let error = await #expect(throws: AuditLogError.self) { try await log.flush(within: .milliseconds(200)) }
    #expect(error?.code == .system)
    disk.failsToSynchronize.store(false, ordering: .sequentiallyConsistent)
    try await log.flush()
    try await log.close()
    #expect(try operations() == ["opened", "a", "unsynced", "closed"])
    #expect(try summary().records == 4)
  }

  @Test("Without the option the disk is asked only on flush and close")
  func synchronizesOnDemand() async throws {
    let disk = FaultyDisk()
    let log = try AuditLog(at: folder.file(), AuditLog.Options(synchronizesAlways: false), disk.disk)
    let opened = disk.synchronizations.load(ordering: .sequentiallyConsistent)
    for number in 0..<50 { try record(.recorded, "op-\(number)", in: log) }
    try await log.flush()
    // The thread may have written before the flush came, and then asks once; so it does when the flush came first.
    #expect(disk.synchronizations.load(ordering: .sequentiallyConsistent) == opened + 1)
    try await log.flush()
    #expect(disk.synchronizations.load(ordering: .sequentiallyConsistent) == opened + 1)
    try await log.close()
    #expect(disk.synchronizations.load(ordering: .sequentiallyConsistent) == opened + 2)
  }

  @Test("A full disk at the opening is an error, and the next opening goes on")
  func fullAtOpening() async throws {
    let disk = FaultyDisk()
    disk.room.store(40, ordering: .sequentiallyConsistent)
    let error = #expect(throws: AuditLogError.self) { try AuditLog(at: folder.file(), .init(), disk.disk) }
    #expect(error?.code == .full)
    let log = try AuditLog(at: folder.file())
    try await log.close()
    #expect(try operations() == ["?", "repaired", "opened", "closed"])
    #expect(try summary().tornBytes == 41)
  }

  // MARK: Files that somebody else touches

  @Test("A file that is removed or cut while it is open is a problem that is seen", arguments: [true, false])
  func touched(isRemoved: Bool) async throws {
    let log = try AuditLog(at: folder.file(), AuditLog.Options(retryInterval: .seconds(3600)))
    if isRemoved { unlink(folder.file()) } else { truncate(folder.file(), 10) }
    try record(in: log)
    let error = await #expect(throws: AuditLogError.self) { try await log.flush(within: .milliseconds(200)) }
    #expect(error?.code == .changed)
    await #expect(throws: AuditLogError.self) { try await log.close() }
  }

  // MARK: The end

  @Test("A log that is dropped still writes what was recorded")
  func dropped() throws {
    let worker: AuditWorker
    do {
      let log = try AuditLog(at: folder.file())
      worker = log.worker
      for number in 0..<100 { try record(.recorded, "op-\(number)", in: log) }
    }
    try worker.waitForEnd(atMost: .seconds(30), folder.file()).get()
    #expect(try operations().count == 102)
    #expect(try summary().closed == 1)
  }

  @Test("Closing twice, and flushing what is closed, is no error while all is on disk")
  func closedTwice() async throws {
    let log = try AuditLog(at: folder.file())
    try record(in: log)
    try await log.close()
    try await log.close()
    try await log.flush()
    try record(in: log)
    #expect(log.status.lost == 1)
    #expect(try summary().records == 3)
  }

  @Test("Many sessions record at once; nothing is lost or torn")
  func concurrent() async throws {
    let log = try AuditLog(at: folder.file(), AuditLog.Options(capacity: 100_000))
    let device = try #require(device)
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for number in 0..<200 {
            log.record(.sample(.recorded, id: "\(task)-\(number)"), of: device, owner: "gateway")
          }
        }
      }
    }
    try await log.close()
    let names = try operations()
    #expect(names.count == 1602 && Set(names).count == 1602)
    // Each one's are in its order.
    for task in 0..<8 {
      #expect(names.filter { $0.hasPrefix("\(task)-") } == (0..<200).map { "\(task)-\($0)" })
    }
    #expect(try summary().lost == 0)
  }
}
