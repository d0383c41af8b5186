internal import CSQLite
public import Relink

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

extension SQLiteJournalStore {
  /// Reads all operations of a journal by device, in ascending order of their places, without a lock and without
  /// writing anything.
  ///
  /// What is seen is the state at one commit, also while a store writes the file. Waits for the disk, on the thread of
  /// the caller.
  ///
  /// - Throws: `newerSchema`, `corrupt` or `system`, as when it is opened; `readOnly` when it may not be read.
  public static func read(at path: String) throws(JournalStoreError) -> [DeviceID: [JournalRow]] {
    try read(at: path, system: nil)
  }

  /// Reads over a file system of SQLite's with this name, nil for the usual one.
  package static func read(
    at path: String, system: String?
  ) throws(JournalStoreError) -> [DeviceID: [JournalRow]] {
    let path = try StoreFile.resolve(path)
    let access = try access(to: path)
    let connection = try telling(path) { () throws(SQLiteFailure) in
      let connection = try SQLiteConnection(
        fileURI(path, access), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, system: system)
      connection.setPatience(milliseconds: 250)
      // One transaction, so that all of it is of one commit.
      try connection.run("BEGIN")
      return connection
    }
    let application = try telling(path) { () throws(SQLiteFailure) in
      try connection.number("PRAGMA application_id")
    }
    let version = try telling(path) { () throws(SQLiteFailure) in try connection.number("PRAGMA user_version")
    }
    try JournalSchema.check(path, application, version)
    return try telling(path) { () throws(SQLiteFailure) in try rows(connection) }
  }

  /// With the log where there is one, whose index is used as it is; else the file alone.
  private static func access(to path: String) throws(JournalStoreError) -> String {
    var status = stat()
    if lstat(path + "-shm", &status) == 0 { return "readonly_shm=1" }
    guard lstat(path + "-wal", &status) == 0, status.st_size > 0 else { return "immutable=1" }
    throw JournalStoreError(
      .system,
      "The journal \(path) has a log without its index \(path)-shm, as a copy has. Open it for writing once, and read "
        + "it then.")
  }

  private static func rows(_ connection: SQLiteConnection) throws(SQLiteFailure) -> [DeviceID: [JournalRow]] {
    var devices: [DeviceID: [JournalRow]] = [:]
    let claims = try connection.prepare("SELECT device FROM claims")
    while try claims.step() {
      if let device = DeviceID(claims.text(0)) { devices[device] = [] }
    }
    let all = try connection.prepare(JournalSchema.selectAll)
    while try all.step() {
      guard let device = DeviceID(all.text(12)) else { continue }
      devices[device, default: []].append(JournalRows.row(of: all))
    }
    return devices
  }
}

/// Tells a failure of SQLite as one of the journal at `path`.
func telling<Value>(
  _ path: String, _ body: () throws(SQLiteFailure) -> Value
) throws(JournalStoreError) -> Value {
  do throws(SQLiteFailure) { return try body() } catch { throw error.error(at: path) }
}
