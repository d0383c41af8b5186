import RelinkTesting
import Testing

@testable import Relink

/// Case B09: the adapter goes at any millisecond of a period in which a value is read again and again.
@Suite struct AdapterGoneDuringReadTests {
  private static let period = 100
  /// A read is on its way for more than half of the period.
  private static let latency = Duration.milliseconds(30)
  private static let polls = 16

  @Test("B09: the sweep", arguments: AdapterState.away, [true, false])
  func eachReadCompletesOnceAndOneDisconnectionIsTold(_ state: AdapterState, _ isExact: Bool) throws {
    for millisecond in 0..<Self.period {
      var air = VirtualRadio.Configuration()
      air.latency = Self.latency
      air.knowsExactReason = isExact
      let peripheral = VirtualPeripheral.twoValues()
      try Scene.play(peripheral, air: air) { scene in
        try scene.connect()
        scene.executor.advance(by: .seconds(1))
        var reads: [SpawnedTask<[UInt8]>] = []
        for poll in 0..<Self.polls {
          reads.append(
            scene.spawn("read \(poll)") { try await $0.read(Scene.first, within: .after(.milliseconds(350))) }
          )
          // Gone in the fourth period, and back in the tenth.
          let gone = poll == 3 ? millisecond : 0
          scene.executor.advance(by: .milliseconds(gone))
          if poll == 3 { scene.radio.setAdapter(state) }
          if poll == 9 { scene.radio.setAdapter(.on) }
          scene.executor.advance(by: .milliseconds(Self.period - gone))
        }
        scene.executor.advance(by: .seconds(1))
        #expect(reads.allSatisfy { $0.hasEnded }, "\(millisecond)")
        for read in reads where read.value != [0x0A] {
          // Who waited for the adapter in vain is told that nothing was sent, or that it is not known.
          let error = read.relinkError
          #expect(error?.notSentReason == .deadline || error?.doubt?.cause == .deadline, "\(millisecond)")
        }
        #expect(reads.prefix(3).allSatisfy { $0.value == [0x0A] })
        #expect(reads.suffix(4).allSatisfy { $0.value == [0x0A] })
        #expect(reads.contains { $0.value == nil })
        #expect(scene.recorder.disconnections.map(\.reason) == [state.lossReason], "\(millisecond)")
        #expect(scene.recorder.disconnections.first?.recovery == .waitForAdapter)
        #expect(scene.recorder.failures.isEmpty)
        #expect(scene.recorder.readiness.count == 2)
        #expect(scene.statistics.dials == 2)
      }
    }
  }
}
