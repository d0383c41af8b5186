import BluetoothWire
import Testing

@testable import RelinkCore

/// What a younger write with the same superseding key does to an older one, in each state of that.
@Suite struct JournalSupersedingTests {
  private var bench = JournalBench()
  private let level = JournalBench.level
  private let byTwo = OperationID("op2")!

  private mutating func older(_ idempotency: Idempotency = .idempotent) {
    bench.call(1, nil, idempotency) { $0.supersedes = "height" }
  }

  private mutating func younger() { bench.call(2, id: "op2") { $0.supersedes = "height" } }

  private var superseded: Outcome<GATTAnswer> { .notSent(.superseded(by: byTwo)) }

  @Test(arguments: [.idempotent, .nonIdempotent, .verified(by: .app)] as [Idempotency])
  mutating func whatWaitsForItsTurnEndsAsNotSent(_ idempotency: Idempotency) {
    older(idempotency)
    younger()
    #expect(bench.outcomes(1) == [superseded])
    #expect(bench.offer() == 2)
  }

  @Test mutating func aRecordThatTheNextProcessFindsTakesThePlaceOfOlderOnes() {
    bench = JournalBench(durable: true)
    bench.durable(1) { $0.supersedes = "height" }
    bench.commit()
    bench.durable(2) { $0.supersedes = "height" }
    // On the disk, and the process ends before it hears of that.
    bench.failCommit(isCertain: false, isDone: true)
    bench.restart()
    #expect(bench.disk.row("op1")?.outcome != nil)
    #expect(bench.markAndOffer() == -1)
  }

  @Test mutating func onlyTheSameKeySupersedes() {
    older()
    bench.call(2, .write(level, [2]))
    bench.call(3, .write(level, [2])) { $0.supersedes = "tilt" }
    #expect(bench.outcomes(1) == [])
  }

  @Test mutating func aYoungerWriteToAnotherAttributeSupersedesToo() {
    older()
    bench.call(2, .write(level, [2]), id: "op2") { $0.supersedes = "height" }
    #expect(bench.outcomes(1) == [superseded])
  }

  @Test mutating func whatWaitsToBeOfferedAgainIsADoubt() {
    older()
    bench.offer()
    bench.pass(1)
    bench.lose()
    younger()
    #expect(bench.outcomes(1) == [bench.doubt(.superseded(by: byTwo), until: 1)])
    #expect(bench.offer() == 2)
  }

  @Test mutating func whatIsOutSucceedsWhenItIsAnswered() {
    older()
    bench.offer()
    younger()
    #expect(bench.state(1) == .offered(bench.request(1)))
    #expect(bench.offer() == nil)
    bench.answer(1)
    #expect(bench.outcomes(1) == [.succeeded(.done)])
    #expect(bench.offer() == 2)
  }

  @Test mutating func whatIsOutAndLostIsNotOfferedAgain() {
    older()
    bench.offer()
    younger()
    bench.lose()
    #expect(bench.outcomes(1) == [bench.doubt(.superseded(by: byTwo), until: 0)])
    #expect(bench.offer() == 2)
  }

  @Test mutating func whatIsOutAndDidNotReachTheDeviceEndsWithItsLink() {
    older()
    bench.offer()
    younger()
    #expect(bench.lose(inDoubt: []).settled.map(\.outcome) == [superseded])
    #expect(bench.journal.entries.map(\.number) == [bench.op(2)])
  }

  @Test mutating func whatTheLinkDidNotTakeEndsBeforeItIsOfferedOnceMore() {
    older()
    bench.offer()
    younger()
    bench.journal.offerNotTaken(bench.op(1))
    #expect(bench.offer() == 2)
    #expect(bench.outcomes(1) == [superseded])
  }

  @Test mutating func whatTheLinkDidNotTakeEndsWithTheLink() {
    older()
    bench.offer()
    younger()
    bench.journal.offerNotTaken(bench.op(1))
    #expect(bench.lose().settled.map(\.outcome) == [superseded])
  }

  @Test mutating func whatTheLinkGaveBackEndsAtOnce() {
    older()
    bench.offer()
    younger()
    #expect(bench.answer(1, .failure(.refused(.calledOff)))?.outcome == superseded)
  }

  @Test(arguments: [.applied, .notApplied, .unknown] as [Verdict])
  mutating func whatIsLookedAtEndsAsItsProbeSays(_ verdict: Verdict) {
    older(.verified(by: .named("p")))
    bench.offer()
    bench.lose()
    if verdict == .unknown {
      // Superseded before the probe, the others while it runs.
      younger()
    }
    #expect(bench.probe() == 1)
    if verdict != .unknown { younger() }
    #expect(bench.offer() == nil)
    bench.probed(1, verdict)
    let expected: Outcome<GATTAnswer> =
      switch verdict {
      case .applied: .succeeded(.done)
      case .notApplied: superseded
      case .unknown: bench.doubt(.probeInconclusive, until: 0)
      }
    #expect(bench.outcomes(1) == [expected])
    #expect(bench.offer() == 2)
  }

  @Test mutating func whatTheAppLooksAtEndsAsTheAppSays() {
    older(.verified(by: .app))
    bench.offer()
    bench.lose()
    younger()
    #expect(bench.state(1) == .unresolved)
    #expect(
      bench.journal.resolved(OperationID(bench.op(1)), as: .notApplied, by: "me", now: bench.now)
        == .resolved(Settlement(number: bench.op(1), outcome: superseded)))
  }

  @Test mutating func aDurableOneEndsOnceItsOutcomeIsCommitted() {
    bench = JournalBench(durable: true)
    bench.durable(1) { $0.supersedes = "height" }
    bench.commit()
    bench.durable(2) { $0.supersedes = "height" }
    // The younger one counts from its record on: before that it may still come to nothing.
    #expect(bench.state(1) == .queued)
    bench.commit()
    #expect(bench.outcomes(1) == [superseded])
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func aYoungerOneThatCouldNotBeRecordedSupersedesNothing() {
    bench = JournalBench(durable: true)
    bench.durable(1) { $0.supersedes = "height" }
    bench.commit()
    bench.durable(2) { $0.supersedes = "height" }
    bench.failCommit()
    #expect(bench.state(1) == .queued)
    bench.pass(1)
    bench.journal.retryDue(now: bench.now.monotonic)
    #expect(bench.markAndOffer() == 1)
  }

  @Test mutating func oneThatIsBeingRecordedEndsWhenItIs() {
    bench = JournalBench(durable: true)
    bench.durable(1) { $0.supersedes = "height" }
    bench.call(2, .write(level, [2]), id: "op2") { $0.supersedes = "height" }
    #expect(bench.state(1) == .recording)
    bench.commit()
    #expect(bench.outcomes(1) == [superseded])
  }

  /// How far an operation has come when a younger one takes its place.
  enum Stage: CaseIterable { case recording, offered, inDoubt, probing, unresolved }

  @Test(arguments: Stage.allCases)
  mutating func thatWhatIsOnItsWayWasSupersededIsSeenOnce(_ stage: Stage) {
    if stage == .recording { bench = JournalBench(durable: true) }
    bench.journal.isObserved = true
    switch stage {
    case .recording:
      bench.durable(1) { $0.supersedes = "height" }
      bench.beginCommit()
    case .offered, .inDoubt, .probing: older(.verified(by: .named("p")))
    case .unresolved: older(.verified(by: .app))
    }
    if stage != .recording { bench.offer() }
    if [.inDoubt, .probing, .unresolved].contains(stage) { bench.lose() }
    if stage == .probing { bench.probe() }
    _ = bench.journal.takeEvents()
    bench.call(2, .write(level, [2]), id: "op2") { $0.supersedes = "height" }
    let events = bench.journal.takeEvents()
    #expect(events.map(\.change) == [.recorded, .superseded(by: byTwo)])
    #expect(events.map(\.operation.request) == [.write(level, [2]), .write(JournalBench.lock, [1])])
    #expect(events.last?.operation.state.rawValue == "\(stage)")
  }

  @Test mutating func whatWaitsHasNoTransitionButItsOutcome() {
    bench.journal.isObserved = true
    older()
    younger()
    #expect(
      bench.journal.takeEvents().map(\.change)
        == [.recorded, .recorded, .settled(.notSent(.superseded(by: byTwo)))])
  }

  @Test mutating func oneThatIsSettlingKeepsItsOutcome() {
    bench = JournalBench(durable: true)
    bench.durable(1) { $0.supersedes = "height" }
    bench.commit()
    bench.cancel(1)
    bench.durable(2) { $0.supersedes = "height" }
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.cancelled)])
  }
}
