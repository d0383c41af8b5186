internal import Relink
internal import RelinkTesting

// The lives of the process.
extension Simulation {
  /// A process comes up: it makes its session, listens, and asks again for what it was never told.
  func begin() {
    let number = lives.withLock { lives in
      lives += 1
      return lives
    }
    let transport = ProcessTransport(radio, process: number)
    let processStore = scenario.hasStore ? ProcessStore(store) : nil
    let births = Locked<[UInt64: Generation]>([:])
    let ledger = ledger
    let isClockSteady = !scenario.calls.contains {
      if case .setClock = $0.step { true } else { false }
    }
    let watch = JournalWatch(
      JournalWatch.Facts(
        writes: writes, order: { number in ledger.withLock { $0.entries[number]?.place } },
        bornOn: { number in births.withLock { $0[number] } }, resumes: scenario.resumes,
        isClockSteady: isClockSteady, hasClaimFailed: { processStore?.hasClaimFailed ?? false },
        isStored: { [store, device] id in store.rows(of: device).contains { $0.id == id.description } }),
      isTracing: isTracing)
    guard let session = session(over: transport, processStore, watch) else {
      return note("life \(number) could not make its session")
    }
    let life = Life(
      number, transport: transport, store: processStore, watch: watch, session: session, births: births)
    self.life.withLock { $0 = life }
    say("life \(number) begins")
    executor.spawn("history \(number)") {
      await life.history.record(from: session.events(buffering: .newest(100_000)))
    }
    executor.spawn("beats \(number)") { [self] in await watchBeats(life) }
    executor.spawn("recovered \(number)") { [self] in
      for await one in session.recoveredOperations() { recovered(one, in: life) }
    }
    if number > 1 { askAgain(in: life) }
  }

  private func session(
    over transport: ProcessTransport, _ store: ProcessStore?, _ watch: JournalWatch
  ) -> DeviceSession? {
    let continuity: Continuity = scenario.resumes ? .resumed : .unknown
    let setup: Configuration.Setup = { scope in
      _ = try await scope.read(Scenario.setting)
      return continuity
    }
    var probes: [String: Probe.Look] = [:]
    for (number, write) in writes where write.isDurable && write.tag == .closureProbe {
      probes["look \(number)"] = Simulation.look(for: number, write)
    }
    let policy = ReconnectionPolicy(
      backoff: BackoffPolicy(base: .milliseconds(100), cap: Simulation.longestBackoff),
      preparationLimit: .seconds(40))
    let configuration = Configuration(
      setup: scenario.hasSetup ? setup : nil, reconnection: policy, security: security,
      journal: JournalPolicy(poisonOffers: Scenario.poisonOffers), store: store, owner: "app", audit: watch,
      probes: probes, seed: scenario.seed)
    return try? DeviceSession(with: device, over: transport, configuration: configuration)
  }

  static let longestBackoff = Duration.seconds(4)

  /// The app asks for the durable writes that it was never told the outcome of, or for two of three of them: the rest it
  /// learns from the recovered operations.
  private func askAgain(in life: Life) {
    let open = ledger.withLock { ledger in
      ledger.entries.filter { $0.value.write.isDurable && $0.value.write.hasID && $0.value.tellings.isEmpty }
        .map(\.key).sorted()
    }
    // Each from a task of its own, so that nobody can say which comes first.
    ledger.withLock { $0.beginTurn() }
    for number in open where (number + UInt64(life.number)) % 3 != 0 {
      guard let write = writes[number] else { continue }
      let call = Scenario.Call(
        number: number, at: MonotonicInstant.zero.duration(to: executor.now), step: .again(number),
        within: .seconds(20), isElsewhere: (number + UInt64(life.number)) % 3 == 1)
      submit(number, write, call, in: life)
    }
  }

  // MARK: Ends

  /// Prepares the crash of a sweep.
  func arm() {
    guard let life = current else { return }
    switch injection {
    case .crashAtTransition(let count, let losesPower):
      life.watch.atTransition(count) { [self] in
        hasStruck.withLock { $0 = true }
        crash(life, Scenario.Crash(moment: .atOnce, losesPower: losesPower, downtime: .milliseconds(200)))
      }
    case .crashAtCommit(let count, let isPresent, let losesPower):
      life.store?.atCommit(count) { [self] in
        hasStruck.withLock { $0 = true }
        crash(
          life,
          Scenario.Crash(
            moment: .atOnce, losesPower: losesPower, downtime: .milliseconds(200),
            keeping: isPresent ? .max : 0))
      }
    case .cancel, nil: break
    }
  }

  /// A crash is due: at once, or soon.
  func start(_ crash: Scenario.Crash, in life: Life) {
    switch crash.moment {
    case .atOnce: self.crash(life, crash)
    case .transition(let count): life.watch.atTransition(count) { [self] in self.crash(life, crash) }
    case .commit(let count):
      // Without a store there is no commit to wait for.
      guard let store = life.store else { return self.crash(life, crash) }
      store.atCommit(count) { [self] in self.crash(life, crash) }
    }
  }

  /// The process is killed where it stands, be it in the middle of the session's work.
  private func crash(_ life: Life, _ crash: Scenario.Crash) {
    guard !life.isOver else { return }
    life.kill()
    store.crash(losingPower: crash.losesPower, keeping: crash.keeping, waiters: .failed)
    let numbers = life.watch.numbers
    let rows = Set(store.rows(of: device).compactMap { Simulation.number(of: $0.id, numbers) })
    ledger.withLock { ledger in
      ledger.lifeEnded(life.number, recorded: rows)
      if crash.losesPower { ledger.powerLosses.append(life.number) }
    }
    say("life \(life.number) ends: \(crash.text)")
    ended.withLock { $0.append(life) }
    self.life.withLock { $0 = nil }
    if crash.losesPower {
      executor.bootID = "boot \(life.number + 1)"
      if let span = crash.clockIsWrong {
        executor.isWallClockRight = false
        timer(after: span) { [self] in executor.isWallClockRight = true }
      }
    }
    // The tasks of the dead process end; what they would say is not heard.
    executor.spawn("burial of \(life.number)") { await life.session.close() }
    timer(after: crash.downtime) { [self] in begin() }
  }

  private func timer(after span: Duration, _ body: @escaping @Sendable () -> Void) {
    let owner = Locked(0)
    executor.setTimer(TimerID(owner: owner, number: 0), at: executor.now.advanced(by: span)) {
      withExtendedLifetime(owner) { body() }
    }
  }

  /// The number of a write, by the name of its operation.
  static func number(of name: String, _ numbers: [String: UInt64]) -> UInt64? {
    numbers[name] ?? OperationID(name).flatMap(Scenario.number)
  }

  private func recovered(_ one: RecoveredOperation, in life: Life) {
    guard !life.isOver else { return }
    guard
      let number = Simulation.number(of: one.id.description, life.watch.numbers) ?? number(in: one.request)
    else { return note("a recovered operation has an unknown name: \(one.id)") }
    told(number, one.outcome.map { $0 }, in: life, by: "report")
  }

  private func number(in request: GATTRequest?) -> UInt64? {
    let value: [UInt8] =
      switch request {
      case .write(_, let value), .writeLong(_, let value), .writeWithoutResponse(_, let value): value
      case .writeReliably(let writes): writes.first?.value ?? []
      default: []
      }
    return value.count < 8 ? nil : value.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension Outcome {
  /// The same outcome with another value.
  func map<Other: Sendable>(_ transform: (Value) -> Other) -> Outcome<Other> {
    switch self {
    case .succeeded(let value): .succeeded(transform(value))
    case .rejected(let rejection): .rejected(rejection)
    case .notSent(let reason): .notSent(reason)
    case .indeterminate(let doubt): .indeterminate(doubt)
    }
  }
}
