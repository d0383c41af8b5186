import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Lanes, priorities and superseding, as the device sees them.
@Suite struct OperationOrderTests {
  let peripheral = VirtualPeripheral.twoValues()

  /// Makes calls, each a value and where and how it goes, while the bearer is taken; returns the values as they were
  /// applied behind it.
  private func order(
    _ calls: [(value: UInt8, target: Characteristic, options: WriteOptions)],
    then script: (Scene, [SpawnedTask<Void>]) throws -> Void = { _, _ in }
  ) throws -> [UInt8] {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .read(Scene.first), with: .answerLate(.seconds(1)), times: 1)
      _ = scene.spawn("busy") { try await $0.read(Scene.first) }
      scene.executor.run()
      let tasks = calls.map { call in
        scene.spawn("write \(call.value)") {
          try await $0.write([call.value], to: call.target, idempotency: .idempotent, options: call.options)
        }
      }
      scene.executor.run()
      try script(scene, tasks)
      scene.executor.advance(by: .seconds(20))
      #expect(tasks.allSatisfy { $0.hasEnded })
    }
    return peripheral.counters.applied.compactMap(\.value.first)
  }

  @Test("higher priorities go first, and calls of one priority in their order")
  func higherPrioritiesGoFirst() throws {
    let applied = try order([
      (1, Scene.first, WriteOptions(priority: .low)),
      (2, Scene.second, WriteOptions()),
      (3, Scene.second, WriteOptions()),
    ])
    #expect(applied == [2, 3, 1])
  }

  @Test("an operation lends its priority to those it waits for, and overtakes none of them")
  func anOperationLendsItsPriority() throws {
    let applied = try order([
      (1, Scene.second, WriteOptions()),
      (2, Scene.first, WriteOptions(priority: .low)),
      (3, Scene.first, WriteOptions(priority: .high)),
    ])
    #expect(applied == [2, 3, 1])
  }

  @Test("a lane keeps the order across attributes, also behind a loss")
  func aLaneKeepsTheOrderAcrossAttributes() throws {
    peripheral.react(to: .write(Scene.first), with: .drop(), times: 1)
    let applied = try order([
      (1, Scene.first, WriteOptions(lane: "bolt")),
      (2, Scene.second, WriteOptions(lane: "bolt", priority: .high)),
      (3, Scene.second, WriteOptions(priority: .high)),
    ])
    #expect(applied == [1, 2, 3])
  }

  @Test("without a lane another attribute goes first by its priority")
  func withoutALaneAnotherAttributeGoesFirst() throws {
    let applied = try order([
      (1, Scene.first, WriteOptions()),
      (2, Scene.second, WriteOptions(priority: .high)),
    ])
    #expect(applied == [2, 1])
  }

  @Test("a younger write makes the older ones with its key superfluous, if they were never offered")
  func aYoungerWriteSupersedesWhatWasNeverOffered() throws {
    let key = WriteOptions(supersedes: "setpoint")
    let applied = try order(
      [
        (1, Scene.first, key), (2, Scene.second, key), (3, Scene.second, WriteOptions()),
        (4, Scene.first, key),
      ]
    ) { _, tasks in
      for index in [0, 1] {
        guard case .superseded = tasks[index].relinkError?.notSentReason else {
          Issue.record("\(String(describing: tasks[index].result))")
          continue
        }
      }
      #expect(!tasks[2].hasEnded)
      #expect(!tasks[3].hasEnded)
    }
    #expect(applied == [3, 4])
  }

  @Test(
    "what is in doubt is not offered once more when a younger write supersedes it", arguments: [true, false])
  func whatIsInDoubtIsSupersededToo(_ isCalledBeforeTheLoss: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      @Sendable func write(_ session: DeviceSession, _ value: UInt8) async throws {
        try await session.write(
          [value], to: Scene.first, idempotency: .idempotent, options: WriteOptions(supersedes: "setpoint"))
      }
      let older = scene.spawn("older") { try await write($0, 1) }
      scene.executor.run()
      func young() -> SpawnedTask<Void> { scene.spawn("younger") { try await write($0, 2) } }
      var younger: SpawnedTask<Void>?
      if isCalledBeforeTheLoss { younger = young() }
      scene.executor.run()
      #expect(!older.hasEnded)
      scene.radio.setAdvertising(false, of: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      if !isCalledBeforeTheLoss { younger = young() }
      scene.executor.run()
      guard case .superseded = older.relinkError?.doubt?.cause else {
        Issue.record("\(String(describing: older.result))")
        return
      }
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(10))
      #expect(younger?.hasEnded == true)
      #expect(younger?.error == nil)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[2]])
  }

  @Test("values that are written together keep their order with each of their attributes")
  func reliableWritesKeepTheirOrderOnEachAttribute() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.second), with: .answerLate(.seconds(1)), times: 1)
      let tasks = [
        scene.spawn("1") { try await $0.write([1], to: Scene.second, idempotency: .idempotent) },
        scene.spawn("2") {
          try await $0.writeReliably(
            [ReliableWrite(Scene.first, [2]), ReliableWrite(Scene.second, [3])], idempotency: .nonIdempotent)
        },
        scene.spawn("3") {
          try await $0.writeWithoutResponse([4], to: Scene.first, idempotency: .idempotent)
        },
      ]
      scene.executor.advance(by: .seconds(5))
      #expect(tasks.allSatisfy { $0.hasEnded && $0.error == nil })
    }
    #expect(peripheral.counters.applied.map(\.value) == [[1], [2], [3], [4]])
    #expect(peripheral.counters.executions == 1)
  }

  @Test(
    "a reliable write that is lost before it is executed causes no doubt, and is sent again whatever its tag")
  func aReliableWriteLostBeforeExecuteCausesNoDoubt() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .handle(0x0020, opcode: .prepareWriteRequest), with: .drop(), times: 1)
      let caller = scene.spawn("reliable") {
        try await $0.writeReliably(
          [ReliableWrite(Scene.first, [2]), ReliableWrite(Scene.second, [3])], idempotency: .nonIdempotent)
      }
      scene.executor.advance(by: .seconds(10))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
      #expect(scene.recorder.disconnections.map(\.inDoubt) == [0])
    }
    #expect(peripheral.counters.applied.map(\.value) == [[2], [3]])
    #expect(peripheral.counters.executions == 1)
  }
}
