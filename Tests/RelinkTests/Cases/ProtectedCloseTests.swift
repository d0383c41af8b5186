import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A device that ends its link straight after something that needs the bond, again and again, has probably lost it.
@Suite struct ProtectedCloseTests {
  let peripheral = VirtualPeripheral.halfProtected()

  /// Asks for something each time, and lets the device end the link over it.
  private func close(_ scene: Scene, _ characteristic: Characteristic) {
    let read = scene.spawn("read") { try await $0.read(characteristic, within: .never) }
    let count = scene.recorder.disconnections.count
    #expect(scene.run { scene.recorder.disconnections.count > count })
    read.cancel()
    scene.executor.advance(by: .seconds(30))
  }

  @Test("three times straight after a protected operation", arguments: [true, false])
  func threeClosesInARowAreASuspectedLostBond(_ isBonded: Bool) throws {
    let user = AskedUser { _ in .accept }
    let policy = SecurityPolicy(keys: .bondOrPairing(.none))
    try Scene.play(peripheral, Configuration(security: policy, pairing: user.closure, seed: 1)) { scene in
      if isBonded { scene.radio.bond(scene.device) }
      try scene.connect()
      // The device wants a secured link, and hangs up over what it is asked there.
      for count in 1...3 {
        peripheral.reactProperly()
        peripheral.react(to: .read(Scene.first), with: .refuse(.insufficientEncryption), times: 1)
        peripheral.react(to: .read(Scene.first), with: .drop())
        close(scene, Scene.first)
        #expect(scene.recorder.disconnections.count == count)
        #expect(scene.session.snapshot().isReady == (count < 3))
      }
      let told = scene.recorder.disconnections
      #expect(told.map(\.reason) == [.remoteUserTerminated, .remoteUserTerminated, .keyMissing])
      #expect(told.map(\.recovery) == [.retryConnection, .retryConnection, .removePairingAndPairAgain])
      #expect(told.last?.confidence == .low)
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
    }
  }

  @Test("without a protected operation it is no sign of anything")
  func closesOverOrdinaryOperationsAreNoSuspicion() throws {
    peripheral.react(to: .read(Scene.second), with: .drop())
    try Scene.play(peripheral) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      for _ in 1...6 { close(scene, Scene.second) }
      #expect(scene.recorder.disconnections.allSatisfy { $0.reason == .remoteUserTerminated })
      #expect(scene.recorder.disconnections.allSatisfy { $0.recovery == .retryConnection })
      #expect(scene.session.snapshot().isReady)
    }
  }

  @Test(
    "a device that does what is asked of it and then hangs up is fine",
    arguments: [SecurityPolicy.asRequired, .requireExistingBond])
  func aDeviceThatAnswersAndHangsUpHasItsBond(_ policy: SecurityPolicy) throws {
    peripheral.react(to: .read(Scene.first), with: .proper, times: nil)
    try Scene.play(peripheral, Configuration(security: policy, seed: 1)) { scene in
      scene.radio.bond(scene.device)
      for count in 1...6 {
        try scene.connect()
        #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
        peripheral.terminate()
        scene.executor.advance(by: .seconds(30))
        #expect(scene.recorder.disconnections.count == count)
        #expect(scene.recorder.disconnections.last?.reason == .remoteUserTerminated)
      }
      #expect(scene.session.snapshot().isReady)
    }
  }

  @Test("an operation that asks for security counts too")
  func anOperationThatAsksForSecurityIsProtected() throws {
    peripheral.react(to: .write(Scene.second), with: .drop())
    try Scene.play(peripheral) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      for count in 1...3 {
        scene.executor.advance(by: .seconds(60))
        let write = scene.spawn("write") { session in
          try await session.write(
            [1], to: Scene.second, idempotency: .nonIdempotent, options: WriteOptions(security: .encrypted))
        }
        scene.executor.advance(by: .seconds(30))
        #expect(write.relinkError?.doubt != nil)
        #expect(scene.recorder.disconnections.count == count)
      }
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
    }
  }
}
