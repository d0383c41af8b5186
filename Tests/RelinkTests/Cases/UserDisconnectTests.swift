import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B23: when the user disconnects, nothing reconnects.
@Suite struct UserDisconnectTests {
  /// What the session does at the moment of the disconnect.
  enum Moment: CaseIterable {
    case dialling, hungDial, backingOff, withoutAdapter, adapterGone, exchangingMTU, discovering, settingUp,
      ready
    case rightBehindTheLoss, waitingForTheOldLink

    /// How the history ends.
    var end: String {
      switch self {
      case .dialling, .hungDial, .exchangingMTU, .discovering, .settingUp, .rightBehindTheLoss:
        "attemptFailed(requested) idle(disconnected)"
      case .ready: "disconnected(requested) idle(disconnected)"
      case .backingOff: "waiting(backoff) idle(disconnected)"
      case .withoutAdapter: "waiting(adapterOff) idle(disconnected)"
      case .adapterGone: "waiting(adapterMissing) idle(disconnected)"
      case .waitingForTheOldLink: "waiting(previousLink) idle(disconnected)"
      }
    }
  }

  /// Brings the session, that was ready once, to the moment.
  private func bring(
    _ scene: Scene, to moment: Moment, _ peripheral: VirtualPeripheral, blocking: Locked<Bool>
  ) throws {
    try scene.connect()
    switch moment {
    case .dialling:
      scene.radio.carryAway(scene.device)
      scene.executor.advance(by: .seconds(100))
    case .hungDial:
      scene.radio.setDialBehavior(.hang, of: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(100))
    case .backingOff:
      scene.radio.setDialBehavior(.refuse(after: .zero), of: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      #expect(
        scene.run {
          if case .waiting(.backoff, _) = scene.session.snapshot().state { true } else { false }
        })
    case .withoutAdapter:
      scene.radio.setAdapter(.off)
      scene.executor.advance(by: .seconds(7))
    case .adapterGone:
      scene.radio.setAdapter(.missing)
      scene.executor.advance(by: .seconds(7))
    case .exchangingMTU, .discovering:
      peripheral.react(to: moment == .exchangingMTU ? .exchangeMTU : .discovery, with: .swallow)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(1))
    case .settingUp:
      blocking.withLock { $0 = true }
      peripheral.react(to: .read(Scene.second), with: .swallow)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(1))
    case .ready: break
    case .rightBehindTheLoss:
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.step()
      while scene.session.snapshot().isReady, scene.executor.step() {}
    case .waitingForTheOldLink:
      try scene.drive("disconnect") { await $0.disconnect() }
      _ = scene.spawn("wish") { try await $0.connect(within: .never) }
      scene.executor.run()
    }
  }

  @Test("B23: at each moment of a reconnection", arguments: Moment.allCases)
  func disconnectIsTheLastWord(_ moment: Moment) throws {
    let peripheral = VirtualPeripheral.twoValues()
    let blocking = Locked(false)
    var configuration = Configuration(seed: 1)
    configuration.setup = { scope in
      if blocking.withLock({ $0 }) { _ = try await scope.read(Scene.second) }
      return .unknown
    }
    try Scene.play(peripheral, configuration) { scene in
      try bring(scene, to: moment, peripheral, blocking: blocking)
      let calls = [
        scene.spawn("connect") { session in _ = try await session.connect(within: .never) },
        scene.spawn("read") { session in _ = try await session.read(Scene.first, within: .never) },
      ]
      if moment != .rightBehindTheLoss && moment != .backingOff { scene.executor.run() }
      let before = scene.executor.now
      try scene.drive("disconnect") { await $0.disconnect() }
      scene.executor.run()
      #expect(scene.executor.now == before)
      #expect(calls.allSatisfy { $0.hasEnded })
      let dials = scene.statistics.dials
      #expect(
        scene.outline.hasSuffix(moment == .backingOff ? "idle(disconnected)" : moment.end), "\(scene.outline)"
      )

      // Everything comes back, and nothing is dialled.
      peripheral.reactProperly()
      scene.radio.bringBack(scene.device)
      scene.radio.setAdapter(.on)
      scene.radio.setDialBehavior(.normal, of: scene.device)
      let count = scene.recorder.events.count
      scene.executor.advance(by: .seconds(3600))
      #expect(scene.statistics.dials == dials)
      #expect(scene.radio.pendingDials == 0)
      #expect(scene.recorder.events.count == count)
      #expect(scene.session.snapshot().state == .idle(.disconnected))
      #expect(peripheral.openLinks.isEmpty)
      let last = scene.recorder.events.last {
        if case .attemptFailed = $0 { return true }
        if case .disconnected = $0 { return true }
        return false
      }
      switch last {
      case .attemptFailed(let info), .disconnected(let info):
        if info.reason == .requested {
          #expect(info.recovery == .none)
          #expect(info.confidence == .high)
          #expect(!info.willReconnect)
        }
      default: Issue.record("no end of a link or an attempt was told")
      }
      blocking.withLock { $0 = false }
      // And the session is not spent.
      try scene.connect()
      #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
    }
  }
}
