import Relink
import RelinkTesting
import Testing

/// Whole sessions over a platform without PDUs: the seam has no shape of an ATT socket in it.
@Suite struct SessionOverManagedRadioTests {
  let executor = ManualExecutor()

  private func world(
    _ configuration: ManagedConfiguration = ManagedConfiguration()
  ) throws -> (VirtualPeripheral, ManagedRadio, DeviceSession, EventRecorder) {
    let peripheral = VirtualPeripheral.lock()
    let radio = ManagedRadio(on: executor, configuration: configuration)
    let device = try #require(DeviceID("7E8B0C9D"))
    radio.add(peripheral, as: device)
    let session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(seed: 1))
    let recorder = EventRecorder()
    let events = session.events(buffering: .newest(100_000))
    executor.spawn("events") { await recorder.record(from: events) }
    return (peripheral, radio, session, recorder)
  }

  private let command = Characteristic(.lockCommand)
  private let movements = Characteristic(.lockMovements)

  @Test func aSessionReadsWritesAndHears() throws {
    let (peripheral, radio, session, recorder) = try world()
    let values = session.notifications(from: movements)
    let heard = executor.spawn("values") {
      for try await update in values { return update.value }
      return []
    }
    try executor.drive { try await session.connect() }
    try executor.drive { try await session.write([7], to: command, idempotency: .nonIdempotent) }
    #expect(try executor.complete(heard).get() == [1, 0, 0, 0])
    #expect(try executor.drive { try await session.read(movements) } == [1, 0, 0, 0])
    #expect(peripheral.counters.applied(at: 0x10) == 1)
    #expect(recorder.readiness.map(\.mtu) == [185])
    try executor.drive { await session.close() }
    executor.runUntilIdle()
    #expect(recorder.violationOfComplete == nil)
    #expect(recorder.finishedStreams == 1)
    #expect(radio.existingLinks().isEmpty)
    #expect(executor.timerCount == 0)
    #expect(executor.problems == [])
  }

  @Test func aLinkThatNobodyDialledIsUsed() throws {
    let (peripheral, radio, session, recorder) = try world()
    radio.setReachable(false, session.device)
    let read = executor.spawn { try await session.read(movements) }
    executor.advance(by: .seconds(5))
    radio.restoreLink(to: session.device)
    #expect(try executor.complete(read).get() == [0, 0, 0, 0])
    #expect(peripheral.counters.links == 1)
    #expect(recorder.violation == nil)
  }

  @Test func aWriteThatDiedWithItsLinkIsInDoubtAndNotRepeated() throws {
    let (peripheral, radio, session, recorder) = try world()
    try executor.drive { try await session.connect() }
    peripheral.react(to: .write(command), with: .applyAndSayNothing, times: 1)
    let unsafe = executor.spawn { try await session.write([1], to: command, idempotency: .nonIdempotent) }
    executor.run(until: { peripheral.counters.applied(at: 0x10) == 1 }, within: .seconds(5))
    radio.loseLink(to: session.device)
    executor.runUntilIdle(within: .seconds(60))
    #expect((unsafe.error as? RelinkError)?.code == .indeterminate)
    #expect(peripheral.counters.applied(at: 0x10) == 1)
    peripheral.react(to: .write(command), with: .drop(), times: 1)
    try executor.drive { try await session.write([2], to: command, idempotency: .idempotent) }
    #expect(peripheral.counters.applied(at: 0x10) == 2)
    #expect(recorder.readiness.count == 3)
    #expect(recorder.violation == nil)
  }

  @Test(arguments: 0..<150 as Range<UInt64>)
  func everyCallerHasOneOutcomeThatAgreesWithTheDevice(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let (peripheral, radio, session, recorder) = try world(
      ManagedConfiguration(
        maximumOutstanding: Int.random(in: 1...4, using: &generator),
        restoresSubscriptions: .random(using: &generator),
        commandBuffer: Int.random(in: 1...3, using: &generator)))
    var callers: [(tag: UInt64, idempotency: Idempotency, task: SpawnedTask<Void>)] = []
    for tag in 1...UInt64(25) {
      let value = (0..<8).map { UInt8(truncatingIfNeeded: tag >> ($0 * 8)) }
      let idempotency: Idempotency = .random(using: &generator) ? .idempotent : .nonIdempotent
      let task = executor.spawn("write \(tag)") {
        try await session.write(value, to: command, idempotency: idempotency)
      }
      callers.append((tag, idempotency, task))
      executor.spawn("read \(tag)") { _ = try await session.read(movements) }
      fault(Int.random(in: 0..<12, using: &generator), peripheral, radio, session)
      executor.advance(by: .milliseconds(Int.random(in: 0..<400, using: &generator)))
    }
    peripheral.reactProperly()
    radio.setAdapter(.on)
    radio.setReachable(true, session.device)
    let report = executor.runUntilIdle(within: .seconds(300))
    #expect(report.waitingTasks == ["events"], "seed \(seed): \(report)")
    #expect(recorder.violation == nil, "seed \(seed)")
    let applied = peripheral.counters.appliedByTag
    for caller in callers {
      let count = applied[caller.tag, default: 0]
      let comment: Comment =
        "seed \(seed), write \(caller.tag) applied \(count) times: \(String(describing: caller.task.error))"
      if caller.idempotency == .nonIdempotent { #expect(count <= 1, comment) }
      switch (caller.task.error as? RelinkError)?.outcome {
      case nil: #expect(caller.task.value != nil && count >= 1, comment)
      case .notSent: #expect(count == 0, comment)
      case .rejected, .indeterminate, .succeeded:
        #expect(count <= 1 || caller.idempotency == .idempotent, comment)
      }
    }
    try executor.drive { await session.close() }
    executor.runUntilIdle()
    #expect(recorder.violationOfComplete == nil, "seed \(seed)")
    #expect(executor.timerCount == 0, "seed \(seed)")
    #expect(executor.problems == [], "seed \(seed)")
  }

  private func fault(
    _ number: Int, _ peripheral: VirtualPeripheral, _ radio: ManagedRadio, _ session: DeviceSession
  ) {
    switch number {
    case 0: peripheral.react(to: .write(command), with: .applyAndDrop(), times: 1)
    case 1: peripheral.react(to: .write(command), with: .drop(.connectionTimeout), times: 1)
    case 2: peripheral.react(to: .write(command), with: .applyAndFail(.unlikelyError), times: 1)
    case 3: peripheral.react(to: .write(command), with: .answerTwice, times: 1)
    case 4: peripheral.react(to: .anything, with: .answerLate(.seconds(1)), times: 1)
    case 5: radio.loseLink(to: session.device)
    case 6: radio.setAdapter(.off)
    case 7: radio.setAdapter(.on)
    case 8: radio.failNextDials([.platform(.failedToEstablish, "it failed")], to: session.device)
    case 9: radio.restoreLink(to: session.device)
    case 10: radio.setSilent(true, session.device)
    default: break
    }
  }
}
