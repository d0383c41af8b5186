import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B24: the thousandth reconnection starts like the first, and nothing grows on the way.
@Suite struct ReconnectCycleTests {
  /// What a session and its world hold at the same point of each cycle.
  struct Holdings: Equatable {
    var belongings: Scene.Belongings
    var timers: Int
    var jobs: Int
    var waitingTasks: Int
    var links: Int
    var dials: Int
    var hasQueued: Bool

    init(_ scene: Scene) {
      belongings = scene.belongings
      timers = scene.executor.timerCount
      jobs = scene.executor.pendingJobs
      waitingTasks = scene.executor.waitingTasks.count
      links = scene.radio.existingLinks().count
      dials = scene.radio.pendingDials
      hasQueued = scene.session.assumeIsolated { $0.operations.hasQueued }
    }
  }

  @Test("B24: a thousand cycles", arguments: [1, 2] as [UInt64])
  func aThousandReconnectionsLeaveNothingBehind(_ seed: UInt64) throws {
    let peripheral = VirtualPeripheral.twoValues()
    var air = VirtualRadio.Configuration()
    air.latency = .milliseconds(15)
    air.connectLatency = .milliseconds(40)
    var generator = SeededGenerator(seed: seed)
    let reasons = [0x05, 0x06, 0x08, 0x13, 0x14, 0x15, 0x16, 0x22, 0x28, 0x3B, 0x3D, 0x3E].map(
      HCIErrorCode.init(rawValue:))
    try Scene.play(peripheral, air: air) { scene in
      let values = Locked(0)
      let consumer = scene.spawn("consumer") { session in
        for try await _ in session.notifications(from: Scene.second) { values.withLock { $0 += 1 } }
      }
      try scene.connect()
      var reference: Holdings?
      var told = 0
      for cycle in 1...1000 {
        // Up to 3 s of traffic, some of it under way when the link is lost.
        let traffic = [
          scene.spawn("read") { session in _ = try await session.read(Scene.first) },
          scene.spawn("write") { session in
            try await session.write([1], to: Scene.first, idempotency: .nonIdempotent)
          },
          scene.spawn("command") { session in
            try await session.writeWithoutResponse([2], to: Scene.first, idempotency: .idempotent)
          },
        ]
        peripheral.update([UInt8(truncatingIfNeeded: cycle)], of: Scene.second)
        scene.executor.advance(by: generator.next(in: .zero ... .seconds(3)))
        switch generator.next(below: 4) {
        case 0:
          try scene.drive("disconnect") { await $0.disconnect() }
          _ = scene.spawn("connect") { try await $0.connect() }
        case 1: peripheral.terminate(generator.next(of: reasons) ?? .connectionTimeout)
        default: scene.radio.lose(scene.device, generator.next(of: reasons) ?? .connectionTimeout)
        }
        let next = Generation(rawValue: UInt64(cycle) + 1)
        #expect(
          scene.run {
            guard case .ready(let readiness) = scene.session.snapshot().state else { return false }
            return readiness.generation == next && traffic.allSatisfy { $0.hasEnded }
          })
        told += traffic.count(where: \.hasEnded)
        // Long enough for the link to count as stable, and for the timer of the deadlines, which is left to go off.
        scene.executor.advance(by: .seconds(31))
        let holdings = Holdings(scene)
        if cycle == 10 { reference = holdings }
        if let reference { #expect(holdings == reference, "cycle \(cycle)") }
        if cycle.isMultiple(of: 100) { #expect(scene.recorder.violation == nil) }
      }
      #expect(scene.recorder.readiness.count == 1001)
      #expect(scene.recorder.disconnections.count == 1000)
      #expect(peripheral.counters.links == 1001)
      #expect(told == 3000)
      #expect(peripheral.counters.violations.isEmpty)
      #expect(peripheral.counters.subscriptions.count == 1001)
      #expect(values.withLock { $0 } > 0)
      consumer.cancel()
    }
  }
}
