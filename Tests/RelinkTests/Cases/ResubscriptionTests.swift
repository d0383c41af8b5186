import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B14: however often the link came back, one value is delivered once to each consumer.
@Suite struct ResubscriptionTests {
  let peripheral = VirtualPeripheral.twoValues()

  private func consume(_ scene: Scene, _ values: Locked<[ValueUpdate]>) -> SpawnedTask<Void> {
    scene.spawn("consumer") { session in
      for try await update in session.notifications(from: Scene.first) {
        values.withLock { $0.append(update) }
      }
    }
  }

  @Test("B14: five losses, one value", arguments: [1, 2, 5], [UInt8(0x08), 0x13, 0x3D, 0x16])
  func oneValueIsDeliveredOncePerConsumer(_ count: Int, _ code: UInt8) throws {
    try Scene.play(peripheral) { scene in
      let received = (0..<count).map { _ in Locked<[ValueUpdate]>([]) }
      let consumers = received.map { consume(scene, $0) }
      try scene.connect()
      for _ in 0..<5 {
        scene.radio.lose(scene.device, HCIErrorCode(rawValue: code))
        #expect(scene.run { scene.session.snapshot().isReady })
        // Long enough to be stable, so that the next loss costs no delay.
        scene.executor.advance(by: .seconds(11))
      }
      #expect(peripheral.update([1], of: Scene.first) == 1)
      scene.executor.run()
      for values in received {
        let updates = values.withLock { $0 }
        #expect(updates.map(\.value) == [[1]])
        #expect(updates.map(\.generation) == [Generation(rawValue: 6)])
        #expect(updates.first?.gap == Gap(isAfterLoss: true, dropped: 0))
      }
      #expect(peripheral.counters.links == 6)
      for link in 1...6 {
        #expect(peripheral.counters.subscriptions(onLink: link).map(\.bits) == [1])
      }
      #expect(peripheral.counters.notifications == 1)
      for consumer in consumers { consumer.cancel() }
      scene.executor.run()
      #expect(peripheral.counters.subscriptions.last?.bits == 0)
      #expect(peripheral.counters.subscriptions.count == 7)
    }
  }

  @Test("B14: consumers that come and go between the links")
  func eachLinkIsArmedOnceForWhoeverIsThere() throws {
    try Scene.play(peripheral) { scene in
      let stays = Locked<[ValueUpdate]>([])
      let staying = consume(scene, stays)
      try scene.connect()
      for round in 1...5 {
        let guest = Locked<[ValueUpdate]>([])
        let visitor = consume(scene, guest)
        scene.executor.run()
        peripheral.update([UInt8(round)], of: Scene.first)
        scene.executor.run()
        #expect(guest.withLock { $0.map(\.value) } == [[UInt8(round)]])
        visitor.cancel()
        if round.isMultiple(of: 2) { scene.executor.run() }
        scene.radio.lose(scene.device, .remoteUserTerminatedConnection)
        #expect(scene.run { scene.session.snapshot().isReady })
        scene.executor.advance(by: .seconds(11))
      }
      #expect(stays.withLock { $0.map(\.value) } == [[1], [2], [3], [4], [5]])
      #expect(peripheral.counters.subscriptions.map(\.bits) == [1, 1, 1, 1, 1, 1])
      staying.cancel()
    }
  }
}
