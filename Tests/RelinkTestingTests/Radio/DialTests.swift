import Relink
import RelinkTesting
import Testing

@Suite struct DialTests {
  @Test func aDialBringsALinkUpAndNeverInsideTheCall() throws {
    let world = try World()
    world.dial()
    #expect(world.log.isEmpty)
    world.executor.run()
    #expect(world.log == ["1 up by 1"])
    #expect(world.peer.links.map(\.number) == [1])
    #expect(world.peer.links.first?.client == "central")
    #expect(world.radio.existingLinks() == [world.device])
    #expect(world.executor.timerCount == 0)
    #expect(world.statistics.dials == 1)
    #expect(world.statistics.links == 1)
  }

  @Test func aDialCatchesTheNextAdvertisement() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.connectLatency = .milliseconds(5)
    let world = try World(configuration)
    world.radio.setAdvertising(true, of: world.device, every: .milliseconds(20))
    world.executor.advance(by: .milliseconds(21))
    world.dial()
    world.executor.advance(by: .milliseconds(23))
    #expect(world.log.isEmpty)
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["1 up by 1"])
  }

  @Test(arguments: [nil, Duration.seconds(3)]) func anAbsentDeviceIsNotFoundAtTheLimit(limit: Duration?)
    throws
  {
    let world = try World()
    world.radio.setAdvertising(false, of: world.device)
    world.dial(limit)
    let end = limit ?? .seconds(40)
    world.executor.advance(by: end - .milliseconds(1))
    #expect(world.log.isEmpty)
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["attempt 1 failed notFound"])
    #expect(world.radio.pendingDials == 0)
    #expect(world.statistics.failedDials == 1)
  }

  @Test func anUnknownDeviceIsAbsent() throws {
    let world = try World()
    let stranger = try deviceID(9)
    let handler = NotingHandler(journal: world.journal)
    try world.radio.register(handler, for: stranger)
    world.dial(to: stranger)
    world.executor.runUntilIdle()
    #expect(world.log == ["attempt 1 failed notFound"])
  }

  @Test func aPendingDialCatchesTheDeviceThatComesBack() throws {
    let world = try World()
    world.radio.carryAway(world.device)
    world.dial()
    world.executor.advance(by: .seconds(30))
    world.radio.bringBack(world.device)
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1"])
    #expect(world.executor.now == .zero.advanced(by: .seconds(30)))
  }

  @Test func aDeviceThatFallsMuteBeforeTheLinkIsUpIsWaitedFor() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.connectLatency = .seconds(1)
    let world = try World(configuration)
    world.dial()
    world.executor.advance(by: .milliseconds(900))
    world.radio.setAdvertising(false, of: world.device)
    world.executor.advance(by: .seconds(5))
    #expect(world.log.isEmpty)
    world.radio.setAdvertising(true, of: world.device)
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1"])
  }

  @Test func cancelEndsADialOnceAndLeavesNothingBehind() throws {
    let world = try World()
    world.radio.setAdvertising(false, of: world.device)
    let attempt = world.dial()
    world.executor.advance(by: .seconds(10))
    attempt.cancel()
    #expect(world.log.isEmpty)
    world.executor.run()
    #expect(world.log == ["attempt 1 failed requested"])
    #expect(world.executor.timerCount == 0)
    #expect(world.statistics.cancels == 1)
    world.radio.setAdvertising(true, of: world.device)
    world.executor.runUntilIdle()
    #expect(world.log.count == 1)
  }

  @Test func cancelComesTooLateForALinkThatIsUp() throws {
    let world = try World()
    let attempt = world.dial()
    // The link is up in the air, and the word of it is on its way.
    world.executor.step()
    attempt.cancel()
    world.executor.run()
    #expect(world.log == ["1 up by 1"])
  }

  @Test func aDialThatHangsOutlivesItsLimit() throws {
    let world = try World()
    world.radio.scriptDials([.hang], to: world.device)
    let attempt = world.dial()
    #expect(world.executor.runUntilIdle(within: .seconds(1000)).end == .nothingLeft)
    #expect(world.log.isEmpty)
    #expect(world.radio.pendingDials == 1)
    attempt.cancel()
    world.executor.run()
    #expect(world.log == ["attempt 1 failed requested"])
    #expect(world.radio.pendingDials == 0)
  }

  @Test func scriptedDialsGoOneAfterTheOther() throws {
    let world = try World()
    world.radio.scriptDials(
      [
        .fail(.connectionTimeout, after: .seconds(1)), .refuse(after: .seconds(1)), .busy,
        .failExactly(LinkLoss(.unknown, evidence: [.endOfFile]), after: .zero),
      ], to: world.device)
    for _ in 1...5 {
      world.dial()
      world.executor.runUntilIdle()
    }
    #expect(
      world.log == [
        "attempt 1 failed supervisionTimeout", "attempt 2 failed refused", "attempt 3 failed busy",
        "attempt 4 failed remoteUserTerminated", "1 up by 5",
      ])
    #expect(world.executor.now == .zero.advanced(by: .seconds(2)))
  }

  @Test func failedToEstablishComesUpAndDiesUnheard() throws {
    let world = try World()
    world.radio.scriptDials([.failToEstablish(after: .milliseconds(300))], to: world.device)
    let link = try world.up()
    #expect(link.send("0a 1000") == .sent)
    world.executor.advance(by: .milliseconds(299))
    #expect(world.log == ["1 up by 1"])
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["1 up by 1", "1 closed failedToEstablish"])
    #expect(world.peer.linksOpened == 0)
    #expect(world.peer.received.isEmpty)
  }

  @Test func aSecondDialToTheSameDeviceIsBusyAndCounted() throws {
    let world = try World()
    world.radio.setAdvertising(false, of: world.device)
    world.dial()
    world.dial()
    world.executor.run()
    #expect(world.log == ["attempt 2 failed busy"])
    #expect(world.statistics.overlappingDials == 1)
    #expect(world.radio.maximumConcurrentDials == 1)
  }

  @Test func aDialBesideAnOpenChannelIsBusy() throws {
    let world = try World()
    _ = try world.up()
    world.dial()
    world.executor.run()
    #expect(world.log == ["1 up by 1", "attempt 2 failed busy"])
  }

  @Test func anAdapterThatDialsOneDeviceAtATimeIsBusyForTheNext() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.dialsAtOnce = 1
    let world = try World(configuration)
    let other = try deviceID(2)
    let handler = NotingHandler(journal: world.journal)
    try world.radio.register(handler, for: other)
    world.radio.add(RawPeripheral(), as: other)
    world.radio.carryAway(world.device)
    let attempt = world.dial()
    world.dial(to: other)
    world.executor.run()
    #expect(world.log == ["attempt 2 failed busy"])
    attempt.cancel()
    world.executor.run()
    world.dial(to: other)
    world.executor.run()
    #expect(world.log.last == "1 up by 3")
    #expect(world.radio.maximumConcurrentDials == 1)
  }

  @Test func aLinkWithoutAnyoneToTakeItIsClosed() throws {
    let world = try World()
    world.dial()
    world.radio.unregister(world.device)
    world.executor.runUntilIdle()
    #expect(world.log.isEmpty)
    #expect(world.radio.existingLinks().isEmpty)
    #expect(world.peer.endedLinks.map(\.reason) == [.remoteUserTerminatedConnection])
  }

  @Test func thereIsOneHandlerForADevice() throws {
    let world = try World()
    let second = NotingHandler(journal: world.journal)
    let error = #expect(throws: RelinkError.self) { try world.radio.register(second, for: world.device) }
    #expect(error?.code == .sessionExists)
    try world.radio.register(world.handler, for: world.device)
    world.radio.unregister(world.device)
    try world.radio.register(second, for: world.device)
  }

  @Test func handlersAreHeldWeakly() throws {
    let world = try World()
    let other = try deviceID(2)
    do {
      let passing = NotingHandler(journal: world.journal)
      try world.radio.register(passing, for: other)
    }
    let next = NotingHandler(journal: world.journal)
    try world.radio.register(next, for: other)
  }
}
