internal import BluetoothWire
internal import Relink
internal import RelinkTesting

/// One run of one seed: a real session over a virtual radio, random operations under random faults, then a healed radio.
///
/// What must hold whatever the seed: each call has one outcome, and in time; the peripheral's counters agree with what
/// callers were told; nothing of one link reaches another; the history is legal; when the radio heals the session is
/// ready again and nobody waits.
public final class Simulation: Sendable {
  /// What a run showed.
  public struct Report: Sendable {
    /// The seed.
    public var seed: UInt64
    /// What was not as it must be, a sentence each; empty for a good run.
    public var problems: [String]
    /// Everything that happened, line by line: the same for each run of a seed.
    public var trace: [String]
    /// How many links came up.
    public var links: Int
    /// How many operations settled.
    public var operations: Int
    /// How often something went wrong on purpose.
    public var faults: Int
  }

  private let scenario: Scenario
  private let executor = ManualExecutor()
  private let radio: VirtualRadio
  private let peripheral: VirtualPeripheral
  private let session: DeviceSession
  private let device: DeviceID
  private let ledger = Locked(Ledger())
  private let history = EventRecorder()
  private let views = Locked<[(Scenario.Call, EventRecorder)]>([])
  private let beats = Locked<UInt32>(0)
  private let setups = Locked(0)

  /// Prepares the run of a seed; nil only if the device's name were not one.
  public init?(seed: UInt64, tracing: Bool = false) {
    scenario = Scenario(seed: seed)
    guard let device = DeviceID("C0:DE:00:00:00:01/random") else { return nil }
    self.device = device
    var air = scenario.radio
    air.traceLimit = tracing ? 100_000 : 0
    radio = VirtualRadio(on: executor, configuration: air)
    let every: CharacteristicProperties = [.read, .write, .writeWithoutResponse]
    peripheral = VirtualPeripheral(
      services: [
        VirtualService(
          BluetoothUUID(0xFF00),
          characteristics: [
            VirtualCharacteristic(Scenario.command.uuid, every, value: [0]),
            VirtualCharacteristic(Scenario.setting.uuid, every, value: [0]),
            VirtualCharacteristic(Scenario.stream.uuid, .notify),
          ])
      ], mtuLimit: 64, hasDatabaseHash: scenario.hasDatabaseHash)
    radio.add(peripheral, as: device)
    let setups = setups
    let setup: Configuration.Setup = { scope in
      setups.withLock { $0 += 1 }
      _ = try await scope.read(Scenario.setting)
      return .unknown
    }
    let policy = ReconnectionPolicy(
      backoff: BackoffPolicy(base: .milliseconds(100), cap: .seconds(4)), preparationLimit: .seconds(40))
    let configuration = Configuration(
      setup: scenario.hasSetup ? setup : nil, reconnection: policy, seed: seed)
    guard let session = try? DeviceSession(with: device, over: radio, configuration: configuration) else {
      return nil
    }
    self.session = session
  }

  /// Plays the run and checks it.
  public func run() -> Report {
    executor.spawn("history") { [self] in
      await history.record(from: session.events(buffering: .newest(100_000)))
    }
    executor.spawn("beats") { [self] in await watchBeats() }
    radio.setFaults(scenario.faults)
    for call in scenario.calls {
      executor.advance(to: .zero.advanced(by: call.at))
      start(call)
    }
    executor.advance(to: .zero.advanced(by: Scenario.faultPhase))
    let faults = radio.faults.strikes
    radio.heal()
    executor.run()
    checkRecovery()
    executor.spawn("close") { [self] in await session.close() }
    executor.runUntilIdle(within: .seconds(120))
    return Report(
      seed: scenario.seed, problems: problems(), trace: radio.trace + ledger.withLock { $0.lines },
      links: radio.statistics(of: device).links, operations: ledger.withLock { $0.entries.count },
      faults: faults)
  }

  // MARK: Calls

  private func start(_ call: Scenario.Call) {
    let name = "call \(call.number) \(call.step)"
    let task: SpawnedTask<Void>
    switch call.step {
    case .read(let characteristic):
      task = operation(name, call) { [self] within in
        _ = try await session.read(characteristic, within: within)
      }
    case .write(let characteristic, let idempotency, let isLong):
      let value = payload(call.number, isLong: isLong)
      ledger.withLock { $0.order[call.number] = $0.order.count }
      task = operation(name, call) { [self] within in
        try await session.write(
          value, to: characteristic, idempotency: idempotency,
          options: WriteOptions(within: within, allowsLong: isLong))
      }
    case .writeWithoutResponse(let characteristic):
      let value = payload(call.number, isLong: false)
      ledger.withLock { $0.order[call.number] = $0.order.count }
      task = operation(name, call) { [self] within in
        try await session.writeWithoutResponse(
          value, to: characteristic, idempotency: .nonIdempotent, options: WriteOptions(within: within))
      }
    case .discover:
      task = operation(name, call) { [self] within in _ = try await session.discoverServices(within: within) }
    case .connect:
      task = executor.spawn(name) { [self] in try await session.connect(within: .after(call.within)) }
    case .disconnect:
      task = executor.spawn(name) { [self] in
        await session.disconnect()
        // The app changes its mind; operations that are refused until then were told so.
        try await session.connect(within: .after(call.within))
      }
    case .subscribe:
      task = executor.spawn(name) { [self] in await takeOneValue() }
    case .listen:
      task = executor.spawn(name) { [self] in
        let recorder = EventRecorder()
        views.withLock { $0.append((call, recorder)) }
        // Some keep up, and some have room for two events.
        await recorder.record(from: session.events(buffering: .newest(call.number % 2 == 0 ? 1000 : 2)))
      }
    case .notify:
      beat()
      return
    case .changeTable:
      // As after an update of its firmware: the device starts again, and only then is another one.
      peripheral.terminate(.remoteDeviceTerminatedPowerOff)
      peripheral.insertInFront(
        VirtualService(
          BluetoothUUID(0xFE00),
          characteristics: [VirtualCharacteristic(BluetoothUUID(0xFE01), .read, value: [1])]))
      return
    case .stale:
      sayStale(call)
      return
    }
    executor.run()
    if let after = call.cancelledAfter {
      executor.setTimer(TimerID(owner: task, number: 0), at: executor.now.advanced(by: after)) {
        task.cancel()
      }
    }
  }

  private func operation(
    _ name: String, _ call: Scenario.Call, _ body: @escaping @Sendable (Deadline) async throws -> Void
  ) -> SpawnedTask<Void> {
    executor.spawn(name) { [self] in
      let outcome: Outcome<[UInt8]>
      do {
        try await body(.after(call.within))
        outcome = .succeeded([])
      } catch let error as RelinkError {
        guard let told = error.outcome else { return note("call \(call.number) has no outcome: \(error)") }
        outcome = told
      }
      settled(call, outcome)
    }
  }

  private func settled(_ call: Scenario.Call, _ outcome: Outcome<[UInt8]>) {
    let now = executor.now
    ledger.withLock { ledger in
      if ledger.entries[call.number] != nil { ledger.problems.append("call \(call.number) ended twice") }
      ledger.entries[call.number] = Ledger.Entry(call: call, outcome: outcome, endedAt: now)
      ledger.lines.append("\(now.nanoseconds) call \(call.number) \(call.step): \(outcome)")
      let limit = MonotonicInstant.zero.advanced(by: call.at).advanced(by: call.within)
      if now > limit {
        ledger.problems.append("call \(call.number) ended \(limit.duration(to: now)) too late")
      }
    }
  }

  private func payload(_ number: UInt64, isLong: Bool) -> [UInt8] {
    let tag = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    return tag + [UInt8](repeating: 0xAB, count: isLong ? 200 : 1)
  }

  /// Says something of a link that is over, or of one that never was.
  private func sayStale(_ call: Scenario.Call) {
    let past = radio.linkIDs(of: device).dropLast().last ?? LinkID(rawValue: 1 << 40)
    let loss = LinkLoss(.localHostTerminated)
    switch call.number % 4 {
    case 0: radio.deliverStale(.closed(past, loss, inDoubt: [RequestID(rawValue: 2)]), to: device)
    case 1:
      for number in 1...80 {
        let request = RequestID(rawValue: UInt64(number))
        radio.deliverStale(.answered(past, request, .success(.value([0xEE]))), to: device)
      }
    case 2: radio.deliverStale(.value(past, [0xEE, 0xEE, 0xEE, 0xEE], of: Scenario.stream), to: device)
    default: radio.deliverStale(.attemptFailed(AttemptID(rawValue: 1 << 40), loss), to: device)
    }
  }

  // MARK: Notifications

  private func beat() {
    let beat = beats.withLock { beat in
      beat += 1
      return beat
    }
    peripheral.update((0..<4).map { UInt8(truncatingIfNeeded: beat >> ($0 * 8)) }, of: Scenario.stream)
    executor.run()
  }

  private func watchBeats() async {
    var last: UInt32 = 0
    var generation: Generation?
    do {
      for try await update in session.notifications(from: Scenario.stream) {
        let beat = update.value.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        if beat <= last { note("beat \(beat) came after beat \(last)") }
        if let generation, update.generation < generation { note("beat \(beat) is of an older link") }
        if let generation, update.generation > generation, update.gap?.isAfterLoss != true {
          note("beat \(beat) has no gap although a link was lost before it")
        }
        (last, generation) = (beat, update.generation)
      }
    } catch {
      if error.code != .ended { note("the subscription failed: \(error)") }
    }
  }

  private func takeOneValue() async {
    var values = session.notifications(from: Scenario.stream).makeAsyncIterator()
    do {
      _ = try await values.next()
    } catch {
      if error.code != .ended { note("a second subscription failed: \(error)") }
    }
  }

  // MARK: Checks

  /// After the radio is healed the session must become ready, serve, and leave nobody waiting.
  private func checkRecovery() {
    let last = executor.spawn("last") { [self] in
      do {
        try await session.connect(within: .seconds(60))
      } catch let error as RelinkError where error.code == .adapterUnavailable {
        // Said at once while the adapter is off, as promised; the read waits for it.
      }
      _ = try await session.read(Scenario.setting, within: .seconds(60))
    }
    executor.advance(by: .seconds(120))
    if !last.hasEnded || last.error != nil {
      note(
        "not usable after healing: \(session.snapshot().state), \(last.error.map { "\($0)" } ?? "no answer")")
    }
    beat()
    executor.advance(by: .seconds(1))
  }

  private func note(_ problem: String) {
    ledger.withLock { $0.problems.append(problem) }
  }

  private func problems() -> [String] {
    var found = ledger.withLock { $0.problems }
    found += ledger.withLock { $0 }.disagreements(with: peripheral.counters)
    if let violation = history.violationOfComplete { found.append("the history is not legal: \(violation)") }
    for (call, recorder) in views.withLock({ $0 }) {
      let violation = call.cancelledAfter == nil ? recorder.violationOfComplete : recorder.violation
      if let violation { found.append("view \(call.number) is not legal: \(violation)") }
    }
    let statistics = radio.statistics(of: device)
    if statistics.adoptions > 0 { found.append("\(statistics.adoptions) dials adopted an old link") }
    if statistics.overlappingDials > 0 { found.append("\(statistics.overlappingDials) dials overlapped") }
    if !executor.waitingTasks.isEmpty { found.append("still waiting: \(executor.waitingTasks)") }
    if executor.timerCount > 0 { found.append("\(executor.timerCount) timers are left") }
    for violation in peripheral.counters.violations { found.append("the peripheral saw: \(violation)") }
    return found + executor.problems
  }
}
