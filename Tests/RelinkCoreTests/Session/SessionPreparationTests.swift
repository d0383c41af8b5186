import BluetoothWire
import Testing

@testable import RelinkCore

/// The way from a link that is up to ready, and the table that changes later.
@Suite struct SessionPreparationTests {
  @Test func theStepsFollowEachOtherAndReadySaysWhatTheyTook() {
    var machine = SessionStateMachine.dialling(hasSetup: true)
    #expect(
      machine.linkUp(.number(1), attempt: .number(1), capabilities: .exchanging, now: .ms(10)) == [
        .adoptLink(.number(1), Generation(rawValue: 1)), .setTimer(.preparation, at: .ms(60_010)),
        .publish(.phase(.exchangingMTU)), .prepare(.exchangingMTU),
      ])
    machine.roundTripsCounted(1, now: .ms(0))
    #expect(
      machine.mtuExchanged(247, now: .ms(0)) == [.publish(.phase(.discovering)), .prepare(.discovering)])
    machine.roundTripsCounted(2, now: .ms(0))
    #expect(
      machine.tableLearnt(changed: true)
        == [.publish(.phase(.restoringSubscriptions)), .prepare(.restoringSubscriptions)])
    machine.roundTripsCounted(3, now: .ms(0))
    #expect(
      machine.subscriptionsRestored(now: .ms(20)) == [.publish(.phase(.settingUp)), .prepare(.settingUp)])
    #expect(!machine.isOffering)
    let readiness = Readiness.on(
      1, outage: .milliseconds(30), mtu: 247, roundTrips: 3, tableChanged: true, .resumed)
    #expect(
      machine.setupFinished(on: Generation(rawValue: 1), .resumed, now: .ms(30)) == [
        .cancelTimer(.preparation), .publish(.ready(readiness)), .offerOperations, .cancelTimer(.connect),
        .resume([.number(1)], .ready(readiness)),
      ])
    #expect(machine.isOffering)
    #expect(machine.snapshot.since == .ms(30))
  }

  @Test(arguments: [Continuity.resumed, .fresh, .unknown])
  func theSetupSaysWhetherTheDeviceKeptItsState(_ continuity: Continuity) {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    machine.makeReady(at: .ms(0))
    _ = machine.setupFinished(on: Generation(rawValue: 1), .resumed, now: .ms(0))
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(100))
    _ = machine.linkUp(.number(2), attempt: .number(2), capabilities: .plain, now: .ms(150))
    machine.makeReady(at: .ms(160))
    let readiness = Readiness.on(2, outage: .milliseconds(70), continuity)
    #expect(
      machine.setupFinished(on: Generation(rawValue: 2), continuity, now: .ms(170))
        == [.cancelTimer(.preparation), .publish(.ready(readiness)), .offerOperations])
  }

  /// Another process may have used the device before, which the setup can see and the session cannot.
  @Test(arguments: [Continuity.resumed, .fresh, .unknown])
  func onTheFirstLinkTheSetupIsBelieved(_ continuity: Continuity) {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    machine.makeReady(at: .ms(0))
    _ = machine.setupFinished(on: Generation(rawValue: 1), continuity, now: .ms(0))
    guard case .ready(let readiness) = machine.snapshot.state else {
      Issue.record("not ready")
      return
    }
    #expect(readiness.continuity == (continuity == .unknown ? .fresh : continuity))
  }

  @Test func withoutSetupNothingIsProvenAboutTheState() {
    var machine = SessionStateMachine.ready()
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(100))
    machine.bringUp(.number(2), attempt: .number(2), at: .ms(100))
    #expect(machine.snapshot.state == .ready(.on(2, .unknown)))
  }

  @Test func aStepThatIsNotDueChangesNothing() {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    let before = machine.state
    #expect(machine.mtuExchanged(100, now: .ms(0)) == [])
    #expect(machine.subscriptionsRestored(now: .ms(1)) == [])
    #expect(machine.setupFinished(on: Generation(rawValue: 1), .resumed, now: .ms(1)) == [])
    #expect(machine.state == before)
  }

  @Test func theSetupOfALinkThatIsGoneChangesNothing() {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    machine.makeReady(at: .ms(0))
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(1))
    _ = machine.linkUp(.number(2), attempt: .number(2), capabilities: .plain, now: .ms(2))
    machine.makeReady(at: .ms(3))
    let before = machine.state
    #expect(machine.setupFinished(on: Generation(rawValue: 1), .resumed, now: .ms(4)) == [])
    #expect(machine.state == before)
    #expect(
      machine.preparationFailed(on: .number(1), LinkLoss(.setupFailed), inDoubt: 0, now: .ms(5)) == [])
    #expect(machine.state == before)
  }

  @Test func aFailedSetupEndsTheLinkAndTheAttempt() {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    machine.makeReady(at: .ms(0))
    #expect(
      machine.preparationFailed(on: .number(1), LinkLoss(.setupFailed), inDoubt: 1, now: .ms(5)) == [
        .closeLink(.number(1)), .cancelTimer(.preparation),
        .publish(.attemptFailed(.of(.setupFailed, generation: 1, inDoubt: 1))), .cancelTimer(.backoff),
        .publish(.waiting(for: .previousLink, until: nil)),
      ])
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(6)) == [
        .publish(.connecting(.first(2, after: .setupFailed))), .dial(.number(2)),
      ])
  }

  /// Other failures do not make the app's setup wait longer, nor the setup's theirs, and success forgets them.
  @Test func failuresOfTheSetupAreCountedApart() {
    let long = BackoffPolicy(base: .seconds(1_000_000), cap: .seconds(1_000_000))
    var policy = ReconnectionPolicy(backoff: BackoffPolicy(base: .zero, cap: .zero), setupBackoff: long)
    var machine = SessionStateMachine.discovering(policy, hasSetup: true)
    machine.makeReady(at: .ms(0))
    _ = machine.preparationFailed(on: .number(1), LinkLoss(.setupFailed), inDoubt: 0, now: .ms(5))
    _ = machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(6))
    guard case .waiting(.backoff, until: .some) = machine.snapshot.state else {
      Issue.record("dialled without the setup's delay")
      return
    }
    #expect((machine.setupStreak, machine.streak) == (1, 0))
    policy = ReconnectionPolicy(backoff: long, setupBackoff: BackoffPolicy(base: .zero, cap: .zero))
    machine = SessionStateMachine.discovering(policy, hasSetup: true)
    machine.makeReady(at: .ms(0))
    _ = machine.preparationFailed(on: .number(1), LinkLoss(.setupFailed), inDoubt: 0, now: .ms(5))
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(6)).last
        == .dial(.number(2)))
    _ = machine.linkUp(.number(2), attempt: .number(2), capabilities: .plain, now: .ms(7))
    machine.makeReady(at: .ms(8))
    _ = machine.setupFinished(on: Generation(rawValue: 2), .unknown, now: .ms(9))
    #expect((machine.setupStreak, machine.streak) == (0, 0))
  }

  @Test func aLinkThatTakesTooLongToBecomeReadyIsEnded() {
    var machine = SessionStateMachine.discovering()
    #expect(
      machine.timerFired(.preparation, now: .ms(60_000)) == [
        .closeLink(.number(1)), .cancelTimer(.preparation),
        .publish(.attemptFailed(.of(.preparationTimeout, generation: 1))), .cancelTimer(.backoff),
        .publish(.waiting(for: .previousLink, until: nil)),
      ])
  }

  @Test func aTimerOfTheLinkBeforeDoesNotEndThisOne() {
    var machine = SessionStateMachine.discovering()
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(59_000))
    _ = machine.linkUp(.number(2), attempt: .number(2), capabilities: .plain, now: .ms(59_500))
    #expect(
      machine.timerFired(.preparation, now: .ms(60_000)) == [.setTimer(.preparation, at: .ms(119_500))])
    #expect(machine.currentLink?.id == .number(2))
  }

  @Test func theLastFailureOfAnOutageClosesTheLinkToo() {
    var policy = ReconnectionPolicy.plain
    policy.attemptsPerOutage = 1
    var machine = SessionStateMachine.discovering(policy)
    #expect(
      machine.preparationFailed(on: .number(1), LinkLoss(.protocolViolation), inDoubt: 0, now: .ms(5)) == [
        .closeLink(.number(1)), .cancelTimer(.preparation),
        .publish(.attemptFailed(.of(.protocolViolation, generation: 1, willReconnect: false))),
        .settleOperations(.attemptsExhausted, .attemptsExhausted), .publish(.idle(.attemptsExhausted)),
        .cancelTimer(.connect), .resume([.number(1)], .attemptsExhausted),
      ])
    #expect(machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(6)) == [])
  }

  // MARK: A table that changes

  @Test func aTableThatChangesWhileReadyIsAPhaseAndHoldsOperationsBack() {
    var machine = SessionStateMachine.ready()
    #expect(
      machine.tableInvalidated(on: .number(1))
        == [.publish(.phase(.revalidating)), .prepare(.revalidating)])
    #expect(!machine.isOffering)
    #expect(machine.snapshot.isReady)
    // It changes again before it was learnt: asked again, told once.
    #expect(machine.tableInvalidated(on: .number(1)) == [.prepare(.revalidating)])
    #expect(machine.tableLearnt(changed: false) == [.offerOperations])
    #expect(machine.isOffering)
    #expect(machine.snapshot.state == .ready(.on(1, tableChanged: true)))
    #expect(machine.tableLearnt(changed: false) == [])
  }

  @Test func aTableThatChangesWhileItIsDiscoveredIsDiscoveredAgain() {
    var machine = SessionStateMachine.discovering()
    #expect(machine.tableInvalidated(on: .number(1)) == [.prepare(.discovering)])
    #expect(machine.snapshot.state == .connecting(.first(), .discovering))
  }

  @Test func aTableThatChangesBeforeItIsDiscoveredNeedsNothing() {
    var machine = SessionStateMachine.dialling()
    _ = machine.linkUp(.number(1), attempt: .number(1), capabilities: .exchanging, now: .ms(0))
    #expect(machine.tableInvalidated(on: .number(1)) == [])
  }

  @Test func aTableThatChangesUnderTheSubscriptionsIsDiscoveredFirst() {
    // The link takes no descriptor by name until then, so the subscriptions would wait for ever.
    var machine = SessionStateMachine.discovering()
    _ = machine.tableLearnt(changed: false)
    #expect(
      machine.tableInvalidated(on: .number(1)) == [.publish(.phase(.discovering)), .prepare(.discovering)])
    #expect(machine.subscriptionsRestored(now: .ms(1)) == [])
    #expect(
      machine.tableLearnt(changed: true)
        == [.publish(.phase(.restoringSubscriptions)), .prepare(.restoringSubscriptions)])
  }

  @Test func aTableThatChangesUnderTheSetupIsLearntBesideIt() {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    machine.makeReady(at: .ms(0))
    #expect(machine.tableInvalidated(on: .number(1)) == [.prepare(.revalidating)])
    #expect(machine.tableInvalidated(on: .number(1)) == [.prepare(.revalidating)])
    #expect(machine.tableLearnt(changed: false) == [])
    // Ready means that the subscriptions are armed, those of the new table too.
    #expect(
      machine.setupFinished(on: Generation(rawValue: 1), .unknown, now: .ms(0))
        == [.publish(.phase(.restoringSubscriptions)), .prepare(.restoringSubscriptions)])
    let readiness = Readiness.on(1, tableChanged: true)
    #expect(
      machine.subscriptionsRestored(now: .ms(0)) == [
        .cancelTimer(.preparation), .publish(.ready(readiness)), .offerOperations, .cancelTimer(.connect),
        .resume([.number(1)], .ready(readiness)),
      ])
  }

  @Test func aSetupThatEndsBeforeTheTableIsLearntWaitsForIt() {
    var machine = SessionStateMachine.discovering(hasSetup: true)
    machine.makeReady(at: .ms(0))
    _ = machine.tableInvalidated(on: .number(1))
    #expect(machine.setupFinished(on: Generation(rawValue: 1), .unknown, now: .ms(0)) == [])
    #expect(!machine.isOffering)
    #expect(
      machine.tableLearnt(changed: true)
        == [.publish(.phase(.restoringSubscriptions)), .prepare(.restoringSubscriptions)])
    // The setup has run on this link, and does not run again.
    #expect(machine.subscriptionsRestored(now: .ms(0)).contains(.offerOperations))
    #expect(machine.isOffering)
  }

  @Test func aTableThatCannotBeLearntAgainEndsTheLinkWithItsReason() {
    var machine = SessionStateMachine.ready()
    _ = machine.tableInvalidated(on: .number(1))
    let loss = LinkLoss(.protocolViolation, evidence: [.att(.unlikelyError)])
    let actions = machine.linkGivenUp(on: .number(1), loss, inDoubt: 2, now: .ms(5))
    #expect(actions.first == .closeLink(.number(1)))
    guard case .publish(.disconnected(let info)) = actions.dropFirst().first else {
      Issue.record("no loss was told")
      return
    }
    #expect(info.reason == .protocolViolation && info.inDoubt == 2 && info.willReconnect)
    #expect(machine.snapshot.state == .waiting(.previousLink, until: nil))
    #expect(!machine.isOffering)
  }

  @Test func theTableOfAnotherLinkConcernsNobody() {
    var ready = SessionStateMachine.ready()
    #expect(ready.tableInvalidated(on: .number(2)) == [])
    var discovering = SessionStateMachine.discovering()
    #expect(discovering.tableInvalidated(on: .number(2)) == [])
    var dialling = SessionStateMachine.dialling()
    #expect(dialling.tableInvalidated(on: .number(1)) == [])
  }
}
