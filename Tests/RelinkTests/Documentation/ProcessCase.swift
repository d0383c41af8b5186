import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A row of the second table: at which moment the process, or the machine, ended.
enum ProcessCase: String, CaseIterable, CustomTestStringConvertible {
  case killedBeforeRecorded = "killed before the write was recorded"
  case killedWhenRecorded = "killed when it was recorded"
  case killedWhenMarked = "killed when it was marked, before it had left"
  case killedBeforeApplied = "killed before the device applied it"
  case killedAfterApplied = "killed after the device applied it"
  case killedWhenAnswered = "killed when it was answered, before that was recorded"
  case killedWhenSettled = "killed when the outcome was recorded, before it was told"
  case killedWhenTold = "killed after the outcome was told"
  case powerLostWhenRecorded = "power lost when it was recorded"
  case powerLostWhenMarked = "power lost when it was marked, before it had left"
  case powerLostAfterApplied = "power lost after the device applied it"
  case powerLostWhenSettled = "power lost when the outcome was recorded, before it was told"
  case powerLostWhenTold = "power lost after the outcome was told"

  var testDescription: String { rawValue }

  /// How far the write had come.
  enum Moment { case called, recorded, marked, received, applied, answered, settled, told }

  var moment: Moment {
    switch self {
    case .killedBeforeRecorded: .called
    case .killedWhenRecorded, .powerLostWhenRecorded: .recorded
    case .killedWhenMarked, .powerLostWhenMarked: .marked
    case .killedBeforeApplied: .received
    case .killedAfterApplied, .powerLostAfterApplied: .applied
    case .killedWhenAnswered: .answered
    case .killedWhenSettled, .powerLostWhenSettled: .settled
    case .killedWhenTold, .powerLostWhenTold: .told
    }
  }

  var losesPower: Bool { rawValue.hasPrefix("power lost") }

  /// Plays it: what the next process tells of the write by its ID, and whether it had told it unasked.
  func play(_ tag: WriteTag) throws -> (PlayedOutcome, isRecovered: Bool) {
    let world = try World(tag)
    try world.firstLife(upTo: moment)
    world.end(losingPower: losesPower)
    return try world.secondLife()
  }
}

/// A device and a store that outlive the process that uses them.
private final class World {
  private let tag: WriteTag
  private let executor = ManualExecutor()
  private let store: VirtualJournalStore
  private let peripheral = VirtualPeripheral.twoValues()
  private let device: DeviceID
  private let id: OperationID
  private var radio: VirtualRadio
  private var session: DeviceSession?

  init(_ tag: WriteTag) throws {
    self.tag = tag
    device = try deviceID(1)
    id = try #require(OperationID("message 1"))
    store = VirtualJournalStore(on: executor)
    radio = VirtualRadio(on: executor)
    try begin()
  }

  /// A process begins: it has its own radio, which knows nothing of the one before.
  private func begin() throws {
    var air = VirtualRadio.Configuration()
    air.latency = .milliseconds(10)
    radio = VirtualRadio(on: executor, configuration: air)
    radio.add(peripheral, as: device)
    session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(store: store, seed: 1))
  }

  private func write() throws -> SpawnedTask<Void> {
    let session = try #require(self.session)
    return executor.spawn("write") { [tag, id] in
      try await session.write(
        WriteTag.value, to: Scene.first, idempotency: tag.idempotency(), id: id,
        options: WriteOptions(within: .seconds(600), durability: .durable))
    }
  }

  private var row: JournalRow? { store.rows(of: device).first }

  private func run(until condition: () -> Bool) throws {
    try #require(executor.run(until: condition, within: .seconds(10)).end == .conditionMet)
  }

  // MARK: Lives

  func firstLife(upTo moment: ProcessCase.Moment) throws {
    if moment == .recorded {
      radio.setAdvertising(false, of: device)
      executor.advance(by: .seconds(1))
    } else {
      let session = try #require(self.session)
      try executor.drive("connect") { _ = try await session.connect() }
    }
    if moment == .called { store.hold() }
    if moment == .received { peripheral.react(to: .write(0x0010), with: .swallow, times: 1) }
    let task = try write()
    switch moment {
    case .called: executor.advance(by: .seconds(1))
    case .recorded: try run(until: { row != nil })
    case .marked: try run(until: { row?.mark != nil })
    case .received: try run(until: { peripheral.counters.received[.writeRequest] == 1 })
    case .applied: try run(until: { peripheral.wr(0x0010) == 1 })
    case .answered:
      try run(until: { peripheral.wr(0x0010) == 1 })
      store.hold()
      executor.advance(by: .seconds(1))
    case .settled: try run(until: { row?.outcome != nil })
    case .told:
      try executor.complete(task).get()
      executor.advance(by: .seconds(1))
      try #require(row?.isDelivered == true)
    }
    try #require(task.hasEnded == (moment == .told))
  }

  /// The process ends, or the machine; the device and the disk stay.
  func end(losingPower: Bool) {
    radio.remove(device)
    session = nil
    store.crash(losingPower: losingPower, keeping: 0, waiters: .failed)
    if losingPower { executor.bootID = "boot 2" }
  }

  func secondLife() throws -> (PlayedOutcome, isRecovered: Bool) {
    try begin()
    let session = try #require(self.session)
    let recovered = Collected<RecoveredOperation>()
    executor.spawn("recovered") { for await one in session.recoveredOperations() { recovered.add(one) } }
    if tag == .app {
      executor.spawn("app") { [peripheral] in await session.resolveAll(lookingAt: peripheral) }
    }
    executor.advance(by: .seconds(60))
    let again = try write()
    executor.advance(by: .seconds(60))
    let played = PlayedOutcome(try #require(again.outcome), applied: peripheral.wr(0x0010))
    for one in recovered.all {
      #expect(one.id == id)
      #expect(one.outcome.word == played.outcome, "the stream and the call disagree")
    }
    #expect(recovered.all.count <= 1)
    try executor.drive("close") { await session.close() }
    self.session = nil
    executor.advance(by: .seconds(700))
    #expect(executor.waitingTasks == [])
    #expect(executor.problems == [])
    return (played, isRecovered: !recovered.all.isEmpty)
  }
}
