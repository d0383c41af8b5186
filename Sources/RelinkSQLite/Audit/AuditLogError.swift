#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Why an audit log could not be opened, written or verified.
public struct AuditLogError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of error it is; more kinds may be added.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the code.
    public var rawValue: String

    /// Makes a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Another log, here or in another process, writes the file.
    public static let locked = Code(rawValue: "locked")
    /// The end of the file is not that of an audit log, or was edited: nothing was written to it.
    public static let corrupt = Code(rawValue: "corrupt")
    /// There is no space left.
    public static let full = Code(rawValue: "full")
    /// The file, or its folder, may not be read or written.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// The path names no file: a folder, a device, a pipe, or a place that does not exist.
    public static let notAFile = Code(rawValue: "notAFile")
    /// The file was removed, cut or written by somebody else while it was open.
    public static let changed = Code(rawValue: "changed")
    /// The records were not on disk in time; the log goes on trying.
    public static let timedOut = Code(rawValue: "timedOut")
    /// The log is closed.
    public static let closed = Code(rawValue: "closed")
    /// The system reported another error.
    public static let system = Code(rawValue: "system")

    /// The name of the code.
    public var description: String { rawValue }
  }

  /// What kind of error it is.
  public var code: Code
  /// What happened and what to do.
  public var message: String

  /// Makes an error.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// The code and the message on one line.
  public var description: String { "\(code): \(message)" }
}

extension AuditLogError {
  /// The error of a system call on the file of a log.
  init(_ call: StaticString, _ number: Int32, _ path: String) {
    let reason = "\(call) failed on \(path): \(String(cString: strerror(number))) (error \(number))."
    switch number {
    case ENOSPC, EDQUOT, EFBIG:
      self.init(.full, reason + " Make room; what is waiting is written then.")
    case EROFS, EACCES, EPERM:
      self.init(
        .notPermitted, reason + " The process must be allowed to read and write the file and its folder.")
    case EISDIR, ENOTDIR, ENOENT, ELOOP, ENXIO, ENODEV:
      self.init(.notAFile, reason + " Name a file in a folder that exists.")
    default: self.init(.system, reason)
    }
  }
}
