import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B05: a link that comes up and dies with 0x3E before the device ever heard of it is one failed attempt.
@Suite struct FailedToEstablishTests {
  @Test(
    "B05: several times in a row, then it works", arguments: [1, 5, 9],
    [0, 1, 100, 300, 500] as [Int])
  func theAppSeesFailedAttemptsAndThenReadyOnce(_ count: Int, _ milliseconds: Int) throws {
    let peripheral = VirtualPeripheral.twoValues()
    try Scene.play(peripheral) { scene in
      scene.radio.scriptDials(
        [DialBehavior](repeating: .failToEstablish(after: .milliseconds(milliseconds)), count: count),
        to: scene.device)
      let write = scene.spawn("write") { session in
        try await session.write(
          [1], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(within: .never))
      }
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      for _ in 1...count {
        let failures = scene.recorder.failures.count
        #expect(scene.run { scene.recorder.failures.count > failures })
        // Nothing was offered to a link that was never there for the device.
        #expect(scene.session.assumeIsolated { $0.operations.entries.map(\.offers) } == [0])
        #expect(scene.session.assumeIsolated { $0.operations.entries.map(\.state) } == [.queued])
      }
      #expect(!write.hasEnded)
      #expect(!connect.hasEnded)
      scene.executor.advance(by: .seconds(60))
      #expect(connect.value?.attempts == count + 1)
      #expect(write.hasEnded && write.error == nil)
      #expect(peripheral.wr(0x0010) == 1)
      #expect(peripheral.counters.links == 1)
      #expect(scene.recorder.readiness.count == 1)
      #expect(scene.recorder.failures.count == count)
      for failure in scene.recorder.failures {
        #expect(failure.reason == .failedToEstablish)
        #expect(failure.recovery == .retryConnection)
        #expect(failure.evidence.contains(.hci(.connectionFailedToBeEstablished)))
        #expect(failure.inDoubt == 0)
      }
      #expect(scene.recorder.disconnections.isEmpty)
    }
  }
}
