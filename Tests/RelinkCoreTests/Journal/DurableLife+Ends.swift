import BluetoothWire
import Testing

@testable import RelinkCore

// What the rules make of an operation that comes to its end, and what is told of it.
extension DurableLife {
  /// It has its outcome: its callers are to be told now, or once that is committed.
  mutating func settle(_ index: Int, _ kind: NaiveCommand.Kind) {
    guard commands[index].phase != .settling else { return }
    guard commands[index].isDurable else {
      owed[commands[index].number] = kind
      commands[index].phase = .gone
      return
    }
    commands[index].phase = .settling
    commands[index].outcome = kind
    let deadline = commands[index].deadline ?? now.monotonic
    commands[index].settleLimit = max(now.monotonic, deadline).advanced(by: .seconds(1))
  }

  mutating func settleIfSuperfluous(_ index: Int) {
    let command = commands[index]
    if let younger = command.supersededBy {
      settle(index, command.unanswered(.superseded(by: younger), .superseded(by: younger)))
    } else if command.isExpired {
      settle(index, command.unanswered(.expired, .expired))
    }
  }

  /// Its callers wait no longer; the answer that the link still owes keeps its keys.
  mutating func abandon(_ index: Int, _ notSent: NotSentReason, _ cause: Doubt.Cause) -> RequestID? {
    let command = commands[index]
    guard command.phase != .settling else { return nil }
    let kind = command.unanswered(notSent, cause)
    var outstanding: RequestID?
    if case .out(let request) = command.phase {
      outstanding = request
      abandoned[request] = index
      commands[index].isPossible = true
    }
    settle(index, kind)
    // Whoever gave up does not wait for the disk as long as he would have waited for the device.
    if command.isDurable { commands[index].settleLimit = now.monotonic.advanced(by: .seconds(1)) }
    return outstanding
  }

  mutating func supersede(olderThan index: Int) {
    let command = commands[index]
    guard let key = command.options.supersedes else { return }
    let name = command.id ?? OperationID(command.number)
    for older in order.live
    where commands[older].number < command.number && commands[older].options.supersedes == key {
      switch commands[older].phase {
      case .queued:
        settle(older, commands[older].unanswered(.superseded(by: name), .superseded(by: name)))
      case .recording, .out, .inDoubt, .probing, .unresolved: commands[older].supersededBy = name
      case .settling, .gone: break
      }
    }
  }

  // MARK: What is looked at

  mutating func probe() throws {
    if let index = commands.firstIndex(where: { $0.phase == .probing }) {
      let verdict = chance(6) ? .unknown : truth(index)
      judge(index, verdict)
      if let settlement = journal.probeFinished(commands[index].number, on: generation, verdict, now: now) {
        try tell(settlement)
      }
      return
    }
    let order = self.order
    let expected =
      journal.isTakingOver
      ? nil
      : order.live.first { index in
        commands[index].phase == .inDoubt && !order.live.contains { order.waits(index, for: $0) }
      }
    let begun = journal.nextProbe(on: generation, now: now)
    try #require(begun?.0 == expected.map { commands[$0].number })
    guard let expected else { return }
    commands[expected].phase = .probing
    commands[expected].probes += 1
  }

  private func truth(_ index: Int) -> Verdict { commands[index].applied > 0 ? .applied : .notApplied }

  private mutating func judge(_ index: Int, _ verdict: Verdict) {
    switch verdict {
    case .applied: settle(index, .succeeded)
    case .unknown: settle(index, .indeterminate(.probeInconclusive))
    case .notApplied:
      commands[index].phase = .queued
      commands[index].isPossible = false
      settleIfSuperfluous(index)
    }
  }

  mutating func resolve() throws {
    guard let index = commands.firstIndex(where: { $0.phase == .unresolved }),
      let entry = journal.entries.first(where: { $0.number == commands[index].number })
    else { return }
    let verdict = chance(6) ? .unknown : truth(index)
    judge(index, verdict)
    guard case .resolved(let settlement) = journal.resolved(entry.id, as: verdict, by: "me", now: now) else {
      Issue.record("the app's word was not taken")
      return
    }
    if let settlement { try tell(settlement) }
  }

  // MARK: What is told

  /// Somebody is told an outcome: it must be owed, agree with what happened, and be the only one.
  mutating func tell(_ settlement: Settlement) throws {
    let kind = NaiveCommand.Kind(settlement.outcome)
    let number = settlement.number
    if let expected = calledOff.removeValue(forKey: number) {
      callers[number] = nil
      try #require(kind == expected)
      return
    }
    let index = try #require(commands.lastIndex { $0.number == number }, "nobody asked for \(settlement)")
    if commands[index].isToldLate, commands[index].phase == .settling {
      guard case .indeterminate(.storeFailed) = kind else {
        Issue.record("told in place of the store: \(kind)")
        return
      }
    } else {
      let expected = owed.removeValue(forKey: number)
      try #require(expected == kind, "\(commands[index])")
    }
    if let id = settlement.durableID {
      try #require(disk.row(id.description)?.outcome != nil, "told before it was committed")
    }
    try #require(number.rawValue < 0 || callers[number] ?? 0 > 0, "told twice")
    callers[number] = nil
    if commands[index].isAskedAgain, case .notSent = kind { return }
    try hear(index, kind)
  }

  /// Somebody hears what became of a command.
  mutating func hear(_ index: Int, _ kind: NaiveCommand.Kind) throws {
    try #require(commands[index].agrees(with: kind), "told \(kind) of \(commands[index])")
    try #require(!commands[index].contradicts(kind), "told \(kind) of \(commands[index])")
    commands[index].told.append(kind)
  }

  // MARK: After each step

  mutating func settleUp() throws {
    if let wanted = journal.takeTimer() { timer = wanted }
    for report in journal.takeReports() {
      let index = try #require(commands.firstIndex { $0.id == report.id })
      let row = try #require(disk.row(report.id.description)?.outcome, "reported before it was committed")
      try #require(try JournalCoding.decode(row) == report.outcome)
      try hear(index, NaiveCommand.Kind(report.outcome))
      if chance(2) { journal.delivered(report.id) }
    }
    try #require(owed == [:] && calledOff == [:], "not told")
    let live = order.live
    try #require(journal.entries.map(\.number) == live.map { commands[$0].number })
    for (entry, index) in zip(journal.entries, live) {
      try #require(isSame(entry.state, commands[index].phase), "\(entry.state): \(commands[index])")
      try #require(callers[entry.number] != nil || entry.isDurable, "nobody waits for \(entry)")
    }
    let waiting = callers.filter { $0.value > 0 }.keys
    try #require(
      waiting.allSatisfy { number in live.contains { commands[$0].number == number } }, "forgotten")
    // A timer is set whenever time alone changes something.
    if let first = journal.entries.compactMap(\.nextInstant).min() {
      let armed = try #require(timer)
      try #require(armed <= max(first, now.monotonic))
    }
  }

  private func isSame(_ state: JournalEntry.State, _ phase: NaiveCommand.Phase) -> Bool {
    switch (state, phase) {
    case (.recording, .recording), (.queued, .queued), (.inDoubt, .inDoubt), (.unresolved, .unresolved),
      (.settling, .settling):
      true
    case (.offered(let one), .out(let other)): one == other
    case (.probing(let link), .probing): link == generation
    default: false
    }
  }
}
