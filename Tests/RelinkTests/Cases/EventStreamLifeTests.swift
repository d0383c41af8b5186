import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B16: the stream of events lives as long as the session.
@Suite struct EventStreamLifeTests {
  @Test("B16: one iteration sees every cycle and ends once", arguments: [1, 3, 20])
  func oneIterationLivesThroughAllLinks(_ cycles: Int) throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      let recorder = EventRecorder()
      let events = scene.session.events()
      let task = scene.executor.spawn("second recorder") { await recorder.record(from: events) }
      try scene.connect()
      for _ in 0..<cycles {
        scene.radio.lose(scene.device, .connectionTimeout)
        #expect(scene.run { scene.session.snapshot().isReady })
        scene.executor.advance(by: .seconds(11))
        #expect(!task.hasEnded)
      }
      try scene.drive("close") { await $0.close() }
      scene.executor.run()
      #expect(task.hasEnded)
      #expect(recorder.finishedStreams == 1)
      #expect(recorder.readiness.count == cycles + 1)
      #expect(recorder.disconnections.count == cycles + 1)
      #expect(recorder.events == scene.recorder.events)
      #expect(recorder.last == .ended(.closed))
    }
  }

  @Test("B16: an iteration that is left and taken up again goes on where it was left")
  func aSecondIterationOfAStreamGoesOn() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      let events = scene.session.events()
      let first = scene.executor.spawn("first iteration") {
        var seen: [ConnectionEvent] = []
        for await event in events {
          seen.append(event)
          if case .ready = event { break }
        }
        return seen
      }
      try scene.connect()
      scene.executor.run()
      let seen = try #require(first.value)
      let recorder = EventRecorder()
      scene.executor.spawn("second iteration") { await recorder.record(from: events) }
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(1))
      try scene.drive("close") { await $0.close() }
      scene.executor.run()
      #expect(seen + recorder.events == scene.recorder.events)
      #expect(recorder.finishedStreams == 1)
    }
  }

  @Test("B16: a stream that is asked for after the end tells the end")
  func aStreamOfAnEndedSessionEnds() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      try scene.connect()
      try scene.drive("close") { await $0.close() }
      let recorder = EventRecorder()
      let events = scene.session.events()
      let task = scene.executor.spawn("late") { await recorder.record(from: events) }
      scene.executor.run()
      #expect(task.hasEnded)
      #expect(recorder.outline == "snapshot(ended) ended(closed)")
      #expect(recorder.violationOfComplete == nil)
    }
  }

  @Test(
    "B16: a consumer that sleeps gets the count and a fresh snapshot, and the end", arguments: [1, 2, 4, 256])
  func aSlowConsumerIsToldWhatItMissed(_ limit: Int) throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      let events = scene.session.events(buffering: .newest(limit))
      try scene.connect()
      for _ in 0..<3 {
        scene.radio.lose(scene.device, .connectionTimeout)
        #expect(scene.run { scene.session.snapshot().isReady })
        scene.executor.advance(by: .seconds(11))
      }
      let total = scene.recorder.events.count
      let recorder = EventRecorder()
      scene.executor.spawn("slow") { await recorder.record(from: events) }
      scene.executor.run()
      if limit == 256 {
        #expect(recorder.events == scene.recorder.events)
      } else {
        try #require(recorder.events.count == 3, "\(recorder.outline)")
        guard case .snapshot(let first) = recorder.events.first, case .missed(let count) = recorder.events[1],
          case .snapshot(let second) = recorder.last
        else {
          Issue.record("\(recorder.outline)")
          return
        }
        #expect(first.state == .idle(.neverAsked))
        #expect(count <= total - 1)
        #expect(count >= total - 1 - limit)
        #expect(second.isReady)
      }
      try scene.drive("close") { await $0.close() }
      scene.executor.run()
      #expect(recorder.violationOfComplete == nil, "\(recorder.outline)")
      #expect(recorder.finishedStreams == 1)
    }
  }

  @Test("B16: two iterations of one stream at once fail loudly")
  func twoConsumersOfOneStreamAtOnceStopTheProgram() async {
    await #expect(processExitsWith: .failure) {
      let scene = try Scene(VirtualPeripheral.twoValues())
      let events = scene.session.events()
      for _ in 0..<2 { scene.executor.spawn { for await _ in events {} } }
      scene.executor.run()
    }
  }
}
