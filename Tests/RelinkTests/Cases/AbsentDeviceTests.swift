import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B06: who waits for a device that is not there can be called back at any time.
@Suite struct AbsentDeviceTests {
  /// Why no link comes up.
  enum Silence: CaseIterable {
    case absent, hungDial, linkThatNobodyReports, deadLink, peripheralThatNeverAnswers

    func fall(_ scene: Scene, _ peripheral: VirtualPeripheral) {
      switch self {
      case .absent: scene.radio.carryAway(scene.device)
      case .hungDial: scene.radio.setDialBehavior(.hang, of: scene.device)
      case .linkThatNobodyReports: scene.radio.hold([.linkUp])
      case .deadLink: scene.radio.setFaults(FaultPlan(seed: 1, rates: Self.nothingArrives))
      case .peripheralThatNeverAnswers: peripheral.react(to: .anything, with: .swallow)
      }
    }

    func lift(_ scene: Scene, _ peripheral: VirtualPeripheral) {
      scene.radio.bringBack(scene.device)
      scene.radio.setDialBehavior(.normal, of: scene.device)
      scene.radio.stopHolding()
      scene.radio.setFaults(.none)
      peripheral.reactProperly()
    }

    /// Whether the radio still dials; otherwise there is a link.
    var isDialPending: Bool { self == .absent || self == .hungDial }

    /// Whether a dial is what the session has to call off.
    var isDialling: Bool { isDialPending || self == .linkThatNobodyReports }

    private static var nothingArrives: FaultPlan.Rates {
      var rates = FaultPlan.Rates()
      rates.answers.vanish = 1
      return rates
    }
  }

  @Test(
    "B06: cancelled after a while", arguments: Silence.allCases,
    [0, 1, 50, 10_000, 29_000, 39_999, 41_000, 100_000] as [Int])
  func cancellingConnectEndsItAndTheDial(_ silence: Silence, _ milliseconds: Int) throws {
    let peripheral = VirtualPeripheral.twoValues()
    try Scene.play(peripheral) { scene in
      silence.fall(scene, peripheral)
      let caller = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .milliseconds(milliseconds))
      #expect(!caller.hasEnded)
      #expect(scene.radio.pendingDials == (silence.isDialPending ? 1 : 0))
      let cancels = scene.statistics.cancels
      caller.cancel()
      scene.executor.advance(by: .milliseconds(100))
      #expect(caller.relinkError?.code == .cancelled)
      #expect(scene.statistics.cancels == cancels + (silence.isDialling ? 1 : 0))
      #expect(scene.radio.pendingDials == 0)
      let dials = scene.statistics.dials
      scene.executor.advance(by: .seconds(600))
      #expect(scene.statistics.dials == dials)
      #expect(scene.recorder.readiness.isEmpty)
      #expect(scene.outline.hasSuffix("idle(withdrawn)"))

      silence.lift(scene, peripheral)
      try scene.connect()
      #expect(scene.recorder.readiness.count == 1)
      #expect(scene.statistics.cancels == cancels + (silence.isDialling ? 1 : 0))
    }
  }

  @Test("B06: cancelled before it began")
  func aCallerThatIsCancelledBeforeItRunsLeavesNothing() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      scene.radio.carryAway(scene.device)
      let caller = scene.spawn("connect") { try await $0.connect(within: .never) }
      caller.cancel()
      scene.executor.run()
      #expect(caller.relinkError?.code == .cancelled)
      #expect(scene.radio.pendingDials == 0)
      #expect(scene.recorder.readiness.isEmpty)
    }
  }
}
