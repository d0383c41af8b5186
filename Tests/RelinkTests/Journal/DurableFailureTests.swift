import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A store that fails, hangs and comes back, under a session that lives on.
@Suite struct DurableFailureTests {
  let peripheral = VirtualPeripheral.twoValues()

  private func play(
    _ configuration: Configuration = Configuration(seed: 1),
    _ script: (Scene, VirtualJournalStore) throws -> Void
  ) throws {
    try Scene.play(peripheral, configuration, isDurable: true) { scene in
      try script(scene, try #require(scene.store))
    }
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

  private func strike(
    _ store: VirtualJournalStore, _ fault: StoreFaultPlan.Fault, at ordinal: Int = 1,
    of call: StoreFaultPlan.Call = .append
  ) {
    var plan = StoreFaultPlan(seed: 1)
    plan.strike(fault, at: ordinal, of: call)
    store.setFaults(plan)
  }

  private func storeError(_ task: SpawnedTask<Void>) -> JournalStoreError? {
    if case .storeFailed(let error) = task.relinkError?.notSentReason { return error }
    if case .storeFailed(let error) = task.relinkError?.doubt?.cause { return error }
    return nil
  }

  @Test("what cannot be recorded is not sent, and the next one is", arguments: [true, false])
  func whatCannotBeRecordedIsNotSent(_ isSubmitted: Bool) throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      strike(store, .failed(.full))
      let refused =
        isSubmitted
        ? scene.spawn("submit") { session in
          let options = WriteOptions(durability: .durable)
          let request = WriteRequest([1], to: Scene.first, idempotency: .nonIdempotent, options: options)
          _ = try await session.submit(request)
        } : write(scene)
      scene.executor.advance(by: .milliseconds(100))
      #expect(refused.relinkError?.code == .notSent)
      #expect(storeError(refused)?.code == .full)
      #expect(store.rows(of: scene.device).isEmpty)
      let next = write(scene, 2)
      scene.executor.advance(by: .seconds(5))
      #expect(next.hasEnded)
      #expect(next.error == nil)
    }
    #expect(peripheral.counters.applied.map(\.value) == [[2]])
  }

  @Test("a claim that is refused refuses the call; the next call asks again")
  func aRefusedClaimRefusesTheCall() throws {
    let executor = ManualExecutor()
    let radio = VirtualRadio(on: executor)
    let store = VirtualJournalStore(on: executor)
    let device = try deviceID(1)
    radio.add(peripheral, as: device)
    strike(store, .failed(.locked), of: .claim)
    let session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(store: store, seed: 1))
    func write(_ value: UInt8) -> SpawnedTask<Void> {
      executor.spawn("write \(value)") {
        try await session.write(
          [value], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(durability: .durable))
      }
    }
    let first = write(1)
    executor.advance(by: .seconds(5))
    #expect(storeError(first)?.code == .locked)
    let second = write(2)
    executor.advance(by: .seconds(5))
    #expect(second.hasEnded)
    #expect(second.error == nil)
    try executor.drive { await session.close() }
    #expect(executor.runUntilIdle(within: .seconds(120)).end == .nothingLeft)
    #expect(peripheral.counters.applied.map(\.value) == [[2]])
  }

  @Test("a mark that fails is asked for again, and nothing is sent before", arguments: [true, false])
  func aMarkThatFailsIsAskedForAgain(_ isCertain: Bool) throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      strike(store, isCertain ? .failed(.full) : .unknown(isPresent: false), at: 2)
      let caller = write(scene)
      #expect(scene.run(until: { store.statistics.failures + store.statistics.unknownFailures == 1 }))
      let failedAt = scene.executor.now
      scene.executor.advance(by: .milliseconds(400))
      #expect(!caller.hasEnded)
      #expect(peripheral.counters.received[.writeRequest] == nil)
      #expect(scene.run(until: { caller.hasEnded }))
      #expect(caller.error == nil)
      #expect(failedAt.duration(to: scene.executor.now) < .seconds(2))
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test("while the store is down nothing durable is sent, and everything else is; then it goes on")
  func whileTheStoreIsDownNothingDurableIsSent() throws {
    try play { scene, store in
      scene.radio.setAdvertising(false, of: scene.device)
      let caller = write(scene, within: .seconds(300))
      scene.executor.advance(by: .seconds(1))
      #expect(store.rows(of: scene.device).count == 1)
      store.goDown(with: .full)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(60))
      #expect(scene.session.snapshot().isReady)
      #expect(peripheral.counters.received[.writeRequest] == nil)
      let other = scene.spawn("other") { try await $0.write([9], to: Scene.second, idempotency: .idempotent) }
      scene.executor.run()
      #expect(other.error == nil)
      #expect(other.hasEnded)
      let refused = write(scene, 2)
      scene.executor.advance(by: .seconds(31))
      #expect(storeError(refused)?.code == .full)
      store.heal()
      // The longest delay before a failed batch goes again.
      scene.executor.advance(by: .seconds(31))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
    }
    #expect(peripheral.counters.writes(at: 0x0010).map(\.value) == [[1]])
  }

  @Test("a settlement that fails is repeated, and the caller waits for it")
  func aSettlementThatFailsIsRepeated() throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      let caller = write(scene)
      #expect(scene.run(until: { peripheral.wr(0x0010) == 1 }))
      store.goDown(with: .system)
      scene.executor.advance(by: .seconds(10))
      #expect(!caller.hasEnded)
      store.heal()
      scene.executor.advance(by: .seconds(16))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
      #expect(store.rows(of: scene.device).first?.outcome != nil)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test("a store that does not come back holds nobody longer than a second beyond his deadline")
  func aStoreThatStaysAwayHoldsNobodyForEver() throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      let start = scene.executor.now
      let caller = write(scene, within: .seconds(20))
      #expect(scene.run(until: { peripheral.wr(0x0010) == 1 }))
      store.hold()
      #expect(scene.run(until: { caller.hasEnded }))
      #expect(start.duration(to: scene.executor.now) == .seconds(21))
      #expect(storeError(caller) != nil)
      #expect(caller.relinkError?.code == .indeterminate)
      // What nobody was told for certain is there to be told later.
      store.release()
      scene.executor.advance(by: .seconds(1))
      let row = try #require(store.rows(of: scene.device).first)
      #expect(row.outcome != nil)
      #expect(!row.isDelivered)
      #expect(scene.belongings.operations == 0)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  enum Hanging: CaseIterable { case claim, admission }

  @Test("submit ends within its deadline and a second, whatever the store does", arguments: Hanging.allCases)
  func submitEndsWhateverTheStoreDoes(_ hanging: Hanging) throws {
    let executor = ManualExecutor()
    let radio = VirtualRadio(on: executor)
    let store = VirtualJournalStore(on: executor)
    let device = try deviceID(1)
    radio.add(peripheral, as: device)
    if hanging == .claim { store.hold() }
    let session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(store: store, seed: 1))
    executor.advance(by: .seconds(1))
    if hanging == .admission { store.hold() }
    let start = executor.now
    let submitted = executor.spawn("submit") {
      let options = WriteOptions(within: .seconds(5), durability: .durable)
      return try await session.submit(
        WriteRequest([1], to: Scene.first, idempotency: .nonIdempotent, options: options))
    }
    executor.run(until: { submitted.hasEnded }, within: .seconds(100))
    #expect(submitted.hasEnded)
    #expect(start.duration(to: executor.now) == .seconds(6))
    let outcome =
      submitted.value?.outcomeIfSettled
      ?? .notSent((submitted.error as? RelinkError)?.notSentReason ?? .ended)
    guard case .indeterminate(let doubt) = outcome, case .storeFailed = doubt.cause else {
      Issue.record("\(outcome)")
      return
    }
    store.release()
    executor.advance(by: .seconds(1))
    try executor.drive { await session.close() }
    #expect(executor.runUntilIdle(within: .seconds(120)).end == .nothingLeft)
    #expect(peripheral.wr(0x0010) == 0)
  }

  @Test("an admission of unknown fate is asked for again, and sent once", arguments: [true, false])
  func anAdmissionOfUnknownFateIsSentOnce(_ isPresent: Bool) throws {
    try play { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      strike(store, .unknown(isPresent: isPresent))
      let caller = write(scene)
      scene.executor.advance(by: .seconds(5))
      #expect(caller.hasEnded)
      #expect(caller.error == nil)
      #expect(store.rows(of: scene.device).count == 1)
    }
    #expect(peripheral.wr(0x0010) == 1)
  }

  @Test(
    "close() waits for no store, and its callers are told when the store has answered",
    arguments: [true, false])
  func closingSettlesDurableOperationsToo(_ isStoreSlow: Bool) throws {
    try play { scene, store in
      scene.radio.setAdvertising(false, of: scene.device)
      let caller = write(scene)
      scene.executor.advance(by: .seconds(1))
      if isStoreSlow { store.hold() }
      let closing = scene.spawn("close") { await $0.close() }
      scene.executor.run()
      #expect(closing.hasEnded)
      // Within the second that those who give up wait for the store.
      scene.executor.advance(by: .milliseconds(900))
      #expect(caller.hasEnded == !isStoreSlow)
      store.release()
      scene.executor.advance(by: .seconds(1))
      #expect(caller.relinkError?.notSentReason == .ended)
      #expect(store.rows(of: scene.device).first?.outcome != nil)
      #expect(store.rows(of: scene.device).first?.isDelivered == true)
    }
    #expect(peripheral.counters.links == 0)
  }

  @Test("a thousand operations leave nothing behind")
  func aThousandOperationsLeaveNothingBehind() throws {
    try play(JournalCall.configuration) { scene, store in
      try scene.connect()
      scene.executor.advance(by: .seconds(1))
      let atRest = scene.belongings
      let timers = scene.executor.timerCount
      let events = try scene.drive("journalEvents") { await $0.journalEvents() }
      let seen = Locked(0)
      let watcher = scene.executor.spawn("watcher") {
        for await _ in events { seen.withLock { $0 += 1 } }
      }
      var random = SplitMix(seed: 7)
      for round in 0..<100 {
        let tasks = (0..<10).map { number -> SpawnedTask<Void> in
          let id = OperationID("\(round) \(number / 5)")
          let call = JournalCall.allCases[Int(random.next() % UInt64(JournalCall.allCases.count))]
          return scene.spawn("\(round).\(number)") { session in
            switch number % 5 {
            case 0: _ = try await session.read(Scene.second)
            case 1:
              let options = WriteOptions(durability: .durable, lane: "lane")
              _ = try await session.submit(
                WriteRequest([1], to: Scene.first, idempotency: .idempotent, id: id, options: options)
              ).outcome
            case 2: _ = try await call.make(session)
            case 3: try await session.withLink { _ = try await $0.read(Scene.second) }
            default:
              try await session.write(
                [1], to: Scene.first, idempotency: .idempotent, id: id,
                options: WriteOptions(durability: .durable, lane: "lane"))
            }
          }
        }
        if round % 7 == 3 { scene.radio.lose(scene.device, .connectionTimeout) }
        if round % 5 == 2 { for task in tasks.suffix(3) { task.cancel() } }
        scene.executor.advance(by: .milliseconds(200))
        for entry in try scene.drive("journal", { await $0.journal }) where entry.state == .unresolved {
          let resolving = scene.spawn("resolve") {
            try await $0.resolve(entry.id, as: .notApplied, by: "Ada")
          }
          scene.executor.run()
          #expect(resolving.hasEnded)
        }
        scene.executor.advance(by: .seconds(40))
        for task in tasks { #expect(task.hasEnded, "\(task.name)") }
      }
      watcher.cancel()
      scene.executor.advance(by: .seconds(60))
      #expect(scene.belongings == atRest)
      #expect(scene.executor.timerCount <= timers)
      #expect(store.waitingCalls == 0)
      #expect(seen.withLock { $0 } > 1000)
      let openWork = try scene.drive("openWork") { await $0.openWork }
      #expect(openWork == (0, 0))
    }
  }
}
