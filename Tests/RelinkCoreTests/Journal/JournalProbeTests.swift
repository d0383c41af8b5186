import BluetoothWire
import Testing

@testable import RelinkCore

/// Operations that can be looked at: by a probe, or by the app.
@Suite struct JournalProbeTests {
  private var bench = JournalBench()
  private let lock = JournalBench.lock
  private let level = JournalBench.level
  private let probed = Idempotency.verified(by: .named("p"))
  private let byApp = Idempotency.verified(by: .app)

  /// One that was offered and lost.
  private mutating func lost(_ number: Int64, _ request: GATTRequest? = nil, _ tag: Idempotency? = nil) {
    bench.call(number, request, tag ?? probed)
    bench.offer()
    bench.lose()
  }

  // MARK: Verdicts

  @Test mutating func itIsNotOfferedAgainBeforeItsProbe() {
    lost(1)
    #expect(bench.state(1) == .inDoubt)
    #expect(bench.journal.hasQueued)
    #expect(bench.offer() == nil)
    #expect(bench.probe() == 1)
    #expect(bench.state(1) == .probing(bench.generation))
    #expect(bench.offer() == nil)
  }

  @Test mutating func appliedIsSuccessByTheProbe() {
    lost(1)
    bench.probe()
    #expect(
      bench.probed(1, .applied)
        == Settlement(number: bench.op(1), outcome: .succeeded(.done), confirmation: .probed))
  }

  @Test mutating func unknownIsADoubtAboutTheOffer() {
    lost(1)
    bench.probe()
    #expect(bench.probed(1, .unknown)?.outcome == bench.doubt(.probeInconclusive, until: 0))
  }

  @Test mutating func notAppliedIsOfferedAgainWithoutDoubt() {
    lost(1)
    bench.probe()
    #expect(bench.probed(1, .notApplied) == nil)
    #expect(bench.state(1) == .queued)
    #expect(bench.next() == 1)
    #expect(bench.cancel(1)?.settlement?.outcome == .notSent(.cancelled))
  }

  @Test mutating func theSecondOfferIsLookedAtAgain() {
    lost(1)
    bench.probe()
    bench.probed(1, .notApplied)
    #expect(bench.offer() == 1)
    #expect(bench.entry(1)?.offers == 2)
    bench.lose()
    #expect(bench.state(1) == .inDoubt)
    bench.probe()
    #expect(bench.probed(1, .unknown)?.outcome == bench.doubt(.probeInconclusive, on: 2, offers: 2, until: 0))
  }

  @Test mutating func aRejectionAfterNotAppliedProvesItself() {
    lost(1)
    bench.probe()
    bench.probed(1, .notApplied)
    bench.offer()
    let code = ATTErrorCode(rawValue: 0x03)
    #expect(
      bench.answer(1, .failure(.rejected(code)))?.outcome
        == .rejected(Rejection(code: code, provesNotApplied: true)))
  }

  // MARK: Order

  @Test mutating func aProbeComesBeforeAnythingOnItsKeys() {
    bench.call(1, .write(lock, [1]), probed) { $0.lane = "door" }
    bench.offer()
    bench.lose()
    bench.call(2, .write(lock, [2]))
    bench.call(3, .write(level, [3])) { $0.lane = "door" }
    bench.call(4, .discover)
    #expect(bench.offer() == 4)
    #expect(bench.offer() == nil)
    bench.probe()
    #expect(bench.offer() == nil)
    bench.probed(1, .applied)
    #expect(bench.offers(2) == [2, 3])
  }

  @Test mutating func aProbeWaitsForAnEarlierOperationOnItsKeys() {
    // The second was marked while the first was out: after the crash both are in doubt.
    bench = JournalBench(durable: true)
    bench.durable(1, .write(lock, [1]), byApp)
    bench.durable(2, .write(lock, [2]), probed)
    bench.commit()
    #expect(bench.markedOffers() == [1])
    bench.restart()
    #expect(bench.journal.entries.map(\.state) == [.unresolved, .inDoubt])
    #expect(bench.probe() == nil)
    let name = OperationID("op1")!
    #expect(bench.journal.resolved(name, as: .applied, by: "me", now: bench.now) == .resolved(nil))
    #expect(bench.probe() == nil)
    bench.commit()
    #expect(bench.probe() == -1)
  }

  @Test mutating func oneProbeRunsAtATime() {
    bench.call(1, .write(lock, [1]), probed)
    bench.call(2, .write(level, [2]), probed)
    #expect(bench.offers(2) == [1, 2])
    bench.lose()
    #expect(bench.probe() == 1)
    #expect(bench.probe() == nil)
    bench.probed(1, .applied)
    #expect(bench.probe() == 2)
  }

  @Test mutating func noProbeStartsBesideOneOfAYoungerOperation() {
    // The third was marked while the first, on its attribute, was out: after the crash both are in doubt.
    bench = JournalBench(durable: true)
    bench.durable(1, .write(lock, [1]), byApp)
    bench.durable(2, .write(level, [2]), probed)
    bench.durable(3, .write(lock, [3]), probed)
    bench.commit()
    #expect(bench.markedOffers() == [1, 2])
    bench.commit()
    bench.restart()
    #expect(bench.journal.entries.map(\.state) == [.unresolved, .inDoubt, .inDoubt])
    #expect(bench.probe() == -2)
    let name = OperationID("op1")!
    #expect(bench.journal.resolved(name, as: .applied, by: "me", now: bench.now) == .resolved(nil))
    bench.commit()
    #expect(bench.journal.entries.map(\.number) == [bench.op(-2), bench.op(-1)])
    #expect(bench.probe() == nil)
    bench.probed(-2, .applied)
    #expect(bench.probe() == -1)
  }

  // MARK: Losses and ends

  @Test mutating func aLinkThatIsLostUnderTheProbeRepeatsItUpToTheLimit() {
    bench = JournalBench(policy: JournalPolicy(probeLimit: 2))
    lost(1)
    #expect(bench.probe() == 1)
    let first = bench.generation
    #expect(bench.lose().settled == [])
    #expect(bench.state(1) == .inDoubt)
    #expect(bench.journal.probeFinished(bench.op(1), on: first, .applied, now: bench.now) == nil)
    #expect(bench.probe() == 1)
    #expect(bench.lose().settled.map(\.outcome) == [bench.doubt(.probeInterrupted, until: 0)])
    #expect(bench.journal.entries == [])
  }

  @Test mutating func theVerdictOfAnEarlierLinkIsNoVerdict() {
    lost(1)
    bench.probe()
    let first = bench.generation
    bench.lose()
    bench.probe()
    #expect(bench.journal.probeFinished(bench.op(1), on: first, .notApplied, now: bench.now) == nil)
    #expect(bench.state(1) == .probing(bench.generation))
  }

  @Test mutating func theLossOfAnotherLinkLeavesTheProbe() {
    lost(1)
    bench.probe()
    let loss = bench.journal.linkLost(
      Generation(rawValue: 99), reason: .unknown, inDoubt: [], now: bench.now)
    #expect(loss.settled == [])
    #expect(bench.state(1) == .probing(bench.generation))
  }

  @Test mutating func aCancelledProbeIsADoubtAndItsVerdictTooLate() {
    lost(1)
    bench.probe()
    #expect(bench.cancel(1)?.settlement?.outcome == bench.doubt(.cancelled, until: 0))
    #expect(bench.probed(1, .notApplied) == nil)
    #expect(bench.journal.entries == [])
  }

  @Test mutating func theDeadlineBoundsAProbe() {
    bench.call(1, nil, probed, within: 5)
    bench.offer()
    bench.lose()
    bench.probe()
    bench.pass(5)
    #expect(bench.fireTimer().map(\.settlement?.outcome) == [bench.doubt(.deadline, until: 0)])
  }

  // MARK: The app

  private mutating func resolve(_ number: Int64, _ verdict: Verdict) -> OperationJournal.Resolution {
    bench.journal.resolved(OperationID(bench.op(number)), as: verdict, by: "me", now: bench.now)
  }

  @Test mutating func anUnresolvedOneWaitsForTheAppAndForNoLink() {
    lost(1, nil, byApp)
    #expect(bench.state(1) == .unresolved)
    #expect(!bench.journal.hasQueued)
    #expect(bench.probe() == nil)
    bench.lose()
    #expect(bench.state(1) == .unresolved)
  }

  @Test mutating func theAppsWordDecides() {
    lost(1, nil, byApp)
    #expect(
      resolve(1, .applied)
        == .resolved(
          Settlement(number: bench.op(1), outcome: .succeeded(.done), confirmation: .resolved)))
    lost(2, nil, byApp)
    #expect(
      resolve(2, .unknown)
        == .resolved(
          Settlement(number: bench.op(2), outcome: bench.doubt(.probeInconclusive, on: 2, until: 0))))
    lost(3, nil, byApp)
    #expect(resolve(3, .notApplied) == .resolved(nil))
    #expect(bench.offer() == 3)
  }

  @Test mutating func theAppHasNoWordWhereItIsNotAsked() {
    #expect(resolve(1, .applied) == .unknownID)
    bench.call(1, nil, byApp)
    #expect(resolve(1, .applied) == .notAwaited)
    bench.offer()
    #expect(resolve(1, .applied) == .notAwaited)
    bench.lose()
    #expect(resolve(1, .notApplied) == .resolved(nil))
    #expect(resolve(1, .notApplied) == .notAwaited)
    bench.offer()
    bench.answer(1)
    #expect(resolve(1, .applied) == .unknownID)
    lost(2, .write(level, [2]))
    #expect(resolve(2, .applied) == .notAwaited)
    bench.probe()
    #expect(resolve(2, .applied) == .notAwaited)
  }

  @Test mutating func theEventsSayWhoJudged() {
    bench.journal.isObserved = true
    lost(1, nil, byApp)
    _ = resolve(1, .applied)
    lost(2)
    bench.probe()
    bench.probed(2, .notApplied)
    let changes = bench.journal.takeEvents().map(\.change)
    #expect(changes.contains(.judged(.applied, by: "me")))
    #expect(changes.contains(.probing(bench.generation)))
    #expect(changes.last == .judged(.notApplied, by: "probe"))
  }

  @Test mutating func theEventOfALossSaysWhatTheOperationWaitsForNow() {
    bench.journal.isObserved = true
    lost(1, nil, byApp)
    lost(2, .write(level, [2]))
    let losses = bench.journal.takeEvents().filter { $0.change == .inDoubt(JournalBench.noLink) }
    #expect(losses.map(\.operation.state) == [.unresolved, .inDoubt])
  }
}
