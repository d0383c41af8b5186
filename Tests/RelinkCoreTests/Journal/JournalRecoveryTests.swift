import BluetoothWire
import Testing

@testable import RelinkCore

/// What the next process makes of what an earlier one left.
@Suite struct JournalRecoveryTests {
  private var bench = JournalBench(durable: true)
  private let lock = JournalBench.lock
  private let level = JournalBench.level

  /// One that was marked, and maybe offered, when the process ended.
  private mutating func marked(_ tag: Idempotency, bootID: String? = "boot 1") {
    bench.durable(1, nil, tag)
    bench.commit()
    bench.pass(3)
    bench.markAndOffer()
    bench.restart(bootID: bootID)
  }

  private func report(_ outcome: Outcome<RelinkCore.Confirmation>, _ id: String = "op1", _ byte: UInt8 = 1)
    -> RecoveredOperation
  {
    RecoveredOperation(id: OperationID(id)!, request: .write(lock, [byte]), outcome: outcome)
  }

  // MARK: What was not marked

  @Test(
    arguments: [.idempotent, .nonIdempotent, .verified(by: .named("p")), .verified(by: .app)] as [Idempotency]
  )
  mutating func whatWasNotMarkedIsOffered(_ tag: Idempotency) {
    bench.durable(1, nil, tag)
    bench.commit()
    bench.restart()
    #expect(bench.state(-1) == .queued)
    #expect(bench.entry(-1)?.lastOffer == nil)
    #expect(bench.entry(-1)?.summary.isRecovered == true)
    #expect(bench.markAndOffer() == -1)
    bench.answer(-1)
    bench.commit()
    #expect(bench.journal.takeReports() == [report(.succeeded(.acknowledged))])
  }

  @Test mutating func whatNobodyWasToldToBeRecordedIsForgotten() {
    bench.durable(1)
    bench.beginCommit()
    bench.restart()
    #expect(bench.journal.entries == [])
    #expect(bench.journal.takeReports() == [])
  }

  // MARK: What was marked

  @Test mutating func anIdempotentOneIsOfferedAgain() {
    marked(.idempotent)
    #expect(bench.state(-1) == .queued)
    // The mark that is there is of an earlier claim.
    #expect(bench.offer() == nil)
    #expect(bench.markAndOffer() == -1)
    #expect(bench.entry(-1)?.offers == 2)
    bench.answer(-1)
    bench.commit()
    #expect(bench.journal.takeReports() == [report(.succeeded(.acknowledged))])
  }

  @Test mutating func aRejectionOfItProvesNothingAboutTheOfferBefore() {
    marked(.idempotent)
    bench.markAndOffer()
    let code = ATTErrorCode(rawValue: 3)
    bench.answer(-1, .failure(.rejected(code)))
    bench.commit()
    #expect(
      bench.journal.takeReports() == [report(.rejected(Rejection(code: code, provesNotApplied: false)))])
  }

  @Test(arguments: ["boot 1", "boot 2"])
  mutating func aNonIdempotentOneIsADoubtAndNeverOffered(_ bootID: String) {
    marked(.nonIdempotent, bootID: bootID)
    #expect(bench.journal.entries == [])
    #expect(bench.offer() == nil)
    let doubt = Doubt(
      cause: .processEnded, generation: Generation(rawValue: 1), offeredAt: .at(bench.seconds(3)), offers: 1,
      lastPossibleEffect: nil)
    #expect(bench.journal.takeReports() == [report(.indeterminate(doubt))])
    #expect(bench.disk.row("op1")?.outcome != nil)
    // It is told once: the next process has nothing to say any more.
    bench.journal.delivered(OperationID("op1")!)
    bench.commit()
    bench.restart()
    #expect(bench.journal.takeReports() == [])
  }

  @Test mutating func whatNobodyTookIsToldByTheNextProcessToo() {
    marked(.nonIdempotent)
    #expect(bench.journal.takeReports().count == 1)
    bench.restart()
    #expect(bench.journal.takeReports().count == 1)
  }

  @Test mutating func aVerifiedOneIsLookedAtFirst() {
    marked(.verified(by: .named("p")))
    #expect(bench.state(-1) == .inDoubt)
    #expect(bench.markAndOffer() == nil)
    #expect(bench.probe() == -1)
    bench.probed(-1, .applied)
    bench.commit()
    #expect(bench.journal.takeReports() == [report(.succeeded(.probed))])
  }

  @Test mutating func aVerifiedOneThatWasNotAppliedIsOfferedAgain() {
    marked(.verified(by: .value(of: JournalBench.level, is: [1])))
    bench.probe()
    bench.probed(-1, .notApplied)
    #expect(bench.offer() == nil)
    #expect(bench.markAndOffer() == -1)
  }

  @Test mutating func theAppsOneWaitsForTheApp() {
    marked(.verified(by: .app))
    #expect(bench.state(-1) == .unresolved)
    let id = OperationID("op1")!
    #expect(bench.journal.resolved(id, as: .unknown, by: "me", now: bench.now) == .resolved(nil))
    bench.commit()
    #expect(bench.journal.takeReports().map(\.id) == [id])
  }

  @Test mutating func aMarkOfTheNextThatWasNeverOfferedLooksAsIfItWas() {
    bench.durable(1)
    bench.durable(2)
    bench.commit()
    #expect(bench.markedOffers() == [1])
    bench.restart()
    #expect(bench.journal.takeReports().map(\.id.description) == ["op1", "op2"])
  }

  // MARK: Loss of power

  @Test(arguments: [.idempotent, .nonIdempotent, .verified(by: .named("p"))] as [Idempotency])
  mutating func onlyTheMarkOfAnIdempotentOneMayBeLostWithThePower(_ tag: Idempotency) {
    bench.durable(1, nil, tag)
    bench.commit()
    bench.restart(bootID: "boot 2")
    bench.cancel(-1)
    bench.commit()
    let outcome = bench.journal.takeReports().first?.outcome
    guard tag == .idempotent else {
      #expect(outcome == .notSent(.cancelled))
      return
    }
    guard case .indeterminate(let doubt) = outcome else {
      Issue.record("\(String(describing: outcome))")
      return
    }
    #expect(doubt.offers == 0)
    #expect(doubt.generation == Generation(rawValue: 0))
  }

  // MARK: What was settled

  @Test mutating func whatWasSettledAndNotToldIsReported() {
    bench.durable(1)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.commit()
    bench.restart()
    #expect(bench.journal.takeReports() == [report(.succeeded(.acknowledged))])
    #expect(bench.durable(1, .write(lock, [1]), id: "op1") == .kept(.succeeded(.acknowledged)))
    #expect(bench.journal.entries == [])
  }

  @Test mutating func whatWasNotToldSurvivesTheDay() {
    bench.durable(1)
    bench.commit()
    bench.cancel(1)
    bench.commit()
    bench.pass(200_000)
    bench.restart()
    #expect(bench.journal.takeReports().count == 1)
    #expect(bench.disk.rows.count == 1)
    bench.journal.delivered(OperationID("op1")!)
    #expect(bench.commit().failure == nil)
    bench.restart()
    #expect(bench.disk.rows.count == 0)
  }

  @Test(arguments: [true, false])
  mutating func whatIsOldGoesWhereTheClockIsRight(_ isWallRight: Bool) {
    bench.durable(1)
    bench.commit()
    bench.cancel(1)
    bench.commit()
    bench.journal.delivered(OperationID("op1")!)
    bench.commit()
    bench.pass(86_401)
    bench.restart(isWallRight: isWallRight)
    #expect(bench.disk.rows.isEmpty == isWallRight)
  }

  @Test mutating func theOutcomeOfWhatWasToldIsFoundInTheStore() {
    bench.durable(1)
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.commit()
    bench.journal.delivered(OperationID("op1")!)
    bench.commit()
    bench.restart()
    #expect(bench.journal.takeReports() == [])
    bench.durable(7, .write(lock, [1]), id: "op1")
    bench.commit()
    #expect(bench.outcomes(7) == [.succeeded(.done)])
    #expect(bench.markAndOffer() == nil)
  }

  // MARK: Order

  @Test mutating func whatWasLeftComesFirstInItsOrder() {
    for number in 1...3 as ClosedRange<Int64> { bench.durable(number, nil, .idempotent) }
    bench.commit()
    bench.markAndOffer()
    bench.crash()
    bench.journal.claimRequested()
    bench.durable(4)
    bench.call(5, .read(lock))
    bench.claim()
    bench.commit()
    #expect(bench.journal.entries.map(\.number.rawValue) == [-3, -2, -1, 4, 5])
    var order: [Int64] = []
    while let number = bench.markAndOffer() {
      order.append(number)
      bench.answer(number)
      bench.commit()
    }
    #expect(order == [-3, -2, -1, 4, 5])
  }

  @Test mutating func newOnesGetHigherPlacesThanAnythingBefore() {
    bench.durable(1)
    bench.commit()
    bench.cancel(1)
    bench.commit()
    bench.journal.delivered(OperationID("op1")!)
    bench.commit()
    bench.restart()
    bench.durable(2)
    bench.commit()
    #expect(bench.disk.rows.map(\.place) == [1, 2])
  }

  @Test mutating func optionsSurvive() {
    bench.durable(1) {
      $0.lane = "door"
      $0.priority = .high
      $0.supersedes = "height"
      $0.security = .encrypted
    }
    bench.commit()
    bench.restart()
    let summary = bench.entry(-1)?.summary
    #expect(summary?.lane == "door")
    #expect(summary?.priority == .high)
    #expect(summary?.supersedes == "height")
    #expect(summary?.durability == .durable)
    #expect(bench.journal.wantsSecurity)
    bench.durable(2, .write(level, [2])) { $0.supersedes = "height" }
    bench.commit()
    #expect(bench.journal.takeReports() == [report(.notSent(.superseded(by: OperationID("op2")!)))])
  }

  @Test mutating func whatWasSupersededIsNotOfferedWhateverBecomesOfTheYoungerOne() {
    bench.durable(1) { $0.supersedes = "height" }
    bench.durable(2, .write(level, [2])) {
      $0.supersedes = "height"
      $0.continuity = .unbroken
    }
    bench.commit()
    bench.restart()
    bench.commit()
    let byTwo = OperationID("op2")!
    #expect(
      bench.journal.takeReports() == [
        report(.notSent(.superseded(by: byTwo))),
        RecoveredOperation(id: byTwo, request: .write(level, [2]), outcome: .notSent(.continuityBroken)),
      ])
    #expect(bench.journal.entries.isEmpty)
  }

  // MARK: Continuity

  @Test mutating func whatNeedsTheStateOfTheDeviceEndsWithTheProcess() {
    for (number, tag) in [(1, .nonIdempotent), (2, .idempotent), (3, .verified(by: .named("p")))]
      as [(Int64, Idempotency)]
    {
      bench.durable(number, nil, tag) { $0.continuity = .unbroken }
    }
    bench.commit()
    bench.restart()
    #expect(bench.journal.entries == [])
    #expect(
      bench.journal.takeReports().map(\.outcome)
        == Array(repeating: .notSent(.continuityBroken), count: 3))
  }

  @Test mutating func aVerifiedOneThatNeedsItIsLookedAtAndNotOfferedAgain() {
    bench.durable(1, nil, .verified(by: .named("p"))) { $0.continuity = .unbroken }
    bench.commit()
    bench.markAndOffer()
    bench.restart()
    bench.journal.becameReady(on: bench.generation, .resumed)
    #expect(bench.probe() == -1)
    bench.probed(-1, .notApplied)
    #expect(bench.markAndOffer() == nil)
    bench.commit()
    #expect(bench.journal.takeReports() == [report(.notSent(.continuityBroken))])
  }
}
