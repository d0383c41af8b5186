internal import CSQLite
internal import Relink

/// The journal of a store's thread: commits groups of jobs, and finds out what became of a commit that failed.
///
/// While the file cannot be opened `database` is nil, and each group tries again first.
final class JournalLedger {
  /// After so many failures in a row the rest of a group is not tried: a disk that is full or gone would hold it up.
  private static let patience = 4

  private let file: StoreFile
  private let system: String?
  private let identity: [UInt8]
  private var database: JournalDatabase?
  /// Whether the log may still hold a copy of something that was erased.
  private var owesErasure = false

  /// Takes the lock of the file and opens it, or makes it.
  init(at path: String, system: String?) throws(JournalStoreError) {
    file = try StoreFile(locking: path)
    self.system = system
    let place = file.path
    if try file.isMissing() {
      try JournalLedger.create(file, system)
    } else {
      try JournalLedger.identify(place, system)
    }
    try file.narrow()
    let opened = try JournalDatabase.open(at: place, system: system)
    try telling(place) { () throws(SQLiteFailure) in try opened.check() }
    identity = opened.identity
    database = opened
    // A process that ended by itself may have owed one.
    erase()
  }

  private static func create(_ file: borrowing StoreFile, _ system: String?) throws(JournalStoreError) {
    try file.beginDraft()
    do throws(SQLiteFailure) {
      let draft = try SQLiteConnection(file.draft, flags: SQLITE_OPEN_READWRITE, system: system)
      try draft.run(JournalSchema.creation)
    } catch {
      file.dropDraft()
      throw error.error(at: file.path)
    }
    try file.finishDraft()
  }

  /// Looks at the file's head, without changing anything, whatever it is.
  ///
  /// The rest of it may be half written, with the whole in its log.
  private static func identify(_ path: String, _ system: String?) throws(JournalStoreError) {
    let head = try telling(path) { () throws(SQLiteFailure) in
      let head = try SQLiteConnection(
        fileURI(path, "immutable=1"), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, system: system
      ).beginning(100)
      guard head.starts(with: Array("SQLite format 3\0".utf8)) else {
        throw SQLiteFailure(SQLITE_NOTADB, "no database")
      }
      return head
    }
    // Where SQLite's file format has `application_id` and `user_version`.
    func number(at offset: Int) -> Int64 { head[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) } }
    try JournalSchema.check(path, number(at: 68), number(at: 60))
  }

  // MARK: Groups

  /// Commits jobs together, each wholly or not at all, and says what became of each.
  func commit(_ jobs: [JournalJob]) -> [Result<JournalAnswer, JournalStoreError>] {
    if let error = reopenIfNeeded() { return jobs.map { _ in .failure(error) } }
    switch attempt(jobs) {
    case .done(let results):
      return results
    case .failed(let error, let results):
      guard !error.isCertain || jobs.count == 1 else { return oneByOne(jobs) }
      return jobs.indices.map { index in
        // A batch that was refused for itself keeps its answer.
        guard index < results.count, case .failure = results[index] else { return .failure(error) }
        return results[index]
      }
    }
  }

  /// Tries each job by itself, so that each gets its own truth.
  private func oneByOne(_ jobs: [JournalJob]) -> [Result<JournalAnswer, JournalStoreError>] {
    var failures = 0
    var last: JournalStoreError?
    return jobs.map { job in
      if failures >= JournalLedger.patience, let last { return .failure(last) }
      if let error = reopenIfNeeded() {
        failures += 1
        last = error
        return .failure(error)
      }
      switch attempt([job]) {
      case .done(let results):
        failures = 0
        return results.first ?? .success(.appended([]))
      case .failed(let error, let results):
        if case .failure(let refusal)? = results.first { return .failure(refusal) }
        failures += 1
        last = error
        last?.isCertain = true
        return .failure(error)
      }
    }
  }

  private enum Attempt {
    /// The transaction is committed, or had nothing to commit.
    case done([Result<JournalAnswer, JournalStoreError>])
    /// It is not, or nobody knows; with what would have been the answers.
    case failed(JournalStoreError, [Result<JournalAnswer, JournalStoreError>])
  }

  private func attempt(_ jobs: [JournalJob]) -> Attempt {
    guard let database else { return .failed(JournalStoreError(.system, "The journal is not open."), []) }
    let sync = jobs.map(\.sync).max() ?? .normal
    var results: [Result<JournalAnswer, JournalStoreError>] = []
    var expected: Int64 = 0
    var isCommitting = false
    do throws(SQLiteFailure) {
      try database.beginTransaction(sync)
      expected = try database.transactionCount() + 1
      if let first = try apply(jobs, to: database, nested: false) {
        results = first
      } else {
        // One failed midway. Once more, with a place to go back to before each.
        try database.rollBackTransaction()
        try database.beginTransaction(sync)
        results = try apply(jobs, to: database, nested: true) ?? []
      }
      guard results.contains(where: { if case .success = $0 { true } else { false } }) else {
        try database.rollBackTransaction()
        return .done(results)
      }
      try database.commitTransaction { isCommitting = true }
    } catch {
      return resolve(error, results, expected: isCommitting ? expected : nil)
    }
    if database.rows.hasErased { erase() }
    return .done(results)
  }

  /// Applies jobs in order; nil when one failed that had written something, and could not be taken back alone.
  private func apply(
    _ jobs: [JournalJob], to database: JournalDatabase, nested: Bool
  ) throws(SQLiteFailure) -> [Result<JournalAnswer, JournalStoreError>]? {
    var results: [Result<JournalAnswer, JournalStoreError>] = []
    results.reserveCapacity(jobs.count)
    for job in jobs {
      let before = database.connection.totalChanges
      do throws(JournalRefusal) {
        let answer =
          nested
          ? try database.nested { () throws(JournalRefusal) in try apply(job, to: database) }
          : try apply(job, to: database)
        results.append(.success(answer))
      } catch {
        switch error {
        case .failed(let failure): throw failure
        case .refused(let refusal): results.append(.failure(refusal))
        }
        if !nested && database.connection.totalChanges != before { return nil }
      }
    }
    return results
  }

  private func apply(_ job: JournalJob, to database: JournalDatabase) throws(JournalRefusal) -> JournalAnswer
  {
    switch job.work {
    case .claim(let device, let owner, let epoch, _):
      .claimed(try database.rows.claim(device, owner: owner, epoch: epoch))
    case .append(let records, let claim, _, _):
      .appended(try database.rows.append(records, to: claim))
    }
  }

  // MARK: Failures

  /// Finds out what became of a transaction that failed.
  ///
  /// A commit that failed may be in the log all the same, where the next opening would find it. So the file is opened
  /// again and the transactions are counted; and another commit, made to last, either stands behind the lost one or
  /// takes its place in the log: then nothing changes any more.
  ///
  /// `expected` is the count that the file has if the transaction is there; nil if it had not come to its commit.
  private func resolve(
    _ failure: SQLiteFailure, _ results: [Result<JournalAnswer, JournalStoreError>], expected: Int64?
  ) -> Attempt {
    database = nil
    let reopened = reopenIfNeeded() == nil
    guard let expected else { return .failed(failure.error(at: file.path), results) }
    let uncertain = Attempt.failed(failure.error(at: file.path, isCertain: false), results)
    guard reopened, let database else { return uncertain }
    do throws(SQLiteFailure) {
      let isThere = try database.transactionCount() >= expected
      // No space was left for all of it, and what marks its end is written last.
      if !isThere && failure.primaryCode == SQLITE_FULL {
        return .failed(failure.error(at: file.path), results)
      }
      try database.beginTransaction(.full)
      try database.commitTransaction {}
      guard isThere else { return .failed(failure.error(at: file.path), results) }
      // Not known any more, and cheap to do for nothing.
      erase()
      return .done(results)
    } catch {
      self.database = nil
      return uncertain
    }
  }

  /// Opens the file again where it is not open; the result says why that failed.
  private func reopenIfNeeded() -> JournalStoreError? {
    guard database == nil else { return nil }
    do throws(JournalStoreError) {
      let opened = try JournalDatabase.open(at: file.path, system: system)
      guard opened.identity == identity else {
        return JournalStoreError(
          .corrupt,
          "\(file.path) is not the journal that was opened: it was replaced. Put the right one back.")
      }
      database = opened
      return nil
    } catch {
      return error
    }
  }

  // MARK: Care

  private func erase() {
    owesErasure = true
    payErasure(patiently: true)
  }

  private func payErasure(patiently: Bool) {
    guard owesErasure, let database else { return }
    // A reader of the old content is in the way; later.
    do throws(SQLiteFailure) { try database.emptyLog(patiently: patiently) } catch { return }
    owesErasure = false
  }

  /// Does what nobody waits for.
  func tidy() {
    payErasure(patiently: false)
    guard let database, database.isLogLong else { return }
    // What fails here fails again, and is told, with the next commit.
    do throws(SQLiteFailure) { try database.writeLogBack() } catch { return }
  }

  /// Lets go of the file, with all that is in the log written back.
  func close() {
    guard let database else { return }
    do throws(SQLiteFailure) { try database.emptyLog() } catch {
      // It stays in the log, where the next opening finds it.
    }
    self.database = nil
  }
}

/// A path as SQLite takes it with parameters.
func fileURI(_ path: String, _ parameters: String) -> String {
  var uri = "file:"
  let digits = Array("0123456789ABCDEF")
  for byte in path.utf8 {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
      UInt8(ascii: "_"):
      uri.append(Character(Unicode.Scalar(byte)))
    default:
      uri.append("%")
      uri.append(digits[Int(byte >> 4)])
      uri.append(digits[Int(byte & 15)])
    }
  }
  return uri + "?" + parameters
}
