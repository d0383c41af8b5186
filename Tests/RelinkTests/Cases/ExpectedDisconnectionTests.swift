import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A disconnection that the app has announced is no fault.
@Suite struct ExpectedDisconnectionTests {
  let peripheral = VirtualPeripheral.twoValues()

  private func expect(_ scene: Scene, within span: Duration = .seconds(60), _ reason: String) throws {
    try scene.drive("expect") { await $0.expectDisconnection(within: span, because: reason) }
  }

  @Test(
    "within its span a loss is none, and costs no delay",
    arguments: [
      HCIErrorCode.remoteUserTerminatedConnection, .remoteDeviceTerminatedPowerOff, .connectionTimeout,
      .connectionTerminatedByLocalHost,
    ])
  func anExpectedLossIsNoFault(_ code: HCIErrorCode) throws {
    try Scene.play(peripheral) { scene in
      // Again and again, so that an unexpected one would be waited for.
      for count in 1...8 {
        try scene.connect()
        try expect(scene, "update \(count)")
        scene.executor.advance(by: .milliseconds(100))
        let before = scene.executor.now
        scene.radio.lose(scene.device, code)
        #expect(scene.run { scene.recorder.readiness.count == count + 1 })
        #expect(scene.executor.now == before)
        let info = try #require(scene.recorder.disconnections.last)
        #expect(info.recovery == .none)
        #expect(info.expectation == "update \(count)")
        #expect(info.willReconnect)
        #expect(info.evidence.contains(.hci(code)))
      }
    }
  }

  @Test("the first mark wins while it lasts")
  func aSecondMarkChangesNothing() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      try expect(scene, within: .seconds(10), "first")
      try expect(scene, within: .seconds(3600), "second")
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(scene.recorder.disconnections.map(\.expectation) == ["first"])
    }
  }

  @Test("a mark ends with its span", arguments: [9_999, 10_000])
  func afterItsSpanALossIsALoss(_ milliseconds: Int) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      try expect(scene, within: .seconds(10), "first")
      scene.executor.advance(by: .milliseconds(milliseconds))
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      let info = try #require(scene.recorder.disconnections.first)
      #expect((info.recovery == .none) == (milliseconds < 10_000))
      #expect((info.expectation == nil) == (milliseconds >= 10_000))
      // Then another one may be made.
      try scene.connect()
      try expect(scene, "third")
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(scene.recorder.disconnections.last?.expectation == "third")
    }
  }

  @Test("the next ready clears a mark")
  func aMarkCountsForOneLoss() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      try expect(scene, within: .seconds(3600), "first")
      for _ in 1...2 {
        scene.radio.lose(scene.device, .connectionTimeout)
        scene.executor.advance(by: .seconds(5))
      }
      #expect(scene.recorder.disconnections.map(\.expectation) == ["first", nil])
      #expect(scene.recorder.disconnections.map(\.recovery) == [.none, .retryConnection])
    }
  }

  @Test("what the user has to do is said all the same")
  func aMarkHidesNoLostBond() throws {
    let peripheral = VirtualPeripheral.halfProtected()
    try Scene.play(peripheral, Configuration(security: .requireExistingBond, seed: 1)) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      try expect(scene, within: .seconds(3600), "update")
      scene.radio.forgetBond(atPeripheral: scene.device)
      scene.radio.lose(scene.device, .remoteUserTerminatedConnection)
      scene.executor.advance(by: .seconds(60))
      #expect(scene.recorder.failures.last?.recovery == .removePairingAndPairAgain)
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
    }
  }
}
