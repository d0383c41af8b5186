import Relink
import RelinkTesting
import Testing

@Suite struct LinkLifeTests {
  @Test func closingAChannelLeavesTheLinkAliveForTwoSeconds() throws {
    let world = try World()
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    link.close()
    link.close()
    #expect(link.send("12 1000 02") == .failed(107))
    world.executor.advance(by: .milliseconds(1999))
    #expect(world.log == ["1 up by 1"])
    #expect(world.radio.existingLinks() == [world.device])
    // What was handed over before is carried out.
    #expect(world.peer.receivedText == ["12100001"])
    #expect(world.peer.endedLinks.isEmpty)
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["1 up by 1", "1 closed requested"])
    #expect(world.radio.existingLinks().isEmpty)
    #expect(world.peer.endedLinks.map(\.reason) == [.remoteUserTerminatedConnection])
    #expect(world.executor.timerCount == 0)
    #expect(world.statistics.closes == 1)
  }

  @Test func aRadioThatEndsLinksDoesSoAtOnce() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.endsLinks = true
    let world = try World(configuration)
    #expect(world.radio.capabilities.endsLinks)
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    link.close()
    #expect(world.log == ["1 up by 1"])
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 closed requested"])
    #expect(world.peer.received.isEmpty)
    #expect(world.executor.timerCount == 0)
  }

  @Test func aDialInThatTimeGetsTheOldLinkAndItsLateAnswer() throws {
    let world = try World()
    world.peer.expect("0a 1000", answer: "0b aa", after: .seconds(1))
    let old = try world.up()
    #expect(old.send("0a 1000") == .sent)
    world.executor.run()
    old.close()
    let new = try world.up()
    #expect(new !== old)
    #expect(new.send("0a 2000") == .sent)
    world.executor.advance(by: .seconds(5))
    // The answer to the old request arrives as if it were the answer to the new one, and the link lives on.
    #expect(world.log == ["1 up by 1", "2 up by 2", "2 < 0baa"])
    #expect(world.peer.linksOpened == 1)
    #expect(world.peer.endedLinks.isEmpty)
    #expect(world.statistics.adoptions == 1)
    #expect(world.statistics.links == 1)
    #expect(world.radio.linkIDs(of: world.device).map(\.rawValue) == [1, 2])
    world.radio.lose(world.device, .connectionTimeout)
    world.executor.run()
    #expect(world.log.suffix(2) == ["1 closed supervisionTimeout", "2 closed supervisionTimeout"])
  }

  @Test func answersBehindALocalCloseReachNobody() throws {
    let world = try World()
    world.peer.expect("0a 1000", answer: "0b aa", after: .seconds(1))
    let link = try world.up()
    #expect(link.send("0a 1000") == .sent)
    link.close()
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1", "1 closed requested"])
  }

  @Test func aLostLinkTakesWhatIsInTheAir() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.latency = .milliseconds(10)
    let world = try World(configuration)
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.peer.send("1b 1000 41")
    world.executor.advance(by: .milliseconds(9))
    world.radio.lose(world.device, .connectionTimeout)
    #expect(world.log == ["1 up by 1"])
    // Gone without anybody here knowing: it is sent, and vanishes.
    #expect(link.send("12 1000 02") == .sent)
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1", "1 closed supervisionTimeout"])
    #expect(world.peer.received.isEmpty)
    #expect(world.peer.endedLinks.map(\.reason) == [.connectionTimeout])
    #expect(link.send("12 1000 03") == .failed(107))
    #expect(world.executor.timerCount == 0)
  }

  @Test func whatAPeerSentBeforeItTerminatedArrivesFirst() throws {
    let world = try World()
    _ = try world.up()
    world.peer.send("1b 1000 41")
    world.peer.terminate(.remoteUserTerminatedConnection)
    world.peer.send("1b 1000 42")
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 < 1b100041", "1 closed remoteUserTerminated"])
    #expect(world.peer.endedLinks.map(\.reason) == [.connectionTerminatedByLocalHost])
  }

  @Test func aSilentLinkIsDeadAndNobodyIsTold() throws {
    let world = try World()
    let link = try world.up()
    world.radio.silence(world.device)
    #expect(link.send("0a 1000") == .sent)
    world.peer.send("1b 1000 41")
    world.executor.advance(by: .seconds(3600))
    #expect(world.log == ["1 up by 1"])
    #expect(world.peer.received.isEmpty)
    link.close()
    world.executor.advance(by: .seconds(1))
    // A dial keeps the dead link alive.
    let again = try world.up()
    #expect(again.send("0a 1000") == .sent)
    world.executor.advance(by: .seconds(10))
    #expect(world.peer.received.isEmpty)
    #expect(world.statistics.adoptions == 1)
    again.close()
    world.executor.advance(by: .seconds(2))
    _ = try world.up()
    #expect(world.peer.linksOpened == 2)
  }

  @Test func securityIsThatOfTheDeviceAtThatMomentAndNoneBehindTheEnd() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.security = .encrypted
    let world = try World(configuration)
    let link = try world.up()
    #expect(link.channel.security == .encrypted)
    world.radio.setSecurity(of: try deviceID(2), to: .secureConnections)
    #expect(link.channel.security == .encrypted)
    world.radio.setSecurity(of: world.device, to: .authenticated)
    #expect(link.channel.security == .authenticated)
    world.radio.lose(world.device, .connectionTimeout)
    #expect(link.channel.security == .none)
    world.executor.run()
    let next = try world.up()
    #expect(next.channel.security == .authenticated)
    next.close()
    #expect(next.channel.security == .none)
    #expect(try World().up().channel.security == .none)
  }

  @Test func aPhantomIsListedAndDead() throws {
    let world = try World()
    world.radio.addPhantomLink(to: world.device)
    #expect(world.radio.existingLinks() == [world.device])
    let phantom = try world.up()
    #expect(phantom.send("02 0502") == .sent)
    world.executor.advance(by: .seconds(60))
    #expect(world.peer.linksOpened == 0)
    phantom.close()
    world.executor.advance(by: .seconds(2))
    #expect(world.radio.existingLinks().isEmpty)
    _ = try world.up()
    #expect(world.peer.linksOpened == 1)
  }

  @Test func aLinkThatAnotherProcessLeftIsAdopted() throws {
    let world = try World()
    world.radio.leaveLink(to: world.device)
    world.executor.run()
    #expect(world.peer.linksOpened == 1)
    _ = try world.up()
    #expect(world.peer.linksOpened == 1)
    #expect(world.statistics.adoptions == 1)
  }

  @Test func whetherDialsWaitForOldLinksCanBeChanged() throws {
    let world = try World()
    world.radio.setWaitsForOldLinks(true)
    world.radio.leaveLink(to: world.device)
    world.executor.run()
    world.dial()
    world.executor.advance(by: .seconds(2))
    #expect(world.log == ["1 up by 1"])
    #expect(world.statistics.adoptions == 0)
    world.radio.setWaitsForOldLinks(false)
    world.handler.links[0].close()
    world.executor.run()
    world.dial()
    world.executor.run()
    #expect(world.statistics.adoptions == 1)
  }

  @Test func aDialThatWaitsGetsAFreshLinkOnceTheOldOneIsGone() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.waitsForOldLinks = true
    let world = try World(configuration)
    world.radio.leaveLink(to: world.device)
    world.executor.run()
    world.dial()
    world.executor.advance(by: .milliseconds(1999))
    #expect(world.log.isEmpty)
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["1 up by 1"])
    #expect(world.peer.linksOpened == 2)
    #expect(world.peer.endedLinks.count == 1)
    world.handler.links[0].close()
    world.executor.advance(by: .seconds(1))
    let attempt = world.dial()
    world.executor.advance(by: .milliseconds(500))
    attempt.cancel()
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1", "attempt 2 failed requested", "1 closed requested"])
    world.radio.addPhantomLink(to: world.device)
    world.dial()
    world.executor.runUntilIdle()
    #expect(world.log.last == "2 up by 3")
    #expect(world.peer.linksOpened == 3)
    #expect(world.statistics.adoptions == 0)
  }

  @Test func aLinkComesUpWithoutADial() throws {
    let world = try World()
    world.radio.restoreLink(to: world.device)
    world.radio.restoreLink(to: world.device)
    world.executor.run()
    #expect(world.log == ["1 up by nobody"])
  }

  @Test func theAdapterTakesLinksAndDialsWithIt() throws {
    let world = try World()
    let other = try deviceID(2)
    let handler = NotingHandler(journal: world.journal)
    try world.radio.register(handler, for: other)
    _ = try world.up()
    world.dial(to: other)
    world.radio.setAdapter(.off)
    #expect(world.radio.adapterState(for: world.device) == .off)
    world.executor.run()
    #expect(
      world.log == [
        "1 up by 1", "attempt 2 failed adapterOff", "1 closed adapterOff", "adapter off", "adapter off",
      ])
    #expect(world.peer.endedLinks.map(\.reason) == [.remoteDeviceTerminatedPowerOff])
    #expect(world.executor.timerCount == 0)
    world.dial()
    world.executor.run()
    #expect(world.log.last == "attempt 3 failed adapterOff")
    world.radio.setAdapter(.missing)
    world.dial()
    world.radio.setAdapter(.on)
    world.executor.run()
    #expect(world.log.suffix(5).first == "adapter missing")
    #expect(world.log.contains("attempt 4 failed adapterMissing"))
    _ = try world.up()
    #expect(world.peer.linksOpened == 2)
  }

  @Test func aDeviceOutOfRangeIsLostAfterTheSupervisionTimeout() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.supervisionTimeout = .seconds(4)
    let world = try World(configuration)
    let link = try world.up()
    world.radio.carryAway(world.device, for: .seconds(10))
    #expect(link.send("12 1000 01") == .sent)
    world.executor.advance(by: .milliseconds(3999))
    #expect(world.log == ["1 up by 1"])
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["1 up by 1", "1 closed supervisionTimeout"])
    #expect(world.peer.received.isEmpty)
    world.dial()
    world.executor.advance(by: .seconds(5))
    #expect(world.log.count == 2)
    world.executor.advance(by: .seconds(1))
    #expect(world.log.last == "2 up by 2")
  }

  @Test func aRemovedDeviceIsGoneUntilItIsAddedAgain() throws {
    let world = try World()
    _ = try world.up()
    world.radio.remove(world.device)
    world.dial(.seconds(1))
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1", "1 closed supervisionTimeout", "attempt 2 failed notFound"])
    world.radio.add(world.peer, as: world.device)
    _ = try world.up()
    #expect(world.log.last == "2 up by 3")
  }

  @Test func everyReasonOfAControllerHasALoss() throws {
    for exact in [true, false] {
      var configuration = VirtualRadio.Configuration()
      configuration.knowsExactReason = exact
      var reasons: Set<DisconnectReason> = []
      for code in UInt8.min...UInt8.max {
        let handler = LossHandler()
        let executor = ManualExecutor()
        let radio = VirtualRadio(on: executor, configuration: configuration)
        let device = try deviceID(1)
        radio.add(RawPeripheral(), as: device)
        let channel = try #require(radio.connectChannel(to: device))
        channel.open(handler)
        radio.lose(device, HCIErrorCode(rawValue: code))
        executor.run()
        let loss = try #require(handler.losses.first)
        #expect(handler.losses.count == 1)
        #expect(loss.evidence.contains(.hci(HCIErrorCode(rawValue: code))) == exact)
        #expect(loss.reason == .unknown)
        reasons.insert(loss.meaning)
      }
      #expect(reasons.contains(.micFailure) == exact)
      #expect(reasons.contains(.unknown) == exact)
      #expect(reasons.isSuperset(of: [.supervisionTimeout, .keyMissing, .authenticationFailure]))
    }
  }
}

private final class LossHandler: PDUChannelHandler {
  private let kept = Locked<[LinkLoss]>([])
  var losses: [LinkLoss] { kept.withLock { $0 } }
  func channelReceived(_ pdu: borrowing RawSpan) {}
  func channelWritable() {}
  func channelClosed(_ loss: LinkLoss) { kept.withLock { $0.append(loss) } }
}
