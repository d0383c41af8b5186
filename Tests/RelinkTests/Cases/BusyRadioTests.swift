import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B26: a radio makes one connection at a time; who comes meanwhile is told that it is busy, and loses nothing.
@Suite struct BusyRadioTests {
  /// Another session beside the one of a scene.
  private func other(_ scene: Scene, _ number: Int, _ peer: any VirtualPeer) throws -> DeviceSession {
    let device = try deviceID(number)
    scene.radio.add(peer, as: device)
    return try DeviceSession(
      with: device, over: scene.radio, configuration: Configuration(seed: UInt64(number)))
  }

  private var air: VirtualRadio.Configuration {
    var air = VirtualRadio.Configuration()
    air.dialsAtOnce = 1
    air.connectLatency = .milliseconds(200)
    return air
  }

  @Test("B26: the other device is absent", arguments: [1, 2, nil] as [Int?])
  func aBusyRadioIsNotChargedToTheDeviceThatWaits(_ attempts: Int?) throws {
    let policy = ReconnectionPolicy(attemptsPerOutage: attempts)
    let configuration = Configuration(reconnection: policy, seed: 1)
    try Scene.play(VirtualPeripheral.twoValues(), configuration, air: air) { scene in
      let absent = try other(scene, 2, VirtualPeripheral.twoValues())
      scene.radio.carryAway(absent.device)
      let first = scene.executor.spawn("absent") { try await absent.connect(within: .never) }
      scene.executor.run()
      let second = scene.spawn("present") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(39))
      #expect(!second.hasEnded)
      #expect(scene.recorder.failures.count > 5)
      for failure in scene.recorder.failures {
        #expect(failure.reason == .busy || failure.reason == .adapterStuck)
        #expect(failure.recovery == .retryConnection)
        #expect(failure.evidence == [.system(16, call: .connect)])
        #expect(failure.willReconnect)
      }
      #expect(scene.radio.maximumConcurrentDials == 1)
      first.cancel()
      scene.executor.advance(by: .seconds(31))
      #expect(second.hasEnded && second.error == nil)
      try scene.executor.drive("close") { await absent.close() }
    }
  }

  @Test("B26: many at once, all of them present", arguments: [2, 5, 20])
  func everyoneHasATurn(_ count: Int) throws {
    try Scene.play(VirtualPeripheral.twoValues(), air: air) { scene in
      let others = try (2...count + 1).map { try other(scene, $0, VirtualPeripheral.twoValues()) }
      let calls = others.map { session in
        scene.executor.spawn("\(session.device)") { try await session.connect(within: .never) }
      }
      let own = scene.spawn("own") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(120))
      #expect(own.error == nil && own.hasEnded)
      #expect(calls.allSatisfy { $0.hasEnded && $0.error == nil })
      #expect(scene.radio.maximumConcurrentDials == 1)
      for session in others { try scene.executor.drive("close") { await session.close() } }
      scene.executor.advance(by: .seconds(5))
    }
  }

  @Test("B26: busy for ever", arguments: [1, 3, nil] as [Int?])
  func aRadioThatStaysBusyIsNamedAndNotGivenUp(_ attempts: Int?) throws {
    let policy = ReconnectionPolicy(attemptsPerOutage: attempts)
    try Scene.play(VirtualPeripheral.twoValues(), Configuration(reconnection: policy, seed: 1)) { scene in
      scene.radio.setDialBehavior(.busy, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(120))
      let reasons = scene.recorder.failures.map(\.reason)
      #expect(reasons.count > 6)
      #expect(reasons.prefix(4).allSatisfy { $0 == .busy })
      #expect(reasons.dropFirst(4).allSatisfy { $0 == .adapterStuck })
      #expect(scene.recorder.failures.allSatisfy { $0.recovery == .retryConnection && $0.willReconnect })
      #expect(!connect.hasEnded)
      scene.radio.setDialBehavior(.normal, of: scene.device)
      scene.executor.advance(by: .seconds(31))
      #expect(connect.hasEnded && connect.error == nil)
      // A later refusal is the first one again.
      scene.radio.scriptDials([.busy], to: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(31))
      #expect(scene.recorder.failures.last?.reason == .busy)
      #expect(scene.session.snapshot().isReady)
    }
  }
}
