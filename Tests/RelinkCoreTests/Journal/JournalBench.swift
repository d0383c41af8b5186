import BluetoothWire

@testable import RelinkCore

/// A journal with a link and a store that do what a test says, and a record of all that was told.
struct JournalBench {
  static let lock = Characteristic(BluetoothUUID(0xAA01 as UInt16))
  static let level = Characteristic(BluetoothUUID(0xAA02 as UInt16))
  static let noLink = DisconnectReason.supervisionTimeout

  var journal: OperationJournal
  var now = Timestamp.start
  var generation = Generation(rawValue: 1)
  var security = SecurityLevel.none
  /// Whether the link may become more secure, and what was asked of it.
  var maySecure = false
  var securityAsked: [SecurityLevel] = []
  /// The bond that secures the link.
  var bond: UInt64?
  let policy: JournalPolicy

  /// What the store holds.
  var disk = NaiveStore()
  /// What the store was asked for and has not answered.
  private(set) var inFlight: (records: [JournalRecord], sync: JournalSync)?
  /// Everything that was told, in order.
  private(set) var told: [Settlement] = []
  private var requests: [OperationNumber: RequestID] = [:]
  private var lastRequest: UInt64 = 0

  /// Makes a journal; with `durable` it has a store whose claim is held.
  init(policy: JournalPolicy = .standard, durable: Bool = false, bootID: String? = "boot 1") {
    self.policy = policy
    journal = OperationJournal(policy: policy, hasStore: durable, bootID: bootID, now: now)
    if durable {
      claim()
      commit()
    }
  }

  // MARK: Calls

  @discardableResult
  mutating func call(
    _ number: Int64, _ request: GATTRequest? = nil, _ idempotency: Idempotency = .idempotent,
    id: String? = nil, within deadline: Int64? = nil, readyOn: Generation? = nil,
    _ change: (inout OperationOptions) -> Void = { _ in }
  ) -> OperationJournal.Admission {
    var options = OperationOptions.plain
    change(&options)
    var name = id.flatMap { OperationID($0) }
    if name == nil, options.durability == .durable { name = OperationID("op\(number)") }
    let admission = journal.operationRequested(
      OperationJournal.Call(
        number: op(number), id: name,
        request: request ?? .write(Self.lock, [UInt8(truncatingIfNeeded: number)]),
        idempotency: idempotency, deadline: deadline.map { now.monotonic.advanced(by: .seconds($0)) },
        options: options == .plain ? nil : options, readyOn: readyOn), now: now)
    if case .recorded(_, let superseded) = admission { told += superseded }
    return admission
  }

  @discardableResult
  mutating func durable(
    _ number: Int64, _ request: GATTRequest? = nil, _ idempotency: Idempotency = .nonIdempotent,
    id: String? = nil, within deadline: Int64? = nil, _ change: (inout OperationOptions) -> Void = { _ in }
  ) -> OperationJournal.Admission {
    call(number, request, idempotency, id: id, within: deadline) {
      $0.durability = .durable
      change(&$0)
    }
  }

  @discardableResult
  mutating func cancel(_ number: Int64) -> OperationJournal.Abandonment? {
    let end = journal.cancelled(op(number), now: now)
    if let settlement = end?.settlement { told.append(settlement) }
    return end
  }

  // MARK: The link

  /// What would be offered next; what cannot be any more settles on the way.
  mutating func next(_ room: OperationJournal.Room = .any) -> Int64? {
    while true {
      let facts = OperationJournal.LinkFacts(generation, security: security, maySecure: maySecure, bond: bond)
      switch journal.next(taking: room, on: facts, now: now) {
      case .nothing:
        journal.marksWanted(on: generation, now: now)
        return nil
      case .secure(let level):
        securityAsked.append(level)
        return nil
      case .settled(let settlement): told.append(settlement)
      case .offer(let number, _): return number.rawValue
      }
    }
  }

  /// Offers what is next, and says what that was.
  @discardableResult
  mutating func offer(_ room: OperationJournal.Room = .any) -> Int64? {
    guard let number = next(room) else { return nil }
    lastRequest += 1
    requests[op(number)] = RequestID(rawValue: lastRequest)
    journal.offering(op(number), as: RequestID(rawValue: lastRequest), on: generation, bond: bond, now: now)
    return number
  }

  /// Offers so many.
  mutating func offers(_ count: Int) -> [Int64] { (0..<count).compactMap { _ in offer() } }

  /// Marks and offers all that can be.
  mutating func markedOffers() -> [Int64] {
    var offered: [Int64] = []
    while let number = markAndOffer() { offered.append(number) }
    return offered
  }

  /// Asks for the mark of what is next, commits it and everything else, and offers it.
  @discardableResult
  mutating func markAndOffer() -> Int64? {
    _ = next()
    commit()
    return offer()
  }

  func request(_ number: Int64) -> RequestID { requests[op(number)] ?? RequestID(rawValue: 0) }

  @discardableResult
  mutating func answer(
    _ number: Int64, _ answer: Result<GATTAnswer, GATTFailure> = .success(.done)
  ) -> Settlement? {
    let settlement = journal.answered(request(number), with: answer, now: now)
    if let settlement { told.append(settlement) }
    return settlement
  }

  /// The link is lost; what is not named in `inDoubt`, by default everything outstanding, did not reach the device.
  @discardableResult
  mutating func lose(
    _ reason: DisconnectReason = noLink, inDoubt: [Int64]? = nil
  ) -> OperationJournal.Loss {
    let loss = journal.linkLost(
      generation, reason: reason, inDoubt: inDoubt?.map { request($0) } ?? journal.outstandingRequests(),
      now: now)
    told += loss.settled
    generation = Generation(rawValue: generation.rawValue + 1)
    return loss
  }

  // MARK: Time

  mutating func pass(_ seconds: Int64) { pass(milliseconds: seconds * 1_000) }

  mutating func pass(milliseconds: Int64) {
    now.monotonic = now.monotonic.advanced(by: .milliseconds(milliseconds))
    now.bootTime += milliseconds * 1_000_000
    now.wall += milliseconds * 1_000_000
  }

  mutating func suspend(_ seconds: Int64) {
    now.bootTime += seconds * 1_000_000_000
    now.wall += seconds * 1_000_000_000
  }

  @discardableResult
  mutating func fireTimer() -> [OperationJournal.Abandonment] {
    let fired = journal.timerFired(now: now)
    told += fired.expired.compactMap(\.settlement)
    return fired.expired
  }

  /// The instant that lies so many seconds, counted without sleep, after the start.
  func seconds(_ count: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: count * 1_000_000_000) }

  func after(_ seconds: Int64) -> ExpiryInstant { ExpiryInstant(.seconds(seconds), after: now) }

  // MARK: Probes

  @discardableResult
  mutating func probe() -> Int64? { journal.nextProbe(on: generation, now: now)?.0.rawValue }

  @discardableResult
  mutating func probed(_ number: Int64, _ verdict: Verdict) -> Settlement? {
    let settlement = journal.probeFinished(op(number), on: generation, verdict, now: now)
    if let settlement { told.append(settlement) }
    return settlement
  }

  // MARK: The store

  /// Takes what is to be committed, without an answer.
  @discardableResult
  mutating func beginCommit() -> [JournalRecord]? {
    guard inFlight == nil, let batch = journal.nextCommit() else { return nil }
    inFlight = batch
    return batch.records
  }

  /// The store answers what it was asked, and then what it is asked next, until nothing is left.
  @discardableResult
  mutating func commit() -> OperationJournal.StoreEffects {
    var all = OperationJournal.StoreEffects()
    beginCommit()
    while let effects = answerCommit() {
      all.recorded += effects.recorded
      all.settled += effects.settled
      all.failure = effects.failure ?? all.failure
      beginCommit()
    }
    return all
  }

  /// The store answers what it was asked.
  @discardableResult
  mutating func answerCommit() -> OperationJournal.StoreEffects? {
    guard let (records, _) = inFlight else { return nil }
    inFlight = nil
    let effects =
      switch disk.append(records) {
      case .success(let existing): journal.committed(existing: existing, now: now)
      case .failure(let error): journal.commitFailed(error, now: now)
      }
    take(effects)
    return effects
  }

  /// The store fails at what it was asked; where that is not certain, it may have been done.
  @discardableResult
  mutating func failCommit(
    _ code: JournalStoreError.Code = .full, isCertain: Bool = true, isDone: Bool = false
  ) -> OperationJournal.StoreEffects {
    beginCommit()
    if isDone, let records = inFlight?.records { _ = disk.append(records) }
    inFlight = nil
    let effects = journal.commitFailed(Self.error(code, isCertain: isCertain), now: now)
    take(effects)
    return effects
  }

  static func error(
    _ code: JournalStoreError.Code = .full, isCertain: Bool = true
  ) -> JournalStoreError { JournalStoreError(code, "It is so.", isCertain: isCertain) }

  mutating func take(_ effects: OperationJournal.StoreEffects) { told += effects.settled }

  /// The claim is asked for and held.
  @discardableResult
  mutating func claim(isWallRight: Bool = true) -> OperationJournal.StoreEffects {
    journal.claimRequested()
    let effects = journal.claimed(disk.claimed(), isWallRight: isWallRight, now: now)
    take(effects)
    return effects
  }

  /// The process ends, and another one begins; its claim is not asked for yet.
  mutating func crash(bootID: String? = "boot 1") {
    inFlight = nil
    told = []
    requests = [:]
    generation = Generation(rawValue: 1)
    journal = OperationJournal(policy: policy, hasStore: true, bootID: bootID, now: now)
  }

  @discardableResult
  mutating func restart(
    bootID: String? = "boot 1", isWallRight: Bool = true
  ) -> OperationJournal.StoreEffects {
    crash(bootID: bootID)
    let effects = claim(isWallRight: isWallRight)
    commit()
    return effects
  }

  // MARK: Looking

  func op(_ number: Int64) -> OperationNumber { OperationNumber(rawValue: number) }

  func entry(_ number: Int64) -> JournalEntry? { journal.entries.first { $0.number == op(number) } }

  func state(_ number: Int64) -> JournalEntry.State? { entry(number)?.state }

  /// Everything that was told about an operation.
  func outcomes(_ number: Int64) -> [Outcome<GATTAnswer>] {
    told.filter { $0.number == op(number) }.map(\.outcome)
  }

  /// A doubt about the offer that was made at this second of the test.
  func doubt(
    _ cause: Doubt.Cause, on link: UInt64 = 1, at second: Int64 = 0, offers: Int = 1, until last: Int64? = nil
  ) -> Outcome<GATTAnswer> {
    .indeterminate(
      Doubt(
        cause: cause, generation: Generation(rawValue: link), offeredAt: .at(seconds(second)), offers: offers,
        lastPossibleEffect: last.map { seconds($0) }))
  }
}

/// What a journal store does, in the plainest way, for one device.
struct NaiveStore {
  var rows: [JournalRow] = []
  var lastPlace: Int64 = 0

  func row(_ id: String) -> JournalRow? { rows.first { $0.id == id } }

  func claimed() -> ClaimedJournal {
    ClaimedJournal(
      claim: JournalClaim(device: .init(address: .init(0), type: .random), epoch: 1),
      rows: rows.filter { $0.outcome == nil || !$0.isDelivered }.sorted { $0.place < $1.place },
      lastPlace: lastPlace)
  }

  /// All of them, or none.
  mutating func append(_ records: [JournalRecord]) -> Result<[JournalRow], JournalStoreError> {
    var copy = self
    var existing: [JournalRow] = []
    for record in records {
      guard copy.apply(record, &existing) else {
        return .failure(JournalStoreError(.invalidRecord, "There is no such operation."))
      }
    }
    self = copy
    return .success(existing)
  }

  private mutating func apply(_ record: JournalRecord, _ existing: inout [JournalRow]) -> Bool {
    func change(_ id: String, _ body: (inout JournalRow) -> Bool) -> Bool {
      guard let index = rows.firstIndex(where: { $0.id == id }) else { return false }
      return body(&rows[index])
    }
    switch record {
    case .admitted(let row):
      if let one = self.row(row.id) {
        existing.append(one)
      } else {
        rows.append(row)
        lastPlace = max(lastPlace, row.place)
      }
      return true
    case .marked(let id, let mark):
      return change(id) {
        $0.mark = mark
        return true
      }
    case .settled(let id, let outcome, let instant, let operation):
      return change(id) {
        if let present = $0.outcome, present != outcome { return false }
        if $0.outcome == nil { $0.settledAt = instant }
        $0.outcome = outcome
        if let operation { $0.operation = operation }
        return true
      }
    case .delivered(let id):
      return change(id) {
        $0.isDelivered = true
        return true
      }
    case .pruned(let before, let keeping):
      let newest = rows.filter { $0.outcome != nil }
        .sorted { ($0.settledAt ?? 0, $0.place) > ($1.settledAt ?? 0, $1.place) }
      let old = newest.enumerated().filter { $0.offset >= keeping || $0.element.settledAt ?? 0 < before }
      rows.removeAll { row in old.contains { $0.element.id == row.id } }
      return true
    }
  }
}
