import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct SessionSecurityTests {
  private static let securable = LinkTraits(needsMTUExchange: true, mtu: 23, isSecurable: true)
  private static let link = LinkID.number(1)

  private func machine(
    _ security: SecurityPolicy = .requireExistingBond, bond: BondKnowledge = .bondedElsewhere
  ) -> SessionStateMachine {
    var machine = SessionStateMachine(
      policy: .plain, security: security, hasSetup: false, seed: 1, now: .ms(0))
    machine.bondKnown(bond)
    _ = machine.connectRequested(.number(1), deadline: nil, now: .ms(0))
    return machine
  }

  /// The next link is up, and has answered its first request.
  private func bringUp(
    _ machine: inout SessionStateMachine, _ number: UInt64 = 1, at milliseconds: Int64 = 0
  ) -> [SessionStateMachine.Action] {
    _ = machine.linkUp(
      .number(number), attempt: .number(machine.lastAttempt), capabilities: Self.securable,
      now: .ms(milliseconds))
    return machine.mtuExchanged(100, now: .ms(milliseconds))
  }

  private func makeReady(_ machine: inout SessionStateMachine, at milliseconds: Int64) {
    _ = machine.tableLearnt(changed: false)
    _ = machine.subscriptionsRestored(now: .ms(milliseconds))
  }

  private func lose(
    _ machine: inout SessionStateMachine, _ number: UInt64, _ evidence: Evidence..., at milliseconds: Int64
  ) -> [SessionStateMachine.Action] {
    machine.linkClosed(
      .number(number), LinkLoss(.unknown, evidence: evidence), inDoubt: 0, now: .ms(milliseconds))
  }

  @Test func aLinkThatIsSecuredToLessThanIsAskedForIsNotAskedAgain() {
    var machine = machine(.asRequired)
    _ = bringUp(&machine)
    makeReady(&machine, at: 100)
    #expect(
      machine.securityNeeded(.authenticated, on: Self.link, now: .ms(200))
        == [.setTimer(.securing, at: .ms(40_200)), .secure(Self.link, .authenticated, .bond)])
    #expect(
      machine.linkSecured(Self.link, to: .encrypted, now: .ms(300))
        == [.cancelTimer(.securing), .declineSecurity(Self.link)])
    let again = machine.securityNeeded(.authenticated, on: Self.link, now: .ms(400))
    #expect(again == [.declineSecurity(Self.link)])
    guard case .ready(let readiness) = machine.snapshot.state else {
      Issue.record("not ready")
      return
    }
    #expect(readiness.security == .encrypted)
  }

  // MARK: Before ready

  @Test func aLinkIsSecuredAfterItsFirstAnswerAndBeforeAnythingElse() {
    var machine = machine()
    #expect(
      bringUp(&machine) == [
        .publish(.phase(.securing)), .setTimer(.securing, at: .ms(40_000)),
        .secure(Self.link, .encrypted, .bond),
      ])
    #expect(machine.isSecuring)
    #expect(
      machine.linkSecured(Self.link, to: .encrypted, now: .ms(120)) == [
        .cancelTimer(.securing), .publish(.phase(.discovering)), .prepare(.discovering),
      ])
    makeReady(&machine, at: 200)
    guard case .ready(let readiness) = machine.snapshot.state else {
      Issue.record("not ready")
      return
    }
    #expect(readiness.security == .encrypted)
  }

  @Test func aLinkThatIsSecureEnoughIsLeftAlone() {
    var machine = machine()
    _ = machine.linkUp(
      Self.link, attempt: .number(1), capabilities: Self.securable, now: .ms(0))
    machine.roundTripsCounted(1, security: .authenticated, now: .ms(0))
    #expect(
      machine.mtuExchanged(100, now: .ms(0)) == [.publish(.phase(.discovering)), .prepare(.discovering)])
  }

  @Test func aLinkThatSecuresItselfIsLeftAlone() {
    var machine = machine()
    _ = machine.linkUp(Self.link, attempt: .number(1), capabilities: .exchanging, now: .ms(0))
    #expect(
      machine.mtuExchanged(100, now: .ms(0)) == [.publish(.phase(.discovering)), .prepare(.discovering)])
  }

  @Test func aBondThatIsMissingHereNeedsTheUserAtOnce() throws {
    var machine = machine(bond: .none)
    _ = bringUp(&machine)
    let actions = machine.linkNotSecured(Self.link, LinkLoss(.bondMissing), now: .ms(5))
    let info = try #require(machine.lastDisconnect)
    #expect(info.reason == .bondMissing && info.recovery == .removePairingAndPairAgain)
    #expect(!info.willReconnect)
    #expect(actions.contains(.closeLink(Self.link)))
    #expect(actions.contains(.resume([.number(1)], .userActionNeeded(.removePairingAndPairAgain))))
    // Nothing is dialled, not even once the old link is gone.
    #expect(
      machine.linkClosed(Self.link, LinkLoss(.requested), inDoubt: 0, now: .ms(9)) == [
        .cancelTimer(.backoff),
        .publish(.waiting(for: .userAction(.removePairingAndPairAgain), until: nil)),
      ])
    #expect(machine.unavailability == .userAction)
  }

  @Test func aKeyThatIsTooWeakFailsTheAttempt() {
    var machine = machine(SecurityPolicy(level: .authenticated))
    _ = bringUp(&machine)
    _ = machine.linkSecured(Self.link, to: .encrypted, now: .ms(5))
    #expect(machine.lastDisconnect?.reason == .pairingFailed)
  }

  @Test func whatTheDeviceAskedForFirstIsFollowedByWhatThePolicyAsksFor() {
    var machine = machine(SecurityPolicy(level: .authenticated))
    _ = machine.linkUp(Self.link, attempt: .number(1), capabilities: Self.securable, now: .ms(0))
    _ = machine.securityNeeded(.encrypted, on: Self.link, now: .ms(1))
    #expect(machine.mtuExchanged(100, now: .ms(2)) == [.publish(.phase(.securing))])
    #expect(
      machine.linkSecured(Self.link, to: .encrypted, now: .ms(3)) == [
        .setTimer(.securing, at: .ms(40_003)), .secure(Self.link, .authenticated, .bond),
      ])
  }

  @Test func securityThatTakesTooLongFailsTheAttempt() {
    var machine = machine(.pairing())
    _ = bringUp(&machine)
    #expect(machine.timerFired(.securing, now: .ms(39_999)) == [.setTimer(.securing, at: .ms(40_000))])
    _ = machine.timerFired(.securing, now: .ms(40_000))
    #expect(machine.lastDisconnect?.reason == .securityTimeout)
    #expect(machine.lastDisconnect?.recovery == .retryConnection)
  }

  // MARK: While ready

  @Test func aReadySessionThatCannotBeSecuredGoesOnAsItIs() {
    var machine = machine(.asRequired)
    _ = bringUp(&machine)
    makeReady(&machine, at: 1)
    #expect(
      machine.securityNeeded(.encrypted, on: Self.link, now: .ms(2)) == [
        .setTimer(.securing, at: .ms(40_002)), .secure(Self.link, .encrypted, .bond),
      ])
    #expect(machine.securityNeeded(.encrypted, on: Self.link, now: .ms(3)) == [])
    #expect(
      machine.linkNotSecured(Self.link, LinkLoss(.bondMissing), now: .ms(4)) == [
        .cancelTimer(.securing), .declineSecurity(Self.link),
      ])
    #expect(machine.isOffering && !machine.isSecuring)
    // It is not asked again on this link.
    #expect(machine.securityNeeded(.encrypted, on: Self.link, now: .ms(5)) == [.declineSecurity(Self.link)])
    #expect(machine.linkSecured(.number(9), to: .encrypted, now: .ms(6)) == [])
  }

  // MARK: Keys that are of no use

  @Test func aLostBondCostsOneFurtherAttemptAndThenTheUser() {
    var machine = machine()
    _ = bringUp(&machine, 1)
    let first = lose(&machine, 1, .hci(.authenticationFailure), .encryption(.pinOrKeyMissing), at: 10)
    #expect(machine.lastDisconnect?.reason == .keyMissing)
    #expect(machine.lastDisconnect?.recovery == .retryConnection)
    #expect(first.contains(.dial(.number(2))))
    _ = bringUp(&machine, 2, at: 20)
    let second = lose(&machine, 2, .hci(.authenticationFailure), .encryption(.pinOrKeyMissing), at: 30)
    #expect(machine.lastDisconnect?.recovery == .removePairingAndPairAgain)
    #expect(machine.lastDisconnect?.willReconnect == false)
    #expect(second.contains(.resume([.number(1)], .userActionNeeded(.removePairingAndPairAgain))))
    #expect(!second.contains(.dial(.number(3))))
    // Neither an adapter that comes back, nor work, nor an impatient caller brings an attempt.
    _ = machine.adapterChanged(.off, now: .ms(40))
    #expect(!machine.adapterChanged(.on, now: .ms(50)).contains(.dial(.number(3))))
    #expect(machine.workArrived(now: .ms(60)) == .wait([]))
    #expect(
      machine.connectRequested(.number(2), deadline: nil, now: .ms(70)) == [
        .resume([.number(2)], .userActionNeeded(.removePairingAndPairAgain))
      ])
    #expect(
      machine.linkUp(.number(8), attempt: nil, capabilities: Self.securable, now: .ms(75)).contains(
        .closeLink(.number(8))))
    _ = machine.linkClosed(.number(8), LinkLoss(.requested), inDoubt: 0, now: .ms(76))
    // The user's word does, and the slate is clean.
    #expect(machine.userActed(now: .ms(80)).contains(.dial(.number(3))))
    _ = bringUp(&machine, 3, at: 90)
    _ = lose(&machine, 3, .hci(.authenticationFailure), .encryption(.pinOrKeyMissing), at: 100)
    #expect(machine.lastDisconnect?.recovery == .retryConnection)
  }

  @Test func keysThatDifferAreToldFromNoise() {
    var machine = machine()
    let mic = Evidence.hci(.init(rawValue: 0x3D))
    // Once after ten minutes: noise, and what was held against the keys before is forgotten.
    machine.history.keyFailures = 1
    _ = bringUp(&machine, 1)
    _ = machine.linkSecured(.number(1), to: .encrypted, now: .ms(100))
    makeReady(&machine, at: 200)
    _ = lose(&machine, 1, mic, at: 600_000)
    #expect(machine.lastDisconnect?.recovery == .retryConnection)
    #expect(machine.history.keyFailures == 0)
    // Right after encryption begins, twice: the keys differ.
    for (number, recovery) in [(2, RecoveryAction.retryConnection), (3, .removePairingAndPairAgain)] {
      let start = Int64(number) * 700_000
      _ = machine.timerFired(.backoff, now: .ms(start))
      _ = bringUp(&machine, UInt64(number), at: start)
      _ = machine.linkSecured(.number(UInt64(number)), to: .encrypted, now: .ms(start + 100))
      makeReady(&machine, at: start + 200)
      _ = lose(&machine, UInt64(number), mic, at: start + 1_000)
      #expect(machine.lastDisconnect?.recovery == recovery)
    }
  }

  @Test func aPairingThatWasRefusedWaitsForTheUserAndForTheNextConnect() {
    var machine = machine(.pairing(), bond: .none)
    _ = bringUp(&machine)
    _ = machine.linkNotSecured(Self.link, LinkLoss(.unknown, evidence: [.pairing(0x0B)]), now: .ms(5))
    #expect(machine.lastDisconnect?.reason == .pairingFailed)
    _ = machine.linkClosed(Self.link, LinkLoss(.requested), inDoubt: 0, now: .ms(6))
    #expect(machine.snapshot.state == .waiting(.userAction(.retryPairing), until: nil))
    #expect(machine.connectRequested(.number(2), deadline: nil, now: .ms(9)).contains(.dial(.number(2))))
  }

  // MARK: What the app announces, and a busy radio

  @Test func anAnnouncedLossIsNoFaultAndTheFirstMarkWins() {
    var machine = machine(.asRequired)
    _ = bringUp(&machine)
    makeReady(&machine, at: 1)
    machine.disconnectionExpected(within: .seconds(60), because: "update", now: .ms(10))
    machine.disconnectionExpected(within: .seconds(600), because: "sleep", now: .ms(20))
    let actions = lose(&machine, 1, .hci(.remoteUserTerminatedConnection), at: 30)
    #expect(machine.lastDisconnect?.expectation == "update")
    #expect(machine.lastDisconnect?.recovery == RecoveryAction.none)
    #expect(actions.contains(.dial(.number(2))))
    // The next ready clears the mark.
    _ = bringUp(&machine, 2, at: 40)
    makeReady(&machine, at: 50)
    _ = lose(&machine, 2, .hci(.remoteUserTerminatedConnection), at: 60)
    #expect(machine.lastDisconnect?.expectation == nil)
    #expect(machine.lastDisconnect?.recovery == .retryConnection)
  }

  @Test func aMarkEndsWithItsSpan() {
    var machine = machine(.asRequired)
    _ = bringUp(&machine)
    makeReady(&machine, at: 1)
    machine.disconnectionExpected(within: .seconds(1), because: "update", now: .ms(10))
    _ = lose(&machine, 1, .hci(.remoteUserTerminatedConnection), at: 1_010)
    #expect(machine.lastDisconnect?.expectation == nil)
  }

  @Test func aBusyRadioCostsNoneOfTheAttempts() {
    var machine = SessionStateMachine(
      policy: ReconnectionPolicy(attemptsPerOutage: 2, backoff: BackoffPolicy(base: .zero, cap: .zero)),
      hasSetup: false, seed: 1, now: .ms(0))
    _ = machine.connectRequested(.number(1), deadline: nil, now: .ms(0))
    let busy = LinkLoss(.unknown, evidence: [.system(16, call: .connect)])
    for dial in 1...4 as ClosedRange<UInt64> {
      let actions = machine.attemptFailed(.number(dial), busy, now: .ms(Int64(dial)))
      #expect(machine.lastDisconnect?.reason == .busy)
      #expect(actions.contains(.dial(.number(dial + 1))))
    }
    // One that stays busy is named, and is not the device's failure either: another absent device may keep it so.
    for dial in 5...9 as ClosedRange<UInt64> {
      let actions = machine.attemptFailed(.number(dial), busy, now: .ms(Int64(dial)))
      #expect(machine.lastDisconnect?.reason == .adapterStuck)
      #expect(actions.contains(.dial(.number(dial + 1))))
    }
  }
}
