internal import BluetoothWire
internal import Relink
internal import RelinkTesting

/// One run: real sessions over a virtual radio and a virtual store, an app's calls, faults and crashes, then a healed
/// world.
///
/// What must hold whatever the seed: each call has one outcome, and in time; the peripheral's counters agree with what
/// callers were told, over all lives of the process; no two tellings contradict each other; nothing of one link reaches
/// another; the history is legal; when the world heals the session is usable in a bounded time, every durable operation
/// is accounted for, and nobody waits.
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
    /// How many callers were told the outcome of an operation.
    public var operations: Int
    /// How often something went wrong on purpose.
    public var faults: Int
    /// How often the process was killed.
    public var crashes: Int
    /// Whether the fault of a sweep has struck.
    public var hasStruck: Bool
    /// How many faults of the radio and of the store there were.
    var strikes: (radio: Int, store: Int)
  }

  let scenario: Scenario
  let injection: Injection?
  let isTracing: Bool
  let executor = ManualExecutor()
  let radio: VirtualRadio
  let store: VirtualJournalStore
  let peripheral: VirtualPeripheral
  let device: DeviceID
  let writes: [UInt64: Scenario.Write]
  let tags: [UInt64: Idempotency]
  let ledger = Locked(Ledger())
  let life = Locked<Life?>(nil)
  let lives = Locked(0)
  let ended = Locked<[Life]>([])
  let views = Locked<[(Scenario.Call, Life, EventRecorder)]>([])
  let beats = Locked<UInt32>(0)
  let cancellations = Locked<[SpawnedTask<Void>]>([])
  let hasStruck = Locked(false)

  /// Prepares the run of a seed; nil only if the device's name were not one.
  public convenience init?(seed: UInt64, tracing: Bool = false) {
    self.init(Scenario(seed: seed), tracing: tracing)
  }

  init?(_ scenario: Scenario, injecting injection: Injection? = nil, tracing: Bool = false) {
    guard let device = DeviceID("C0:DE:00:00:00:01/random") else { return nil }
    self.scenario = scenario
    self.injection = injection
    self.device = device
    isTracing = tracing
    var air = scenario.radio
    air.traceLimit = tracing ? 100_000 : 0
    radio = VirtualRadio(on: executor, configuration: air)
    store = VirtualJournalStore(on: executor, configuration: scenario.store, faults: scenario.storeFaults)
    let every: CharacteristicProperties = [.read, .write, .writeWithoutResponse]
    let written = [
      Scenario.command, Scenario.setting, Scenario.vault, Scenario.safe, Scenario.poison, Scenario.last,
    ].map { name in
      let isProtected = scenario.security != nil && Scenario.protected.contains(name)
      return VirtualCharacteristic(name.uuid, every, value: [0], security: isProtected ? .encrypted : .none)
    }
    peripheral = VirtualPeripheral(
      services: [
        VirtualService(
          BluetoothUUID(0xFF00),
          characteristics: written + [VirtualCharacteristic(Scenario.stream.uuid, .notify)])
      ], mtuLimit: 64, hasDatabaseHash: scenario.hasDatabaseHash)
    radio.add(peripheral, as: device)
    peripheral.react(to: .write(Scenario.poison), with: .applyAndDrop())
    var writes: [UInt64: Scenario.Write] = [:]
    for call in scenario.calls {
      if case .write(let write) = call.step { writes[call.number] = write }
    }
    self.writes = writes
    tags = Simulation.tags(of: writes)
    secure()
  }

  /// Plays the run and checks it.
  public func run() -> Report {
    radio.setFaults(scenario.faults)
    begin()
    arm()
    for call in scenario.calls {
      if !call.isTogether { pass(until: call.at) }
      start(call)
    }
    pass(until: scenario.ends)
    let strikes = (radio: radio.faults.strikes, store: store.faults.strikes)
    heal()
    checkRecovery()
    executor.spawn("close") { [self] in await current?.session.close() }
    executor.runUntilIdle(within: .seconds(120))
    let problems = problems()
    let lines = ledger.withLock { $0.lines }
    let journals =
      isTracing ? ended.withLock { $0 }.flatMap { $0.watch.lines } + (current?.watch.lines ?? []) : []
    return Report(
      seed: scenario.seed, problems: problems, trace: radio.trace + journals + lines,
      links: radio.statistics(of: device).links, operations: ledger.withLock { $0.tellings },
      faults: strikes.radio + strikes.store, crashes: lives.withLock { $0 } - 1,
      hasStruck: hasStruck.withLock { $0 } || strikes.radio + strikes.store > 0, strikes: strikes)
  }

  /// The life that lasts; nil while the process is down.
  var current: Life? {
    life.withLock { life in life.flatMap { $0.isOver ? nil : $0 } }
  }

  /// Nothing goes wrong any more.
  private func heal() {
    radio.heal()
    store.heal()
    healKeys()
    executor.isWallClockRight = true
    current?.watch.disarm()
    current?.store?.disarm()
    executor.run()
  }

  /// Lets time pass; a sweep's cancellation strikes meanwhile.
  private func pass(until span: Duration) {
    let instant = MonotonicInstant.zero.advanced(by: span)
    if case .cancel(let step, let all) = injection, !hasStruck.withLock({ $0 }) {
      executor.run(
        until: { [self] in
          guard
            jobs.withLock({ count in
              count += 1
              return count == step
            })
          else { return false }
          hasStruck.withLock { $0 = true }
          let waiting = cancellations.withLock { $0 }.filter { !$0.hasEnded }
          for task in all ? waiting : Array(waiting.prefix(1)) { task.cancel() }
          return false
        }, within: executor.now.duration(to: instant))
    }
    executor.advance(to: instant)
  }

  private let jobs = Locked(0)

  func note(_ problem: String) {
    ledger.withLock { $0.problems.append(problem) }
  }

  func say(_ line: @autoclosure () -> String) {
    guard isTracing else { return }
    let line = "\(executor.now.text) \(line())"
    ledger.withLock { $0.lines.append(line) }
  }

  /// The tags as the session gets them: the same object for each call of one write.
  private static func tags(of writes: [UInt64: Scenario.Write]) -> [UInt64: Idempotency] {
    writes.reduce(into: [:]) { tags, one in
      let (number, write) = one
      switch write.tag {
      case .idempotent: tags[number] = .idempotent
      case .nonIdempotent: tags[number] = .nonIdempotent
      case .appProbe: tags[number] = .verified(by: .app)
      case .valueProbe:
        tags[number] = .verified(by: .value(of: write.attribute, is: write.value(number)))
      case .closureProbe where write.isDurable: tags[number] = .verified(by: .named("look \(number)"))
      case .closureProbe: tags[number] = .verified(by: Probe(look(for: number, write)))
      }
    }
  }

  /// A probe that looks at the attribute, and now and then cannot tell.
  static func look(for number: UInt64, _ write: Scenario.Write) -> Probe.Look {
    { scope in
      let value = try await scope.read(write.attribute)
      if number % 8 == 0 { return .unknown }
      return value == write.value(number) ? .applied : .notApplied
    }
  }
}

extension MonotonicInstant {
  /// The instant in seconds, as in the radio's trace.
  var text: String {
    let fraction = String(nanoseconds % 1_000_000_000)
    return "\(nanoseconds / 1_000_000_000)." + String(repeating: "0", count: 9 - fraction.count) + fraction
  }
}
