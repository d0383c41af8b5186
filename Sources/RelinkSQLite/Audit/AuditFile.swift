internal import Relink

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The two things that a log asks of the disk, so that tests can have it fail.
package struct AuditDisk: Sendable {
  /// Writes bytes at the end of the file; returns how many it took, or a negative error number.
  package var append: @Sendable (_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
  /// Waits until the file's bytes are on disk; returns zero, or a negative error number.
  package var synchronize: @Sendable (_ file: Int32) -> Int32

  /// Describes a disk.
  package init(
    append: @escaping @Sendable (_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int,
    synchronize: @escaping @Sendable (_ file: Int32) -> Int32
  ) {
    self.append = append
    self.synchronize = synchronize
  }

  /// The system's.
  package static let system = AuditDisk(
    append: { file, bytes in
      while true {
        let count = write(file, bytes.baseAddress, bytes.count)
        if count >= 0 { return count }
        if errno != EINTR { return -Int(errno) }
      }
    },
    synchronize: { file in
      #if canImport(Darwin)
        let result = fsync(file)
      #else
        let result = fdatasync(file)
      #endif
      return result == 0 ? 0 : -errno
    })
}

/// An open file that nobody else appends to.
final class AuditFile: Sendable {
  let path: String
  let descriptor: Int32

  private init(_ path: String, _ descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    // The lock goes with the last descriptor.
    _ = close(descriptor)
  }

  /// Opens a file, or creates it for its owner alone, and locks it.
  static func open(_ path: String) throws(AuditLogError) -> AuditFile {
    // Without waiting: a pipe would. Neither is a descriptor for the next program.
    let flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
    var isNew = false
    var descriptor = openFile(path, flags)
    if descriptor < 0 && errno == ENOENT {
      descriptor = openFile(path, flags | O_CREAT)
      isNew = true
    }
    guard descriptor >= 0 else { throw AuditLogError("open", errno, path) }
    let file = AuditFile(path, descriptor)
    guard try file.status().st_mode & S_IFMT == S_IFREG else {
      throw AuditLogError(.notAFile, "\(path) is not a file. An audit log needs a file of its own.")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      guard errno == EWOULDBLOCK else { throw AuditLogError("flock", errno, path) }
      throw AuditLogError(
        .locked, "\(path) is being written by another log, here or in another process. A file has one writer."
      )
    }
    if isNew { try file.synchronizeFolder() }
    return file
  }

  private static func openFile(_ path: String, _ flags: Int32) -> Int32 {
    while true {
      let descriptor = Self.descriptor(path, flags)
      if descriptor >= 0 || errno != EINTR { return descriptor }
    }
  }

  private static func descriptor(_ path: String, _ flags: Int32) -> Int32 {
    #if canImport(Darwin)
      Darwin.open(path, flags, mode_t(0o600))
    #else
      Glibc.open(path, flags, mode_t(0o600))
    #endif
  }

  /// A name that is new must survive a loss of power too.
  private func synchronizeFolder() throws(AuditLogError) {
    let parent = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let folder = Self.openFile(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw AuditLogError("open", errno, parent) }
    defer { _ = close(folder) }
    // Some file systems cannot, and need not.
    if fsync(folder) != 0 && errno != EINVAL { throw AuditLogError("fsync", errno, parent) }
  }

  func status() throws(AuditLogError) -> stat {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw AuditLogError("fstat", errno, path) }
    return status
  }

  /// The last bytes of the file, at most `limit`.
  func tail(of size: Int64, limit: Int) throws(AuditLogError) -> [UInt8] {
    let start = max(size - Int64(limit), 0)
    var bytes = [UInt8](repeating: 0, count: Int(size - start))
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        pread(
          descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled, off_t(start) + filled)
      }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw AuditLogError("pread", errno, path) }
      guard count > 0 else { throw AuditLogError(.changed, "\(path) was cut while it was opened.") }
      filled += count
    }
    return bytes
  }
}

/// What the end of a log's file is: where the chain has come to, and what stands behind it that is no record.
struct AuditEnding {
  var chain = AuditChain()
  /// Bytes behind the last record.
  var torn: [UInt8] = []
  /// Whether the file does not end with a newline.
  var lacksNewline = false
  /// Whether the last record itself was cut off before its newline.
  var lastLacksNewline = false

  /// How much of the end of a file has to be looked at.
  static let reach = AuditLine.tornLimit + 2 * AuditLine.limit

  /// Looks at the last bytes of a file, which are all of it if `isWhole`.
  init(_ bytes: [UInt8], isWhole: Bool, path: String) throws(AuditLogError) {
    guard !bytes.isEmpty else { return }
    let corrupt = AuditLogError(
      .corrupt,
      "\(path) does not end as an audit log does, or was edited. Nothing was written to it: see what "
        + "`relink audit verify` says, keep the file, and begin another one.")
    lacksNewline = bytes.last != AuditLine.newline
    var end = bytes.endIndex
    // The piece behind the last newline may be a whole record.
    var isPiece = lacksNewline
    while true {
      let lineEnd = isPiece ? end : end - 1
      let lineStart = bytes[..<lineEnd].lastIndex(of: AuditLine.newline).map { $0 + 1 } ?? 0
      let line = bytes[lineStart..<lineEnd]
      do throws(ReadAuditRecord.Flaw) {
        let record = try ReadAuditRecord(line)
        chain = AuditChain(records: record.sequence, head: record.hash)
        lastLacksNewline = isPiece
        torn = Array(bytes[end...])
        break
      } catch {
        guard error == .unsealed else { throw corrupt }
      }
      if lineStart == 0 {
        // No record at all: the first one was torn, or this is something else.
        let begins = AuditLine.beginning + [UInt8(ascii: "1"), UInt8(ascii: ",")]
        let isOurs = bytes.starts(with: begins) || begins.starts(with: bytes)
        guard isWhole, isOurs else { throw corrupt }
        torn = bytes
        break
      }
      end = lineStart
      isPiece = false
    }
    guard torn.count < AuditLine.tornLimit else { throw corrupt }
  }

  /// The bytes that put the end in order, for a writer to begin with.
  mutating func repair() -> [UInt8] {
    var bytes: [UInt8] = lacksNewline ? [AuditLine.newline] : []
    guard lacksNewline || !torn.isEmpty else { return bytes }
    if !torn.isEmpty && lacksNewline { torn.append(AuditLine.newline) }
    let record = AuditRecord(
      .repaired, [AuditField("torn", torn.count), AuditField("digest", SHA256.digest(of: torn).hexadecimal)])
    chain.append(record, to: &bytes)
    return bytes
  }
}
