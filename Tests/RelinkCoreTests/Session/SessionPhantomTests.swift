import Testing

@testable import RelinkCore

/// A link that was there before it was dialled is looked at before anything is built on it.
@Suite struct SessionPhantomTests {
  private func dialling() -> SessionStateMachine {
    var machine = SessionStateMachine(policy: .plain, hasSetup: false, seed: 1, now: .ms(0))
    _ = machine.connectRequested(.number(1), deadline: nil, now: .ms(0))
    return machine
  }

  private func bringUp(_ machine: inout SessionStateMachine, restored: Bool) -> [SessionStateMachine.Action] {
    if !restored { machine.linkListed(before: .number(1)) }
    return machine.linkUp(
      .number(1), attempt: restored ? nil : .number(1), capabilities: .exchanging, now: .ms(100))
  }

  @Test(arguments: [true, false]) func oneThatAnswersNothingIsClearedAndNamed(restored: Bool) {
    var machine = dialling()
    #expect(bringUp(&machine, restored: restored).contains(.setTimer(.validation, at: .ms(10_100))))
    let actions = machine.timerFired(.validation, now: .ms(10_100))
    #expect(actions.contains(.closeLink(.number(1))))
    #expect(machine.lastDisconnect?.reason == .phantomLink)
    #expect(machine.lastDisconnect?.recovery == .retryConnection)
    #expect(machine.lastDisconnect?.willReconnect == true)
    #expect(machine.outage.failures == 0)
    // Nothing is dialled before it is gone.
    #expect(machine.snapshot.state == .waiting(.previousLink, until: nil))
  }

  @Test(arguments: [true, false]) func oneThatAnswersIsALinkLikeAnyOther(restored: Bool) {
    var machine = dialling()
    _ = bringUp(&machine, restored: restored)
    #expect(machine.mtuExchanged(100, now: .ms(200)).first == .cancelTimer(.validation))
    #expect(machine.timerFired(.validation, now: .ms(10_100)) == [])
    _ = machine.linkClosed(.number(1), LinkLoss(.transactionTimeout), inDoubt: 0, now: .ms(40_000))
    #expect(machine.lastDisconnect?.reason == .transactionTimeout)
  }

  @Test func aLinkThatWasDialledMayBeSlow() {
    var machine = dialling()
    let actions = machine.linkUp(.number(1), attempt: .number(1), capabilities: .exchanging, now: .ms(100))
    #expect(!actions.contains { if case .setTimer(.validation, _) = $0 { true } else { false } })
    _ = machine.linkClosed(.number(1), LinkLoss(.transactionTimeout), inDoubt: 0, now: .ms(30_100))
    #expect(machine.lastDisconnect?.reason == .transactionTimeout)
    #expect(machine.outage.failures == 1)
  }

  @Test func aTimerOfAnEarlierLinkSaysNothingAboutThisOne() {
    var machine = dialling()
    _ = bringUp(&machine, restored: true)
    _ = machine.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: .ms(5_000))
    _ = machine.linkUp(.number(2), attempt: nil, capabilities: .exchanging, now: .ms(9_000))
    #expect(machine.timerFired(.validation, now: .ms(10_100)) == [.setTimer(.validation, at: .ms(19_000))])
    #expect(machine.currentLink?.id == .number(2))
  }
}
