import Foundation
import Glibc
import Relink
import RelinkSQLite
import Testing

/// A folder for the files of one test, which goes with it.
final class StoreFolder: Sendable {
  let path: String
  /// Where the test's journal is.
  var journal: String { path + "/journal.sqlite" }

  init() {
    var template = Array("/tmp/relink-store-XXXXXX".utf8CString)
    path = template.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } ?? ""
    }
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The permission bits of a file; nil if it is not there.
  func mode(_ name: String) -> mode_t? {
    var status = stat()
    return lstat(path + "/" + name, &status) == 0 ? status.st_mode & 0o777 : nil
  }

  /// The size of a file; 0 if it is not there.
  func size(_ name: String) -> Int {
    var status = stat()
    return lstat(path + "/" + name, &status) == 0 ? Int(status.st_size) : 0
  }

  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

  func bytes(_ name: String) -> [UInt8] {
    [UInt8](FileManager.default.contents(atPath: path + "/" + name) ?? Data())
  }

  func write(_ bytes: [UInt8], to name: String) {
    _ = FileManager.default.createFile(atPath: path + "/" + name, contents: Data(bytes))
  }

  /// The names of the files that contain `needle`.
  func files(with needle: String) -> [String] {
    let wanted = Data(needle.utf8)
    return names.filter { Data(bytes($0)).range(of: wanted) != nil }
  }
}

extension JournalStore {
  func claim(
    _ device: DeviceID, epoch: UInt64? = nil, owner: String = "test"
  ) async -> Result<ClaimedJournal, JournalStoreError> {
    await withCheckedContinuation { continuation in
      claim(device, owner: owner, epoch: epoch) { continuation.resume(returning: $0) }
    }
  }

  @discardableResult
  func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync = .normal
  ) async -> Result<[JournalRow], JournalStoreError> {
    await withCheckedContinuation { continuation in
      append(records, to: claim, sync: sync) { continuation.resume(returning: $0) }
    }
  }
}

extension Result {
  var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }

  var value: Success? { try? get() }
}

extension JournalRow {
  static func sample(
    _ id: String, at place: Int64, operation: [UInt8] = [1, 2, 3], isSensitive: Bool = false
  ) -> JournalRow {
    JournalRow(
      id: id, place: place, operation: operation, fingerprint: Array("digest of \(id)".utf8),
      isSensitive: isSensitive, admittedAt: 1_000 + place)
  }
}

let pump = DeviceID(address: .init(0xC0DE_0000_0001), type: .random)
let lock = DeviceID(address: .init(0xC0DE_0000_0002), type: .public)

/// What another program would make or change, with the shell of SQLite.
func sqlite(_ path: String, _ statements: String) throws -> String {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = ["sqlite3", path, statements]
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let text = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  try #require(process.terminationStatus == 0)
  return String(decoding: text, as: UTF8.self)
}
