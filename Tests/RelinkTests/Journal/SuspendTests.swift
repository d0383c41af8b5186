import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A system that is suspended while somebody waits: who waited too long by then is told when it wakes up, and not after
/// the rest of his time awake.
@Suite struct SuspendTests {
  let peripheral = VirtualPeripheral.twoValues()

  /// What somebody waits in while the system is suspended.
  enum Wait: CaseIterable {
    case read, discovery, staleWrite, connect, turn
  }

  /// A session whose device is absent.
  private func playAbsent(_ script: (Scene) throws -> Void) throws {
    try Scene.play(peripheral) { scene in
      scene.radio.setAdvertising(false, of: scene.device)
      try script(scene)
    }
  }

  private func spawn(_ wait: Wait, in scene: Scene) -> SpawnedTask<Void> {
    scene.spawn("\(wait)") { session in
      switch wait {
      case .read: _ = try await session.read(Scene.first, within: .seconds(30))
      case .staleWrite:
        try await session.write(
          [1], to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(within: .never, offerBefore: .seconds(30)))
      case .connect: try await session.connect(within: .seconds(30))
      case .turn: try await session.withLink(within: .seconds(30)) { _ in }
      case .discovery: _ = try await session.discoverServices(within: .seconds(30))
      }
    }
  }

  @Test("a wait that ends while the system is suspended is over when it wakes up", arguments: Wait.allCases)
  func aWaitThatWasSleptThroughIsOverAtWaking(_ wait: Wait) throws {
    try playAbsent { scene in
      let caller = spawn(wait, in: scene)
      scene.executor.advance(by: .seconds(2))
      scene.executor.suspend(for: .seconds(27))
      scene.executor.run()
      #expect(!caller.hasEnded)
      scene.executor.suspend(for: .seconds(3_600))
      let waking = scene.executor.now
      scene.executor.run()
      #expect(caller.hasEnded)
      #expect(scene.executor.now == waking)
      switch wait {
      case .read, .discovery: #expect(caller.relinkError?.notSentReason == .deadline)
      case .staleWrite: #expect(caller.relinkError?.notSentReason == .expired)
      case .connect, .turn: #expect(caller.relinkError?.code == .deadlineExceeded)
      }
    }
  }

  @Test("a wait that a suspend cut short ends after the rest of its time", arguments: Wait.allCases)
  func theRestOfAWaitIsWaitedAwake(_ wait: Wait) throws {
    try playAbsent { scene in
      let caller = spawn(wait, in: scene)
      scene.executor.advance(by: .seconds(2))
      scene.executor.suspend(for: .seconds(20))
      scene.executor.advance(by: .milliseconds(7_999))
      #expect(!caller.hasEnded)
      scene.executor.advance(by: .milliseconds(1))
      #expect(caller.hasEnded)
    }
  }

  @Test("two callers of connect() are each told at their own waking")
  func eachCallerOfConnectHasHisOwnDeadline() throws {
    try playAbsent { scene in
      let short = scene.spawn("short") { try await $0.connect(within: .seconds(30)) }
      let long = scene.spawn("long") { try await $0.connect(within: .seconds(600)) }
      scene.executor.advance(by: .seconds(2))
      scene.executor.suspend(for: .seconds(60))
      scene.executor.run()
      #expect(short.relinkError?.code == .deadlineExceeded)
      #expect(!long.hasEnded)
      scene.executor.suspend(for: .seconds(540))
      scene.executor.run()
      #expect(long.relinkError?.code == .deadlineExceeded)
    }
  }

  @Test("a caller who joined is told at waking, and the first waits on", arguments: [true, false])
  func aCallerWhoJoinedHasHisOwnDeadline(_ isFirstLonger: Bool) throws {
    let id = try #require(OperationID("joined"))
    try playAbsent { scene in
      let spans: [Deadline] =
        isFirstLonger ? [.seconds(3_600), .seconds(30)] : [.seconds(30), .seconds(3_600)]
      let callers = spans.map { span in
        scene.spawn("write within \(span)") {
          try await $0.write(
            [1], to: Scene.first, idempotency: .idempotent, id: id, options: WriteOptions(within: span))
        }
      }
      scene.executor.advance(by: .seconds(2))
      scene.executor.suspend(for: .seconds(600))
      scene.executor.run()
      // The deadline of the first call is that of the operation.
      #expect(callers.map(\.hasEnded) == (isFirstLonger ? [false, true] : [true, true]))
      if isFirstLonger {
        #expect(callers[1].relinkError?.code == .deadlineExceeded)
        callers[0].cancel()
      } else {
        #expect(callers.map { $0.relinkError?.notSentReason } == [.deadline, .deadline])
      }
      scene.executor.run()
      #expect(callers.map(\.hasEnded) == [true, true])
    }
  }

  @Test("what was offered before the suspend is in doubt at waking")
  func whatWasOfferedIsInDoubtAtWaking() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      let caller = scene.spawn("write") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(within: .seconds(20)))
      }
      scene.executor.advance(by: .seconds(2))
      scene.executor.suspend(for: .seconds(3_600))
      scene.executor.run()
      #expect(caller.relinkError?.doubt?.cause == .deadline)
      // The link itself is judged by the time that it was awake.
      #expect(scene.session.snapshot().isReady)
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("a store that slept through a deadline has time for its commit")
  func aStoreThatSleptHasTimeForItsCommit() throws {
    try Scene.play(peripheral, isDurable: true) { scene in
      try scene.connect()
      let caller = scene.spawn("write") {
        try await $0.write(
          [1], to: Scene.first, idempotency: .nonIdempotent,
          options: WriteOptions(within: .seconds(30), durability: .durable))
      }
      #expect(scene.run(until: { peripheral.wr(0x0010) == 1 }))
      scene.executor.run()
      #expect(!caller.hasEnded)
      scene.executor.suspend(for: .seconds(3_600))
      scene.executor.advance(by: .seconds(1))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
    }
  }
}
