import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// The journal as an app sees it from outside: its entries, the stream of its transitions, the audit sink.
@Suite struct JournalViewTests {
  let peripheral = VirtualPeripheral.twoValues()

  /// Takes everything that a stream of transitions brings.
  private func collect(_ scene: Scene, buffering: Buffering = .newest(256)) throws -> Collected<JournalUpdate>
  {
    let stream = try scene.drive("journalEvents") { await $0.journalEvents(buffering: buffering) }
    let collected = Collected<JournalUpdate>()
    collected.runs(
      scene.executor.spawn("journal events") {
        for await update in stream { collected.add(update) }
        collected.end()
      })
    return collected
  }

  @Test("entries are shown in call order, with state, tag, offers, keys and deadline")
  func entriesAreShownAsTheyStand() throws {
    let id = try #require(OperationID("command 1"))
    try Scene.play(peripheral) { scene in
      try scene.connect()
      peripheral.react(to: .write(Scene.first), with: .swallow, times: 1)
      let start = scene.executor.timestamp()
      let options = WriteOptions(
        within: .seconds(20), offerBefore: .seconds(10), lane: "bolt", priority: .high, supersedes: "position"
      )
      _ = scene.spawn("offered") {
        try await $0.write([1], to: Scene.first, idempotency: .nonIdempotent, id: id, options: options)
      }
      _ = scene.spawn("queued") {
        try await $0.writeWithoutResponse(
          [2, 3], to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(within: .never, isSensitive: true))
      }
      _ = scene.spawn("read") { try await $0.read(Scene.second) }
      scene.executor.advance(by: .seconds(1))
      let journal = try scene.drive("journal") { await $0.journal }
      #expect(journal.map(\.state) == [.offered, .queued, .queued])
      let first = try #require(journal.first)
      #expect(first.id == id)
      #expect(first.request == .write(Scene.first, [1]))
      #expect(first.idempotency == .nonIdempotent)
      #expect(first.offers == 1)
      #expect(first.lastOffer == .init(generation: Generation(rawValue: 1), at: start))
      #expect(first.deadline == start.monotonic.advanced(by: .seconds(20)))
      #expect(first.offerBefore == start.wall + 10_000_000_000)
      #expect(first.lane == "bolt")
      #expect(first.priority == .high)
      #expect(first.supersedes == "position")
      #expect(first.durability == .inMemory)
      #expect(!first.isSensitive && !first.isRecovered)
      #expect(journal[1].request == .writeWithoutResponse(Scene.first, []))
      #expect(journal[1].isSensitive)
      #expect(journal[1].deadline == nil)
      #expect(journal[1].lastOffer == nil)
      #expect(journal[2].request == .read(Scene.second))
      try scene.drive("disconnect") { await $0.disconnect() }
      #expect(try scene.drive("journal") { await $0.journal }.isEmpty)
    }
  }

  @Test("every transition is told in order, and a repetition with the link that carried it")
  func everyTransitionIsToldInOrder() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let updates = try collect(scene)
      peripheral.react(to: .write(Scene.first), with: .applyAndDrop(), times: 1)
      try scene.drive("write") { try await $0.write([1], to: Scene.first, idempotency: .idempotent) }
      peripheral.react(to: .write(Scene.first), with: .drop(), times: 1)
      let probe = Probe.value(of: Scene.first, is: [2])
      try scene.drive("verified") {
        try await $0.write([2], to: Scene.first, idempotency: .verified(by: probe))
      }
      scene.executor.run()
      let events = updates.all.compactMap { if case .event(let event) = $0 { event } else { nil } }
      let (first, second, third) = (
        Generation(rawValue: 1), Generation(rawValue: 2), Generation(rawValue: 3)
      )
      #expect(
        events.map(\.change) == [
          .recorded, .offered(first, number: 1), .inDoubt(.remoteUserTerminated),
          .offered(second, number: 2), .settled(.succeeded(.acknowledged)),
          .recorded, .offered(second, number: 1), .inDoubt(.remoteUserTerminated), .probing(third),
          .judged(.notApplied, by: "probe"), .offered(third, number: 2), .settled(.succeeded(.acknowledged)),
        ])
      #expect(events.map(\.operation.state).suffix(1) == [.settled])
      #expect(events[2].operation.lastOffer?.lostTo == .remoteUserTerminated)
      #expect(events[2].operation.lastOffer?.evidence.first == .hci(.remoteUserTerminatedConnection))
      #expect(zip(events, events.dropFirst()).allSatisfy { $0.at.monotonic <= $1.at.monotonic })
      #expect(Set(events.prefix(5).map(\.operation.id)).count == 1)
      try scene.drive("close") { await $0.close() }
      scene.executor.run()
      #expect(updates.hasEnded)
      // Whoever comes after the end gets no event and no wait.
      let late = try collect(scene)
      scene.executor.run()
      #expect(late.hasEnded)
      #expect(late.all.isEmpty)
    }
  }

  @Test("who resolved an operation, and who joined it, is told")
  func joinsAndResolutionsAreTold() throws {
    let id = try #require(OperationID("command 1"))
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let updates = try collect(scene)
      peripheral.react(to: .write(Scene.first), with: .applyAndDrop(), times: 1)
      let callers = (0..<2).map { number in
        scene.spawn("caller \(number)") {
          try await $0.write([1], to: Scene.first, idempotency: .verified(by: .app), id: id)
        }
      }
      scene.executor.advance(by: .seconds(5))
      try scene.drive("resolve") { try await $0.resolve(id, as: .applied, by: "Ada") }
      scene.executor.run()
      #expect(callers.allSatisfy { $0.hasEnded && $0.error == nil })
      let changes = updates.all.compactMap { if case .event(let event) = $0 { event.change } else { nil } }
      #expect(
        changes == [
          .recorded, .offered(Generation(rawValue: 1), number: 1), .joined, .inDoubt(.remoteUserTerminated),
          .judged(.applied, by: "Ada"), .settled(.succeeded(.resolved)),
        ])
    }
  }

  @Test("a consumer that falls behind gets the count of what it lost, and slows nobody")
  func aConsumerThatFallsBehindGetsTheCount() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let slow = try scene.drive("journalEvents") { await $0.journalEvents(buffering: .newest(4)) }
      let quick = try collect(scene)
      for number in 0..<5 {
        try scene.drive("write") {
          try await $0.write([UInt8(number)], to: Scene.first, idempotency: .idempotent)
        }
      }
      scene.executor.run()
      #expect(quick.all.count == 15)
      let taken = Collected<JournalUpdate>()
      scene.executor.spawn("slow") {
        for await update in slow { taken.add(update) }
      }
      scene.executor.run()
      guard case .missed(let count) = taken.all.first else {
        Issue.record("no word of what was lost: \(taken.all)")
        return
      }
      #expect(count + taken.all.count - 1 == 15)
      #expect(taken.all.count <= 5)
      #expect(Array(taken.all.dropFirst()) == Array(quick.all.suffix(taken.all.count - 1)))
    }
  }

  @Test("a consumer that is cancelled, or lets its stream go, costs nothing any more")
  func aCancelledConsumerIsForgotten() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      let updates = try collect(scene)
      scene.executor.run()
      updates.cancel()
      scene.executor.run()
      #expect(updates.hasEnded)
      _ = try scene.drive("dropped") { session in
        _ = await session.journalEvents()
      }
      #expect(!scene.session.journalFeed.hasSubscribers)
      try scene.drive("write") { try await $0.write([1], to: Scene.first, idempotency: .idempotent) }
      #expect(scene.session.assumeIsolated { !$0.operations.isObserved })
    }
  }

  // MARK: The audit sink

  @Test("the audit sink gets every transition, with device and owner, and no sensitive byte")
  func theAuditSinkGetsEveryTransitionAndNoSensitiveByte() throws {
    let audit = RecordingAuditSink()
    let secret: [UInt8] = [0xC0, 0xFF, 0xEE]
    var configuration = JournalCall.configuration
    configuration.audit = audit
    configuration.owner = "gateway 7"
    try Scene.play(peripheral, configuration, isDurable: true) { scene in
      try scene.connect()
      let updates = try collect(scene)
      for durability in [Durability.inMemory, .durable] {
        peripheral.react(to: .write(Scene.first), with: .drop(), times: 1)
        let caller = scene.spawn("secret") {
          try await $0.write(
            secret, to: Scene.first, idempotency: .idempotent, id: OperationID("secret \(durability)"),
            options: WriteOptions(durability: durability, isSensitive: true))
        }
        scene.executor.advance(by: .seconds(10))
        #expect(caller.hasEnded)
        #expect(caller.error == nil)
        #expect(try scene.drive("journal") { await $0.journal }.isEmpty)
      }
      #expect(peripheral.counters.writes(at: 0x0010).map(\.value) == [secret, secret])
      let records = audit.records
      #expect(records.count == updates.all.count)
      #expect(records.map { JournalUpdate.event($0.event) } == updates.all)
      #expect(records.allSatisfy { $0.owner == "gateway 7" && $0.device == scene.device })
      #expect(records.contains { $0.event.change == .marked })
      for record in records {
        #expect(record.event.operation.isSensitive)
        #expect(record.event.operation.request == .write(Scene.first, []))
      }
      let store = try #require(scene.store)
      let row = try #require(store.rows(of: scene.device).first)
      #expect(row.outcome != nil)
      #expect(row.isSensitive)
      for bytes in [row.operation, row.mark ?? [], row.outcome ?? []] { #expect(!bytes.contains(secret)) }
      // While it was open the store had to have it.
      let admitted = store.log.flatMap(\.records).compactMap {
        if case .admitted(let row) = $0 { row.operation } else { nil }
      }
      #expect(admitted.contains { $0.contains(secret) })
    }
  }

  @Test(
    "a session that is closed and let go of is audited to the end",
    arguments: [false, true], [false, true])
  func aClosedSessionIsAuditedToTheEnd(_ isHeldBefore: Bool, _ fails: Bool) throws {
    let audit = RecordingAuditSink()
    try JournalWorld.play { world in
      world.radio.setAdvertising(false, of: world.device)
      weak var observed: DeviceSession?
      do {
        let session = try world.open { $0.audit = audit }
        observed = session
        try world.submit(to: session)
        try world.submit(to: session, 2)
        if isHeldBefore {
          // What an answer brings is asked for only behind it.
          world.store.hold()
          let cancelled = world.executor.spawn("write") {
            try await session.write(
              [3], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(durability: .durable))
          }
          world.executor.run()
          cancelled.cancel()
          world.executor.advance(by: .seconds(2))
          #expect(cancelled.hasEnded)
        }
        try world.executor.drive { await session.close() }
        world.store.hold()
      }
      world.executor.run()
      #expect(observed != nil)
      #expect(!audit.records.contains { $0.event.operation.state == .settled })
      if fails { world.store.goDown(with: .full) }
      world.store.release()
      world.executor.advance(by: .seconds(1))
      #expect(observed == nil)
      #expect(world.executor.timerCount == 0)
      let settled = audit.records.map(\.event.change).filter { $0 == .settled(.notSent(.ended)) }
      #expect(settled.count == (fails ? 0 : 2))
      #expect(world.rows.allSatisfy { ($0.outcome == nil) == fails })
      world.store.heal()
    }
  }
}

/// Keeps what a session tells an audit sink.
final class RecordingAuditSink: AuditSink {
  struct Record: Sendable {
    var event: JournalEvent
    var device: DeviceID
    var owner: String
  }

  private let state = Locked<[Record]>([])

  var records: [Record] { state.withLock { $0 } }

  func record(_ event: JournalEvent, of device: DeviceID, owner: String) {
    state.withLock { $0.append(Record(event: event, device: device, owner: owner)) }
  }
}
