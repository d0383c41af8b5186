internal import CSQLite
internal import Relink

/// An open journal: the connection, its statements, and what one transaction does.
final class JournalDatabase {
  /// How long a statement waits for another program's lock.
  private static let patience: Int32 = 250
  /// The log is written back when it has this many pages: SQLite's own threshold, 4 MB.
  private static let logPages: Int32 = 1000
  /// Free pages that may stay in the file, and how many go with one transaction that prunes.
  private static let sparePages: Int64 = 64

  let connection: SQLiteConnection
  let rows: JournalRows
  /// What tells this file from every other one.
  let identity: [UInt8]
  private let begin: SQLiteStatement
  private let commit: SQLiteStatement
  private let rollback: SQLiteStatement
  private let savepoint: SQLiteStatement
  private let release: SQLiteStatement
  private let undo: SQLiteStatement
  private let count: SQLiteStatement
  private let commits: SQLiteStatement
  private let freePages: SQLiteStatement
  private let log = LogLength()
  private var sync = JournalSync.full

  /// Opens the journal at `path`, which is there, for writing.
  static func open(at path: String, system: String?) throws(JournalStoreError) -> JournalDatabase {
    let (connection, application, version) = try telling(path) { () throws(SQLiteFailure) in
      let connection = try SQLiteConnection(path, flags: SQLITE_OPEN_READWRITE, system: system)
      connection.setPatience(milliseconds: JournalDatabase.patience)
      if connection.isReadOnly {
        throw SQLiteFailure(SQLITE_READONLY, "opened for reading alone")
      }
      try connection.run(JournalSchema.settings)
      let mode = try connection.text("PRAGMA journal_mode = WAL")
      guard mode == "wal" else {
        throw SQLiteFailure(SQLITE_CANTOPEN, "the file system cannot share the memory that the log needs")
      }
      return (
        connection, try connection.number("PRAGMA application_id"),
        try connection.number("PRAGMA user_version")
      )
    }
    try JournalSchema.check(path, application, version)
    return try telling(path) { () throws(SQLiteFailure) in try JournalDatabase(connection) }
  }

  private init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
    self.connection = connection
    do throws(SQLiteFailure) {
      rows = try JournalRows(connection)
      begin = try connection.prepare("BEGIN IMMEDIATE")
      commit = try connection.prepare("COMMIT")
      rollback = try connection.prepare("ROLLBACK")
      savepoint = try connection.prepare("SAVEPOINT batch")
      release = try connection.prepare("RELEASE batch")
      undo = try connection.prepare("ROLLBACK TO batch")
      count = try connection.prepare(JournalSchema.count)
      commits = try connection.prepare("SELECT commits FROM state")
      freePages = try connection.prepare("PRAGMA freelist_count")
      let state = try connection.prepare("SELECT identity FROM state")
      defer { state.reset() }
      identity = try state.step() ? state.bytes(0) ?? [] : []
    } catch {
      // A table or a column that is not there.
      throw error.primaryCode == SQLITE_ERROR ? SQLiteFailure(SQLITE_CORRUPT, error.text) : error
    }
    connection.watchLog(log.frames)
  }

  /// How many transactions there were.
  func transactionCount() throws(SQLiteFailure) -> Int64 {
    defer { commits.reset() }
    return try commits.step() ? commits.int(0) : 0
  }

  /// Looks for damage in the whole file.
  func check() throws(SQLiteFailure) {
    var finding = try connection.text("PRAGMA quick_check(1)")
    guard finding != "ok" else { return }
    if finding.contains("Failed to read") {
      // It says the same of a page that could not be read, which is no damage, and of one that holds nonsense.
      try connection.readThrough()
      finding = try connection.text("PRAGMA quick_check(1)")
      guard finding != "ok" else { return }
      throw SQLiteFailure(SQLITE_CORRUPT, finding)
    }
    let number = finding.split(separator: "error code=").dropFirst().first?.prefix { $0.isNumber }
    let code = number.flatMap { Int32($0) } ?? SQLITE_CORRUPT
    throw SQLiteFailure(code == SQLITE_OK ? SQLITE_CORRUPT : code, finding)
  }

  // MARK: Transactions

  /// Begins a transaction whose commit survives what `sync` says.
  func beginTransaction(_ sync: JournalSync) throws(SQLiteFailure) {
    if sync != self.sync {
      // A pragma does its work when it is compiled, so it is compiled each time.
      try connection.run(sync == .full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
      self.sync = sync
    }
    rows.forgetClaims()
    try begin.run()
  }

  /// Writes what is written once for each transaction, calls `willCommit` and commits.
  func commitTransaction(willCommit: () -> Void) throws(SQLiteFailure) {
    try rows.storePlaces()
    try count.run()
    if rows.hasPruned, try freePageCount() > JournalDatabase.sparePages {
      try connection.run("PRAGMA incremental_vacuum(64)")
    }
    willCommit()
    try commit.run()
  }

  /// Undoes the transaction.
  func rollBackTransaction() throws(SQLiteFailure) {
    guard connection.isInTransaction else { return }
    try rollback.run()
  }

  private func freePageCount() throws(SQLiteFailure) -> Int64 {
    defer { freePages.reset() }
    return try freePages.step() ? freePages.int(0) : 0
  }

  /// Runs `body` so that it leaves nothing where it fails.
  func nested<Value>(_ body: () throws(JournalRefusal) -> Value) throws(JournalRefusal) -> Value {
    try orFail { () throws(SQLiteFailure) in try savepoint.run() }
    let value: Value
    do throws(JournalRefusal) {
      value = try body()
    } catch {
      guard case .refused = error else { throw error }
      try orFail { () throws(SQLiteFailure) in
        try undo.run()
        try release.run()
      }
      throw error
    }
    try orFail { () throws(SQLiteFailure) in try release.run() }
    return value
  }

  // MARK: The log

  /// Whether the log is long enough to be written back.
  var isLogLong: Bool { log.frames.pointee >= JournalDatabase.logPages }

  /// Writes the log back as far as readers let it; the next transaction then begins it anew.
  func writeLogBack() throws(SQLiteFailure) {
    let state = try connection.checkpoint(truncates: false)
    if state.done >= state.log { log.frames.pointee = 0 }
  }

  /// Writes the log back and empties it, so that nothing old is left in it.
  func emptyLog(patiently: Bool = true) throws(SQLiteFailure) {
    if !patiently { connection.setPatience(milliseconds: 0) }
    defer { connection.setPatience(milliseconds: JournalDatabase.patience) }
    _ = try connection.checkpoint(truncates: true)
    log.frames.pointee = 0
  }
}

/// How long the log is, at an address that SQLite can write to.
private final class LogLength {
  let frames = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

  init() { frames.initialize(to: 0) }

  deinit { frames.deallocate() }
}

/// Why a batch is not written.
enum JournalRefusal: Error {
  /// It asks for what cannot be: the others of its transaction are not concerned.
  case refused(JournalStoreError)
  /// SQLite failed: the whole transaction is lost.
  case failed(SQLiteFailure)
}

/// Says a failure of SQLite as the end of a transaction.
func orFail<Value>(_ body: () throws(SQLiteFailure) -> Value) throws(JournalRefusal) -> Value {
  do throws(SQLiteFailure) { return try body() } catch { throw .failed(error) }
}
