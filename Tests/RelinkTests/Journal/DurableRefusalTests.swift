import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Durable calls that a session cannot take: what an earlier one did under their ID is told before they are refused.
@Suite struct DurableRefusalTests {
  /// Why the session cannot take it.
  enum Obstacle: CaseIterable {
    case disconnected, closed, adapterOff, journalFull

    var policy: JournalPolicy { self == .journalFull ? JournalPolicy(capacity: 3) : .standard }

    func stand(in world: JournalWorld, _ session: DeviceSession) throws {
      switch self {
      case .disconnected: try world.executor.drive { await session.disconnect() }
      case .closed: try world.executor.drive { await session.close() }
      case .adapterOff:
        world.radio.setAdapter(.off)
        world.executor.run()
      case .journalFull:
        world.radio.setAdvertising(false, of: world.device)
        for number in 0..<3 {
          world.executor.spawn("read \(number)") {
            try await session.read(Scene.second, within: .seconds(10))
          }
        }
        world.executor.run()
      }
    }

    func goAway(from world: JournalWorld, _ session: DeviceSession) {
      if self == .adapterOff { world.radio.setAdapter(.on) }
      world.radio.setAdvertising(true, of: world.device)
      world.executor.advance(by: .seconds(10))
    }

    var reason: NotSentReason {
      switch self {
      case .disconnected: .disconnected
      case .closed: .ended
      case .adapterOff: .adapterUnavailable(.off)
      case .journalFull: .journalFull(limit: 3)
      }
    }
  }

  private static func request(_ id: OperationID, _ value: UInt8 = 1) -> WriteRequest {
    let options = WriteOptions(durability: .durable, ifUnavailable: .fail)
    return WriteRequest([value], to: Scene.first, idempotency: .nonIdempotent, id: id, options: options)
  }

  private func write(
    _ world: JournalWorld, _ session: DeviceSession, _ id: OperationID, _ value: UInt8 = 1
  ) -> SpawnedTask<Void> {
    world.executor.spawn("write \(value)") {
      let options = WriteOptions(durability: .durable, ifUnavailable: .fail)
      try await session.write([value], to: Scene.first, idempotency: .nonIdempotent, id: id, options: options)
    }
  }

  private func submit(
    _ world: JournalWorld, _ session: DeviceSession, _ id: OperationID, _ value: UInt8 = 1
  ) -> SpawnedTask<PendingOperation> {
    world.executor.spawn("submit \(value)") { try await session.submit(Self.request(id, value)) }
  }

  @Test(
    "what an earlier session did is told, and nothing is sent", arguments: Obstacle.allCases)
  func whatAnEarlierSessionDidIsTold(_ obstacle: Obstacle) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try world.life { session in
        let first = write(world, session, id)
        world.executor.advance(by: .seconds(1))
        #expect(first.hasEnded)
        #expect(first.error == nil)
      }
      #expect(world.rows.map(\.isDelivered) == [true])
      world.executor.advance(by: .seconds(5))
      try world.life(over: nil, { $0.journal = obstacle.policy }) { session in
        world.executor.advance(by: .milliseconds(100))
        try obstacle.stand(in: world, session)
        let other = write(world, session, id, 2)
        let again = write(world, session, id)
        world.executor.advance(by: .milliseconds(100))
        #expect(other.relinkError?.notSentReason == .conflictingID)
        #expect(again.hasEnded)
        #expect(again.error == nil)
        do {
          let submitted = submit(world, session, id)
          world.executor.advance(by: .milliseconds(100))
          #expect(submitted.value?.outcomeIfSettled == .succeeded(.acknowledged))
        }
        obstacle.goAway(from: world, session)
      }
      #expect(world.peripheral.counters.applied.map(\.value) == [[1]])
      #expect(world.rows.count == 1)
    }
  }

  @Test(
    "what nobody did is refused, and may be asked for again", arguments: Obstacle.allCases, [true, false])
  func whatNobodyDidIsRefused(_ obstacle: Obstacle, _ isSubmitted: Bool) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try world.life(over: nil, { $0.journal = obstacle.policy }) { session in
        world.executor.advance(by: .milliseconds(100))
        try obstacle.stand(in: world, session)
        do {
          let error: RelinkError?
          if isSubmitted {
            let refused = submit(world, session, id)
            world.executor.advance(by: .milliseconds(100))
            #expect(refused.hasEnded)
            error = refused.relinkError
          } else {
            let refused = write(world, session, id)
            world.executor.advance(by: .milliseconds(100))
            error = refused.relinkError
          }
          #expect(error?.notSentReason == obstacle.reason)
          #expect(world.rows.isEmpty)
        }
        obstacle.goAway(from: world, session)
        guard obstacle != .closed else { return }
        try world.executor.drive { try await session.connect() }
        let again = write(world, session, id)
        world.executor.advance(by: .seconds(1))
        #expect(again.hasEnded)
        #expect(again.error == nil)
      }
      #expect(world.peripheral.wr(0x0010) == (obstacle == .closed ? 0 : 1))
    }
  }

  @Test("what an earlier session left open is waited for", arguments: [true, false])
  func whatAnEarlierSessionLeftOpenIsWaitedFor(_ isDisconnected: Bool) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try world.life { session in
        world.radio.setAdvertising(false, of: world.device)
        try world.submit(to: session, id: id)
      }
      world.radio.setAdapter(.off)
      world.store.hold()
      try world.life { session in
        // It learns here that the adapter is off.
        let connecting = world.executor.spawn("connect") { try await session.connect() }
        world.executor.run()
        #expect(connecting.relinkError?.code == .adapterUnavailable)
        if isDisconnected { try world.executor.drive { await session.disconnect() } }
        let again = write(world, session, id)
        world.executor.advance(by: .seconds(1))
        #expect(!again.hasEnded)
        world.store.release()
        world.executor.advance(by: .seconds(1))
        #expect(again.hasEnded == isDisconnected)
        world.radio.setAdvertising(true, of: world.device)
        world.radio.setAdapter(.on)
        world.executor.advance(by: .seconds(10))
        #expect(again.hasEnded)
        if isDisconnected {
          #expect(again.relinkError?.notSentReason == .disconnected)
        } else {
          #expect(again.error == nil)
        }
      }
      #expect(world.peripheral.wr(0x0010) == (isDisconnected ? 0 : 1))
    }
  }

  enum Failure: CaseIterable { case silent, down, unclaimed, superseded, closedBeforeTheClaim }

  @Test("where the store cannot be read nobody says that nothing was sent", arguments: Failure.allCases)
  func whereTheStoreCannotBeReadNobodyCanTell(_ failure: Failure) throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try world.life { session in
        let first = write(world, session, id)
        world.executor.advance(by: .seconds(1))
        #expect(first.error == nil)
      }
      world.executor.advance(by: .seconds(5))
      if failure == .unclaimed { world.store.goDown(with: .locked) }
      if failure == .closedBeforeTheClaim { world.store.hold() }
      try world.life { session in
        world.executor.advance(by: .milliseconds(100))
        if failure == .closedBeforeTheClaim {
          try world.executor.drive { await session.close() }
        } else {
          try world.executor.drive { await session.disconnect() }
        }
        switch failure {
        case .silent: world.store.hold()
        case .down: world.store.goDown(with: .full)
        case .superseded: world.store.claim(world.device, owner: "another", epoch: nil) { _ in }
        case .unclaimed, .closedBeforeTheClaim: break
        }
        let again = write(world, session, id)
        if failure == .closedBeforeTheClaim {
          world.executor.run()
          world.store.release()
        }
        world.executor.advance(by: failure == .silent ? .seconds(31) : .milliseconds(100))
        #expect(again.hasEnded)
        guard case .storeFailed = again.relinkError?.doubt?.cause else {
          Issue.record("\(String(describing: again.error))")
          return
        }
        world.store.heal()
        world.executor.advance(by: .seconds(40))
      }
      #expect(world.peripheral.wr(0x0010) == 1)
    }
  }

  @Test("who is cancelled while the store is asked hears at once, and not that nothing was sent")
  func whoIsCancelledMeanwhileHearsAtOnce() throws {
    let id = try #require(OperationID("command 1"))
    try JournalWorld.play { world in
      try world.life { session in
        world.executor.advance(by: .milliseconds(100))
        try world.executor.drive { await session.disconnect() }
        world.store.hold()
        let caller = write(world, session, id)
        world.executor.run()
        #expect(!caller.hasEnded)
        caller.cancel()
        world.executor.run()
        #expect(caller.relinkError?.code == .cancelled)
        #expect(caller.relinkError?.outcome == nil)
        world.store.release()
        world.executor.advance(by: .seconds(1))
        #expect(session.assumeIsolated { $0.openWork.waiters } == 0)
      }
      #expect(world.rows.isEmpty)
    }
  }
}
