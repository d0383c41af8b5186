import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// What is told of a request that could be stopped, or that outlived what it belonged to.
@Suite struct CalledOffTests {
  private let executor = ManualExecutor()
  private let device: DeviceID
  private let radio: VirtualRadio
  private let lock = VirtualPeripheral.lock()
  private let command = Characteristic(.lockCommand)

  init() throws {
    device = try #require(DeviceID("C0:DE:00:00:00:01/random"))
    var air = VirtualRadio.Configuration()
    air.latency = .milliseconds(10)
    radio = VirtualRadio(on: executor, configuration: air)
    radio.add(lock, as: device)
    lock.mtuLimit = 23
  }

  private func session(setup: Configuration.Setup? = nil) throws -> DeviceSession {
    let session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(setup: setup, seed: 1))
    try executor.drive { try await session.connect() }
    return session
  }

  private func longWrite(on session: DeviceSession, within: Deadline = .default) -> SpawnedTask<Void> {
    executor.spawn("long write") { [command] in
      try await session.write(
        [UInt8](repeating: 7, count: 100), to: command, idempotency: .nonIdempotent,
        options: WriteOptions(within: within, allowsLong: true))
    }
  }

  private func outcome(of task: SpawnedTask<Void>) -> Outcome<[UInt8]>? {
    (task.error as? RelinkError)?.outcome
  }

  @Test("A long write that is cancelled while it is prepared was not sent")
  func cancelledLongWrite() throws {
    let session = try session()
    let task = longWrite(on: session)
    executor.advance(by: .milliseconds(50))
    #expect(lock.preparedParts > 0)
    task.cancel()
    executor.advance(by: .seconds(1))
    #expect(outcome(of: task) == .notSent(.cancelled))
    #expect(lock.preparedParts == 0)
    #expect(lock.counters.applied.isEmpty)
  }

  @Test("A long write whose deadline passes while it is prepared was not sent")
  func expiredLongWrite() throws {
    let session = try session()
    let task = longWrite(on: session, within: .milliseconds(50))
    executor.advance(by: .seconds(1))
    #expect(outcome(of: task) == .notSent(.deadline))
    #expect(lock.counters.applied.isEmpty)
  }

  @Test("A long write that is prepared when the app disconnects was not sent")
  func disconnectedLongWrite() throws {
    let session = try session()
    let task = longWrite(on: session)
    executor.advance(by: .milliseconds(50))
    try executor.drive { await session.disconnect() }
    executor.advance(by: .seconds(5))
    #expect(outcome(of: task) == .notSent(.disconnected))
    #expect(lock.counters.applied.isEmpty)
  }

  @Test("A value that fits into one PDU is refused with the proof of a plain write, whatever it allowed")
  func proofOfAShortWrite() throws {
    let session = try session()
    lock.react(to: .write(command), with: .refuse(.writeNotPermitted), times: 1)
    let task = executor.spawn { [command] in
      try await session.write(
        [1], to: command, idempotency: .nonIdempotent, options: WriteOptions(allowsLong: true))
    }
    executor.advance(by: .seconds(1))
    #expect(
      outcome(of: task) == .rejected(Rejection(code: .writeNotPermitted, provesNotApplied: true)))
  }

  @Test("A link's scope that is kept beyond the setup is served in its turn")
  func keptScope() throws {
    let kept = Collected<LinkScope>()
    let session = try session(setup: { scope in
      kept.add(scope)
      return .unknown
    })
    let movements = Characteristic(.lockMovements)
    let first = executor.spawn("operation") { try await session.read(movements) }
    let second = executor.spawn("scope") { try await kept.all.last?.read(movements) }
    let third = executor.spawn("scope again") { try await kept.all.last?.read(movements) }
    executor.advance(by: .seconds(1))
    #expect(first.value == [0, 0, 0, 0])
    #expect(second.value == [0, 0, 0, 0])
    #expect(third.value == [0, 0, 0, 0])
    radio.lose(device, .connectionTimeout)
    executor.advance(by: .seconds(5))
    let late = executor.spawn("late") { [stale = kept.all.first] in try await stale?.read(movements) }
    executor.advance(by: .seconds(1))
    #expect((late.error as? RelinkError)?.code == .linkLost)
  }
}
