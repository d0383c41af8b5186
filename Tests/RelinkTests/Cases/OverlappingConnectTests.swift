import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B07: calls of `connect()` that overlap share the attempts, and each gets one result.
@Suite struct OverlappingConnectTests {
  /// How the attempt goes that the calls share.
  enum Course: CaseIterable {
    case smooth, slow, failsTwice, dropsWhilePreparing
  }

  @Test("B07: fifty at once, a disconnect among them", arguments: [0, 1, 13, 25, 49, 50], Course.allCases)
  func eachCallerGetsOneResultAndTheLastIntentHolds(_ position: Int, _ course: Course) throws {
    let peripheral = VirtualPeripheral.twoValues()
    var air = VirtualRadio.Configuration()
    if course == .slow { air.connectLatency = .seconds(1) }
    try Scene.play(peripheral, air: air) { scene in
      if course == .failsTwice {
        scene.radio.scriptDials(
          [.refuse(after: .seconds(1)), .fail(.connectionTimeout, after: .zero)], to: scene.device)
      }
      if course == .dropsWhilePreparing { peripheral.react(to: .discovery, with: .drop(), times: 2) }
      var callers: [SpawnedTask<Readiness>] = []
      var disconnect: SpawnedTask<Void>?
      for index in 0...50 {
        if index == position { disconnect = scene.spawn("disconnect") { await $0.disconnect() } }
        if index < 50 { callers.append(scene.spawn("connect \(index)") { try await $0.connect() }) }
      }
      scene.executor.advance(by: .seconds(25))
      #expect(disconnect?.hasEnded == true)
      for (index, caller) in callers.enumerated() {
        #expect(caller.hasEnded, "caller \(index)")
        if index < position {
          #expect(caller.relinkError?.code == .disconnected, "caller \(index)")
        } else {
          #expect(caller.value != nil, "caller \(index): \(String(describing: caller.error))")
        }
      }
      #expect(scene.radio.maximumConcurrentDials == 1)
      #expect(scene.session.snapshot().isReady == (position < 50))
      if position == 50 { #expect(scene.outline.hasSuffix("idle(disconnected)")) }
      #expect(scene.recorder.readiness.count == (position < 50 ? 1 : 0))
    }
  }

  @Test("B07: the disconnect at any step of the attempt", arguments: Course.allCases)
  func aDisconnectAtAnyStepEndsAllThatWaitAndLaterCallsConnect(_ course: Course) throws {
    // Swept until the attempt is over before the disconnect comes.
    var isOver = false
    var steps = 0
    while !isOver {
      let peripheral = VirtualPeripheral.twoValues()
      if course == .dropsWhilePreparing { peripheral.react(to: .discovery, with: .drop(), times: 2) }
      var air = VirtualRadio.Configuration()
      if course == .slow { air.connectLatency = .seconds(1) }
      try Scene.play(peripheral, air: air) { scene in
        if course == .failsTwice {
          scene.radio.scriptDials(
            [.refuse(after: .seconds(1)), .fail(.connectionTimeout, after: .zero)], to: scene.device)
        }
        let early = (0..<25).map { index in scene.spawn("early \(index)") { try await $0.connect() } }
        var count = 0
        // Steps of the executor, and the moves of its clock where nothing else is left.
        isOver =
          scene.run {
            count += 1
            return count > steps
          } == false
        isOver = isOver || scene.session.snapshot().isReady && early.allSatisfy(\.hasEnded)
        let disconnect = scene.spawn("disconnect") { await $0.disconnect() }
        let late = (0..<25).map { index in scene.spawn("late \(index)") { try await $0.connect() } }
        scene.executor.advance(by: .seconds(25))
        #expect(disconnect.hasEnded)
        for caller in early {
          #expect(caller.value != nil || caller.relinkError?.code == .disconnected, "after \(steps) steps")
        }
        for caller in late {
          #expect(caller.value != nil, "after \(steps) steps: \(String(describing: caller.error))")
        }
        #expect(scene.session.snapshot().isReady)
        #expect(scene.radio.maximumConcurrentDials == 1)
      }
      steps += 7
    }
    #expect(steps > 100)
  }
}
