internal import CSQLite
internal import Relink

/// The rows of a journal and the claims on them, within a transaction.
final class JournalRows {
  /// A device's claim as this transaction found it.
  private struct Claimed {
    var key: Int64
    var epoch: UInt64
    var lastPlace: Int64
    /// Whether `lastPlace` has to be stored.
    var isChanged = false
  }

  private let connection: SQLiteConnection
  private let selectOne: SQLiteStatement
  private let selectOpen: SQLiteStatement
  private let admit: SQLiteStatement
  private let mark: SQLiteStatement
  private let settle: SQLiteStatement
  private let settleDelivered: SQLiteStatement
  private let deliver: SQLiteStatement
  private let replace: SQLiteStatement
  private let addSecret: SQLiteStatement
  private let eraseSecret: SQLiteStatement
  private let pruneOld: SQLiteStatement
  private let pruneMany: SQLiteStatement
  private let selectClaim: SQLiteStatement
  private let insertClaim: SQLiteStatement
  private let updateClaim: SQLiteStatement
  private let updatePlace: SQLiteStatement

  private var claims: [DeviceID: Claimed] = [:]
  /// Whether the transaction removed operations.
  private(set) var hasPruned = false
  /// Whether the transaction removed secrets, of which the log still has copies.
  private(set) var hasErased = false

  init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
    self.connection = connection
    selectOne = try connection.prepare(JournalSchema.selectOne)
    selectOpen = try connection.prepare(JournalSchema.selectOpen)
    admit = try connection.prepare(JournalSchema.admit)
    mark = try connection.prepare(JournalSchema.mark)
    settle = try connection.prepare(JournalSchema.settle)
    settleDelivered = try connection.prepare(JournalSchema.settleDelivered)
    deliver = try connection.prepare(JournalSchema.deliver)
    replace = try connection.prepare(JournalSchema.replace)
    addSecret = try connection.prepare(JournalSchema.addSecret)
    eraseSecret = try connection.prepare(JournalSchema.eraseSecret)
    pruneOld = try connection.prepare(JournalSchema.pruneOld)
    pruneMany = try connection.prepare(JournalSchema.pruneMany)
    selectClaim = try connection.prepare(JournalSchema.selectClaim)
    insertClaim = try connection.prepare(JournalSchema.insertClaim)
    updateClaim = try connection.prepare(JournalSchema.updateClaim)
    updatePlace = try connection.prepare(JournalSchema.updatePlace)
  }

  /// Begins anew: what is known of the claims is as old as the transaction that read it.
  func forgetClaims() {
    claims.removeAll(keepingCapacity: true)
    hasPruned = false
    hasErased = false
  }

  // MARK: Claims

  /// Takes a device's journal over.
  func claim(
    _ device: DeviceID, owner: String, epoch: UInt64?
  ) throws(JournalRefusal) -> ClaimedJournal {
    let before = try orFail { () throws(SQLiteFailure) in try find(device) }
    if let before, let epoch, epoch <= before.epoch { throw .refused(.superseded(device, by: before.epoch)) }
    guard
      let next = epoch ?? before.map({ $0.epoch == .max ? nil : $0.epoch + 1 }) ?? (before == nil ? 1 : nil)
    else { throw .refused(.superseded(device, by: .max)) }
    return try orFail { () throws(SQLiteFailure) in
      let claimed: Claimed
      if var before {
        updateClaim.bind(before.key, at: 1)
        try updateClaim.bind(owner, at: 2)
        updateClaim.bind(Int64(bitPattern: next), at: 3)
        try updateClaim.run()
        before.epoch = next
        claimed = before
      } else {
        try insertClaim.bind(device.description, at: 1)
        try insertClaim.bind(owner, at: 2)
        insertClaim.bind(Int64(bitPattern: next), at: 3)
        try insertClaim.run()
        claimed = Claimed(key: connection.lastRow, epoch: next, lastPlace: 0)
      }
      claims[device] = claimed
      var open: [JournalRow] = []
      selectOpen.bind(claimed.key, at: 1)
      defer { selectOpen.reset() }
      while try selectOpen.step() { open.append(JournalRows.row(of: selectOpen)) }
      return ClaimedJournal(
        claim: JournalClaim(device: device, epoch: next), rows: open, lastPlace: claimed.lastPlace)
    }
  }

  private func find(_ device: DeviceID) throws(SQLiteFailure) -> Claimed? {
    if let known = claims[device] { return known }
    try selectClaim.bind(device.description, at: 1)
    defer { selectClaim.reset() }
    guard try selectClaim.step() else { return nil }
    let found = Claimed(
      key: selectClaim.int(0), epoch: UInt64(bitPattern: selectClaim.int(1)), lastPlace: selectClaim.int(2))
    claims[device] = found
    return found
  }

  /// Stores the highest places that were given in the transaction.
  func storePlaces() throws(SQLiteFailure) {
    for claimed in claims.values where claimed.isChanged {
      updatePlace.bind(claimed.key, at: 1)
      updatePlace.bind(claimed.lastPlace, at: 2)
      try updatePlace.run()
    }
  }

  // MARK: Records

  /// Writes the records of a batch, in their order.
  ///
  /// - Returns: The rows that were there already for admitted ones.
  func append(
    _ records: [JournalRecord], to claim: JournalClaim
  ) throws(JournalRefusal) -> [JournalRow] {
    guard let found = try orFail({ () throws(SQLiteFailure) in try find(claim.device) }) else {
      throw .refused(.unclaimed(claim.device))
    }
    guard found.epoch == claim.epoch else { throw .refused(.superseded(claim.device, by: found.epoch)) }
    var claimed = found
    var taken: [JournalRow] = []
    for record in records {
      switch record {
      case .admitted(let row):
        if let there = try orFail({ () throws(SQLiteFailure) in try admit(row, of: claimed.key) }) {
          taken.append(there)
        } else if row.place > claimed.lastPlace {
          claimed.lastPlace = row.place
          claimed.isChanged = true
        }
      case .marked(let id, let mark):
        try change(id, of: claimed.key) { () throws(SQLiteFailure) in
          self.mark.bind(claimed.key, at: 1)
          try self.mark.bind(id, at: 2)
          try self.mark.bind(mark, at: 3)
          try self.mark.run()
        }
      case .settled(let id, let outcome, let instant, let operation):
        try settle(id, of: claimed.key, outcome, at: instant, operation)
      case .delivered(let id):
        try change(id, of: claimed.key) { () throws(SQLiteFailure) in
          deliver.bind(claimed.key, at: 1)
          try deliver.bind(id, at: 2)
          try deliver.run()
        }
      case .pruned(let before, let keeping):
        try orFail { () throws(SQLiteFailure) in try prune(claimed.key, before: before, keeping: keeping) }
      @unknown default:
        throw .refused(JournalStoreError(.invalidRecord, "This store does not know the record \(record)."))
      }
    }
    // Only now: a batch that fails gives no places.
    claims[claim.device] = claimed
    return taken
  }

  /// Adds an operation; where its ID is taken nothing changes and that row is the result.
  private func admit(_ row: JournalRow, of device: Int64) throws(SQLiteFailure) -> JournalRow? {
    admit.bind(device, at: 1)
    try admit.bind(row.id, at: 2)
    admit.bind(row.place, at: 3)
    try admit.bind(row.fingerprint, at: 4)
    admit.bind(row.isSensitive ? 1 : 0, at: 5)
    admit.bind(row.admittedAt, at: 6)
    admit.bind(row.settledAt, at: 7)
    admit.bind(!row.isDelivered ? 0 : row.outcome == nil ? 2 : 1, at: 8)
    try admit.bind(row.isSensitive ? nil : row.operation, at: 9)
    try admit.bind(row.mark, at: 10)
    try admit.bind(row.outcome, at: 11)
    try admit.run()
    guard connection.changes > 0 else { return try find(row.id, of: device) }
    if row.isSensitive {
      addSecret.bind(connection.lastRow, at: 1)
      try addSecret.bind([UInt8](repeating: 0, count: JournalSchema.filler) + row.operation, at: 2)
      try addSecret.run()
    }
    return nil
  }

  private func settle(
    _ id: String, of device: Int64, _ outcome: [UInt8], at instant: Int64, _ operation: [UInt8]?
  ) throws(JournalRefusal) {
    let isSettled = try orFail { () throws(SQLiteFailure) in
      // Those that were told before they had an outcome are few.
      for statement in [settle, settleDelivered] {
        statement.bind(device, at: 1)
        try statement.bind(id, at: 2)
        try statement.bind(outcome, at: 3)
        statement.bind(instant, at: 4)
        try statement.run()
        if connection.changes > 0 { return true }
      }
      return false
    }
    if !isSettled {
      guard let there = try orFail({ () throws(SQLiteFailure) in try find(id, of: device) }) else {
        throw .refused(.unknown(id))
      }
      // The same once more is a repetition, of a batch whose fate was uncertain.
      guard there.outcome == outcome else { throw .refused(.contradiction(id)) }
    }
    guard let operation else { return }
    try orFail { () throws(SQLiteFailure) in
      eraseSecret.bind(device, at: 1)
      try eraseSecret.bind(id, at: 2)
      try eraseSecret.run()
      if connection.changes > 0 { hasErased = true }
      replace.bind(device, at: 1)
      try replace.bind(id, at: 2)
      try replace.bind(operation, at: 3)
      try replace.run()
    }
  }

  private func change(
    _ id: String, of device: Int64, _ body: () throws(SQLiteFailure) -> Void
  ) throws(JournalRefusal) {
    try orFail(body)
    if connection.changes == 0 { throw .refused(.unknown(id)) }
  }

  private func prune(_ device: Int64, before: Int64, keeping: Int) throws(SQLiteFailure) {
    for (statement, limit) in [(pruneOld, before), (pruneMany, Int64(max(keeping, 0)))] {
      let total = connection.totalChanges
      statement.bind(device, at: 1)
      statement.bind(limit, at: 2)
      try statement.run()
      let removed = connection.totalChanges - total
      if removed > 0 { hasPruned = true }
      // The trigger's changes: secrets that were never replaced.
      if removed > connection.changes { hasErased = true }
    }
  }

  private func find(_ id: String, of device: Int64) throws(SQLiteFailure) -> JournalRow? {
    selectOne.bind(device, at: 1)
    try selectOne.bind(id, at: 2)
    defer { selectOne.reset() }
    return try selectOne.step() ? JournalRows.row(of: selectOne) : nil
  }

  /// The row that a statement is at.
  static func row(of statement: SQLiteStatement) -> JournalRow {
    JournalRow(
      id: statement.text(0), place: statement.int(1),
      operation: statement.bytes(7) ?? statement.bytes(10).map { [UInt8]($0.dropFirst(JournalSchema.filler)) }
        ?? [],
      fingerprint: statement.bytes(2) ?? [], isSensitive: statement.int(3) != 0, admittedAt: statement.int(4),
      mark: statement.bytes(8), outcome: statement.bytes(9), settledAt: statement.optionalInt(5),
      isDelivered: statement.int(6) != 0)
  }
}

extension JournalStoreError {
  fileprivate static func superseded(_ device: DeviceID, by epoch: UInt64) -> JournalStoreError {
    JournalStoreError(
      .superseded,
      "The journal of \(device) was claimed again, with epoch \(epoch): this session may write it no more. Claim it "
        + "anew to go on.")
  }

  fileprivate static func unclaimed(_ device: DeviceID) -> JournalStoreError {
    JournalStoreError(
      .superseded, "Nobody has claimed the journal of \(device) in this store. Claim it before writing to it."
    )
  }

  fileprivate static func unknown(_ id: String) -> JournalStoreError {
    JournalStoreError(
      .invalidRecord, "The store has no operation \"\(id)\" of this device. Record it before its changes.")
  }

  fileprivate static func contradiction(_ id: String) -> JournalStoreError {
    JournalStoreError(
      .invalidRecord, "The operation \"\(id)\" has another outcome already, which stays.")
  }
}
