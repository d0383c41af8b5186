import Testing

@testable import RelinkCore

/// What the app asks for: a link, no link, the end.
@Suite struct SessionIntentTests {
  // MARK: connect()

  @Test func aNewSessionRestsUntilItIsAsked() {
    let machine = SessionStateMachine.script()
    #expect(machine.snapshot == Snapshot(state: .idle(.neverAsked), since: .ms(0)))
    #expect(machine.isAtRest)
    #expect(machine.currentLink == nil)
  }

  @Test func connectDials() {
    var machine = SessionStateMachine.script()
    #expect(
      machine.connectRequested(.number(1), deadline: .ms(500), now: .ms(10)) == [
        .publish(.connecting(.first())), .dial(.number(1)), .setConnectTimer(atBootTime: .ms(500)),
      ])
    #expect(machine.snapshot.state == .connecting(.first(), nil))
    #expect(machine.snapshot.since == .ms(10))
    #expect(!machine.isAtRest)
  }

  @Test func overlappingCallsShareTheAttemptAndGetOneResultEach() {
    var machine = SessionStateMachine.dialling()
    #expect(machine.connectRequested(.number(2), deadline: nil, now: .ms(1)) == [])
    _ = machine.linkUp(.number(1), attempt: .number(1), capabilities: .plain, now: .ms(2))
    _ = machine.tableLearnt(changed: false)
    let readiness = Readiness.on(1, outage: .milliseconds(3))
    #expect(
      machine.subscriptionsRestored(now: .ms(3)) == [
        .cancelTimer(.preparation), .publish(.ready(readiness)), .offerOperations, .cancelTimer(.connect),
        .resume([.number(1), .number(2)], .ready(readiness)),
      ])
    #expect(
      machine.connectRequested(.number(3), deadline: nil, now: .ms(9))
        == [.resume([.number(3)], .ready(readiness))])
  }

  @Test func connectDoesNotWaitForTheDelayAfterFailures() {
    var machine = SessionStateMachine.waitingInBackoff()
    guard case .waiting(.backoff, until: .some) = machine.snapshot.state else {
      Issue.record("not in backoff")
      return
    }
    #expect(
      machine.connectRequested(.number(2), deadline: nil, now: .ms(1)) == [
        .cancelTimer(.backoff), .publish(.connecting(.first(2, after: .failedToEstablish))),
        .dial(.number(2)),
      ])
  }

  @Test(arguments: [(AdapterState.off, WaitReason.adapterOff), (.missing, .adapterMissing)])
  func connectIsToldThatTheAdapterCannotBeUsedAndTheWishLasts(_ adapter: AdapterState, _ reason: WaitReason) {
    var machine = SessionStateMachine.script()
    #expect(machine.adapterChanged(adapter, now: .ms(0)) == [])
    #expect(
      machine.connectRequested(.number(1), deadline: .ms(900), now: .ms(1)) == [
        .cancelTimer(.backoff), .publish(.waiting(for: reason, until: nil)),
        .setTimer(.adapter, at: .ms(5_001)), .resume([.number(1)], .adapterUnavailable(adapter)),
      ])
    #expect(
      machine.adapterChanged(.on, now: .ms(2))
        == [.publish(.connecting(.first())), .dial(.number(1))])
  }

  @Test func theDeadlineEndsTheWaitAndNotTheWish() {
    var machine = SessionStateMachine.script()
    _ = machine.connectRequested(.number(1), deadline: .ms(300), now: .ms(0))
    #expect(
      machine.connectRequested(.number(2), deadline: .ms(100), now: .ms(0))
        == [.setConnectTimer(atBootTime: .ms(100))])
    #expect(
      machine.connectRequested(.number(3), deadline: nil, now: .ms(0)) == [
        .setConnectTimer(atBootTime: .ms(100))
      ])
    #expect(
      machine.timerFired(.connect, now: .ms(100)) == [
        .resume([.number(2)], .deadlineExceeded), .setConnectTimer(atBootTime: .ms(300)),
      ])
    #expect(machine.timerFired(.connect, now: .ms(200)) == [.setConnectTimer(atBootTime: .ms(300))])
    #expect(machine.timerFired(.connect, now: .ms(300)) == [.resume([.number(1)], .deadlineExceeded)])
    #expect(machine.timerFired(.connect, now: .ms(400)) == [])
    #expect(machine.snapshot.state == .connecting(.first(), nil))
  }

  @Test func timeThatTheSystemSleepsCountsForTheCallersOfConnect() {
    var machine = SessionStateMachine.script()
    _ = machine.connectRequested(.number(1), deadline: .ms(300), now: .ms(0))
    _ = machine.connectRequested(.number(2), deadline: .ms(5_000), now: .ms(0))
    #expect(
      machine.timerFired(.connect, now: .ms(100, suspended: 1_000)) == [
        .resume([.number(1)], .deadlineExceeded), .setConnectTimer(atBootTime: .ms(5_000)),
      ])
    #expect(
      machine.timerFired(.connect, now: .ms(200, suspended: 9_000))
        == [.resume([.number(2)], .deadlineExceeded)])
  }

  // MARK: Cancelling connect()

  @Test func cancellingTheOnlyCallerBeforeTheFirstReadyWithdrawsTheWish() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.connectCancelled(.number(1), hasOtherWork: false, now: .ms(5)) == [
        .cancelAttempt(.number(1)), .publish(.attemptFailed(.of(.requested, willReconnect: false))),
        .publish(.idle(.withdrawn)), .resume([.number(1)], .cancelled),
      ])
    #expect(machine.attemptFailed(.number(1), LinkLoss(.requested), now: .ms(6)) == [])
    #expect(machine.isAtRest)
  }

  @Test func cancellingOneOfTwoCallersChangesNothingElse() {
    var machine = SessionStateMachine.dialling()
    _ = machine.connectRequested(.number(2), deadline: nil, now: .ms(1))
    #expect(
      machine.connectCancelled(.number(1), hasOtherWork: false, now: .ms(2))
        == [.resume([.number(1)], .cancelled)])
    #expect(machine.connectCancelled(.number(1), hasOtherWork: false, now: .ms(2)) == [])
    #expect(machine.snapshot.state == .connecting(.first(), nil))
  }

  @Test func cancellingTheOnlyCallerKeepsTheWishOfOtherWork() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.connectCancelled(.number(1), hasOtherWork: true, now: .ms(2))
        == [.resume([.number(1)], .cancelled)])
    #expect(machine.snapshot.state == .connecting(.first(), nil))
  }

  @Test func cancellingAfterTheFirstReadyKeepsTheWish() {
    var machine = SessionStateMachine.ready()
    _ = machine.linkClosed(.number(1), LinkLoss(.remoteUserTerminated), inDoubt: 0, now: .ms(1))
    _ = machine.connectRequested(.number(2), deadline: nil, now: .ms(2))
    #expect(
      machine.connectCancelled(.number(2), hasOtherWork: false, now: .ms(3))
        == [.resume([.number(2)], .cancelled)])
    #expect(machine.snapshot.state == .connecting(.again(after: .remoteUserTerminated), nil))
  }

  // MARK: Work

  @Test func anOperationDialsByItself() {
    var machine = SessionStateMachine.script()
    #expect(
      machine.workArrived(now: .ms(0)) == .wait([.publish(.connecting(.first())), .dial(.number(1))]))
    #expect(machine.workArrived(now: .ms(1)) == .wait([]))
  }

  @Test func anOperationIsRefusedWhereNobodyBringsALink() {
    var machine = SessionStateMachine.ready()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(0))
    #expect(machine.workArrived(now: .ms(1)) == .refuse(.disconnected))
    _ = machine.endRequested(.closed, inDoubt: 0, now: .ms(2))
    #expect(machine.workArrived(now: .ms(3)) == .refuse(.ended))
  }

  @Test func anOperationStartsANewOutageAfterTheAttemptsWereUsedUp() {
    var policy = ReconnectionPolicy.plain
    policy.attemptsPerOutage = 1
    var machine = SessionStateMachine.dialling(policy)
    _ = machine.attemptFailed(.number(1), LinkLoss(.failedToEstablish), now: .ms(1))
    #expect(machine.snapshot.state == .idle(.attemptsExhausted))
    let info = AttemptInfo(number: 1, remaining: 0, isReconnection: false, after: nil)
    #expect(machine.workArrived(now: .ms(2)) == .wait([.publish(.connecting(info)), .dial(.number(2))]))
  }

  // MARK: disconnect()

  @Test func disconnectInIdleOnlyTakesDownThatNoLinkIsWanted() {
    var machine = SessionStateMachine.script()
    #expect(
      machine.disconnectRequested(inDoubt: 0, now: .ms(1)) == [
        .settleOperations(.disconnected, .disconnected), .publish(.idle(.disconnected)),
      ])
    #expect(machine.disconnectRequested(inDoubt: 0, now: .ms(2)) == [])
  }

  @Test func disconnectWhileWaitingForgetsTheTimers() {
    var machine = SessionStateMachine.waitingInBackoff()
    #expect(
      machine.disconnectRequested(inDoubt: 0, now: .ms(1)) == [
        .cancelTimer(.backoff), .cancelTimer(.adapter), .settleOperations(.disconnected, .disconnected),
        .publish(.idle(.disconnected)), .cancelTimer(.connect), .resume([.number(1)], .disconnected),
      ])
    #expect(machine.timerFired(.backoff, now: .ms(100_000)) == [])
    #expect(machine.timerFired(.adapter, now: .ms(100_000)) == [])
  }

  @Test func disconnectWhileDiallingCallsTheDialOff() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.disconnectRequested(inDoubt: 0, now: .ms(1)) == [
        .cancelAttempt(.number(1)), .publish(.attemptFailed(.of(.requested, willReconnect: false))),
        .settleOperations(.disconnected, .disconnected), .publish(.idle(.disconnected)),
        .cancelTimer(.connect), .resume([.number(1)], .disconnected),
      ])
    #expect(!machine.isAtRest)
    // The dial won the race: its link is closed, and nothing else happens.
    #expect(
      machine.linkUp(.number(7), attempt: .number(1), capabilities: .plain, now: .ms(2))
        == [.closeLink(.number(7))])
    #expect(machine.linkClosed(.number(7), LinkLoss(.requested), inDoubt: 0, now: .ms(3)) == [])
    #expect(machine.isAtRest)
  }

  @Test func disconnectWhilePreparingClosesTheLink() {
    var machine = SessionStateMachine.discovering()
    #expect(
      machine.disconnectRequested(inDoubt: 2, now: .ms(1)) == [
        .closeLink(.number(1)), .cancelTimer(.preparation),
        .publish(.attemptFailed(.of(.requested, generation: 1, inDoubt: 2, willReconnect: false))),
        .settleOperations(.disconnected, .disconnected), .publish(.idle(.disconnected)),
        .cancelTimer(.connect), .resume([.number(1)], .disconnected),
      ])
    #expect(machine.currentLink == nil)
    #expect(machine.timerFired(.preparation, now: .ms(100_000)) == [])
  }

  @Test func disconnectWhileReadyClosesTheLinkAndNothingIsDialled() {
    var machine = SessionStateMachine.ready()
    #expect(
      machine.disconnectRequested(inDoubt: 3, now: .ms(1)) == [
        .closeLink(.number(1)),
        .publish(.disconnected(.of(.requested, generation: 1, inDoubt: 3, willReconnect: false))),
        .settleOperations(.disconnected, .disconnected), .publish(.idle(.disconnected)),
      ])
    #expect(machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(2)) == [])
    #expect(machine.adapterChanged(.off, now: .ms(3)) == [])
    #expect(machine.adapterChanged(.on, now: .ms(4)) == [])
    #expect(machine.snapshot.state == .idle(.disconnected))
    #expect(machine.isAtRest)
  }

  @Test func connectAfterDisconnectWaitsUntilTheOldLinkIsGone() {
    var machine = SessionStateMachine.ready()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(1))
    #expect(
      machine.connectRequested(.number(2), deadline: nil, now: .ms(2)) == [
        .cancelTimer(.backoff), .publish(.waiting(for: .previousLink, until: nil)),
      ])
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(3)) == [
        .publish(.connecting(.again())), .dial(.number(2)),
      ])
  }

  @Test func connectAfterACancelledDialWaitsUntilTheDialIsGone() {
    var machine = SessionStateMachine.dialling()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(1))
    #expect(
      machine.connectRequested(.number(2), deadline: nil, now: .ms(2)) == [
        .cancelTimer(.backoff), .publish(.waiting(for: .previousLink, until: nil)),
      ])
    #expect(
      machine.attemptFailed(.number(1), LinkLoss(.requested), now: .ms(3))
        == [.publish(.connecting(.first())), .dial(.number(2))])
  }

  // MARK: The end

  @Test(arguments: [EndReason.closed, .released])
  func theEndIsTheLastEventAndFinal(_ reason: EndReason) {
    var machine = SessionStateMachine.ready()
    #expect(
      machine.endRequested(reason, inDoubt: 1, now: .ms(1)) == [
        .closeLink(.number(1)),
        .publish(.disconnected(.of(.requested, generation: 1, inDoubt: 1, willReconnect: false))),
        .settleOperations(.ended, .ended), .publish(.ended(reason)),
      ])
    #expect(machine.endRequested(reason, inDoubt: 0, now: .ms(2)) == [])
    #expect(machine.disconnectRequested(inDoubt: 0, now: .ms(2)) == [])
    #expect(machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(2)) == [])
    #expect(
      machine.connectRequested(.number(9), deadline: nil, now: .ms(3))
        == [.resume([.number(9)], .ended)])
    #expect(
      machine.linkUp(.number(5), attempt: nil, capabilities: .plain, now: .ms(4))
        == [.closeLink(.number(5))])
    #expect(machine.snapshot.state == .ended(reason))
    #expect(machine.snapshot.since == .ms(1))
  }

  @Test func theEndResumesEveryWaiter() {
    var machine = SessionStateMachine.dialling()
    _ = machine.connectRequested(.number(2), deadline: .ms(50), now: .ms(0))
    #expect(
      machine.endRequested(.closed, inDoubt: 0, now: .ms(1)) == [
        .cancelAttempt(.number(1)), .publish(.attemptFailed(.of(.requested, willReconnect: false))),
        .settleOperations(.ended, .ended), .publish(.ended(.closed)), .cancelTimer(.connect),
        .resume([.number(1), .number(2)], .ended),
      ])
  }
}
