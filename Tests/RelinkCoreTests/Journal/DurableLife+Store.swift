import BluetoothWire
import Testing

@testable import RelinkCore

// The store of a random life, and the ends of its processes.
extension DurableLife {
  private static let failures: [JournalStoreError.Code] = [.full, .system, .readOnly]

  /// The store does one thing: it hands out the claim, takes what is to be committed, or answers.
  mutating func work() throws {
    if journal.needsClaim { journal.claimRequested() }
    if journal.isTakingOver { return try chance(4) ? refuseClaim() : claim() }
    guard let (records, sync) = inFlight else { return inFlight = journal.nextCommit() }
    inFlight = nil
    switch draw(10) {
    case 0: try fail(isCertain: true)
    case 1: try fail(isCertain: false)
    case 2:
      _ = commit(records, sync)
      try fail(isCertain: false)
    default: try acknowledge(records, sync)
    }
  }

  private mutating func commit(
    _ records: [JournalRecord], _ sync: JournalSync
  ) -> Result<[JournalRow], JournalStoreError> {
    let result = disk.append(records)
    if sync == .full { platter = disk }
    return result
  }

  private mutating func acknowledge(_ records: [JournalRecord], _ sync: JournalSync) throws {
    let existing: [JournalRow]
    switch commit(records, sync) {
    case .success(let rows): existing = rows
    case .failure(let error): return try follow(journal.commitFailed(error, now: now))
    }
    for record in records {
      switch record {
      case .admitted(let row): try admitted(row, existing.first { $0.id == row.id && $0.place != row.place })
      case .marked(let id, _):
        if let index = commands.firstIndex(where: { $0.id?.description == id }) {
          commands[index].isMarked = true
        }
      case .settled(let id, _, _, _):
        if let index = commands.firstIndex(where: { $0.id?.description == id }) { ended(index) }
      case .delivered, .pruned: break
      }
    }
    try follow(journal.committed(existing: existing, now: now))
  }

  private mutating func admitted(_ row: JournalRow, _ other: JournalRow?) throws {
    guard let index = commands.firstIndex(where: { $0.id?.description == row.id && $0.isLive }) else {
      return
    }
    if let other {
      // The command had its end in an earlier process.
      let outcome = try JournalCoding.decode(try #require(other.outcome))
      if !commands[index].isToldLate { owed[commands[index].number] = NaiveCommand.Kind(outcome) }
      commands[index].phase = .gone
      commands[index].isAskedAgain = false
      return
    }
    commands[index].isRecorded = true
    guard commands[index].phase == .recording else { return }
    commands[index].phase = .queued
    settleIfSuperfluous(index)
    supersede(olderThan: index)
  }

  private mutating func ended(_ index: Int) {
    guard commands[index].phase == .settling, let kind = commands[index].outcome else { return }
    if !commands[index].isToldLate { owed[commands[index].number] = kind }
    commands[index].phase = .gone
  }

  private mutating func fail(isCertain: Bool) throws {
    let code = Self.failures[draw(Self.failures.count)]
    let records = journal.log.inFlight
    if isCertain {
      for item in records where item.purpose == .admission && !item.mayBeThere {
        guard let index = item.number.flatMap({ live($0) }) else { continue }
        neverRecorded(index, JournalBench.error(code))
      }
    }
    try follow(journal.commitFailed(JournalBench.error(code, isCertain: isCertain), now: now))
  }

  private mutating func neverRecorded(_ index: Int, _ error: JournalStoreError) {
    let command = commands[index]
    if !command.isToldLate { owed[command.number] = command.outcome ?? .notSent(.storeFailed(error)) }
    commands[index].phase = .gone
  }

  private mutating func follow(_ effects: OperationJournal.StoreEffects) throws {
    for merge in effects.merged {
      var moved = callers.removeValue(forKey: merge.from) ?? 0
      let end = calledOff.removeValue(forKey: merge.from)
      try #require(merge.end.map { NaiveCommand.Kind(Outcome<GATTAnswer>.notSent($0)) } == end)
      // Whose own wait is over has left; whoever joined him waits for the operation.
      if merge.end == .cancelled || merge.end == .deadline, moved > 0 { moved -= 1 }
      callers[merge.into, default: 0] += moved
    }
    for settlement in effects.settled { try tell(settlement) }
  }

  // MARK: Processes

  private mutating func refuseClaim() throws {
    let error = JournalBench.error(.locked)
    for index in order.live where commands[index].isDurable { neverRecorded(index, error) }
    try follow(journal.claimFailed(error, now: now))
  }

  private mutating func claim() throws {
    let claimed = disk.claimed()
    for (offset, row) in claimed.rows.enumerated() {
      let index = try #require(commands.firstIndex { $0.id?.description == row.id })
      try takeOver(index, row, as: OperationNumber(rawValue: Int64(offset - claimed.rows.count)))
    }
    for index in order.live
    where commands[index].number.rawValue < 0 && commands[index].phase != .settling {
      supersede(olderThan: index)
    }
    try follow(journal.claimed(claimed, isWallRight: true, now: now))
    if journal.log.isWorking, chance(2) { journal.marksWanted(on: generation, now: now) }
  }

  /// The rules for what an earlier process left.
  private mutating func takeOver(_ index: Int, _ row: JournalRow, as number: OperationNumber) throws {
    let called = commands[index]
    if let outcome = row.outcome {
      guard called.isLive else { return }
      if !called.isToldLate { owed[called.number] = NaiveCommand.Kind(try JournalCoding.decode(outcome)) }
      commands[index].phase = .gone
      commands[index].isAskedAgain = false
      return
    }
    if called.phase == .settling, !called.isToldLate { calledOff[called.number] = called.outcome }
    let stored = try StoredOperation(decoding: row.operation)
    commands[index] = NaiveCommand(
      id: called.id, request: called.request, idempotency: called.idempotency, options: stored.options,
      number: number, phase: .queued, applied: called.applied, isReplayed: called.isReplayed,
      isRecorded: true,
      told: called.told)
    commands[index].isRecovered = true
    func instant(_ expiry: ExpiryInstant?) -> MonotonicInstant? {
      expiry.map { MonotonicInstant(nanoseconds: $0.bootTime) }
    }
    commands[index].deadline = instant(stored.deadline)
    commands[index].offerBefore = instant(stored.options.offerBefore)
    let isOtherBoot = stored.bootID != "boot \(boots)"
    commands[index].isPossible = row.mark != nil || (isOtherBoot && called.idempotency == .idempotent)
    guard row.mark != nil else { return }
    switch called.idempotency {
    case .idempotent: break
    case .nonIdempotent: settle(index, .indeterminate(.processEnded))
    case .verified(let probe): commands[index].phase = probe.kind == .app ? .unresolved : .inDoubt
    }
  }

  /// The process ends, with or without the power, and another one begins.
  mutating func restart(powerLost: Bool) throws {
    for index in order.live {
      if case .out = commands[index].phase, chance(2) { try apply(index) }
      commands[index].phase = .gone
      commands[index].isToldLate = false
      commands[index].outcome = nil
    }
    if let (records, sync) = inFlight, chance(2) { _ = commit(records, sync) }
    inFlight = nil
    if powerLost {
      for index in commands.indices {
        guard let id = commands[index].id?.description, disk.row(id)?.outcome != nil else { continue }
        if platter.row(id)?.outcome == nil { commands[index].isReplayed = true }
      }
      disk = platter
      boots += 1
    }
    // What the store does not have is no operation any more; whoever asks for it again begins anew.
    for index in commands.indices where commands[index].id.map({ disk.row($0.description) == nil }) ?? false {
      try #require(!commands[index].isRecorded, "lost: \(commands[index])")
      commands[index].id = nil
    }
    // Those of operations that are taken over begin anew with each process.
    for index in commands.indices { commands[index].number = OperationNumber(rawValue: 0) }
    abandoned = [:]
    callers = [:]
    owed = [:]
    calledOff = [:]
    timer = nil
    generation = Generation(rawValue: 1)
    journal = OperationJournal(policy: .standard, hasStore: true, bootID: "boot \(boots)", now: now)
    journal.claimRequested()
  }

  /// Everything that fails is mended: each call of this process gets its outcome, and each record its own.
  mutating func end() throws {
    for isLast in [false, true] {
      for _ in 0..<20 {
        pass(31_000)
        if let retry = journal.retryAt, retry <= now.monotonic { journal.retryDue(now: now.monotonic) }
        if journal.needsClaim { journal.claimRequested() }
        if journal.isTakingOver { try claim() }
        if inFlight == nil { inFlight = journal.nextCommit() }
        if let (records, sync) = inFlight {
          inFlight = nil
          try acknowledge(records, sync)
        }
        if !journal.isTakingOver { try disconnect() }
        try settleUp()
      }
      try #require(journal.entries == [])
      try #require(callers.allSatisfy { $0.value == 0 })
      if !isLast { try restart(powerLost: false) }
    }
    for command in commands where command.isRecorded {
      try #require(!command.told.isEmpty, "nobody was ever told: \(command)")
    }
  }
}
