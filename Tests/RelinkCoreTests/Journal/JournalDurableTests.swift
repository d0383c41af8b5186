import BluetoothWire
import Testing

@testable import RelinkCore

/// The way of a durable operation through the store: recorded, marked, offered, settled, told.
@Suite struct JournalDurableTests {
  private var bench = JournalBench(durable: true)
  private let lock = JournalBench.lock
  private let level = JournalBench.level
  private static let tags: [Idempotency] = [.idempotent, .nonIdempotent, .verified(by: .named("p"))]

  private func kinds(_ records: [JournalRecord]?) -> [String] {
    (records ?? []).map {
      switch $0 {
      case .admitted(let row): "admitted \(row.id)"
      case .marked(let id, _): "marked \(id)"
      case .settled(let id, _, _, _): "settled \(id)"
      case .delivered(let id): "delivered \(id)"
      case .pruned: "pruned"
      }
    }
  }

  // MARK: The order of things

  @Test(arguments: tags)
  mutating func eachStepWaitsForItsCommit(_ tag: Idempotency) {
    let strict: JournalSync = tag == .idempotent ? .normal : .full
    bench.durable(1, nil, tag)
    #expect(bench.state(1) == .recording)
    #expect(bench.offer() == nil)
    #expect(kinds(bench.beginCommit()) == ["admitted op1"])
    #expect(bench.inFlight?.sync == .full)
    #expect(bench.commit().recorded == [bench.op(1)])
    #expect(bench.state(1) == .queued)

    #expect(bench.offer() == nil)
    #expect(kinds(bench.beginCommit()) == ["marked op1"])
    #expect(bench.inFlight?.sync == strict)
    #expect(bench.offer() == nil)
    bench.commit()
    #expect(bench.offer() == 1)

    #expect(bench.answer(1) == nil)
    #expect(bench.state(1) == .settling)
    #expect(kinds(bench.beginCommit()) == ["settled op1"])
    #expect(bench.inFlight?.sync == strict)
    let settlement = Settlement(
      number: bench.op(1), outcome: .succeeded(.done), durableID: OperationID("op1"))
    #expect(bench.commit().settled == [settlement])
    #expect(bench.journal.entries == [])
  }

  @Test mutating func aReadDoesNotWaitForTheCommitOfAnOutcome() {
    bench.durable(1, .write(lock, [1]))
    bench.commit()
    #expect(bench.markAndOffer() == 1)
    bench.call(2, .read(lock))
    #expect(bench.offer() == nil)
    bench.answer(1)
    #expect(bench.state(1) == .settling)
    #expect(bench.offer() == 2)
  }

  @Test mutating func anOutcomeThatForbidsARepetitionSurvivesALossOfPower() {
    for (number, answer) in [
      (1, .failure(.rejected(ATTErrorCode(rawValue: 3)))), (2, .failure(.malformedAnswer)),
      (3, .failure(.refused(.cannotNotify))),
    ] as [(Int64, Result<GATTAnswer, GATTFailure>)] {
      bench.durable(number, nil, .idempotent)
      bench.commit()
      bench.markAndOffer()
      bench.answer(number, answer)
      bench.beginCommit()
      #expect(bench.inFlight?.sync == .full)
      bench.commit()
    }
    bench.durable(4, nil, .idempotent)
    bench.commit()
    bench.cancel(4)
    bench.beginCommit()
    #expect(bench.inFlight?.sync == .full)
  }

  /// A younger write is marked while the older one is out. The older one's outcome is committed, the younger one is offered
  /// and done, and the power fails: were the outcome lost, the older one would be done once more, over the younger.
  @Test(arguments: tags)
  mutating func aLossOfPowerDoesNotBringAnOlderWriteBackOverAYoungerOne(_ tag: Idempotency) {
    bench.durable(1, .write(lock, [1]), .idempotent)
    bench.durable(2, .write(lock, [2]), tag)
    bench.commit()
    #expect(bench.markAndOffer() == 1)
    #expect(bench.offer() == nil)
    #expect(kinds(bench.beginCommit()) == ["marked op2"])
    bench.commit()
    var platter = bench.disk
    bench.answer(1)
    #expect(kinds(bench.beginCommit()) == ["settled op1"])
    let sync = bench.inFlight?.sync
    bench.commit()
    if sync == .full { platter = bench.disk }
    #expect(bench.offer() == 2)
    bench.disk = platter
    bench.restart(bootID: "boot 2")
    #expect(bench.journal.takeReports().map(\.id.description).contains("op1"))
    #expect(!bench.journal.entries.contains { $0.id == OperationID("op1") })
  }

  @Test mutating func anOutcomeOnWhichNothingWaitsNeedNotSurviveALossOfPower() {
    bench.durable(1, .write(lock, [1]), .idempotent)
    bench.durable(2, .write(level, [2]), .idempotent)
    bench.call(3, .read(lock))
    bench.commit()
    #expect(bench.markAndOffer() == 1)
    bench.answer(1)
    #expect(kinds(bench.beginCommit()).contains("settled op1"))
    #expect(bench.inFlight?.sync == .normal)
  }

  @Test mutating func onlyTheNextInLineIsMarked() {
    bench.durable(1)
    bench.durable(2, .write(level, [2]))
    bench.commit()
    bench.journal.marksWanted(on: bench.generation, now: bench.now)
    #expect(kinds(bench.beginCommit()) == ["marked op1"])
    bench.journal.marksWanted(on: bench.generation, now: bench.now)
    bench.commit()
    #expect(bench.disk.row("op2")?.mark == nil)
    bench.offer()
    bench.journal.marksWanted(on: bench.generation, now: bench.now)
    #expect(kinds(bench.beginCommit()) == ["marked op2"])
  }

  @Test mutating func theNextOnTheSameKeyIsMarkedWhileTheOtherIsOut() {
    bench.durable(1)
    bench.durable(2)
    bench.commit()
    bench.markAndOffer()
    #expect(bench.next() == nil)
    #expect(kinds(bench.beginCommit()) == ["marked op2"])
    bench.commit()
    #expect(bench.offer() == nil)
    bench.answer(1)
    // The outcome of the first is on its way to the disk: the second still waits.
    #expect(bench.offer() == nil)
    bench.commit()
    #expect(bench.offer() == 2)
  }

  @Test mutating func nothingIsMarkedBehindAnOperationThatGoesFirst() {
    bench.call(1, .read(level))
    bench.durable(2)
    bench.commit()
    bench.journal.marksWanted(on: bench.generation, now: bench.now)
    #expect(bench.beginCommit() == nil)
    #expect(bench.offer() == 1)
    bench.journal.marksWanted(on: bench.generation, now: bench.now)
    #expect(kinds(bench.beginCommit()) == ["marked op2"])
  }

  @Test mutating func theMarkGoesToTheHighestPriority() {
    bench.durable(1)
    bench.durable(2, .write(level, [2])) { $0.priority = .high }
    bench.commit()
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func aMarkIsKeptOverALostLink() {
    bench.durable(1)
    bench.commit()
    _ = bench.next()
    bench.commit()
    bench.lose()
    #expect(bench.entry(1)?.extras?.mark == .committed)
    #expect(bench.offer() == 1)
    #expect(bench.journal.nextCommit() == nil)
  }

  @Test mutating func aMarkIsKeptWhenTheLinkGivesItBack() {
    bench.durable(1)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1, .failure(.refused(.calledOff)))
    #expect(bench.offer() == 1)
    #expect(bench.entry(1)?.offers == 1)
  }

  @Test(arguments: [.idempotent, .verified(by: .named("p"))] as [Idempotency])
  mutating func aSecondOfferHasAMarkOfItsOwn(_ tag: Idempotency) throws {
    bench.durable(1, nil, tag)
    bench.commit()
    bench.markAndOffer()
    bench.lose()
    bench.pass(7)
    if bench.probe() != nil { bench.probed(1, .notApplied) }
    bench.journal.marksWanted(on: bench.generation, now: bench.now)
    #expect(kinds(bench.beginCommit()) == ["marked op1"])
    // What the power might take of it, the first one says.
    #expect(bench.inFlight?.sync == .normal)
    #expect(bench.offer() == nil)
    bench.commit()
    #expect(bench.offer() == 1)
    // One commit for each offer.
    #expect(bench.journal.nextCommit() == nil)
    let mark = try StoredMark(decoding: bench.disk.row("op1")?.mark ?? [])
    #expect(
      mark == StoredMark(generation: Generation(rawValue: 2), at: bench.now, offers: 2, bootID: "boot 1"))
  }

  @Test(arguments: [.idempotent, .verified(by: .named("p"))] as [Idempotency], [true, false])
  mutating func whatSomebodyElseHasClaimedIsNotOfferedAgain(_ tag: Idempotency, _ isRestarted: Bool) {
    bench.durable(1, nil, tag)
    bench.commit()
    bench.markAndOffer()
    let number: Int64 = isRestarted ? -1 : 1
    if isRestarted {
      bench.restart()
    } else {
      bench.lose()
    }
    if bench.probe() != nil { bench.probed(number, .notApplied) }
    #expect(bench.next() == nil)
    bench.failCommit(.superseded)
    #expect(bench.offer() == nil)
    #expect(bench.journal.entries == [])
  }

  // MARK: Called off on the way

  @Test mutating func whatIsCancelledWhileItIsRecordedWaitsForItsRecord() {
    bench.durable(1)
    bench.beginCommit()
    #expect(bench.cancel(1)?.settlement == nil)
    #expect(bench.state(1) == .settling)
    let effects = bench.commit()
    #expect(effects.recorded == [bench.op(1)])
    #expect(bench.outcomes(1) == [.notSent(.cancelled)])
    #expect(bench.disk.row("op1")?.outcome != nil)
  }

  @Test mutating func whatIsCancelledBeforeItsRecordGoesOutIsRecordedFirst() {
    bench.durable(1)
    bench.beginCommit()
    bench.durable(2, .write(level, [2]))
    bench.cancel(2)
    bench.commit()
    #expect(bench.outcomes(2) == [.notSent(.cancelled)])
  }

  @Test mutating func whatIsCancelledWhileItIsMarkedIsNotOffered() {
    bench.durable(1)
    bench.commit()
    _ = bench.next()
    bench.beginCommit()
    bench.cancel(1)
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.cancelled)])
    #expect(bench.disk.row("op1")?.mark != nil)
  }

  @Test mutating func whatIsCancelledWhenItIsSettledKeepsItsOutcome() {
    bench.durable(1)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    #expect(bench.cancel(1) == nil)
    bench.commit()
    #expect(bench.outcomes(1) == [.succeeded(.done)])
  }

  @Test mutating func whatIsCancelledOnTheLinkKeepsItsKeyUntilTheAnswer() {
    bench.durable(1)
    bench.durable(2)
    bench.commit()
    bench.markAndOffer()
    #expect(bench.cancel(1)?.abandon == bench.request(1))
    bench.commit()
    #expect(bench.outcomes(1) == [bench.doubt(.cancelled)])
    #expect(bench.markAndOffer() == nil)
    bench.answer(1)
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func aNonIdempotentOneThatIsLostIsToldOnceThatIsCommitted() {
    bench.durable(1)
    bench.commit()
    bench.markAndOffer()
    #expect(bench.lose().settled == [])
    #expect(bench.offer() == nil)
    bench.commit()
    #expect(bench.outcomes(1) == [bench.doubt(.linkLost(.supervisionTimeout), until: 0)])
  }

  @Test mutating func theEndOfTheSessionLeavesDurableOnesToTheNext() {
    bench.durable(1)
    bench.call(2, .read(level))
    bench.commit()
    let ends = bench.journal.settleAll(
      notSent: .ended, doubt: .ended, keepingDurable: true, now: bench.now)
    #expect(ends.map(\.settlement?.number) == [bench.op(2)])
    #expect(bench.journal.entries.map(\.number) == [bench.op(1)])
  }

  // MARK: What may not be mixed

  @Test mutating func durableAndOtherWritesShareNoKey() {
    bench.durable(1, .write(lock, [1])) { $0.lane = "door" }
    #expect(bench.call(2, .write(lock, [2])) == .refused(.mixedDurability))
    let third = bench.call(3, .write(level, [3])) { $0.lane = "door" }
    #expect(third == .refused(.mixedDurability))
    #expect(bench.call(4, .writeReliably([ReliableWrite(lock, [1])])) == .refused(.mixedDurability))
    #expect(bench.call(5, .read(lock)) == .recorded(timer: nil))
    #expect(bench.call(6, .write(level, [6])) == .recorded(timer: nil))
    #expect(bench.durable(7, .write(level, [7])) == .refused(.mixedDurability))
    #expect(bench.durable(8, .write(lock, [8])) == .recorded(timer: nil))
  }

  @Test mutating func oneThatIsOverIsNotInTheWay() {
    bench.durable(1)
    bench.commit()
    bench.cancel(1)
    #expect(bench.call(2) == .refused(.mixedDurability))
    bench.commit()
    #expect(bench.call(3) == .recorded(timer: nil))
  }

  @Test func withoutAStoreNothingDurableIsTaken() {
    var bench = JournalBench()
    guard case .refused(.storeFailed(let error)) = bench.durable(1) else {
      Issue.record("it was taken")
      return
    }
    #expect(error.code == .missing)
  }

  @Test mutating func aProbeThatDiesWithTheProcessCannotBeRecorded() {
    let probe = Probe(.closure(ProbeClosure(0)))
    guard case .refused(.storeFailed) = bench.durable(1, nil, .verified(by: probe)) else {
      Issue.record("it was taken")
      return
    }
    #expect(bench.journal.entries == [])
  }

  @Test mutating func theBytesOfASensitiveOneAreErasedWithItsOutcome() throws {
    bench.durable(1, .write(lock, [9, 9]), .verified(by: .value(of: lock, is: [9, 9]))) {
      $0.isSensitive = true
    }
    bench.commit()
    #expect(bench.entry(1)?.summary.request == .write(lock, []))
    bench.markAndOffer()
    bench.answer(1)
    bench.commit()
    let row = try #require(bench.disk.row("op1"))
    let stored = try StoredOperation(decoding: row.operation)
    #expect(stored.request == .write(lock, []))
    #expect(stored.idempotency == .verified(by: .value(of: lock, is: [])))
  }

  @Test mutating func aLongLifePrunesItsStore() {
    for number in 1...Int64(OperationJournal.pruneInterval) {
      bench.durable(number)
      bench.commit()
      bench.cancel(number)
      if number == Int64(OperationJournal.pruneInterval) {
        _ = bench.beginCommit()
        let effects = bench.journal.committed(existing: [], now: bench.now)
        #expect(effects.settled.count == 1)
        #expect(
          bench.journal.nextCommit()?.records == [
            .pruned(settledBefore: bench.now.wall - 86_400_000_000_000, keeping: 100_000)
          ])
      } else {
        bench.commit()
      }
    }
  }
}
