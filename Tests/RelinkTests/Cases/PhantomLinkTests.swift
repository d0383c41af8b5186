import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B22: the host believes in a link that its controller does not have, or that answers nothing.
@Suite struct PhantomLinkTests {
  let peripheral = VirtualPeripheral.twoValues()

  @Test("B22: a transport that waits until the old link is gone")
  func aTransportEndsThePhantomBeforeItDials() throws {
    var air = VirtualRadio.Configuration()
    air.waitsForOldLinks = true
    try Scene.play(peripheral, air: air) { scene in
      scene.radio.addPhantomLink(to: scene.device)
      #expect(scene.radio.existingLinks() == [scene.device])
      try scene.connect()
      #expect(scene.recorder.failures.isEmpty)
      #expect(scene.recorder.readiness.map(\.attempts) == [1])
      #expect(peripheral.counters.links == 1)
      #expect(try scene.drive("read") { try await $0.read(Scene.first) } == [0x0A])
    }
  }

  @Test("B22: a dial that gets the phantom", arguments: [nil, 1] as [Int?])
  func aDialThatGetsThePhantomIsOneNamedFailure(_ attempts: Int?) throws {
    let policy = ReconnectionPolicy(attemptsPerOutage: attempts)
    try Scene.play(peripheral, Configuration(reconnection: policy, seed: 1), adoptions: 1) { scene in
      scene.radio.addPhantomLink(to: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(30))
      // It was looked at before anything was offered on it, and cleared, and a real link was made.
      #expect(connect.error == nil && connect.hasEnded)
      #expect(scene.recorder.failures.map(\.reason) == [.phantomLink])
      #expect(scene.recorder.failures.first?.recovery == .retryConnection)
      #expect(scene.recorder.failures.first?.generation == Generation(rawValue: 1))
      #expect(scene.recorder.failures.first?.willReconnect == true)
      #expect(scene.statistics.adoptions == 1)
      #expect(peripheral.counters.links == 1)
    }
  }

  @Test("B22: a restored link", arguments: [true, false])
  func aRestoredLinkThatAnswersNothingIsCleared(_ answers: Bool) throws {
    try Scene.play(peripheral) { scene in
      scene.radio.setAdvertising(false, of: scene.device)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(5))
      scene.radio.restoreLink(to: scene.device)
      if !answers { scene.radio.silence(scene.device) }
      scene.executor.advance(by: .seconds(9))
      #expect(read.hasEnded == answers)
      scene.executor.advance(by: .seconds(10))
      #expect(scene.recorder.failures.map(\.reason) == (answers ? [] : [.phantomLink]))
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(60))
      #expect(read.value == [0x0A])
      #expect(peripheral.counters.links == (answers ? 1 : 2))
    }
  }

  @Test("B22: a phantom each time is no loop without a pause")
  func aHostThatMakesUpALinkEachTimeIsAskedLessAndLess() throws {
    try Scene.play(peripheral, adoptions: nil) { scene in
      scene.radio.addPhantomLink(to: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      for _ in 1...40 {
        let failures = scene.recorder.failures.count
        #expect(scene.run { scene.recorder.failures.count > failures })
        scene.radio.setDialBehavior(.hang, of: scene.device)
        #expect(scene.run { scene.radio.existingLinks().isEmpty })
        scene.radio.addPhantomLink(to: scene.device)
        scene.radio.setDialBehavior(.normal, of: scene.device)
        if scene.recorder.failures.count >= 8 { break }
      }
      #expect(scene.recorder.failures.allSatisfy { $0.reason == .phantomLink })
      #expect(scene.executor.now.nanoseconds > 8 * 10_000_000_000)
      #expect(!connect.hasEnded)
      scene.executor.advance(by: .seconds(120))
      #expect(connect.hasEnded && connect.error == nil)
    }
  }

  @Test("B22: a link that is slow to answer for the first time is no phantom")
  func aLinkOfItsOwnMayTakeItsTime() throws {
    try Scene.play(peripheral) { scene in
      peripheral.react(to: .exchangeMTU, with: .answerLate(.seconds(25)), times: 1)
      try scene.connect(.never)
      #expect(scene.recorder.failures.isEmpty)
      #expect(peripheral.counters.links == 1)
    }
  }
}
