import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B18: what has succeeded is over; a reconnection offers nothing of it again.
@Suite struct SettledWritesTests {
  enum Way: CaseIterable {
    case plain, long, command, reliable, verified, appVerified, named, submitted, durable
  }

  enum Break: CaseIterable {
    case lost, terminated, adapterToggled, disconnectedAndConnected, lostRightBehindTheAnswer
  }

  @Test("B18: two writes, a reconnection", arguments: Way.allCases, Break.allCases)
  func acknowledgedWritesStayWritten(_ way: Way, _ end: Break) throws {
    let peripheral = VirtualPeripheral.twoValues()
    peripheral.mtuLimit = 23
    for tag in [Idempotency.idempotent, .nonIdempotent] {
      let before = (peripheral.wr(0x0010), peripheral.wr(0x0020))
      try Scene.play(peripheral, isDurable: way == .durable) { scene in
        try scene.connect()
        if end == .lostRightBehindTheAnswer {
          peripheral.react(to: .write(Scene.second), with: .answerAndDrop(), times: 1)
        }
        for name in [Scene.first, Scene.second] {
          try scene.drive("write") { session in
            switch way {
            case .plain: try await session.write([1], to: name, idempotency: tag)
            case .long:
              try await session.write(
                [UInt8](repeating: 1, count: 50), to: name, idempotency: tag,
                options: WriteOptions(allowsLong: true))
            case .command: try await session.writeWithoutResponse([1], to: name, idempotency: tag)
            case .reliable: try await session.writeReliably([ReliableWrite(name, [1])], idempotency: tag)
            case .verified:
              try await session.write([1], to: name, idempotency: .verified(by: .value(of: name, is: [1])))
            case .appVerified: try await session.write([1], to: name, idempotency: .verified(by: .app))
            case .named:
              try await session.write(
                [1], to: name, idempotency: tag, id: OperationID("write of \(name)"))
            case .submitted:
              let pending = try await session.submit(WriteRequest([1], to: name, idempotency: tag))
              #expect(await pending.outcome == .succeeded(.acknowledged))
            case .durable:
              try await session.write(
                [1], to: name, idempotency: tag, options: WriteOptions(durability: .durable))
            }
          }
        }
        #expect(scene.belongings.operations == 0)
        scene.executor.run()
        switch end {
        case .lost: scene.radio.lose(scene.device, .connectionTimeout)
        case .terminated: peripheral.terminate()
        case .adapterToggled:
          scene.radio.setAdapter(.off)
          scene.executor.advance(by: .seconds(2))
          scene.radio.setAdapter(.on)
        case .disconnectedAndConnected: try scene.drive("disconnect") { await $0.disconnect() }
        case .lostRightBehindTheAnswer: break
        }
        scene.executor.advance(by: .seconds(3))
        try scene.connect()
        scene.executor.advance(by: .seconds(60))
        #expect(scene.recorder.readiness.count == 2)
        #expect(scene.belongings.operations == 0)
        #expect(scene.recorder.disconnections.map(\.inDoubt) == [0])
      }
      #expect(peripheral.wr(0x0010) == before.0 + 1)
      #expect(peripheral.wr(0x0020) == before.1 + 1)
    }
  }
}
