internal import Relink

/// What a journal's database looks like.
///
/// A change of it is a new ``version``, and the opening of an older file brings it up to date first.
enum JournalSchema {
  /// `application_id` of the file: "RLNK".
  static let application: Int64 = 0x524C_4E4B
  /// `user_version` of the file.
  static let version: Int64 = 1

  /// How many bytes stand before a secret in its row.
  ///
  /// A row keeps less than one page in the tree, whose pages SQLite rearranges and then leaves stale copies behind; the
  /// rest lies in pages that belong to the row alone, which are overwritten when it goes. So a page's worth of filler
  /// keeps all of the secret there.
  static let filler = 4096

  /// Makes an empty journal.
  ///
  /// `operation` is NULL where it is in `secrets`. `commits` counts the transactions, to find out after a failed one
  /// whether it is on disk; `identity` tells that the file is still the same one.
  ///
  /// `delivered` is 0 while nobody was told, 1 when somebody was told the outcome, and 2 where that was said before there
  /// was one. So the index of what is open depends on a column that settling leaves alone: a commit that settles writes
  /// one page less.
  static let creation: StaticString = """
    PRAGMA page_size = 4096;
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = DELETE;
    PRAGMA synchronous = EXTRA;
    BEGIN IMMEDIATE;
    PRAGMA application_id = 0x524C4E4B;
    PRAGMA user_version = 1;
    CREATE TABLE state(
      key INTEGER PRIMARY KEY CHECK (key = 0), identity BLOB NOT NULL, commits INTEGER NOT NULL);
    INSERT INTO state VALUES (0, randomblob(16), 0);
    CREATE TABLE claims(
      key INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, epoch INTEGER NOT NULL,
      last_place INTEGER NOT NULL);
    CREATE TABLE operations(
      key INTEGER PRIMARY KEY, device INTEGER NOT NULL, id TEXT NOT NULL, place INTEGER NOT NULL,
      fingerprint BLOB NOT NULL, sensitive INTEGER NOT NULL, admitted_at INTEGER NOT NULL, settled_at INTEGER,
      delivered INTEGER NOT NULL, operation BLOB, mark BLOB, outcome BLOB);
    CREATE UNIQUE INDEX operations_by_id ON operations(device, id);
    CREATE INDEX operations_open ON operations(device, place) WHERE delivered <> 1;
    CREATE INDEX operations_settled ON operations(device, settled_at, place) WHERE outcome IS NOT NULL;
    CREATE TABLE secrets(key INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
    CREATE TRIGGER operations_gone AFTER DELETE ON operations WHEN old.operation IS NULL BEGIN
      DELETE FROM secrets WHERE key = old.key;
    END;
    COMMIT;
    """

  /// How a connection that writes is set up.
  ///
  /// The log is written back by the store, after its answers; `journal_size_limit` is where a log that has grown is cut
  /// when it begins anew.
  static let settings: StaticString = """
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 4194304;
    PRAGMA synchronous = FULL;
    """

  /// The columns of a row, as ``JournalRows`` reads them.
  static let selectOne: StaticString = """
    SELECT o.id, place, fingerprint, sensitive, admitted_at, settled_at, delivered, operation, mark, outcome,
      s.bytes, o.key FROM operations o LEFT JOIN secrets s ON s.key = o.key WHERE device = ?1 AND id = ?2
    """
  static let selectOpen: StaticString = """
    SELECT o.id, place, fingerprint, sensitive, admitted_at, settled_at, delivered, operation, mark, outcome,
      s.bytes, o.key FROM operations o LEFT JOIN secrets s ON s.key = o.key
    WHERE device = ?1 AND delivered <> 1 ORDER BY place, o.key
    """
  static let selectAll: StaticString = """
    SELECT o.id, place, fingerprint, sensitive, admitted_at, settled_at, delivered, operation, mark, outcome,
      s.bytes, o.key, c.device FROM operations o JOIN claims c ON c.key = o.device
    LEFT JOIN secrets s ON s.key = o.key ORDER BY c.key, place, o.key
    """
  static let admit: StaticString = """
    INSERT INTO operations(device, id, place, fingerprint, sensitive, admitted_at, settled_at, delivered, operation,
      mark, outcome) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT(device, id) DO NOTHING
    """
  static let mark: StaticString = "UPDATE operations SET mark = ?3 WHERE device = ?1 AND id = ?2"
  static let settle: StaticString = """
    UPDATE operations SET outcome = ?3, settled_at = ?4
    WHERE device = ?1 AND id = ?2 AND outcome IS NULL AND delivered = 0
    """
  static let settleDelivered: StaticString = """
    UPDATE operations SET outcome = ?3, settled_at = ?4, delivered = 1
    WHERE device = ?1 AND id = ?2 AND outcome IS NULL
    """
  static let deliver: StaticString = """
    UPDATE operations SET delivered = iif(outcome IS NULL, 2, 1) WHERE device = ?1 AND id = ?2
    """
  static let replace: StaticString = "UPDATE operations SET operation = ?3 WHERE device = ?1 AND id = ?2"
  static let addSecret: StaticString = "INSERT INTO secrets(key, bytes) VALUES (?1, ?2)"
  static let eraseSecret: StaticString = """
    DELETE FROM secrets WHERE key = (SELECT key FROM operations WHERE device = ?1 AND id = ?2)
    """
  static let pruneOld: StaticString = """
    DELETE FROM operations WHERE device = ?1 AND outcome IS NOT NULL AND settled_at < ?2
    """
  static let pruneMany: StaticString = """
    DELETE FROM operations WHERE key IN (SELECT key FROM operations WHERE device = ?1 AND outcome IS NOT NULL
      ORDER BY settled_at DESC, place DESC LIMIT -1 OFFSET ?2)
    """
  static let selectClaim: StaticString = "SELECT key, epoch, last_place FROM claims WHERE device = ?1"
  static let insertClaim: StaticString = """
    INSERT INTO claims(device, owner, epoch, last_place) VALUES (?1, ?2, ?3, 0)
    """
  static let updateClaim: StaticString = "UPDATE claims SET owner = ?2, epoch = ?3 WHERE key = ?1"
  static let updatePlace: StaticString = "UPDATE claims SET last_place = ?2 WHERE key = ?1"
  static let count: StaticString = "UPDATE state SET commits = commits + 1"

  /// Throws unless these are the marks of a journal that this version knows.
  static func check(_ path: String, _ application: Int64, _ version: Int64) throws(JournalStoreError) {
    guard application == JournalSchema.application else {
      throw JournalStoreError(
        .corrupt,
        "\(path) is a database of something else, and was left as it is. Give the journal a path of its own.")
    }
    guard version <= JournalSchema.version else {
      throw JournalStoreError(
        .newerSchema,
        "\(path) was written by a later version of the library (schema \(version), this one knows "
          + "\(JournalSchema.version)). Use that version, or begin another journal.")
    }
    guard version == JournalSchema.version else {
      throw JournalStoreError(
        .corrupt, "\(path) has the schema \(version), which no version of the library wrote. Restore a copy.")
    }
  }
}
