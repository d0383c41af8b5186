import Glibc
import Relink
import Synchronization

@testable import RelinkSQLite

/// A folder that goes with the test.
final class TemporaryFolder {
  let path: String

  init() {
    var template = Array("/tmp/relink-audit-XXXXXX".utf8CString)
    path = template.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress, let made = mkdtemp(base) else { return "/tmp" }
      return String(cString: made)
    }
  }

  deinit {
    if let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        unlink(path + "/" + name)
      }
      closedir(folder)
    }
    rmdir(path)
  }

  func file(_ name: String = "audit.log") -> String { path + "/" + name }
}

func contents(of path: String) -> [UInt8] {
  guard let file = fopen(path, "r") else { return [] }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  while case let byte = fgetc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
  return bytes
}

func write(_ bytes: [UInt8], to path: String) {
  guard let file = fopen(path, "w") else { return }
  fwrite(bytes, 1, bytes.count, file)
  fclose(file)
}

extension DeviceID {
  static let lock = DeviceID("C0:DE:00:00:00:01/random")
}

extension JournalEvent {
  /// A transition of a write of `value`.
  static func sample(
    _ change: Change, id: String = "unlock-17", state: JournaledOperation.State = .queued,
    value: [UInt8] = [0xDE, 0xAD, 0xBE, 0xEF], isSensitive: Bool = false,
    idempotency: Idempotency = .nonIdempotent, wall: Int64 = 1_796_037_476_123_456_789
  ) -> JournalEvent {
    let lock = Characteristic(BluetoothUUID(0x2A19), in: BluetoothUUID(0x180F))
    let name = OperationID(id) ?? OperationID(OperationNumber(rawValue: 1))
    return JournalEvent(
      change,
      of: JournaledOperation(
        id: name, request: .write(lock, value), idempotency: idempotency, state: state,
        isSensitive: isSensitive),
      at: Timestamp(monotonic: MonotonicInstant(nanoseconds: 5), bootTime: 7, wall: wall))
  }
}

/// The bytes of a log as they are written, without a file.
struct SampleLog {
  var bytes: [UInt8] = []
  var chain = AuditChain()

  mutating func append(_ record: AuditRecord) {
    chain.append(record, to: &bytes)
  }

  mutating func append(_ event: JournalEvent) {
    guard let device = DeviceID.lock else { return }
    append(AuditRecord(event, of: device, owner: "gateway", includesValues: false))
  }

  /// Opened, and so many transitions.
  init(transitions: Int = 3) {
    append(AuditRecord(.opened, [AuditField("format", 1)]))
    for number in 0..<transitions {
      append(.sample(.offered(Generation(rawValue: UInt64(number)), number: 1), state: .offered))
    }
  }

  var lines: [[UInt8]] { bytes.split(separator: 10).map { Array($0) + [10] } }
}

/// The verdict on these bytes: a summary, or the flaw.
func verdict(
  _ bytes: [UInt8], records: UInt64? = nil, head: String? = nil, isBeingWritten: Bool = false
) -> Result<AuditSummary, AuditFlaw> {
  var verifier = AuditVerifier(AuditVerifier.Kept(records: records, head: head))
  do throws(AuditFlaw) {
    try verifier.take(bytes[...])
    return .success(try verifier.finish(isBeingWritten: isBeingWritten))
  } catch {
    return .failure(error)
  }
}

extension Result where Failure == AuditFlaw {
  var flaw: AuditFlaw? {
    if case .failure(let flaw) = self { flaw } else { nil }
  }
}

/// A disk that is full, slow or broken when the test says so.
final class FaultyDisk: Sendable {
  /// How many bytes it still takes; the rest is refused with ENOSPC.
  let room = Atomic<Int>(.max)
  let failsToSynchronize = Atomic<Bool>(false)
  /// How many writes it has refused.
  let refusals = Atomic<Int>(0)
  let synchronizations = Atomic<Int>(0)

  var disk: AuditDisk {
    AuditDisk(
      append: { file, bytes in
        let room = self.room.load(ordering: .sequentiallyConsistent)
        guard room > 0 else {
          self.refusals.add(1, ordering: .sequentiallyConsistent)
          return -Int(ENOSPC)
        }
        let taken = AuditDisk.system.append(file, .init(rebasing: bytes.prefix(room)))
        if room != .max, taken > 0 { self.room.subtract(taken, ordering: .sequentiallyConsistent) }
        return taken
      },
      synchronize: { _ in
        if self.failsToSynchronize.load(ordering: .sequentiallyConsistent) { return -EIO }
        self.synchronizations.add(1, ordering: .sequentiallyConsistent)
        return 0
      })
  }
}
