#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Extends a chain in a file; lives on one thread.
struct AuditWriter {
  private let file: AuditFile
  private let disk: AuditDisk
  private(set) var chain: AuditChain
  /// Lines that are not written yet.
  private var pending: [UInt8]
  private var written = 0
  /// How long the file is when nobody else touches it.
  private var size: Int64
  private var hasFailedToSync = false

  /// How many bytes of lines are collected for one write.
  static let portion = 1 << 18

  /// Opens a file, puts its end in order, and says on disk that it is open.
  init(at path: String, _ disk: AuditDisk) throws(AuditLogError) {
    let file = try AuditFile.open(path)
    let size = Int64(try file.status().st_size)
    let tail = try file.tail(of: size, limit: AuditEnding.reach)
    var ending = try AuditEnding(tail, isWhole: Int64(tail.count) == size, path: path)
    pending = ending.repair()
    chain = ending.chain
    self.file = file
    self.disk = disk
    self.size = size
    append(AuditRecord(.opened, AuditOrigin.fields))
    try write()
    try synchronize()
  }

  /// Adds a record to what is to be written.
  mutating func append(_ record: AuditRecord) {
    chain.append(record, to: &pending)
  }

  /// Whether enough is pending for a write.
  var isPortionFull: Bool { pending.count >= Self.portion }

  /// Writes what is pending; after a failure the next call goes on where this one stopped.
  mutating func write() throws(AuditLogError) {
    guard written < pending.count else { return }
    try checkFile()
    while written < pending.count {
      let count = pending.withUnsafeBytes { disk.append(file.descriptor, .init(rebasing: $0[written...])) }
      guard count > 0 else {
        throw AuditLogError("write", count < 0 ? Int32(clamping: -count) : ENOSPC, file.path)
      }
      written += count
      size += Int64(count)
    }
    pending.removeAll(keepingCapacity: pending.count <= 2 * Self.portion)
    written = 0
  }

  /// Waits until everything that was written is on disk.
  ///
  /// A system that failed once may have dropped what it could not store, and say yes the next time (Linux marks the
  /// pages clean): so the failure gets a record of its own.
  mutating func synchronize() throws(AuditLogError) {
    let result = disk.synchronize(file.descriptor)
    guard result == 0 else {
      let error = AuditLogError("fdatasync", -result, file.path)
      if !hasFailedToSync {
        hasFailedToSync = true
        append(AuditRecord(.unsynced, [AuditField("errno", -result), AuditField("message", error.message)]))
      }
      throw error
    }
    hasFailedToSync = false
  }

  private func checkFile() throws(AuditLogError) {
    let status = try file.status()
    guard status.st_nlink > 0 else {
      throw AuditLogError(
        .changed, "\(file.path) was removed while it was open. Close the log and open it again.")
    }
    guard Int64(status.st_size) == size else {
      throw AuditLogError(
        .changed,
        "\(file.path) was cut or written by somebody else while it was open. Keep it, close the log, and begin "
          + "another file.")
    }
  }
}

/// Who writes a log: what can be said about this process.
enum AuditOrigin {
  static var fields: [AuditField] {
    var fields = [
      AuditField("format", AuditChain.format), AuditField("process", getpid()), AuditField("user", getuid()),
    ]
    var name = [CChar](repeating: 0, count: 256)
    if gethostname(&name, name.count - 1) == 0 {
      let bytes = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      fields.append(AuditField("host", String(decoding: bytes, as: UTF8.self)))
    }
    // Boot time and the monotonic clock mean something within one boot only.
    if let boot = bootID() { fields.append(AuditField("bootID", boot)) }
    return fields
  }

  private static func bootID() -> String? {
    let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { _ = close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let text = bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }
    return String(decoding: text, as: UTF8.self)
  }
}
