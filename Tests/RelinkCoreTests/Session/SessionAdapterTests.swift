import Testing

@testable import RelinkCore

@Suite struct SessionAdapterTests {
  @Test func anAdapterThatGoesOffTellsTheCallersAndLeavesTheDialToTheTransport() {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.adapterChanged(.off, now: .ms(1))
        == [.cancelTimer(.connect), .resume([.number(1)], .adapterUnavailable(.off))])
    #expect(
      machine.attemptFailed(.number(1), LinkLoss(.adapterOff), now: .ms(2)) == [
        .publish(.attemptFailed(.of(.adapterOff))), .cancelTimer(.backoff),
        .publish(.waiting(for: .adapterOff, until: nil)), .setTimer(.adapter, at: .ms(5_002)),
      ])
  }

  @Test(arguments: [
    (DisconnectReason.adapterOff, AdapterState.off, WaitReason.adapterOff),
    (.adapterMissing, .missing, .adapterMissing), (.notPermitted, .notPermitted, .notPermitted),
  ])
  func aReasonThatProvesItSaysThatTheAdapterIsAway(
    _ reason: DisconnectReason, _ state: AdapterState, _ wait: WaitReason
  ) {
    var machine = SessionStateMachine.dialling()
    #expect(
      machine.attemptFailed(.number(1), LinkLoss(reason), now: .ms(2)) == [
        .publish(.attemptFailed(.of(reason))), .cancelTimer(.backoff),
        .publish(.waiting(for: wait, until: nil)), .setTimer(.adapter, at: .ms(5_002)),
        .cancelTimer(.connect), .resume([.number(1)], .adapterUnavailable(state)),
      ])
  }

  @Test func theAdapterIsAskedForUntilItIsBack() {
    var machine = SessionStateMachine.waitingForAdapter()
    #expect(machine.timerFired(.adapter, now: .ms(5_000)) == [.askAdapterState])
    #expect(machine.adapterChanged(.off, now: .ms(5_000)) == [.setTimer(.adapter, at: .ms(10_000))])
    #expect(machine.timerFired(.adapter, now: .ms(10_000)) == [.askAdapterState])
    #expect(
      machine.adapterChanged(.missing, now: .ms(10_000)) == [
        .cancelTimer(.backoff), .publish(.waiting(for: .adapterMissing, until: nil)),
        .setTimer(.adapter, at: .ms(15_000)),
      ])
    #expect(machine.timerFired(.adapter, now: .ms(15_000)) == [.askAdapterState])
    #expect(
      machine.adapterChanged(.on, now: .ms(15_000)) == [
        .publish(.connecting(.first(2, after: .adapterOff))), .dial(.number(2)),
      ])
    #expect(machine.timerFired(.adapter, now: .ms(20_000)) == [])
  }

  @Test func anAppThatKeepsCallingConnectDoesNotPutTheQuestionOff() {
    // Polling more often than the adapter is asked for must not restart the timer each time.
    var machine = SessionStateMachine.waitingForAdapter()
    for second in 1...10 as ClosedRange<Int64> {
      let waiter = ConnectWaiterID.number(UInt64(second) + 1)
      #expect(
        machine.connectRequested(waiter, deadline: nil, now: .ms(second * 1_000))
          == [.resume([waiter], .adapterUnavailable(.off))])
    }
  }

  @Test func anAdapterThatComesBackForgetsTheDelay() {
    var machine = SessionStateMachine.waitingInBackoff()
    #expect(
      machine.adapterChanged(.off, now: .ms(1)) == [
        .cancelTimer(.backoff), .publish(.waiting(for: .adapterOff, until: nil)),
        .setTimer(.adapter, at: .ms(5_001)), .cancelTimer(.connect),
        .resume([.number(1)], .adapterUnavailable(.off)),
      ])
    #expect(
      machine.adapterChanged(.on, now: .ms(2)) == [
        .publish(.connecting(.first(2, after: .failedToEstablish))), .dial(.number(2)),
      ])
  }

  @Test func anAdapterThatIsOnAlreadyChangesNothing() {
    var machine = SessionStateMachine.waitingInBackoff()
    let before = machine.snapshot
    #expect(machine.adapterChanged(.on, now: .ms(1)) == [])
    #expect(machine.snapshot == before)
  }

  @Test func aLossWithTheAdapterWaitsForIt() {
    var machine = SessionStateMachine.ready()
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.adapterOff), inDoubt: 0, now: .ms(3)) == [
        .publish(.disconnected(.of(.adapterOff, generation: 1))), .cancelTimer(.backoff),
        .publish(.waiting(for: .adapterOff, until: nil)), .setTimer(.adapter, at: .ms(5_003)),
      ])
  }

  @Test func anOldLinkIsWaitedForBeforeTheAdapter() {
    var machine = SessionStateMachine.waitingForOldLink()
    #expect(
      machine.adapterChanged(.off, now: .ms(1))
        == [.cancelTimer(.connect), .resume([.number(2)], .adapterUnavailable(.off))])
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.adapterOff), inDoubt: 0, now: .ms(2)) == [
        .cancelTimer(.backoff), .publish(.waiting(for: .adapterOff, until: nil)),
        .setTimer(.adapter, at: .ms(5_002)),
      ])
  }

  @Test func aLinkThatComesUpProvesThatTheAdapterIsOn() {
    var machine = SessionStateMachine.waitingForAdapter()
    _ = machine.linkUp(.number(1), attempt: nil, capabilities: .plain, now: .ms(1))
    // A caller may wait for this link, and after its loss nothing waits for the adapter.
    #expect(machine.connectRequested(.number(2), deadline: nil, now: .ms(2)) == [])
    #expect(
      machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(3)).last
        == .dial(.number(2)))
  }

  @Test func withoutTheWishNobodyAsksForTheAdapter() {
    var machine = SessionStateMachine.waitingForAdapter()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(1))
    #expect(machine.adapterChanged(.off, now: .ms(2)) == [])
    #expect(machine.adapterChanged(.missing, now: .ms(3)) == [])
    #expect(machine.timerFired(.adapter, now: .ms(5_000)) == [])
  }
}
