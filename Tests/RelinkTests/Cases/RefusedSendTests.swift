import RelinkTesting
import Testing

@testable import Relink

/// The system refuses a PDU once (no buffer space): no word of the link says when it takes one again.
@Suite struct RefusedSendTests {
  private static var refusingOnce: FaultPlan {
    var plan = FaultPlan.none
    plan.strikeSend(.failed(105))
    return plan
  }

  @Test func anOperationGoesOnceMoreSoon() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      try scene.connect()
      scene.radio.setFaults(Self.refusingOnce)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .seconds(10)) }
      scene.executor.advance(by: .milliseconds(200))
      #expect(read.value == [0x0A])
    }
  }

  @Test func aRequestOfSomebodyWhoHasTheLinkForHimselfGoesOnceMoreSoon() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      try scene.connect()
      scene.radio.setFaults(Self.refusingOnce)
      let read = scene.spawn("read") { session in
        try await session.withLink { try await $0.read(Scene.first) }
      }
      scene.executor.advance(by: .milliseconds(200))
      #expect(read.value == [0x0A])
    }
  }
}
