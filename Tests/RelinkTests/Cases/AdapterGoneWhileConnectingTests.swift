import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B08: the adapter goes while the session is connecting; nothing of that attempt is in the way of the next one.
@Suite struct AdapterGoneWhileConnectingTests {
  /// How far the attempt has come.
  enum Moment: CaseIterable {
    case dialling, dialThatHangs, exchangingMTU, securing, discovering, settingUp

    func arrange(_ scene: Scene, _ peripheral: VirtualPeripheral) {
      switch self {
      case .dialling: scene.radio.carryAway(scene.device)
      case .dialThatHangs: scene.radio.scriptDials([.hang], to: scene.device)
      case .exchangingMTU: peripheral.react(to: .exchangeMTU, with: .swallow)
      case .securing: scene.radio.setEncryptionTime(.seconds(3600), of: scene.device)
      case .discovering: peripheral.react(to: .discovery, with: .swallow)
      case .settingUp: peripheral.react(to: .read(Scene.second), with: .swallow)
      }
    }

    func restore(_ scene: Scene, _ peripheral: VirtualPeripheral) {
      scene.radio.bringBack(scene.device)
      scene.radio.setEncryptionTime(.zero, of: scene.device)
      peripheral.reactProperly()
    }
  }

  static var configuration: Configuration {
    Configuration(
      setup: { scope in
        _ = try await scope.read(Scene.second)
        return .unknown
      }, security: .requireExistingBond, seed: 1)
  }

  @Test("B08: in each phase of an attempt", arguments: AdapterState.away, Moment.allCases)
  func oneNewAttemptStartsWhenTheAdapterIsBack(_ state: AdapterState, _ moment: Moment) throws {
    let peripheral = VirtualPeripheral.halfProtected()
    try Scene.play(peripheral, Self.configuration) { scene in
      scene.radio.bond(scene.device)
      moment.arrange(scene, peripheral)
      let first = scene.spawn("first") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(3))
      #expect(!first.hasEnded)
      let dials = scene.statistics.dials
      scene.radio.setAdapter(state)
      scene.executor.run()
      #expect(first.relinkError?.code == .adapterUnavailable)
      #expect(scene.recorder.failures.map(\.reason) == [state.lossReason])
      #expect(scene.recorder.failures.last?.recovery == .waitForAdapter)
      #expect(scene.session.snapshot().state == .waiting(state.waitReason, until: nil))
      // While it is away nothing is dialled, and who asks is told at once.
      scene.executor.advance(by: .seconds(2))
      let meanwhile = scene.spawn("meanwhile") { try await $0.connect(within: .never) }
      scene.executor.run()
      #expect(meanwhile.relinkError?.code == .adapterUnavailable)
      #expect(scene.statistics.dials == dials)
      scene.radio.setAdapter(.on)
      scene.executor.run()
      #expect(scene.statistics.dials == dials + 1)
      let second = scene.spawn("second") { try await $0.connect(within: .never) }
      scene.executor.run()
      // A dial that hung was that one dial.
      #expect(second.hasEnded == (moment == .dialThatHangs))
      moment.restore(scene, peripheral)
      scene.executor.advance(by: .seconds(60))
      #expect(second.error == nil)
      #expect(second.hasEnded)
      #expect(scene.recorder.readiness.count == 1)
    }
  }

  @Test("B08: no session is told of a disconnection that it did not have", arguments: AdapterState.away)
  func whoWasNotConnectedIsNotDisconnected(_ state: AdapterState) throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      scene.radio.setAdapter(state)
      scene.executor.run()
      #expect(scene.recorder.events.count == 1)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(60))
      #expect(!read.hasEnded)
      #expect(scene.statistics.links == 0)
      #expect(scene.recorder.disconnections.isEmpty)
      scene.radio.setAdapter(.on)
      scene.executor.advance(by: .seconds(5))
      #expect(read.value == [0x0A])
    }
  }
}
