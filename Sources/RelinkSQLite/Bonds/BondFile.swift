internal import CSQLite
internal import Relink

/// The file of a store of bonds; of the store's thread.
final class BondFile {
  /// `application_id` of the file: "RLKB".
  private static let application: Int64 = 0x524C_4B42
  /// `user_version` of the file; a change of what is in it is a new one.
  private static let version: Int64 = 1
  /// How long a statement waits for another program's lock, in milliseconds.
  private static let patience: Int32 = 250

  /// What an empty file holds.
  ///
  /// `state` keeps the highest number that was ever given. The keys lie behind ``JournalSchema/filler``, so that they are
  /// in pages of their own, which are overwritten when the row goes.
  private static let creation: StaticString = """
    PRAGMA page_size = 4096;
    PRAGMA journal_mode = DELETE;
    PRAGMA synchronous = EXTRA;
    BEGIN IMMEDIATE;
    PRAGMA application_id = 0x524C4B42;
    PRAGMA user_version = 1;
    CREATE TABLE state(key INTEGER PRIMARY KEY CHECK (key = 0), last_id INTEGER NOT NULL);
    INSERT INTO state VALUES (0, 0);
    CREATE TABLE bonds(
      key INTEGER PRIMARY KEY, adapter INTEGER NOT NULL, device TEXT NOT NULL, id INTEGER NOT NULL,
      secret BLOB NOT NULL);
    CREATE UNIQUE INDEX bonds_by_device ON bonds(adapter, device);
    COMMIT;
    """

  private let file: StoreFile
  private var database: Database?

  /// Takes the lock of the file and opens it, or makes it.
  init(at path: String) throws(JournalStoreError) {
    file = try StoreFile(locking: path, of: "file of bonds")
    if try file.isMissing() { try BondFile.create(file) }
    _ = try open()
  }

  private static func create(_ file: borrowing StoreFile) throws(JournalStoreError) {
    try file.beginDraft()
    do throws(SQLiteFailure) {
      try SQLiteConnection(file.draft, flags: SQLITE_OPEN_READWRITE, system: nil).run(creation)
    } catch {
      file.dropDraft()
      throw error.error(at: file.path, of: "file of bonds")
    }
    try file.finishDraft()
  }

  private func open() throws(JournalStoreError) -> Database {
    if let database { return database }
    let path = file.path
    let opened = try telling { () throws(SQLiteFailure) in
      let connection = try SQLiteConnection(path, flags: SQLITE_OPEN_READWRITE, system: nil)
      connection.setPatience(milliseconds: Self.patience)
      if connection.isReadOnly { throw SQLiteFailure(SQLITE_READONLY, "opened for reading alone") }
      return (
        connection, try connection.number("PRAGMA application_id"),
        try connection.number("PRAGMA user_version")
      )
    }
    guard opened.1 == Self.application else {
      throw JournalStoreError(
        .corrupt,
        "\(path) is a database of something else, and was left as it is. Give the bonds a path of their own.")
    }
    guard opened.2 == Self.version else {
      throw JournalStoreError(
        .newerSchema,
        "\(path) has the schema \(opened.2) of bonds, this version of the library knows \(Self.version). Use that "
          + "version, or begin another file and pair again.")
    }
    try file.narrow()
    let database = try telling { () throws(SQLiteFailure) in try Database(opened.0) }
    self.database = database
    return database
  }

  private func telling<Value>(
    _ body: () throws(SQLiteFailure) -> Value
  ) throws(JournalStoreError) -> Value {
    do throws(SQLiteFailure) { return try body() } catch {
      // The next call opens the file again.
      database = nil
      throw error.error(at: file.path, of: "file of bonds")
    }
  }

  // MARK: What is asked for

  func load() throws(JournalStoreError) -> KeptBonds {
    let database = try open()
    return try telling { () throws(SQLiteFailure) in try database.load() }
  }

  func keep(_ bond: Bond) throws(JournalStoreError) {
    let database = try open()
    try telling { () throws(SQLiteFailure) in try database.keep(bond) }
  }

  func remove(_ device: DeviceID, _ adapter: BluetoothAddress) throws(JournalStoreError) {
    let database = try open()
    try telling { () throws(SQLiteFailure) in try database.remove(device, adapter) }
  }

  /// The connection and its statements.
  private final class Database {
    private let connection: SQLiteConnection
    private let select: SQLiteStatement
    private let erase: SQLiteStatement
    private let insert: SQLiteStatement
    private let raise: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
      self.connection = connection
      try connection.run(
        """
        PRAGMA trusted_schema = OFF;
        PRAGMA cell_size_check = ON;
        PRAGMA secure_delete = ON;
        PRAGMA temp_store = MEMORY;
        PRAGMA synchronous = FULL;
        """)
      guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
        throw SQLiteFailure(SQLITE_CANTOPEN, "the file system cannot share the memory that the log needs")
      }
      do throws(SQLiteFailure) {
        select = try connection.prepare("SELECT adapter, device, id, secret FROM bonds ORDER BY id")
        erase = try connection.prepare("DELETE FROM bonds WHERE adapter = ?1 AND device = ?2")
        insert = try connection.prepare(
          "INSERT INTO bonds(adapter, device, id, secret) VALUES (?1, ?2, ?3, ?4)")
        raise = try connection.prepare("UPDATE state SET last_id = max(last_id, ?1)")
      } catch {
        throw error.primaryCode == SQLITE_ERROR ? SQLiteFailure(SQLITE_CORRUPT, error.text) : error
      }
      // What a process that ended by itself left there.
      try emptyLog()
    }

    func load() throws(SQLiteFailure) -> KeptBonds {
      defer { select.reset() }
      var kept = KeptBonds()
      while try select.step() {
        let adapter = BluetoothAddress(UInt64(bitPattern: select.int(0)) & 0xFFFF_FFFF_FFFF)
        guard let device = DeviceID(select.text(1)), let secret = select.bytes(3),
          let keys = BondSecret(secret.dropFirst(JournalSchema.filler))
        else { throw SQLiteFailure(SQLITE_CORRUPT, "a bond that cannot be read") }
        kept.bonds.append(
          Bond(
            with: device, of: adapter, id: UInt64(bitPattern: select.int(2)), longTermKeys: keys.longTermKeys,
            identityKey: keys.identityKey))
      }
      kept.lastID = UInt64(bitPattern: try connection.number("SELECT last_id FROM state"))
      return kept
    }

    func keep(_ bond: Bond) throws(SQLiteFailure) {
      let secret = [UInt8](repeating: 0, count: JournalSchema.filler) + BondSecret(bond).bytes
      try change { () throws(SQLiteFailure) in
        try delete(bond.device, bond.adapter)
        insert.bind(Int64(bitPattern: bond.adapter.value), at: 1)
        try insert.bind(bond.device.description, at: 2)
        insert.bind(Int64(bitPattern: bond.id), at: 3)
        try insert.bind(secret, at: 4)
        try insert.run()
        raise.bind(Int64(bitPattern: bond.id), at: 1)
        try raise.run()
      }
    }

    func remove(_ device: DeviceID, _ adapter: BluetoothAddress) throws(SQLiteFailure) {
      try change { () throws(SQLiteFailure) in try delete(device, adapter) }
    }

    private func delete(_ device: DeviceID, _ adapter: BluetoothAddress) throws(SQLiteFailure) {
      erase.bind(Int64(bitPattern: adapter.value), at: 1)
      try erase.bind(device.description, at: 2)
      try erase.run()
    }

    private func change(_ body: () throws(SQLiteFailure) -> Void) throws(SQLiteFailure) {
      try connection.run("BEGIN IMMEDIATE")
      do throws(SQLiteFailure) {
        try body()
        try connection.run("COMMIT")
      } catch {
        if connection.isInTransaction { try? connection.run("ROLLBACK") }
        throw error
      }
      try emptyLog()
    }

    /// Writes the log back and cuts it, so that nothing that was removed is left in it.
    private func emptyLog() throws(SQLiteFailure) {
      _ = try connection.checkpoint(truncates: true)
    }
  }
}
