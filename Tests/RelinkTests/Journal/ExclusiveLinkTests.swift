import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// `withLink`: a link for one body alone, and what becomes of everybody else meanwhile.
@Suite struct ExclusiveLinkTests {
  let peripheral = VirtualPeripheral.twoValues()

  @Test("nothing of the journal goes out while the body runs, and everything goes on behind it")
  func nothingJournalledGoesOutWhileTheBodyRuns() throws {
    try Scene.play(peripheral, isDurable: true) { scene in
      try scene.connect()
      let gate = Gate()
      let body = scene.spawn("body") { session in
        try await session.withLink { link in
          try await link.write([1], to: Scene.first)
          await gate.wait()
          try await link.write([2], to: Scene.first)
          return try await link.read(Scene.first)
        }
      }
      #expect(scene.run(until: { gate.waiting == 1 }))
      let reads = peripheral.counters.reads
      let others = [
        scene.spawn("write") { try await $0.write([8], to: Scene.second, idempotency: .idempotent) },
        scene.spawn("command") {
          try await $0.writeWithoutResponse([9], to: Scene.second, idempotency: .idempotent)
        },
        scene.spawn("read") { _ = try await $0.read(Scene.second) },
        scene.spawn("durable") {
          try await $0.write(
            [7], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(durability: .durable))
        },
      ]
      scene.executor.advance(by: .seconds(5))
      #expect(peripheral.counters.applied.map(\.value) == [[1]])
      #expect(peripheral.counters.reads == reads)
      #expect(others.allSatisfy { !$0.hasEnded })
      gate.open()
      scene.executor.advance(by: .seconds(1))
      #expect(body.value == [2])
      for other in others {
        #expect(other.hasEnded)
        #expect(other.error == nil)
      }
    }
    #expect(peripheral.counters.applied.map(\.value).prefix(2) == [[1], [2]])
    #expect(peripheral.counters.applied.count == 5)
  }

  @Test("it waits for ready, and until what was offered is answered")
  func itWaitsForReadyAndForAnswers() throws {
    try Scene.play(peripheral) { scene in
      let entered = Locked(0)
      let first = scene.spawn("first") { session in
        try await session.withLink { link in
          entered.withLock { $0 += 1 }
          return session.snapshot().isReady && link.generation == Generation(rawValue: 1)
        }
      }
      scene.executor.advance(by: .seconds(1))
      #expect(first.value == true)
      peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(3)), times: 1)
      let slow = scene.spawn("slow") { try await $0.write([1], to: Scene.first, idempotency: .idempotent) }
      scene.executor.run()
      let second = scene.spawn("second") { session in
        try await session.withLink { _ in entered.withLock { $0 += 1 } }
      }
      // Younger than the turn: behind it.
      let younger = scene.spawn("younger") {
        try await $0.write([2], to: Scene.second, idempotency: .idempotent)
      }
      scene.executor.advance(by: .seconds(2))
      #expect(entered.withLock { $0 } == 1)
      #expect(!younger.hasEnded)
      scene.executor.advance(by: .seconds(2))
      #expect(slow.error == nil)
      #expect(second.hasEnded)
      #expect(entered.withLock { $0 } == 2)
      #expect(younger.hasEnded)
    }
  }

  @Test("two at once go one after the other")
  func twoAtOnceGoInTheirOrder() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let bodies = (1...2).map { number in
        scene.spawn("body \(number)") { session in
          try await session.withLink { link in
            try await link.write([UInt8(number), 1], to: Scene.first)
            try await link.write([UInt8(number), 2], to: Scene.first)
          }
        }
      }
      scene.executor.advance(by: .seconds(1))
      for body in bodies {
        #expect(body.hasEnded)
        #expect(body.error == nil)
      }
    }
    #expect(peripheral.counters.applied.map(\.value) == [[1, 1], [1, 2], [2, 1], [2, 2]])
  }

  @Test("a link lost under the body ends its requests, and the journal goes on with the next link")
  func aLinkLostUnderTheBodyEndsItsRequests() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .applyAndDrop(), times: 1)
      let later = Locked<RelinkError.Code?>(nil)
      let gate = Gate()
      let body = scene.spawn("body") { session in
        try await session.withLink { link in
          do { try await link.write([1], to: Scene.first) } catch {
            await gate.wait()
            do { try await link.write([2], to: Scene.first) } catch {
              later.withLock { $0 = (error as? RelinkError)?.code }
            }
            throw error
          }
        }
      }
      let other = scene.spawn("other") { try await $0.write([3], to: Scene.second, idempotency: .idempotent) }
      scene.executor.advance(by: .seconds(10))
      // The body still runs, and holds up nobody: its link is gone.
      #expect(!body.hasEnded)
      #expect(other.hasEnded)
      #expect(other.error == nil)
      let next = scene.spawn("next") { try await $0.withLink { try await $0.write([4], to: Scene.second) } }
      scene.executor.advance(by: .seconds(1))
      #expect(next.error == nil)
      #expect(next.hasEnded)
      gate.open()
      scene.executor.run()
      #expect(body.relinkError?.doubt?.cause == .linkLost(.remoteUserTerminated))
      #expect(later.withLock { $0 } == .linkLost)
      let last = scene.spawn("last") { try await $0.write([5], to: Scene.second, idempotency: .idempotent) }
      scene.executor.run()
      #expect(last.error == nil)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[1], [3], [4], [5]])
  }

  enum End: CaseIterable {
    case cancelled, deadline, defaultDeadline, disconnected, closed, attemptsExhausted
  }

  @Test("who waits for his turn is told why it does not come", arguments: End.allCases)
  func whoWaitsIsToldWhyHisTurnDoesNotCome(_ end: End) throws {
    let policy = ReconnectionPolicy(attemptsPerOutage: end == .attemptsExhausted ? 1 : nil)
    try Scene.play(peripheral, Configuration(reconnection: policy, seed: 1)) { scene in
      if end == .attemptsExhausted {
        scene.radio.setDialBehavior(.refuse(after: .seconds(2)), of: scene.device)
      } else {
        scene.radio.setAdvertising(false, of: scene.device)
      }
      let entered = Locked(false)
      let limit: Deadline = end == .deadline ? .seconds(3) : .default
      let waiting = scene.spawn("waiting") { session in
        try await session.withLink(within: limit) { _ in entered.withLock { $0 = true } }
      }
      scene.executor.advance(by: .milliseconds(1999))
      #expect(!waiting.hasEnded)
      let code: RelinkError.Code
      switch end {
      case .cancelled:
        waiting.cancel()
        scene.executor.run()
        code = .cancelled
      case .deadline:
        scene.executor.advance(by: .milliseconds(1001))
        code = .deadlineExceeded
      case .defaultDeadline:
        scene.executor.advance(by: .milliseconds(28_001))
        code = .deadlineExceeded
      case .disconnected:
        try scene.drive("disconnect") { await $0.disconnect() }
        code = .disconnected
      case .closed:
        try scene.drive("close") { await $0.close() }
        code = .ended
      case .attemptsExhausted:
        scene.executor.advance(by: .milliseconds(1))
        code = .attemptsExhausted
      }
      scene.executor.run()
      #expect(waiting.relinkError?.code == code)
      #expect(!entered.withLock { $0 })
      #expect(!scene.belongings.hasTurns)
    }
  }

  @Test("a turn that ends in an error, or by cancelling, is over all the same", arguments: [true, false])
  func aBodyThatFailsGivesItsTurnBack(_ isCancelled: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .read(Scene.first), with: .answerLate(.seconds(5)), times: 1)
      let body = scene.spawn("body") { session in
        try await session.withLink { link in
          _ = try await link.read(Scene.first)
          throw RelinkError(.system, "enough")
        }
      }
      scene.executor.advance(by: .seconds(1))
      if isCancelled { body.cancel() }
      let other = scene.spawn("other") { try await $0.write([3], to: Scene.second, idempotency: .idempotent) }
      scene.executor.advance(by: .seconds(10))
      #expect(body.relinkError?.doubt?.cause == (isCancelled ? .cancelled : nil))
      #expect(body.relinkError?.code == (isCancelled ? .indeterminate : .system))
      #expect(other.hasEnded)
      #expect(other.error == nil)
    }
  }

  @Test("a caller of connect() who gives up does not take the link from one who waits for it")
  func aCancelledConnectLeavesTheWishOfATurn() throws {
    try Scene.play(peripheral) { scene in
      scene.radio.setAdvertising(false, of: scene.device)
      let connecting = scene.spawn("connect") { try await $0.connect() }
      scene.executor.run()
      let body = scene.spawn("body") { try await $0.withLink { try await $0.write([1], to: Scene.first) } }
      scene.executor.run()
      connecting.cancel()
      scene.executor.run()
      #expect(connecting.relinkError?.code == .cancelled)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(5))
      #expect(body.hasEnded)
      #expect(body.error == nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  // MARK: The session's own calls inside the body

  @Test("a call that could only wait for its own end is refused at once", arguments: [true, false])
  func theSessionsOwnCallsInsideTheBodyAreRefused(_ isInChildTask: Bool) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let start = scene.executor.now
      let codes = try scene.drive("body") { session in
        try await session.withLink { _ in
          var calls: [@Sendable () async throws -> Void] = [
            { try await session.write([1], to: Scene.first, idempotency: .nonIdempotent) },
            { _ = try await session.read(Scene.first, within: .never) },
            { try await session.withLink(within: .never) { _ in } },
          ]
          if isInChildTask {
            calls = calls.map { call in
              {
                async let inner: Void = call()
                try await inner
              }
            }
          }
          var codes: [RelinkError.Code?] = []
          for call in calls {
            do {
              try await call()
              codes.append(nil)
            } catch {
              codes.append((error as? RelinkError)?.code)
            }
          }
          return codes
        }
      }
      #expect(codes == Array(repeating: .invalidArgument, count: 3))
      #expect(scene.executor.now == start)
    }
    #expect(peripheral.counters.applied.isEmpty)
  }

  @Test("a setup and a probe that ask the session, which waits for them, are refused at once")
  func whatASetupOrAProbeAsksTheSessionIsRefusedAtOnce() throws {
    let ask = Locked<(@Sendable () async -> [RelinkError.Code?])?>(nil)
    let told = Locked<[[RelinkError.Code?]]>([])
    let closure: @Sendable () async -> Void = {
      guard let ask = ask.withLock({ $0 }) else { return }
      let codes = await ask()
      told.withLock { $0.append(codes) }
    }
    let configuration = Configuration(
      setup: { _ in
        await closure()
        return .unknown
      }, seed: 1)
    try Scene.play(peripheral, configuration) { scene in
      let session = scene.session
      ask.withLock {
        $0 = { [weak session] in
          guard let session else { return [] }
          var codes: [RelinkError.Code?] = []
          do throws(RelinkError) { _ = try await session.read(Scene.first, within: .never) } catch {
            codes.append(error.code)
          }
          do throws(RelinkError) { _ = try await session.connect(within: .never) } catch {
            codes.append(error.code)
          }
          return codes
        }
      }
      try scene.connect()
      #expect(told.withLock { $0 } == [[.invalidArgument, .invalidArgument]])
      peripheral.react(to: .write(Scene.first), with: .applyAndDrop(), times: 1)
      let probe = Probe { _ in
        await closure()
        return .applied
      }
      let write = scene.spawn("write") {
        try await $0.write([1], to: Scene.first, idempotency: .verified(by: probe))
      }
      scene.executor.advance(by: .seconds(5))
      #expect(write.hasEnded && write.error == nil)
      // Of the new link's setup, and of the probe, whose session is ready.
      #expect(told.withLock { $0.count } == 3)
      #expect(told.withLock { $0.last?.first } == .invalidArgument)
      ask.withLock { $0 = nil }
    }
  }

  @Test("what does not wait for the link may be asked inside the body")
  func whatDoesNotWaitForTheLinkMayBeAskedInsideTheBody() throws {
    let other = VirtualPeripheral.twoValues()
    try Scene.play(peripheral) { scene in
      let neighbour = try deviceID(2)
      scene.radio.add(other, as: neighbour)
      let second = try DeviceSession(
        with: neighbour, over: scene.radio, configuration: Configuration(seed: 2))
      let handle = try scene.drive("body") { session in
        try await session.withLink { link in
          // Another session's link is free.
          try await second.write([7], to: Scene.first, idempotency: .nonIdempotent)
          let handle = try await session.submit(WriteRequest([2], to: Scene.first, idempotency: .idempotent))
          try await link.write([1], to: Scene.first)
          return handle
        }
      }
      #expect(try scene.executor.drive { await handle.outcome } == .succeeded(.acknowledged))
      try scene.executor.drive { await second.close() }
    }
    #expect(peripheral.counters.applied.map(\.value) == [[1], [2]])
    #expect(other.wr(0x0010) == 1)
  }

  @Test("a task that the body leaves behind may call the session once the turn is over")
  func aTaskThatOutlivesTheBodyMayCallTheSession() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let gate = Gate()
      let leftBehind = Locked<SpawnedTask<Void>?>(nil)
      try scene.drive("body") { [executor = scene.executor] session in
        try await session.withLink { _ in
          leftBehind.withLock {
            $0 = executor.spawn("left behind") {
              await gate.wait()
              try await session.write([1], to: Scene.first, idempotency: .idempotent)
            }
          }
        }
      }
      gate.open()
      scene.executor.advance(by: .seconds(1))
      let task = leftBehind.withLock { $0.take() }
      #expect(task?.hasEnded == true)
      #expect(task?.error == nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }
}
