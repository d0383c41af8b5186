import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Durable operations in a session that lives on: what is committed before what, and what a failing store does.
@Suite struct DurableWriteTests {
  let peripheral = VirtualPeripheral.twoValues()

  private func request(
    _ value: UInt8 = 1, _ tag: Idempotency = .nonIdempotent, id: OperationID? = nil,
    within deadline: Deadline = .default
  ) -> WriteRequest {
    WriteRequest(
      [value], to: Scene.first, idempotency: tag, id: id,
      options: WriteOptions(within: deadline, durability: .durable))
  }

  private func write(
    _ scene: Scene, _ value: UInt8 = 1, _ tag: Idempotency = .nonIdempotent,
    within deadline: Deadline = .default
  ) -> SpawnedTask<Void> {
    let options = WriteOptions(within: deadline, durability: .durable)
    return scene.spawn("write \(value)") {
      try await $0.write([value], to: Scene.first, idempotency: tag, options: options)
    }
  }

  private func play(
    _ configuration: Configuration = Configuration(seed: 1),
    _ script: (Scene, VirtualJournalStore) throws -> Void
  ) throws {
    try Scene.play(peripheral, configuration, isDurable: true) { scene in
      try script(scene, try #require(scene.store))
    }
  }

  // MARK: What is committed before what

  @Test("submit returns when the record is committed, and not before")
  func submitReturnsWhenTheRecordIsCommitted() throws {
    try play { scene, store in
      scene.radio.setAdvertising(false, of: scene.device)
      scene.executor.advance(by: .seconds(1))
      store.hold()
      let submitted = scene.spawn("submit") { try await $0.submit(request()) }
      scene.executor.advance(by: .seconds(3))
      #expect(!submitted.hasEnded)
      #expect(store.rows(of: scene.device).isEmpty)
      #expect(try scene.drive("journal") { await $0.journal.map(\.state) } == [.recording])
      store.release()
      scene.executor.run()
      let handle = try #require(submitted.value)
      let row = try #require(store.rows(of: scene.device).first)
      #expect(row.id == handle.id.description)
      #expect(row.mark == nil && row.outcome == nil)
      #expect(store.log.last?.sync == .full)
      handle.cancel()
      scene.executor.advance(by: .seconds(1))
      #expect(handle.outcomeIfSettled == .notSent(.cancelled))
    }
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test(
    "nothing of a durable write is on the air before its mark is committed",
    arguments: [Idempotency.idempotent, .nonIdempotent, .verified(by: .app)])
  func nothingIsOnTheAirBeforeTheMarkIsCommitted(_ tag: Idempotency) throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      let marked = Locked<[Bool]>([])
      peripheral.whenApplied(Scene.first) { [device = scene.device] _, _ in
        let isMarked = store.rows(of: device).allSatisfy { $0.mark != nil }
        marked.withLock { $0.append(isMarked) }
      }
      let caller = write(scene, 1, tag)
      #expect(scene.run(until: { !store.rows(of: scene.device).isEmpty }))
      store.hold()
      scene.executor.advance(by: .seconds(5))
      #expect(peripheral.counters.received[.writeRequest] == nil)
      #expect(store.rows(of: scene.device).first?.mark == nil)
      #expect(store.waitingCalls == 1)
      store.release()
      scene.executor.advance(by: .seconds(1))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
      #expect(marked.withLock { $0 } == [true])
      let syncs = store.log.compactMap { commit -> JournalSync? in
        guard case .marked = commit.records.first else { return nil }
        return commit.sync
      }
      #expect(syncs == [tag == .idempotent ? .normal : .full])
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test("the mark is committed while the link is made ready, and costs no time behind it")
  func theMarkIsCommittedWhileTheLinkIsMadeReady() throws {
    try play { scene, store in
      scene.radio.setAdvertising(false, of: scene.device)
      let caller = write(scene)
      scene.executor.advance(by: .seconds(1))
      #expect(store.rows(of: scene.device).first?.mark == nil)
      peripheral.react(to: .exchangeMTU, with: .answerLate(.seconds(2)), times: 1)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(1))
      #expect(!scene.session.snapshot().isReady)
      #expect(store.rows(of: scene.device).first?.mark != nil)
      store.hold()
      #expect(scene.run(until: { scene.session.snapshot().isReady }))
      scene.executor.run()
      #expect(peripheral.wr(0x0010) == 1)
      store.release()
      scene.executor.advance(by: .seconds(1))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
    }
  }

  @Test("a mark of a link that is lost before the offer is no offer")
  func aMarkAloneIsNoOffer() throws {
    try play { scene, store in
      scene.radio.setAdvertising(false, of: scene.device)
      let caller = write(scene)
      scene.executor.advance(by: .seconds(1))
      peripheral.react(to: .exchangeMTU, with: .drop(), times: 1)
      scene.radio.setAdvertising(true, of: scene.device)
      #expect(scene.run(until: { store.rows(of: scene.device).first?.mark != nil }))
      scene.executor.advance(by: .seconds(10))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test(
    "a caller goes on only when the settlement is committed",
    arguments: [ServerReaction.proper, .refuse(.writeNotPermitted), .applyAndDrop()])
  func aCallerGoesOnWhenTheSettlementIsCommitted(_ reaction: ServerReaction) throws {
    try play { scene, store in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: reaction, times: 1)
      let caller = write(scene)
      #expect(scene.run(until: { peripheral.counters.received[.writeRequest] == 1 }))
      store.hold()
      scene.executor.advance(by: .seconds(3))
      #expect(!caller.hasEnded)
      #expect(store.rows(of: scene.device).first?.outcome == nil)
      #expect(try scene.drive("journal") { await $0.journal.map(\.state) } == [.settling])
      store.release()
      #expect(scene.run(until: { caller.hasEnded }))
      let row = try #require(store.rows(of: scene.device).first)
      #expect(row.outcome != nil)
      #expect(row.settledAt != nil)
      scene.executor.advance(by: .seconds(1))
      #expect(store.rows(of: scene.device).first?.isDelivered == true)
    }
  }

  @Test("an outcome that nobody has asked for is not delivered; the first word of it is")
  func anOutcomeCountsAsDeliveredOnceItIsAskedFor() throws {
    try play { scene, store in
      try scene.connect()
      let handle = try scene.drive("submit") { try await $0.submit(request()) }
      scene.executor.advance(by: .seconds(5))
      #expect(store.rows(of: scene.device).map(\.isDelivered) == [false])
      #expect(store.rows(of: scene.device).first?.outcome != nil)
      #expect(try scene.executor.drive { await handle.outcome } == .succeeded(.acknowledged))
      scene.executor.advance(by: .seconds(1))
      #expect(store.rows(of: scene.device).map(\.isDelivered) == [true])
    }
  }

  // MARK: What never touches the store

  @Test("reads, subscriptions and writes in memory cause no commit")
  func readsAndWritesInMemoryCauseNoCommit() throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      let before = store.statistics
      let values = scene.spawn("values") { session in
        for try await _ in session.notifications(from: Scene.second) {}
      }
      for number in 0..<100 {
        try scene.drive("read") { _ = try await $0.read(Scene.first) }
        try scene.drive("write") {
          try await $0.write(
            [UInt8(number)], to: Scene.first, idempotency: .nonIdempotent,
            id: OperationID("command \(number)"))
        }
      }
      try scene.drive("discovery") { _ = try await $0.discoverServices() }
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(10))
      #expect(store.statistics == before)
      #expect(store.waitingCalls == 0)
      values.cancel()
    }
    #expect(peripheral.counters.reads[0x0010] == 100)
  }

  @Test(
    "a durable and another write of one value are not unsettled at the same time", arguments: [true, false])
  func durabilityIsNotMixedOnOneValue(_ isDurableFirst: Bool) throws {
    try play { scene, _ in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .answerLate(.seconds(2)), times: 1)
      @Sendable func write(_ session: DeviceSession, _ durability: Durability) async throws {
        try await session.write(
          [1], to: Scene.first, idempotency: .idempotent, options: WriteOptions(durability: durability))
      }
      let order: [Durability] = isDurableFirst ? [.durable, .inMemory] : [.inMemory, .durable]
      let first = scene.spawn("first") { try await write($0, order[0]) }
      scene.executor.advance(by: .seconds(1))
      let second = scene.spawn("second") { try await write($0, order[1]) }
      scene.executor.run()
      #expect(second.relinkError?.notSentReason == .mixedDurability)
      scene.executor.advance(by: .seconds(5))
      #expect(first.hasEnded)
      #expect(first.error == nil)
      try scene.drive("third") { try await write($0, order[1]) }
    }
    #expect(peripheral.wr(0x0010) == 2)
  }
}
