import BluetoothWire
import Relink
import RelinkTesting
import Testing

@Suite struct ManagedRadioTests {
  @Test func aDialBringsOneLinkUp() throws {
    let rig = try ManagedRig()
    let (attempt, _) = rig.dial()
    rig.executor.runUntilIdle()
    let link = try #require(rig.recorder.link)
    #expect(rig.recorder.deliveries == [.linkUp(link.id, attempt: attempt)])
    #expect(rig.radio.existingLinks() == [rig.device])
    #expect(rig.peripheral.openLinks == [1])
  }

  @Test func aDialWaitsForTheDeviceForEver() throws {
    let rig = try ManagedRig()
    rig.radio.setReachable(false, rig.device)
    rig.dial()
    rig.executor.advance(by: .seconds(100_000))
    #expect(rig.recorder.deliveries.isEmpty)
    rig.radio.setReachable(true, rig.device)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.link != nil)
  }

  @Test func aDialWithALimitEnds() throws {
    let rig = try ManagedRig()
    rig.radio.setReachable(false, rig.device)
    let (attempt, _) = rig.dial(limit: .seconds(5))
    rig.executor.advance(by: .milliseconds(4999))
    #expect(rig.recorder.deliveries.isEmpty)
    rig.executor.advance(by: .milliseconds(1))
    #expect(rig.recorder.ends(of: attempt).count == 1)
    rig.radio.setReachable(true, rig.device)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.link == nil)
  }

  @Test func aCancelledDialLeavesNothingBehind() throws {
    let rig = try ManagedRig()
    let (attempt, dial) = rig.dial()
    rig.recorder.calling { dial.cancel() }
    rig.executor.runUntilIdle()
    #expect(rig.recorder.deliveries == [.attemptFailed(attempt, LinkLoss(.requested))])
    #expect(rig.recorder.deliveriesInsideCalls == 0)
    #expect(rig.peripheral.counters.links == 0)
    #expect(rig.executor.timerCount == 0)
  }

  @Test func aCancelBehindTheLinkChangesNothing() throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(connectDelay: .milliseconds(50)))
    let (attempt, dial) = rig.dial()
    rig.executor.run(until: { rig.peripheral.counters.links == 1 })
    dial.cancel()
    rig.executor.runUntilIdle()
    #expect(rig.recorder.ends(of: attempt).count == 1)
    #expect(rig.recorder.link != nil)
  }

  @Test func dialsFailAsAsked() throws {
    let rig = try ManagedRig()
    rig.radio.failNextDials([.platform(.failedToEstablish, "no")], to: rig.device)
    rig.dial()
    rig.executor.runUntilIdle()
    rig.dial()
    rig.executor.runUntilIdle()
    #expect(
      rig.recorder.deliveries.first
        == .attemptFailed(AttemptID(rawValue: 1), .platform(.failedToEstablish, "no")))
    #expect(rig.recorder.link != nil)
    #expect(rig.radio.dialCount == 2)
  }

  @Test func aLinkThatNobodyDialledComesUp() throws {
    let rig = try ManagedRig()
    rig.radio.restoreLink(to: rig.device)
    rig.executor.runUntilIdle()
    let link = try #require(rig.recorder.link)
    #expect(rig.recorder.deliveries == [.linkUp(link.id, attempt: nil)])
  }

  @Test func aRestoredLinkServesTheDialThatWaits() throws {
    let rig = try ManagedRig()
    rig.radio.setReachable(false, rig.device)
    let (attempt, _) = rig.dial(limit: .seconds(10))
    rig.radio.restoreLink(to: rig.device)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.ends(of: attempt).count == 1)
    #expect(rig.recorder.link != nil)
  }

  @Test func aRestoredLinkWaitsForItsHandler() throws {
    let rig = try ManagedRig()
    rig.radio.unregister(rig.device)
    rig.radio.restoreLink(to: rig.device)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.deliveries.isEmpty)
    #expect(rig.radio.existingLinks() == [rig.device])
    let later = LinkRecorder()
    try rig.radio.register(later, for: rig.device)
    rig.executor.runUntilIdle()
    #expect(later.link != nil)
  }

  @Test func aDeviceHasOneHandlerHeldWeakly() throws {
    let rig = try ManagedRig()
    #expect(throws: RelinkError(.sessionExists, "")) {
      try rig.radio.register(LinkRecorder(), for: rig.device)
    }
    try rig.radio.register(rig.recorder, for: rig.device)
    rig.radio.unregister(rig.device)
    var other: LinkRecorder? = LinkRecorder()
    weak let held = other
    if let other { try rig.radio.register(other, for: rig.device) }
    other = nil
    #expect(held == nil)
    try rig.radio.register(rig.recorder, for: rig.device)
  }

  @Test func aLossHasNoCodeAndPutsEverythingInDoubt() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    let ids = (0..<3).map { rig.perform(.write(firstValue, [UInt8($0)]), on: link).0 }
    rig.radio.loseLink(to: rig.device)
    rig.executor.runUntilIdle()
    let closings = rig.recorder.closings(of: link.id)
    #expect(closings.count == 1)
    #expect(closings.first?.inDoubt == ids)
    #expect(closings.first?.loss.reason == .supervisionTimeout)
    let hasCode = closings.first?.loss.evidence.contains { if case .hci = $0 { true } else { false } }
    #expect(hasCode == false)
    #expect(rig.perform(.read(firstValue), on: link).1 == .refused(.linkClosed))
    #expect(rig.radio.existingLinks() == [])
    #expect(rig.peripheral.openLinks == [])
  }

  @Test(
    arguments: [
      (0x08, DisconnectReason.supervisionTimeout), (0x13, .remoteUserTerminated),
      (0x15, .remoteUserTerminated),
      (0x3E, .failedToEstablish), (0x3D, .unknown),
    ] as [(UInt8, DisconnectReason)])
  func thePlatformHidesTheCode(code: UInt8, reason: DisconnectReason) throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.terminate(HCIErrorCode(rawValue: code))
    rig.executor.runUntilIdle()
    #expect(rig.recorder.closings(of: link.id).map(\.loss.reason) == [reason])
  }

  @Test func theEndIsConfirmedLater() throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(closingDelay: .seconds(2)))
    let link = try rig.connect()
    let id = rig.perform(.read(firstValue), on: link).0
    link.close()
    link.close()
    #expect(rig.perform(.read(firstValue), on: link).1 == .refused(.linkClosed))
    rig.executor.advance(by: .milliseconds(1999))
    #expect(rig.recorder.closings(of: link.id).isEmpty)
    #expect(rig.recorder.answers(to: id, on: link.id).isEmpty)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.closings(of: link.id).map(\.loss) == [LinkLoss(.requested)])
    #expect(rig.recorder.closings(of: link.id).map(\.inDoubt) == [[id]])
    #expect(rig.executor.timerCount == 0)
  }

  @Test func aDialWaitsUntilTheOldLinkIsGone() throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(closingDelay: .seconds(2)))
    let old = try rig.connect()
    old.close()
    rig.dial()
    rig.executor.advance(by: .milliseconds(1999))
    #expect(rig.peripheral.counters.links == 1)
    rig.executor.runUntilIdle()
    #expect(rig.peripheral.counters.links == 2)
    let new = try #require(rig.recorder.link)
    #expect(new.id != old.id)
  }

  @Test func anAdapterThatGoesTakesLinksAndDialsAlong() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.radio.setAdapter(.off)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.deliveries(of: link.id).count == 3)
    #expect(rig.recorder.closings(of: link.id).map(\.loss.reason) == [.adapterOff])
    #expect(rig.recorder.deliveries.contains(.adapterChanged(.off)))
    let (refused, _) = rig.dial()
    rig.executor.runUntilIdle()
    #expect(rig.recorder.ends(of: refused).count == 1)
    rig.radio.setAdapter(.on)
    rig.radio.setReachable(false, rig.device)
    let (waiting, _) = rig.dial()
    rig.executor.runUntilIdle()
    #expect(rig.recorder.ends(of: waiting).isEmpty)
    rig.radio.setAdapter(.missing)
    rig.executor.runUntilIdle()
    #expect(
      rig.recorder.deliveries.last.map { if case .attemptFailed(waiting, _) = $0 { true } else { false } }
        == true)
    #expect(rig.radio.adapterState(for: rig.device) == .missing)
  }

  @Test func aSilentLinkIsGivenUpAfterThirtySeconds() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.radio.setSilent(true, rig.device)
    let id = rig.perform(.read(firstValue), on: link).0
    rig.executor.advance(by: .milliseconds(29_999))
    #expect(rig.recorder.closings(of: link.id).isEmpty)
    rig.executor.advance(by: .milliseconds(1))
    #expect(rig.recorder.closings(of: link.id).map(\.loss.reason) == [.transactionTimeout])
    #expect(rig.recorder.closings(of: link.id).map(\.inDoubt) == [[id]])
    #expect(rig.peripheral.counters.reads.isEmpty)
  }

  @Test(arguments: [true, false])
  func subscriptionsComeBackWhereThePlatformKeepsThem(restores: Bool) throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(restoresSubscriptions: restores))
    let link = try rig.connect()
    #expect(link.capabilities.needsSubscriptionRestore == !restores)
    #expect(rig.answer(.setNotifying(firstValue, true), on: link) == .success(.done))
    rig.radio.loseLink(to: rig.device)
    rig.executor.runUntilIdle()
    rig.dial()
    rig.executor.runUntilIdle()
    let next = try #require(rig.recorder.link)
    #expect(rig.peripheral.update([7], of: firstValue) == (restores ? 1 : 0))
    rig.executor.runUntilIdle()
    #expect(rig.recorder.values(of: next.id) == (restores ? [[7]] : []))
  }

  @Test func aWriteOnItsWayMayStillBeAppliedWhenTheLinkIsClosedHere() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    let id = rig.perform(.write(firstValue, [1]), on: link).0
    link.close()
    rig.executor.runUntilIdle()
    #expect(rig.peripheral.counters.applied(at: 0x10) == 1)
    #expect(rig.recorder.closings(of: link.id).map(\.inDoubt) == [[id]])
  }
}
