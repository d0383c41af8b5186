internal import CSQLite

/// A connection to a database of SQLite; of one thread.
final class SQLiteConnection {
  private let handle: OpaquePointer
  private var statements: [SQLiteStatement] = []

  /// Opens a file.
  init(_ name: String, flags: Int32, system: String?) throws(SQLiteFailure) {
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(name, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, system)
    guard code == SQLITE_OK, let handle else {
      let failure = SQLiteFailure(code, of: handle)
      _ = sqlite3_close_v2(handle)
      throw failure
    }
    self.handle = handle
    _ = relink_sqlite_keep_log(handle)
  }

  deinit {
    for statement in statements { statement.finish() }
    _ = sqlite3_close_v2(handle)
  }

  /// Compiles a statement, which lives as long as the connection.
  func prepare(_ text: StaticString) throws(SQLiteFailure) -> SQLiteStatement {
    var statement: OpaquePointer?
    let code = text.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        sqlite3_prepare_v3(
          handle, $0.baseAddress, Int32($0.count), UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
      }
    }
    guard code == SQLITE_OK, let statement else { throw SQLiteFailure(code, of: handle) }
    let prepared = SQLiteStatement(statement, of: handle)
    statements.append(prepared)
    return prepared
  }

  /// Runs statements once.
  func run(_ text: StaticString) throws(SQLiteFailure) {
    let code = text.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { sqlite3_exec(handle, $0.baseAddress, nil, nil, nil) }
    }
    if code != SQLITE_OK { throw SQLiteFailure(code, of: handle) }
  }

  /// The number that a statement gives, 0 if it gives none.
  func number(_ text: StaticString) throws(SQLiteFailure) -> Int64 {
    try once(text) { (statement) throws(SQLiteFailure) in try statement.step() ? statement.int(0) : 0 }
  }

  /// The text that a statement gives, empty if it gives none.
  func text(_ text: StaticString) throws(SQLiteFailure) -> String {
    try once(text) { (statement) throws(SQLiteFailure) in try statement.step() ? statement.text(0) : "" }
  }

  private func once<Value>(
    _ text: StaticString, _ body: (SQLiteStatement) throws(SQLiteFailure) -> Value
  ) throws(SQLiteFailure) -> Value {
    let statement = try prepare(text)
    statements.removeLast()
    defer { statement.finish() }
    return try body(statement)
  }

  /// Whether the file was opened for reading alone, asked for or not.
  var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  /// How many rows the latest statement changed.
  var changes: Int64 { sqlite3_changes64(handle) }

  /// How many rows all statements and triggers changed.
  var totalChanges: Int64 { sqlite3_total_changes64(handle) }

  /// The number of the row that was inserted last.
  var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Whether a transaction is open.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// How long a statement waits for the locks of others.
  func setPatience(milliseconds: Int32) {
    _ = sqlite3_busy_timeout(handle, milliseconds)
  }

  /// The first bytes of the file, read as they are: without a lock and without taking them for a database.
  func beginning(_ count: Int32) throws(SQLiteFailure) -> [UInt8] {
    try bytes(at: 0, count).bytes
  }

  /// Reads the whole file, to see whether the system can.
  func readThrough() throws(SQLiteFailure) {
    var offset: Int64 = 0
    while try !bytes(at: offset, 65_536).isShort { offset += 65_536 }
  }

  private func bytes(at offset: Int64, _ count: Int32) throws(SQLiteFailure) -> (
    bytes: [UInt8], isShort: Bool
  ) {
    var file: UnsafeMutablePointer<sqlite3_file>?
    var code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
    guard code == SQLITE_OK, let file, let read = file.pointee.pMethods?.pointee.xRead else {
      throw SQLiteFailure(code == SQLITE_OK ? SQLITE_CANTOPEN : code, of: handle)
    }
    var bytes = [UInt8](repeating: 0, count: Int(count))
    code = read(file, &bytes, count, offset)
    // SQLITE_IOERR_SHORT_READ: what is missing is zero.
    let isShort = code == SQLITE_IOERR | 2 << 8
    guard code == SQLITE_OK || isShort else { throw SQLiteFailure(code, of: nil) }
    return (bytes, isShort)
  }

  /// Writes the log's frames into the database file.
  ///
  /// - Returns: How many frames the log has, and how many of them the file has.
  func checkpoint(truncates: Bool) throws(SQLiteFailure) -> (log: Int, done: Int) {
    var log: Int32 = 0
    var done: Int32 = 0
    let mode = truncates ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
    let code = sqlite3_wal_checkpoint_v2(handle, "main", mode, &log, &done)
    if code != SQLITE_OK { throw SQLiteFailure(code, of: handle) }
    return (Int(log), Int(done))
  }

  /// Has the number of frames in the log written to `frames` after each commit.
  func watchLog(_ frames: UnsafeMutablePointer<Int32>) {
    _ = sqlite3_wal_hook(
      handle,
      { frames, _, _, count in
        frames?.assumingMemoryBound(to: Int32.self).pointee = count
        return SQLITE_OK
      }, frames)
  }
}

/// A compiled statement of a connection.
final class SQLiteStatement {
  private var statement: OpaquePointer?
  private let connection: OpaquePointer
  /// Where values are until the statement has run.
  ///
  /// SQLite would allocate memory for each, which costs a row of the journal a tenth of its time.
  private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 1)
  private var used = 0
  // The bytes are copied: they need not outlive the call.
  private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  fileprivate init(_ statement: OpaquePointer, of connection: OpaquePointer) {
    self.statement = statement
    self.connection = connection
  }

  deinit {
    scratch.deallocate()
  }

  fileprivate func finish() {
    _ = sqlite3_finalize(statement)
    statement = nil
  }

  /// Goes to the next row; false when there is none left.
  func step() throws(SQLiteFailure) -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw SQLiteFailure(code, of: connection)
    }
  }

  /// Runs it to its end and makes it ready for the next time.
  func run() throws(SQLiteFailure) {
    defer { reset() }
    while try step() {}
  }

  /// Makes it ready for the next time.
  ///
  /// All that was bound is to be bound again.
  func reset() {
    _ = sqlite3_reset(statement)
    used = 0
  }

  /// Puts bytes where they stay until the statement has run; nil where there is no room for them.
  private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
    guard bytes.count <= scratch.count - used else { return nil }
    let place = UnsafeMutableRawBufferPointer(rebasing: scratch[used..<used + bytes.count])
    place.copyMemory(from: bytes)
    used += bytes.count
    return UnsafeRawPointer(place.baseAddress)
  }

  func bind(_ value: Int64?, at index: Int32) {
    if let value {
      _ = sqlite3_bind_int64(statement, index, value)
    } else {
      _ = sqlite3_bind_null(statement, index)
    }
  }

  func bind(_ value: String, at index: Int32) throws(SQLiteFailure) {
    var value = value
    let code = value.withUTF8 { bytes in
      let kept = keep(UnsafeRawBufferPointer(bytes))
      return sqlite3_bind_text64(
        statement, index, (kept ?? UnsafeRawPointer(bytes.baseAddress))?.assumingMemoryBound(to: CChar.self),
        UInt64(bytes.count), kept == nil ? SQLiteStatement.copied : nil, UInt8(SQLITE_UTF8))
    }
    if code != SQLITE_OK { throw SQLiteFailure(code, of: connection) }
  }

  func bind(_ value: [UInt8]?, at index: Int32) throws(SQLiteFailure) {
    guard let value else {
      _ = sqlite3_bind_null(statement, index)
      return
    }
    let code = value.withUnsafeBytes { bytes in
      // A null pointer would make it NULL.
      guard !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
      let kept = keep(bytes)
      return sqlite3_bind_blob64(
        statement, index, kept ?? bytes.baseAddress, UInt64(bytes.count),
        kept == nil ? SQLiteStatement.copied : nil)
    }
    if code != SQLITE_OK { throw SQLiteFailure(code, of: connection) }
  }

  func int(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  func optionalInt(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : int(column)
  }

  func text(_ column: Int32) -> String {
    guard let bytes = sqlite3_column_text(statement, column) else { return "" }
    let count = Int(sqlite3_column_bytes(statement, column))
    return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
  }

  func bytes(_ column: Int32) -> [UInt8]? {
    guard sqlite3_column_type(statement, column) != SQLITE_NULL else { return nil }
    guard let bytes = sqlite3_column_blob(statement, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, column))))
  }
}
