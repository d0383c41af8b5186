internal import Relink
internal import RelinkTesting

// What must hold in the end.
extension Simulation {
  /// How long the session may take to be usable once nothing goes wrong any more.
  ///
  /// One capped backoff, one dial and one setup; before that what was lost earlier may still have to be noticed: a request
  /// whose answer vanished (the ATT timeout, 30 s), a dial that hangs (10 s), a link that is gone (the supervision timeout,
  /// 6 s at most) or lingers (2 s). A process that is down comes up within 3 s. The store is asked again within 30 s.
  private static let usableWithin =
    longestBackoff + .seconds(30) + .seconds(10) + .seconds(6) + .seconds(2) + .seconds(3) + .seconds(5)

  /// After the world has healed the session must become ready, serve, and leave nobody waiting.
  func checkRecovery() {
    executor.run(until: { [self] in current != nil }, within: .seconds(4))
    guard let life = current else { return note("no process came up after the crash") }
    let session = life.session
    let hasStore = scenario.hasStore
    let last = executor.spawn("last") { [self] in
      do {
        try await session.connect(within: .after(Self.usableWithin))
      } catch let error as RelinkError where error.code == .adapterUnavailable {
        // Said at once while the adapter is off, as promised; the read waits for it.
      }
      _ = try await session.read(Scenario.setting, within: .after(Self.usableWithin))
      // What waits for the app's word keeps others from being offered.
      await resolve(in: life)
      guard hasStore else { return }
      try await session.write(
        [1], to: Scenario.last, idempotency: .nonIdempotent,
        options: WriteOptions(within: .after(Self.usableWithin), durability: .durable))
    }
    executor.run(until: { last.hasEnded }, within: Self.usableWithin)
    if !last.hasEnded || last.error != nil {
      let why = last.error.map { "\($0)" } ?? "no answer"
      note("not usable after healing: \(session.snapshot().state), \(why)")
    }
    executor.spawn("resolve") { [self] in await resolve(in: life) }
    beat()
    executor.advance(by: .seconds(100))
    checkJournal(life)
  }

  /// Nothing is left in the journal, and nothing in the store without an outcome.
  private func checkJournal(_ life: Life) {
    let look = executor.spawn("look") { await life.session.journal }
    executor.run()
    for operation in look.value ?? [] { note("operation \(operation.id) is left, \(operation.state)") }
    let numbers = life.watch.numbers
    var recorded: Set<UInt64> = []
    for row in store.rows(of: device) {
      if row.outcome == nil { note("operation \(row.id) has no outcome in the store") }
      if let number = Simulation.number(of: row.id, numbers) { recorded.insert(number) }
    }
    ledger.withLock { $0.lifeEnded(life.number, recorded: recorded) }
  }

  func problems() -> [String] {
    let lived = ended.withLock { $0 } + (life.withLock { $0 }.map { [$0] } ?? [])
    var found = ledger.withLock { $0.problems }
    found += ledger.withLock { $0 }.disagreements(with: peripheral.counters)
    for life in lived {
      found += life.watch.problems
      if let violation = life.history.violationOfComplete {
        found.append("the history of life \(life.number) is not legal: \(violation)")
      }
    }
    for (call, life, recorder) in views.withLock({ $0 }) {
      let isComplete = call.cancelledAfter == nil && !life.isOver
      let violation = isComplete ? recorder.violationOfComplete : recorder.violation
      if let violation { found.append("view \(call.number) is not legal: \(violation)") }
    }
    let statistics = radio.statistics(of: device)
    if statistics.adoptions > 0 {
      found.append("\(statistics.adoptions) dials adopted an old link")
    }
    if statistics.overlappingDials > 0 { found.append("\(statistics.overlappingDials) dials overlapped") }
    if !executor.waitingTasks.isEmpty { found.append("still waiting: \(executor.waitingTasks)") }
    if executor.timerCount > 0 { found.append("\(executor.timerCount) timers are left") }
    if store.waitingCalls > 0 { found.append("\(store.waitingCalls) calls wait for the store") }
    for violation in peripheral.counters.violations {
      found.append("the peripheral saw: \(violation)")
    }
    return found + executor.problems
  }
}
