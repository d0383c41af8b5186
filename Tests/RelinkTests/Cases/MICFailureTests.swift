import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B11: a message integrity failure right after encryption begins means that the keys differ; a later one is noise.
@Suite struct MICFailureTests {
  let peripheral = VirtualPeripheral.halfProtected()

  @Test(
    "B11: right after encryption, each time",
    arguments: [SecurityPolicy.requireExistingBond, .asRequired, .pairing()])
  func keysThatDifferEndInThePairingBeingMadeAnew(_ policy: SecurityPolicy) throws {
    try Scene.play(peripheral, Configuration(security: policy, seed: 1)) { scene in
      scene.radio.bond(scene.device)
      scene.radio.giveWrongKey(to: scene.device)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(600))
      let told = scene.recorder.failures + scene.recorder.disconnections
      #expect(told.map(\.reason) == [.micFailure, .micFailure])
      #expect(told.map(\.recovery) == [.retryConnection, .removePairingAndPairAgain])
      #expect(told.allSatisfy { $0.evidence.contains(.hci(.connectionTerminatedMICFailure)) })
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
      #expect(scene.statistics.links == 2)
      #expect(peripheral.pairingRequests == 0)
      #expect(peripheral.counters.reads[0x0010] == nil)
      scene.radio.bond(scene.device)
      try scene.drive("removed") { await $0.pairingWasRemoved() }
      scene.executor.advance(by: .seconds(5))
      #expect(read.value == [0x0A])
      #expect(peripheral.counters.reads[0x0010] == 1)
      #expect(scene.session.snapshot().isReady)
    }
  }

  @Test("B11: a host that only has an error number does not guess")
  func anErrorNumberForManyReasonsIsNoReasonToPairAnew() throws {
    var air = VirtualRadio.Configuration()
    air.knowsExactReason = false
    try Scene.play(peripheral, Configuration(security: .requireExistingBond, seed: 1), air: air) { scene in
      scene.radio.bond(scene.device)
      scene.radio.giveWrongKey(to: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(600))
      #expect(scene.recorder.failures.count > 3)
      #expect(scene.recorder.failures.allSatisfy { $0.recovery == .retryConnection && $0.confidence == .low })
      // A growing delay keeps it from being a loop.
      #expect(scene.recorder.failures.count < 80)
      scene.radio.bond(scene.device)
      scene.executor.advance(by: .seconds(60))
      #expect(connect.hasEnded && connect.error == nil)
    }
  }

  @Test("B11: once, after ten minutes of traffic", arguments: [1, 2, 5])
  func aLateFailureIsNoise(_ times: Int) throws {
    try Scene.play(peripheral, Configuration(security: .requireExistingBond, seed: 1)) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      for time in 1...times {
        for _ in 1...60 {
          scene.executor.advance(by: .seconds(10))
          #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
        }
        scene.radio.lose(scene.device, .connectionTerminatedMICFailure)
        scene.executor.advance(by: .seconds(5))
        #expect(scene.recorder.disconnections.count == time)
        #expect(scene.recorder.disconnections.last?.reason == .micFailure)
        #expect(scene.recorder.disconnections.last?.recovery == .retryConnection)
        #expect(scene.session.snapshot().isReady)
      }
      #expect(scene.recorder.failures.isEmpty)
    }
  }
}
