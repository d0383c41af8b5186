#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

extension AuditLog {
  /// Why a log does not pass: it cannot be read, or it does not hold.
  @nonexhaustive
  public enum VerificationError: Error, Hashable, Sendable {
    /// The file cannot be read.
    case unreadable(AuditLogError)
    /// This line does not hold, the first one of its kind.
    case flawed(AuditFlaw)
  }

  /// Checks the chain of a log from its first line to its last, in bounded memory, also while it is being written.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - head: The hash of a record that was kept elsewhere, in lower-case hexadecimal; it must still be in the chain.
  ///   - records: How many records there were then; at least as many must be there, and that one must have the hash.
  /// - Returns: What was found.
  /// - Throws: The first line that does not hold, and what is wrong with it.
  public static func verify(
    at path: String, head: String? = nil, records: UInt64? = nil
  ) throws(VerificationError) -> AuditSummary {
    var verifier = AuditVerifier(AuditVerifier.Kept(records: records, head: head))
    let reader: AuditFileReader
    do throws(AuditLogError) { reader = try AuditFileReader(path) } catch { throw .unreadable(error) }
    while true {
      let bytes: [UInt8]
      do throws(AuditLogError) { bytes = try reader.next() } catch { throw .unreadable(error) }
      do throws(AuditFlaw) {
        if bytes.isEmpty { return try verifier.finish(isBeingWritten: reader.isBeingWritten) }
        try verifier.take(bytes[...])
      } catch {
        throw .flawed(error)
      }
    }
  }

  /// Hands out the records of a log, line by line and unverified; nil for a line that is none.
  package static func forEachRecord(
    at path: String, _ body: (_ line: UInt64, _ record: ReadAuditRecord?) -> Void
  ) throws(AuditLogError) {
    let reader = try AuditFileReader(path)
    var line: [UInt8] = []
    var number: UInt64 = 0
    func end() {
      number += 1
      body(number, try? ReadAuditRecord(line[...]))
      line.removeAll(keepingCapacity: true)
    }
    while true {
      let bytes = try reader.next()
      guard !bytes.isEmpty else { break }
      var rest = bytes[...]
      while let newline = rest.firstIndex(of: AuditLine.newline) {
        line += rest[..<newline].prefix(AuditLine.limit - min(line.count, AuditLine.limit))
        end()
        rest = rest[(newline + 1)...]
      }
      // A line that is too long is none, however it goes on.
      line += rest.prefix(AuditLine.limit - min(line.count, AuditLine.limit))
    }
    if !line.isEmpty { end() }
  }
}

/// Reads a file in pieces.
private struct AuditFileReader: ~Copyable {
  private let descriptor: Int32
  private let path: String

  init(_ path: String) throws(AuditLogError) {
    let opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
    guard opened >= 0 else { throw AuditLogError("open", errno, path) }
    descriptor = opened
    self.path = path
  }

  deinit {
    _ = close(descriptor)
  }

  /// The next bytes; none at the end.
  func next() throws(AuditLogError) -> [UInt8] {
    var number: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, filled in
      var count = read(descriptor, buffer.baseAddress, buffer.count)
      while count < 0 && errno == EINTR { count = read(descriptor, buffer.baseAddress, buffer.count) }
      if count < 0 { number = errno }
      filled = max(count, 0)
    }
    guard number == 0 else { throw AuditLogError("read", number, path) }
    return bytes
  }

  /// Whether a log holds the file's lock.
  var isBeingWritten: Bool {
    // Asked for after the end was reached, and given back at once: a log that opens now would be refused.
    if flock(descriptor, LOCK_SH | LOCK_NB) != 0 { return errno == EWOULDBLOCK }
    _ = flock(descriptor, LOCK_UN)
    return false
  }
}
