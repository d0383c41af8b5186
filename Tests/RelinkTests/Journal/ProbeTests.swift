import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Probes in a session: when they run, what they hold back, and how they end.
@Suite struct ProbeTests {
  let peripheral = VirtualPeripheral.twoValues()

  /// Leaves a write of [1] to the first value in doubt, applied or not, and comes back with another link.
  private func leaveInDoubt(
    _ scene: Scene, _ probe: Probe, _ reaction: ServerReaction = .drop(),
    options: WriteOptions = WriteOptions()
  ) throws -> SpawnedTask<Void> {
    try scene.connect()
    peripheral.react(to: .write(Scene.first), with: reaction, times: 1)
    let caller = scene.spawn("verified") { session in
      try await session.write(
        [1], to: Scene.first, idempotency: .verified(by: probe), id: OperationID("verified"), options: options
      )
    }
    #expect(scene.run(until: { !scene.session.snapshot().isReady }))
    return caller
  }

  private func states(_ scene: Scene) throws -> [JournaledOperation.State] {
    try scene.drive("journal") { await $0.journal.map(\.state) }
  }

  @Test("a probe runs once the session is ready, and before anything on its keys")
  func aProbeRunsAfterReadyAndBeforeWhatSharesItsKeys() throws {
    let requests = Locked<[String]>([])
    let configuration = Configuration(
      setup: { scope in
        _ = try await scope.read(Scene.second)
        requests.withLock { $0.append("setup") }
        return .unknown
      }, seed: 1)
    try Scene.play(peripheral, configuration) { scene in
      let session = scene.session
      let probe = Probe { scope in
        let isReady = session.snapshot().isReady
        requests.withLock { $0.append(isReady ? "probe when ready" : "probe too early") }
        return try await scope.read(Scene.first) == [1] ? .applied : .notApplied
      }
      peripheral.react(to: .read(Scene.first), with: .answerLate(.seconds(5)), times: 1)
      let caller = try leaveInDoubt(scene, probe, options: WriteOptions(lane: "bolt"))
      let sameValue = scene.spawn("same value") {
        try await $0.write([2], to: Scene.first, idempotency: .idempotent)
      }
      let sameLane = scene.spawn("same lane") {
        try await $0.write(
          [3], to: Scene.second, idempotency: .idempotent, options: WriteOptions(lane: "bolt"))
      }
      scene.executor.advance(by: .seconds(4))
      #expect(scene.session.snapshot().isReady)
      #expect(try states(scene) == [.probing, .queued, .queued])
      #expect(peripheral.counters.applied.isEmpty)
      scene.executor.advance(by: .seconds(10))
      for task in [caller, sameValue, sameLane] {
        #expect(task.hasEnded)
        #expect(task.error == nil)
      }
      #expect(requests.withLock { $0 } == ["setup", "setup", "probe when ready"])
    }
    #expect(peripheral.counters.applied.map(\.value) == [[1], [2], [3]])
  }

  @Test("what shares nothing with the operation in doubt goes on, unless the bearer is taken")
  func otherKeysDoNotWaitForAProbe() throws {
    try Scene.play(peripheral) { scene in
      // It waits for something else than the device.
      let gate = Gate()
      let caller = try leaveInDoubt(
        scene,
        Probe { _ in
          await gate.wait()
          return .notApplied
        })
      let other = scene.spawn("other") { try await $0.write([2], to: Scene.second, idempotency: .idempotent) }
      scene.executor.advance(by: .seconds(5))
      #expect(other.hasEnded)
      #expect(!caller.hasEnded)
      #expect(peripheral.wr(0x0010) == 0)
      gate.open()
      scene.executor.advance(by: .seconds(1))
      #expect(caller.error == nil)
      #expect(peripheral.wr(0x0010) == 1)
    }
  }

  @Test("a probe that hangs is ended after its time, and nobody waits for it")
  func aProbeThatHangsIsEnded() throws {
    let gate = Gate()
    let configuration = Configuration(journal: JournalPolicy(probeTime: .seconds(4)), seed: 1)
    try Scene.play(peripheral, configuration) { scene in
      let caller = try leaveInDoubt(
        scene,
        Probe { _ in
          // Deaf to the cancellation of its task.
          await gate.wait()
          return .applied
        }, .applyAndDrop())
      #expect(scene.run(until: { scene.session.snapshot().isReady }))
      let readyAt = scene.executor.now
      #expect(scene.run(until: { caller.hasEnded }))
      #expect(caller.relinkError?.doubt?.cause == .probeInconclusive)
      #expect(readyAt.duration(to: scene.executor.now) == .seconds(4))
      // What it says later is not heard.
      let next = scene.spawn("next") { try await $0.write([2], to: Scene.first, idempotency: .idempotent) }
      scene.executor.run()
      gate.open()
      scene.executor.advance(by: .seconds(1))
      #expect(next.error == nil)
      #expect(scene.belongings.hasProbe == false)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[1], [2]])
  }

  @Test("a link that is lost under a probe lets it run again, so many times")
  func aLinkLostUnderAProbeRepeatsItSoManyTimes() throws {
    let begun = Locked(0)
    let cancelled = Locked(0)
    let configuration = Configuration(
      deadlines: Deadlines(operation: .seconds(300)), journal: JournalPolicy(probeLimit: 3), seed: 1)
    try Scene.play(peripheral, configuration) { scene in
      peripheral.react(to: .read(Scene.first), with: .swallow)
      let caller = try leaveInDoubt(
        scene,
        Probe { scope in
          begun.withLock { $0 += 1 }
          do { _ = try await scope.read(Scene.first) } catch {
            cancelled.withLock { $0 += 1 }
            throw error
          }
          return .applied
        })
      for round in 1...3 {
        #expect(scene.run(until: { begun.withLock { $0 } == round }))
        #expect(!caller.hasEnded)
        scene.executor.advance(by: .seconds(15))
        scene.radio.lose(scene.device, .connectionTimeout)
        scene.executor.run()
        #expect(cancelled.withLock { $0 } == round)
      }
      #expect(caller.relinkError?.doubt?.cause == .probeInterrupted)
      scene.executor.advance(by: .seconds(60))
      #expect(begun.withLock { $0 } == 3)
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("a probe that fails cannot tell, and neither can a name that nobody knows")
  func aProbeThatCannotTellLeavesTheDoubt() throws {
    for probe in [Probe { _ in throw RelinkError(.system, "no idea") }, .named("unheard of")] {
      let peripheral = VirtualPeripheral.twoValues()
      try Scene.play(peripheral) { scene in
        try scene.connect()
        peripheral.react(to: .write(Scene.first), with: .drop(), times: 1)
        let caller = scene.spawn("verified") {
          try await $0.write([1], to: Scene.first, idempotency: .verified(by: probe))
        }
        scene.executor.advance(by: .seconds(10))
        #expect(caller.relinkError?.doubt?.cause == .probeInconclusive)
        #expect(caller.relinkError?.doubt?.offers == 1)
      }
      #expect(peripheral.wr(0x0010) == 0)
    }
  }

  @Test("a caller who is cancelled under the probe ends it with his operation")
  func aCancelledCallerEndsTheProbe() throws {
    try Scene.play(peripheral) { scene in
      let wasCancelled = Locked(false)
      peripheral.react(to: .read(Scene.first), with: .answerLate(.seconds(5)))
      let caller = try leaveInDoubt(
        scene,
        Probe { scope in
          do { _ = try await scope.read(Scene.first) } catch {
            wasCancelled.withLock { $0 = Task.isCancelled }
            throw error
          }
          return .notApplied
        })
      #expect(scene.run(until: { scene.belongings.hasProbe }))
      caller.cancel()
      scene.executor.run()
      #expect(caller.relinkError?.doubt?.cause == .cancelled)
      #expect(wasCancelled.withLock { $0 })
      #expect(!scene.belongings.hasProbe)
      scene.executor.advance(by: .seconds(30))
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  // MARK: The app as the probe

  @Test("the app says what became of it", arguments: [Verdict.applied, .notApplied, .unknown])
  func theAppResolvesWhatIsInDoubt(_ verdict: Verdict) throws {
    let id = try #require(OperationID("verified"))
    try Scene.play(peripheral) { scene in
      let caller = try leaveInDoubt(scene, .app, verdict == .applied ? .applyAndDrop() : .drop())
      let behind = scene.spawn("behind") {
        try await $0.write([2], to: Scene.first, idempotency: .idempotent)
      }
      scene.executor.advance(by: .seconds(10))
      #expect(try states(scene) == [.unresolved, .queued])
      #expect(!caller.hasEnded)
      try scene.drive("resolve") { try await $0.resolve(id, as: verdict, by: "Ada") }
      scene.executor.run()
      scene.executor.advance(by: .seconds(1))
      if verdict == .unknown {
        #expect(caller.relinkError?.doubt?.cause == .probeInconclusive)
      } else {
        #expect(caller.hasEnded)
        #expect(caller.error == nil)
      }
      #expect(behind.error == nil)
      #expect(behind.hasEnded)
    }
    #expect(peripheral.counters.applied.map(\.value) == (verdict == .unknown ? [[2]] : [[1], [2]]))
  }

  @Test("only what waits for a word can be resolved")
  func onlyWhatWaitsForAWordCanBeResolved() throws {
    let id = try #require(OperationID("verified"))
    let unknown = try #require(OperationID("unknown"))
    try Scene.play(peripheral) { scene in
      func resolve(_ id: OperationID) throws -> RelinkError.Code? {
        let task = scene.spawn("resolve") { try await $0.resolve(id, as: .notApplied, by: "Ada") }
        return (try scene.executor.complete(task).error as? RelinkError)?.code
      }
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(1)), times: 1)
      let caller = scene.spawn("verified") {
        try await $0.write([1], to: Scene.first, idempotency: .verified(by: .app), id: id)
      }
      scene.executor.run()
      #expect(try resolve(unknown) == .invalidArgument)
      #expect(try resolve(id) == .invalidArgument)
      scene.executor.advance(by: .seconds(2))
      #expect(caller.error == nil)
      #expect(try resolve(id) == .invalidArgument)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test("a probe that says notApplied again and again is bounded by the rules for poison and the deadline")
  func aDeviceThatAlwaysDropsIsNotAskedForEver() throws {
    try Scene.play(peripheral, Configuration(deadlines: Deadlines(operation: .seconds(600)), seed: 1)) {
      scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .drop())
      let caller = scene.spawn("verified") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .verified(by: .value(of: Scene.first, is: [1])))
      }
      scene.executor.advance(by: .seconds(500))
      #expect(caller.relinkError?.doubt?.cause == .poisonous)
      #expect(peripheral.counters.received[.writeRequest] == 3)
    }
  }
}

/// Something that tasks wait for until it is opened; deaf to cancellation.
final class Gate: Sendable {
  private let state = Locked<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

  var waiting: Int { state.withLock { $0.waiting.count } }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
