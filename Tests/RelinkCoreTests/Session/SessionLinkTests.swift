import BluetoothWire
import Testing

@testable import RelinkCore

/// What the transport reports: links and attempts that come and go.
@Suite struct SessionLinkTests {
  // MARK: Links that come up

  @Test func aLinkIsAdoptedAsTheNextGeneration() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.linkUp(.number(8), attempt: .number(1), capabilities: .plain, now: .ms(4))
        == SessionStateMachine.adoption(of: 8, 1, now: .ms(4)))
    #expect(machine.currentLink?.id == .number(8))
    #expect(machine.currentLink?.generation == Generation(rawValue: 1))
    #expect(machine.isPreparing)
    #expect(machine.snapshot.state == .connecting(.first(), .discovering))
  }

  @Test func aLinkThatNobodyDialledReplacesTheDialUnderWay() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.linkUp(.number(8), attempt: nil, capabilities: .plain, now: .ms(4))
        == [.cancelAttempt(.number(1))] + SessionStateMachine.adoption(of: 8, 1, now: .ms(4)))
    // The dial is not gone yet: when the link dies before it, nothing is dialled.
    #expect(
      machine.linkClosed(.number(8), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(5)) == [
        .cancelTimer(.preparation), .cancelTimer(.validation),
        .publish(.attemptFailed(.of(.supervisionTimeout, generation: 1))),
        .cancelTimer(.backoff), .publish(.waiting(for: .previousLink, until: nil)),
      ])
    #expect(
      machine.attemptFailed(.number(1), LinkLoss(.requested), now: .ms(6)) == [
        .publish(.connecting(.first(2, after: .supervisionTimeout))), .dial(.number(2)),
      ])
  }

  @Test func aLinkThatNobodyDialledEndsTheWait() {
    var machine = SessionStateMachine.waitingInBackoff()
    #expect(
      machine.linkUp(.number(8), attempt: nil, capabilities: .plain, now: .ms(4))
        == [.cancelTimer(.backoff), .publish(.connecting(.first(2, after: .failedToEstablish)))]
        + SessionStateMachine.adoption(of: 8, 1, now: .ms(4)))
  }

  @Test func aLinkWithoutDialIsClosedWhereNoneIsWanted() {
    var machine = SessionStateMachine.script()
    #expect(
      machine.linkUp(.number(8), attempt: nil, capabilities: .plain, now: .ms(4)) == [.closeLink(.number(8))])
    #expect(!machine.isAtRest)
    #expect(machine.snapshot.staleDeliveries == 0)
  }

  @Test func aSecondLinkIsClosedAndTheFirstStays() {
    var machine = SessionStateMachine.ready()
    #expect(
      machine.linkUp(.number(8), attempt: nil, capabilities: .plain, now: .ms(4)) == [.closeLink(.number(8))])
    #expect(machine.currentLink?.id == .number(1))
    #expect(machine.linkClosed(.number(8), LinkLoss(.requested), inDoubt: 0, now: .ms(5)) == [])
    #expect(machine.currentLink?.id == .number(1))
  }

  @Test func aLinkOfAnUnknownDialIsClosedAndCounted() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.linkUp(.number(8), attempt: .number(77), capabilities: .plain, now: .ms(4))
        == [.closeLink(.number(8))])
    #expect(machine.snapshot.staleDeliveries == 1)
    #expect(machine.snapshot.state == .connecting(.first(), nil))
  }

  @Test func aLinkThatACancelledDialBroughtIsClosedBeforeTheNextDial() {
    var machine = SessionStateMachine.dialling()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(1))
    _ = machine.connectRequested(.number(2), deadline: nil, now: .ms(2))
    #expect(
      machine.linkUp(.number(8), attempt: .number(1), capabilities: .plain, now: .ms(3))
        == [.closeLink(.number(8))])
    #expect(
      machine.linkClosed(.number(8), LinkLoss(.requested), inDoubt: 0, now: .ms(4))
        == [.publish(.connecting(.first())), .dial(.number(2))])
  }

  @Test func nothingIsDialledUntilAllOldLinksAreGone() {
    var machine = SessionStateMachine.waitingForOldLink()
    _ = machine.linkUp(.number(2), attempt: .number(99), capabilities: .plain, now: .ms(1))
    #expect(machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(2)) == [])
    #expect(
      machine.linkClosed(.number(2), LinkLoss(.requested), inDoubt: 0, now: .ms(3))
        == [.publish(.connecting(.again())), .dial(.number(2))])
  }

  // MARK: Losses

  @Test func theFirstLossDialsAtOnce() {
    let policy = ReconnectionPolicy(backoff: BackoffPolicy(base: .seconds(1_000), cap: .seconds(1_000)))
    var machine = SessionStateMachine.ready(policy)
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 2, now: .ms(50)) == [
        .publish(.disconnected(.of(.supervisionTimeout, generation: 1, inDoubt: 2))),
        .publish(.connecting(.again(after: .supervisionTimeout))), .dial(.number(2)),
      ])
    #expect(machine.snapshot.lastDisconnect == .of(.supervisionTimeout, generation: 1, inDoubt: 2))
  }

  @Test func lossesInARowWithoutAStableTimeCostADelay() {
    let policy = ReconnectionPolicy(
      backoff: BackoffPolicy(base: .seconds(1_000), cap: .seconds(1_000)), stability: .milliseconds(100))
    var machine = SessionStateMachine.ready(policy)
    _ = machine.linkClosed(.number(1), LinkLoss(.remoteUserTerminated), inDoubt: 0, now: .ms(99))
    machine.bringUp(.number(2), attempt: .number(2), at: .ms(100))
    _ = machine.linkClosed(.number(2), LinkLoss(.remoteUserTerminated), inDoubt: 0, now: .ms(199))
    guard case .waiting(.backoff, until: .some) = machine.snapshot.state else {
      Issue.record("dialled without a delay")
      return
    }
  }

  @Test func aStableTimeForgetsTheLossesBefore() {
    let policy = ReconnectionPolicy(
      backoff: BackoffPolicy(base: .seconds(1_000), cap: .seconds(1_000)), stability: .milliseconds(100))
    var machine = SessionStateMachine.ready(policy)
    for number in 1...5 as ClosedRange<UInt64> {
      let now = MonotonicInstant.ms(Int64(number) * 100)
      let actions = machine.linkClosed(
        .number(number), LinkLoss(.remoteUserTerminated), inDoubt: 0, now: now)
      #expect(actions.last == .dial(.number(number + 1)))
      machine.bringUp(.number(number + 1), attempt: .number(number + 1), at: now)
    }
  }

  @Test func aSessionThatDoesNotReconnectSettlesAndRests() {
    var machine = SessionStateMachine.ready(.off)
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 1, now: .ms(5)) == [
        .publish(
          .disconnected(.of(.supervisionTimeout, generation: 1, inDoubt: 1, willReconnect: false))),
        .settleOperations(.notReconnecting, .notReconnecting), .publish(.idle(.notReconnecting)),
      ])
    #expect(machine.isAtRest)
    #expect(
      machine.connectRequested(.number(2), deadline: nil, now: .ms(6))
        == [.publish(.connecting(.again())), .dial(.number(2))])
  }

  @Test func aLinkThatDropsBeforeReadyIsAFailedAttempt() {
    var machine = SessionStateMachine.discovering()
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.failedToEstablish), inDoubt: 0, now: .ms(5)) == [
        .cancelTimer(.preparation), .publish(.attemptFailed(.of(.failedToEstablish, generation: 1))),
        .publish(.connecting(.first(2, after: .failedToEstablish))), .dial(.number(2)),
      ])
  }

  @Test func theEndOfAnotherLinkChangesNothingAndIsCounted() {
    var machine = SessionStateMachine.ready()
    #expect(machine.linkClosed(.number(9), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(5)) == [])
    #expect(machine.snapshot.staleDeliveries == 1)
    #expect(machine.snapshot.isReady)
    machine.staleDelivery()
    #expect(machine.snapshot.staleDeliveries == 2)
  }

  @Test func theEndOfALinkIsHeardOnce() {
    var machine = SessionStateMachine.ready()
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(5))
    #expect(machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(6)) == [])
    #expect(machine.snapshot.staleDeliveries == 1)
  }

  // MARK: Attempts that fail

  @Test func aFailedAttemptIsFollowedByADelayAndTheNext() {
    let policy = ReconnectionPolicy(backoff: BackoffPolicy(base: .seconds(1), cap: .seconds(1)))
    var machine = SessionStateMachine.dialling(policy)
    let actions = machine.attemptFailed(.number(1), LinkLoss(.failedToEstablish), now: .ms(0))
    guard case .waiting(.backoff, until: let until?) = machine.snapshot.state else {
      Issue.record("no delay: \(actions)")
      return
    }
    #expect(until > .ms(0) && until <= .ms(1_000))
    #expect(
      actions == [
        .publish(.attemptFailed(.of(.failedToEstablish))), .setTimer(.backoff, at: until),
        .publish(.waiting(for: .backoff, until: until)),
      ])
    #expect(machine.timerFired(.backoff, now: .ms(0)) == [.setTimer(.backoff, at: until)])
    #expect(
      machine.timerFired(.backoff, now: .at(until)) == [
        .cancelTimer(.backoff), .publish(.connecting(.first(2, after: .failedToEstablish))),
        .dial(.number(2)),
      ])
    #expect(machine.timerFired(.backoff, now: .at(until)) == [])
  }

  @Test func theSameSeedDrawsTheSameDelays() {
    func until(_ seed: UInt64) -> Snapshot.State {
      let policy = ReconnectionPolicy(backoff: BackoffPolicy(base: .seconds(1), cap: .seconds(1)))
      var machine = SessionStateMachine.script(policy, seed: seed)
      _ = machine.connectRequested(.number(1), deadline: nil, now: .ms(0))
      _ = machine.attemptFailed(.number(1), LinkLoss(.failedToEstablish), now: .ms(0))
      return machine.snapshot.state
    }
    #expect(until(1) == until(1))
    #expect(until(1) != until(2))
  }

  @Test func absenceCostsNeitherADelayNorAnAttempt() {
    var policy = ReconnectionPolicy(backoff: BackoffPolicy(base: .seconds(1_000), cap: .seconds(1_000)))
    policy.attemptsPerOutage = 1
    var machine = SessionStateMachine.dialling(policy)
    var now = MonotonicInstant.ms(0)
    for number in 1...20 as ClosedRange<UInt64> {
      now = now.advanced(by: .seconds(1))
      let actions = machine.attemptFailed(.number(number), LinkLoss(.notFound), now: now)
      let info = AttemptInfo(
        number: Int(number) + 1, remaining: 0, isReconnection: false, after: .notFound)
      #expect(
        actions == [
          .publish(.attemptFailed(.of(.notFound))), .publish(.connecting(info)), .dial(.number(number + 1)),
        ])
    }
  }

  @Test func anAbsenceThatIsFoundTooSoonIsAFailure() {
    var policy = ReconnectionPolicy.plain
    policy.attemptsPerOutage = 1
    var machine = SessionStateMachine.dialling(policy)
    #expect(
      machine.attemptFailed(.number(1), LinkLoss(.notFound), now: .ms(999)).last
        == .resume([.number(1)], .attemptsExhausted))
  }

  @Test func theAttemptsOfAnOutageAreUsedUp() {
    var policy = ReconnectionPolicy.plain
    policy.attemptsPerOutage = 2
    var machine = SessionStateMachine.script(policy)
    let first = AttemptInfo(number: 1, remaining: 1, isReconnection: false, after: nil)
    let second = AttemptInfo(number: 2, remaining: 0, isReconnection: false, after: .refused)
    #expect(
      machine.connectRequested(.number(1), deadline: nil, now: .ms(0))
        == [.publish(.connecting(first)), .dial(.number(1))])
    #expect(
      machine.attemptFailed(.number(1), LinkLoss(.refused), now: .ms(1)) == [
        .publish(.attemptFailed(.of(.refused))), .publish(.connecting(second)), .dial(.number(2)),
      ])
    #expect(
      machine.attemptFailed(.number(2), LinkLoss(.refused), now: .ms(2)) == [
        .publish(.attemptFailed(.of(.refused, willReconnect: false))),
        .settleOperations(.attemptsExhausted, .attemptsExhausted), .publish(.idle(.attemptsExhausted)),
        .cancelTimer(.connect), .resume([.number(1)], .attemptsExhausted),
      ])
    #expect(machine.isAtRest)
  }

  @Test func readyGivesTheNextOutageAllItsAttempts() {
    var policy = ReconnectionPolicy.plain
    policy.attemptsPerOutage = 2
    var machine = SessionStateMachine.dialling(policy)
    _ = machine.attemptFailed(.number(1), LinkLoss(.refused), now: .ms(1))
    machine.bringUp(.number(1), attempt: .number(2), at: .ms(2))
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(3))
    let second = AttemptInfo(number: 2, remaining: 0, isReconnection: true, after: .refused)
    #expect(
      machine.attemptFailed(.number(3), LinkLoss(.refused), now: .ms(4)) == [
        .publish(.attemptFailed(.of(.refused))), .publish(.connecting(second)), .dial(.number(4)),
      ])
  }

  @Test func theEndOfAnOldDialIsCountedAndChangesNothing() {
    var machine = SessionStateMachine.dialling()
    #expect(machine.attemptFailed(.number(7), LinkLoss(.refused), now: .ms(1)) == [])
    #expect(machine.snapshot.staleDeliveries == 1)
    #expect(machine.snapshot.state == .connecting(.first(), nil))
  }
}
