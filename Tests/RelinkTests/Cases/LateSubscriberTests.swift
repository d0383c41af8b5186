import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B17: whenever a consumer comes, it learns the state first and misses nothing after that.
@Suite struct LateSubscriberTests {
  /// Checks that a view begins with where the session stood and then has every event that came after.
  private func expectComplete(_ view: EventRecorder, from count: Int, state: Snapshot.State, in scene: Scene)
  {
    guard case .snapshot(let snapshot) = view.events.first else {
      Issue.record("the first element is no snapshot: \(view.outline)")
      return
    }
    #expect(snapshot.state == state)
    #expect(Array(view.events.dropFirst()) == Array(scene.recorder.events.dropFirst(count)))
    #expect(view.violationOfComplete == nil, "\(view.outline)")
    #expect(view.finishedStreams == 1)
  }

  @Test(
    "B17: before, during and after the connect", arguments: [-1, 0, 1, 250, 500, 501, 1000, 2000] as [Int])
  func everyStreamStartsWithTheStateAndSeesAllThatFollows(_ milliseconds: Int) throws {
    var air = VirtualRadio.Configuration()
    air.connectLatency = .milliseconds(500)
    air.latency = .milliseconds(20)
    try Scene.play(VirtualPeripheral.twoValues(), air: air) { scene in
      var view = EventRecorder()
      var known = 0
      var state = scene.session.snapshot().state
      func subscribe() {
        known = scene.recorder.events.count
        state = scene.session.snapshot().state
        let recorder = EventRecorder()
        view = recorder
        let events = scene.session.events()
        scene.executor.spawn("view") { await recorder.record(from: events) }
      }
      if milliseconds < 0 {
        subscribe()
        scene.executor.advance(by: .milliseconds(-milliseconds))
      }
      let connect = scene.spawn("connect") { try await $0.connect() }
      if milliseconds >= 0 {
        scene.executor.advance(by: .milliseconds(milliseconds))
        subscribe()
      }
      scene.executor.advance(by: .seconds(5))
      #expect(connect.hasEnded)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(5))
      try scene.drive("close") { await $0.close() }
      scene.executor.run()
      expectComplete(view, from: known, state: state, in: scene)
    }
  }

  @Test("B17: at every step of a connect, a loss and a reconnection")
  func aSubscriptionAtAnyStepHasNoSeam() throws {
    var steps = 0
    var isOver = false
    while !isOver {
      try Scene.play(VirtualPeripheral.twoValues()) { scene in
        _ = scene.spawn("connect") { try await $0.connect() }
        var count = 0
        var hasLost = false
        let report = scene.executor.run(until: {
          if !hasLost, scene.session.snapshot().isReady {
            hasLost = true
            scene.radio.lose(scene.device, .connectionTimeout)
          }
          count += 1
          return count > steps
        })
        isOver = report.end != .conditionMet
        // What the other recorder has not taken yet counts as known too.
        let state = scene.session.snapshot().state
        let view = EventRecorder()
        let events = scene.session.events()
        // Runs behind whatever is queued, and so later than the call.
        scene.executor.spawn("view") { await view.record(from: events) }
        scene.executor.advance(by: .seconds(5))
        try scene.drive("close") { await $0.close() }
        scene.executor.run()
        guard case .snapshot(let snapshot) = view.events.first else {
          Issue.record("the first element is no snapshot: \(view.outline)")
          return
        }
        #expect(snapshot.state == state)
        #expect(scene.recorder.events.suffix(view.events.count - 1) == view.events.dropFirst())
        #expect(view.violationOfComplete == nil, "\(view.outline)")
      }
      steps += 3
    }
    #expect(steps > 100)
  }

  @Test("B17: asked for on the line before connect(), with the executor loaded", arguments: [0, 1, 1000])
  func nothingIsLostBetweenTwoLines(_ load: Int) throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      let session = scene.session
      let executor = scene.executor
      let task = executor.spawn("app") {
        for _ in 0..<load { executor.post {} }
        let events = session.events()
        try await session.connect()
        for _ in 0..<load { executor.post {} }
        var seen: [String] = []
        for await event in events {
          seen.append(event.outline)
          if case .ready = event { break }
        }
        return seen
      }
      executor.run()
      let seen = try #require(task.value)
      #expect(seen.first == "snapshot(idle)")
      #expect(seen.contains("connecting(1)"))
      #expect(seen.last == "ready(1)")
      #expect(seen == scene.recorder.events.map(\.outline))
    }
  }

  @Test("B17: two hundred streams at once, each complete")
  func manyConsumersAreServedAlike() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      let views = (0..<200).map { _ in EventRecorder() }
      for view in views {
        let events = scene.session.events()
        scene.executor.spawn("view") { await view.record(from: events) }
      }
      try scene.connect()
      scene.radio.lose(scene.device, .remoteUserTerminatedConnection)
      scene.executor.advance(by: .seconds(5))
      try scene.drive("close") { await $0.close() }
      scene.executor.run()
      for view in views { #expect(view.events == scene.recorder.events) }
    }
  }
}
