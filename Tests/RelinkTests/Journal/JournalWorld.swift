import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A device and a journal store on one executor, and sessions that come and go over them.
final class JournalWorld: Sendable {
  let executor = ManualExecutor()
  let radio: VirtualRadio
  let store: VirtualJournalStore
  let device: DeviceID
  let peripheral = VirtualPeripheral.twoValues()

  private init() throws {
    radio = VirtualRadio(on: executor)
    store = VirtualJournalStore(on: executor)
    device = try deviceID(1)
    radio.add(peripheral, as: device)
  }

  /// Plays a case, and checks what must hold at the end of each: nobody waits, and nothing is left.
  static func play(
    at place: SourceLocation = #_sourceLocation, _ script: (JournalWorld) throws -> Void
  ) throws {
    let world = try JournalWorld()
    try script(world)
    let report = world.executor.runUntilIdle(within: .seconds(3600))
    #expect(report.end == .nothingLeft, "\(report)", sourceLocation: place)
    #expect(report.waitingTasks.isEmpty, sourceLocation: place)
    #expect(world.executor.problems.isEmpty, sourceLocation: place)
    #expect(world.radio.existingLinks().isEmpty, sourceLocation: place)
    #expect(world.radio.pendingDials == 0, sourceLocation: place)
    #expect(world.store.waitingCalls == 0, sourceLocation: place)
  }

  /// One life of the process: a session that is let go of behind the script, and not closed.
  ///
  /// Its tasks must have ended by then, and nobody else may hold it.
  func life<Value>(
    over other: VirtualRadio? = nil, at place: SourceLocation = #_sourceLocation,
    _ change: (inout Configuration) -> Void = { _ in }, _ script: (DeviceSession) throws -> Value
  ) throws -> Value {
    weak var observed: DeviceSession?
    let value: Value
    do {
      let session = try open(over: other, change)
      observed = session
      value = try script(session)
    }
    executor.run()
    #expect(observed == nil, "somebody still holds the session", sourceLocation: place)
    return value
  }

  /// A session over the store.
  func open(over other: VirtualRadio? = nil, _ change: (inout Configuration) -> Void = { _ in }) throws
    -> DeviceSession
  {
    var configuration = JournalCall.configuration
    configuration.store = store
    change(&configuration)
    return try DeviceSession(with: device, over: other ?? radio, configuration: configuration)
  }

  /// Submits a durable write of [1], or of another value, to the first value, and lets its handle go.
  func submit(
    to session: DeviceSession, _ value: UInt8 = 1, _ tag: Idempotency = .nonIdempotent,
    id: OperationID? = nil,
    options: WriteOptions = WriteOptions(within: .seconds(600))
  ) throws {
    var options = options
    options.durability = .durable
    let request = WriteRequest([value], to: Scene.first, idempotency: tag, id: id, options: options)
    try executor.drive("submit") { _ = try await session.submit(request) }
    executor.run()
  }

  /// Takes the outcomes of earlier processes as they come.
  func collect(from session: DeviceSession) -> Collected<RecoveredOperation> {
    let stream = session.recoveredOperations()
    let collected = Collected<RecoveredOperation>()
    collected.runs(
      executor.spawn("recovered operations") {
        for await operation in stream { collected.add(operation) }
        collected.end()
      })
    return collected
  }

  /// The committed rows of the device.
  var rows: [JournalRow] { store.rows(of: device) }
}
