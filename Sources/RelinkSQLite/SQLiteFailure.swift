internal import CSQLite
internal import Relink

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// What SQLite reported.
struct SQLiteFailure: Error {
  /// The extended result code.
  var code: Int32
  /// What SQLite says about it.
  var text: String
  /// The error number of the system call behind it; 0 if there is none.
  var systemError: Int32

  /// The latest failure of a connection.
  init(_ code: Int32, of connection: OpaquePointer?) {
    self.code = code
    text = String(cString: connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
    systemError = connection.map { sqlite3_system_errno($0) } ?? 0
  }

  /// A failure that was found out without a result code.
  init(_ code: Int32, _ text: String) {
    self.code = code
    self.text = text
    systemError = 0
  }

  /// The result code without what extends it.
  var primaryCode: Int32 { code & 0xFF }

  /// What a caller is told, about the file at `path`.
  func error(at path: String, of kind: StaticString = "journal", isCertain: Bool = true) -> JournalStoreError
  {
    let (code, message) = explanation(path, kind)
    return JournalStoreError(code, message, isCertain: isCertain)
  }

  private func explanation(_ path: String, _ kind: StaticString) -> (JournalStoreError.Code, String) {
    switch primaryCode {
    case SQLITE_FULL:
      return (
        .full, "There is no space left for the \(kind) \(path). Free some; the store then goes on by itself."
      )
    case SQLITE_NOTADB:
      return (
        .corrupt,
        "\(path) is no database of SQLite, and was left as it is. Give the \(kind) a path of its own."
      )
    case SQLITE_CORRUPT:
      return (
        .corrupt,
        "The \(kind) \(path) is damaged (\(text)). Move it away with its -wal file, restore a copy or begin a new one."
      )
    case SQLITE_BUSY, SQLITE_LOCKED:
      return (.locked, "Another program works on the \(kind) \(path). End it and try again.")
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
      return (.readOnly, "The \(kind) \(path) or its folder may not be written. Give this user the right to.")
    case SQLITE_CANTOPEN where [EACCES, EPERM, EROFS].contains(systemError):
      return (.readOnly, "The \(kind) \(path) or its folder may not be opened. Give this user the right to.")
    default:
      let cause = systemError == 0 ? "" : ": \(String(cString: strerror(systemError)))"
      return (
        .system,
        "SQLite failed on the \(kind) \(path): \(text) (code \(self.code))\(cause). Look at disk and folder."
      )
    }
  }
}
