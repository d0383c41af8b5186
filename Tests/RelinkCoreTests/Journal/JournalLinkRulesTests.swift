import BluetoothWire
import Testing

@testable import RelinkCore

/// What a link must be for an operation, and what links that fall under one say about it.
@Suite struct JournalLinkRulesTests {
  private var bench = JournalBench()
  private let lock = JournalBench.lock
  private let level = JournalBench.level

  // MARK: Continuity

  private mutating func ready(_ continuity: Continuity) {
    bench.journal.becameReady(on: bench.generation, continuity)
  }

  @Test(arguments: [.fresh, .unknown, .resumed] as [Continuity])
  mutating func aLaterLinkMustBeProvenToHaveKeptTheState(_ continuity: Continuity) {
    ready(.fresh)
    bench.call(1, readyOn: bench.generation) { $0.continuity = .unbroken }
    bench.lose()
    ready(continuity)
    if continuity == .resumed {
      #expect(bench.offer() == 1)
    } else {
      #expect(bench.offer() == nil)
      #expect(bench.outcomes(1) == [.notSent(.continuityBroken)])
    }
  }

  @Test mutating func oneBreakIsEnough() {
    ready(.fresh)
    bench.call(1, readyOn: bench.generation) { $0.continuity = .unbroken }
    bench.lose()
    ready(.resumed)
    bench.lose()
    ready(.unknown)
    bench.lose()
    ready(.resumed)
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [.notSent(.continuityBroken)])
  }

  @Test mutating func withoutALinkTheNextOneCountsAsThatOfTheCall() {
    bench.call(1) { $0.continuity = .unbroken }
    ready(.fresh)
    bench.lose()
    ready(.resumed)
    #expect(bench.next() == 1)
    bench.lose()
    ready(.fresh)
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [.notSent(.continuityBroken)])
  }

  @Test mutating func whatIsInDoubtOverABreakIsNotOfferedAgain() {
    ready(.fresh)
    bench.call(1, readyOn: bench.generation) { $0.continuity = .unbroken }
    bench.offer()
    bench.lose()
    ready(.fresh)
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [bench.doubt(.continuityBroken, until: 0)])
  }

  @Test mutating func aBreakDoesNotKeepTheProbeFromLooking() {
    ready(.fresh)
    bench.call(1, nil, .verified(by: .named("p")), readyOn: bench.generation) { $0.continuity = .unbroken }
    bench.offer()
    bench.lose()
    ready(.fresh)
    #expect(bench.probe() == 1)
    bench.probed(1, .notApplied)
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [.notSent(.continuityBroken)])
  }

  // MARK: Security

  @Test mutating func aLinkThatIsNotSecureEnoughTakesItNot() {
    bench.call(1) { $0.security = .authenticated }
    #expect(bench.journal.wantsSecurity)
    bench.security = .encrypted
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [.notSent(.securityTooLow(.encrypted))])
    #expect(!bench.journal.wantsSecurity)
    bench.call(2) { $0.security = .authenticated }
    bench.security = .secureConnections
    #expect(bench.offer() == 2)
  }

  @Test mutating func whatIsInDoubtOnALinkThatIsNotSecureEnoughIsADoubt() {
    bench.security = .encrypted
    bench.call(1) { $0.security = .encrypted }
    bench.offer()
    bench.lose()
    bench.security = .none
    #expect(bench.offer() == nil)
    #expect(bench.outcomes(1) == [bench.doubt(.securityTooLow(.none), until: 0)])
  }

  // MARK: Poison

  private mutating func loseSoon(
    _ reason: DisconnectReason = .remoteUserTerminated, after milliseconds: Int64 = 2_000
  ) {
    bench.offer()
    bench.pass(milliseconds: milliseconds)
    bench.lose(reason)
  }

  @Test(
    arguments: [
      .remoteUserTerminated, .remotePowerOff, .remoteLowResources, .protocolViolation, .transactionTimeout,
    ] as [DisconnectReason])
  mutating func whatEndsThreeLinksAloneStops(_ reason: DisconnectReason) {
    bench.call(1)
    loseSoon(reason)
    loseSoon(reason)
    #expect(bench.state(1) == .queued)
    loseSoon(reason)
    #expect(bench.outcomes(1) == [bench.doubt(.poisonous, on: 3, at: 4, offers: 3, until: 6)])
  }

  @Test(
    arguments: [.supervisionTimeout, .adapterOff, .requested, .micFailure, .linkLayerFault]
      as [DisconnectReason])
  mutating func theRadioSaysNothingAboutTheRequest(_ reason: DisconnectReason) {
    bench.call(1)
    for _ in 0..<10 { loseSoon(reason) }
    #expect(bench.state(1) == .queued)
  }

  @Test mutating func aLossThatComesLateSaysNothing() {
    bench.call(1)
    for _ in 0..<10 { loseSoon(after: 2_001) }
    #expect(bench.state(1) == .queued)
  }

  @Test mutating func aLossThatIsFoundAfterASleepSaysNothing() {
    bench.call(1)
    for _ in 0..<10 {
      bench.offer()
      bench.suspend(60)
      bench.lose(.remoteUserTerminated)
    }
    #expect(bench.state(1) == .queued)
  }

  @Test mutating func anATTTimeoutIsNeverLate() {
    bench.call(1)
    for _ in 0..<3 { loseSoon(.transactionTimeout, after: 30_000) }
    #expect(bench.journal.entries == [])
  }

  @Test mutating func oneOfSeveralIsNotBlamed() {
    bench.call(1)
    bench.call(2, .read(level))
    for _ in 0..<10 {
      bench.offer()
      loseSoon()
    }
    #expect(bench.journal.entries.count == 2)
  }

  @Test mutating func onlyLossesInARowCount() {
    bench.call(1)
    loseSoon()
    loseSoon()
    loseSoon(.supervisionTimeout)
    loseSoon()
    loseSoon()
    #expect(bench.state(1) == .queued)
    loseSoon()
    #expect(bench.journal.entries == [])
  }

  @Test mutating func aVerifiedOneIsNotOfferedForEverEither() {
    bench.call(1, nil, .verified(by: .named("p")))
    for _ in 0..<2 {
      loseSoon()
      bench.probe()
      bench.probed(1, .notApplied)
    }
    loseSoon()
    #expect(bench.outcomes(1) == [bench.doubt(.poisonous, on: 3, at: 4, offers: 3, until: 6)])
  }

  // MARK: Refusals

  @Test mutating func whatALinkGivesBackAgainAndAgainWaitsForTheNext() {
    bench.call(1)
    bench.call(2, .read(level))
    for _ in 0..<OperationJournal.refusalLimit {
      #expect(bench.offer() == 1)
      #expect(bench.answer(1, .failure(.refused(.calledOff))) == nil)
    }
    #expect(bench.offer() == 2)
    #expect(bench.offer() == nil)
    bench.lose()
    #expect(bench.offer() == 1)
    #expect(bench.entry(1)?.offers == 1)
  }

  @Test mutating func whatIsHeldStillKeepsItsOrder() {
    bench.call(1)
    bench.call(2)
    for _ in 0..<OperationJournal.refusalLimit {
      bench.offer()
      bench.answer(1, .failure(.refused(.calledOff)))
    }
    #expect(bench.offer() == nil)
  }

  @Test mutating func whatIsHeldDoesNotKeepOthersFromBeingMarked() {
    bench = JournalBench(durable: true)
    bench.durable(1)
    bench.durable(2, .write(level, [2]))
    bench.commit()
    bench.markAndOffer()
    for _ in 0..<OperationJournal.refusalLimit {
      bench.answer(1, .failure(.refused(.calledOff)))
      bench.offer()
    }
    #expect(bench.state(1) == .queued)
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func refusalsOnOneLinkDoNotCountOnAnother() {
    bench.call(1)
    for _ in 1..<OperationJournal.refusalLimit {
      bench.offer()
      bench.answer(1, .failure(.refused(.calledOff)))
    }
    bench.offer()
    bench.lose()
    bench.offer()
    bench.answer(1, .failure(.refused(.calledOff)))
    #expect(bench.offer() == 1)
  }

  // MARK: Writes without response

  private mutating func handOver(_ number: Int64) {
    bench.call(number, .writeWithoutResponse(level, [1]))
    bench.offer()
    #expect(bench.answer(number)?.confirmation == .handedOver)
  }

  @Test mutating func handedOverWritesAreUnconfirmedUntilALaterAnswer() {
    handOver(1)
    handOver(2)
    bench.call(3, .read(lock))
    bench.offer()
    handOver(4)
    bench.answer(3)
    #expect(bench.lose().unconfirmed == 1)
    #expect(bench.lose().unconfirmed == 0)
  }

  @Test mutating func whatTheLinkGaveBackConfirmsNothing() {
    handOver(1)
    bench.call(2, .read(lock))
    bench.offer()
    bench.answer(2, .failure(.refused(.calledOff)))
    #expect(bench.lose().unconfirmed == 1)
  }

  @Test mutating func aRejectionConfirmsAsWell() {
    handOver(1)
    bench.call(2, .read(lock))
    bench.offer()
    bench.answer(2, .failure(.rejected(ATTErrorCode(rawValue: 2))))
    #expect(bench.lose().unconfirmed == 0)
  }

  @Test mutating func aLinkThatMayBecomeSecureIsAskedTo() {
    bench.call(1) { $0.security = .encrypted }
    bench.maySecure = true
    #expect(bench.next() == nil)
    #expect(bench.securityAsked == [.encrypted])
    #expect(bench.told == [])
    bench.security = .encrypted
    #expect(bench.offer() == 1)
  }

  // MARK: The bond of the first offer

  @Test(arguments: [(UInt64(5), true), (6, false), (nil, false)])
  mutating func whatWasInDoubtIsOfferedAgainToTheSameBondOnly(_ bond: UInt64?, _ isOffered: Bool) {
    bench.call(1) { $0.continuity = .sameBond }
    bench.bond = 5
    #expect(bench.offer() == 1)
    bench.lose()
    bench.bond = bond
    #expect(bench.offer() == (isOffered ? 1 : nil))
    #expect(bench.told.isEmpty == isOffered)
    if !isOffered { #expect(bench.told.last?.outcome == bench.doubt(.continuityBroken, until: 0)) }
  }

  @Test mutating func whatWasNeverOfferedGoesToAnyBond() {
    bench.call(1) { $0.continuity = .sameBond }
    bench.lose()
    bench.bond = 9
    #expect(bench.offer() == 1)
  }

  @Test mutating func withoutABondThereIsNoSameOne() {
    bench.call(1) { $0.continuity = .sameBond }
    #expect(bench.offer() == 1)
    bench.lose()
    #expect(bench.offer() == nil)
    #expect(bench.told.count == 1)
  }
}
