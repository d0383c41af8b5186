import Relink
import RelinkTesting
import Testing

/// What each fault does on a radio.
@Suite struct RadioFaultTests {
  private func world(_ strike: (inout FaultPlan) -> Void) throws -> World {
    let world = try World()
    var plan = FaultPlan.none
    strike(&plan)
    world.radio.setFaults(plan)
    world.peer.always("12*", answer: "13")
    return world
  }

  @Test func lostBeforeDeliveryIsNotCarriedOut() throws {
    let world = try world { $0.strike(.loseLinkBefore(.connectionTimeout), of: .request) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.peer.received.isEmpty)
    #expect(world.log == ["1 up by 1", "1 closed supervisionTimeout"])
  }

  @Test func lostAfterDeliveryIsCarriedOutAndNotAnswered() throws {
    let world = try world { $0.strike(.loseLinkAfter(.remoteUserTerminatedConnection), of: .request) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.peer.receivedText == ["12100001"])
    #expect(world.log == ["1 up by 1", "1 closed remoteUserTerminated"])
  }

  @Test func lostBeforeTheAnswerArrives() throws {
    let world = try world { $0.strike(.loseLinkBefore(.connectionTimeout), of: .answer) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.peer.receivedText == ["12100001"])
    #expect(world.log == ["1 up by 1", "1 closed supervisionTimeout"])
  }

  @Test func lostAfterTheAnswerArrived() throws {
    let world = try world { $0.strike(.loseLinkAfter(.connectionTimeout), of: .answer) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 < 13", "1 closed supervisionTimeout"])
  }

  @Test func anAnswerVanishesAndTheLinkStays() throws {
    let world = try world { $0.strike(.vanish, of: .answer) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1"])
    #expect(link.send("12 1000 02") == .sent)
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 < 13"])
  }

  @Test func aLatePDUHoldsUpWhatIsBehindIt() throws {
    let world = try world { $0.strike(.late(.seconds(3)), of: .value) }
    _ = try world.up()
    world.peer.send("1b 1000 41")
    world.peer.send("1b 1000 42")
    world.executor.advance(by: .milliseconds(2999))
    #expect(world.log == ["1 up by 1"])
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log == ["1 up by 1", "1 < 1b100041", "1 < 1b100042"])
  }

  @Test func aCopyArrivesRightBehindTheFirst() throws {
    let world = try world { $0.strike(.twice, of: .answer) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.step()
    #expect(world.log == ["1 up by 1"])
    // Both in one job: nothing can be sent between them.
    world.executor.step()
    #expect(world.log == ["1 up by 1", "1 < 13", "1 < 13"])
  }

  @Test func aSendIsRefusedOrPutOff() throws {
    let world = try world {
      $0.strikeSend(.failed(105))
      $0.strikeSend(.later(.seconds(1)), at: 2)
    }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .failed(105))
    #expect(link.send("12 1000 02") == .later)
    #expect(link.send("12 1000 02") == .later)
    world.executor.runUntilIdle()
    #expect(world.log == ["1 up by 1", "1 writable"])
    #expect(link.send("12 1000 02") == .sent)
    world.executor.run()
    #expect(world.peer.receivedText == ["12100002"])
  }

  @Test func theAdapterBlinks() throws {
    let world = try world { $0.strike(.adapterOff(.seconds(2)), of: .request) }
    let link = try world.up()
    #expect(link.send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 closed adapterOff", "adapter off"])
    world.executor.runUntilIdle()
    #expect(world.log.last == "adapter on")
    #expect(world.executor.now == .zero.advanced(by: .seconds(2)))
    #expect(world.peer.received.isEmpty)
  }

  @Test func anAdapterThatATestSwitchesStaysSo() throws {
    let world = try world { $0.strike(.adapterOff(.seconds(2)), of: .request) }
    #expect(try world.up().send("12 1000 01") == .sent)
    world.executor.run()
    world.radio.setAdapter(.off)
    world.executor.runUntilIdle()
    #expect(world.radio.adapterState(for: world.device) == .off)
    world.radio.heal()
    #expect(world.radio.adapterState(for: world.device) == .off)
  }

  @Test func theDeviceIsAbsentForAWhile() throws {
    let world = try world { $0.strike(.absence(.seconds(7)), of: .answer) }
    #expect(try world.up().send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 closed supervisionTimeout"])
    world.dial()
    world.executor.advance(by: .milliseconds(6999))
    #expect(world.log.count == 2)
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log.last == "2 up by 2")
  }

  @Test func dialsGoWrongByPlan() throws {
    let world = try world {
      $0.strikeDial(.fail(.connectionTimeout, after: .seconds(1)))
      $0.strikeDial(.failToEstablish(after: .seconds(1)), at: 2)
      $0.strikeDial(.busy, at: 3)
    }
    for _ in 1...4 {
      world.dial()
      world.executor.runUntilIdle()
    }
    #expect(
      world.log == [
        "attempt 1 failed supervisionTimeout", "1 up by 2", "1 closed failedToEstablish",
        "attempt 3 failed busy", "2 up by 4",
      ])
  }

  @Test func healingEndsEverythingThatThePlanBegan() throws {
    let world = try world {
      $0.strikeDial(.hang)
      $0.strike(.absence(.seconds(1000)), of: .value)
      $0.strikeSend(.later(.seconds(1000)))
    }
    let other = try deviceID(2)
    let handler = NotingHandler(journal: world.journal)
    let second = RawPeripheral()
    try world.radio.register(handler, for: other)
    world.radio.add(second, as: other)
    world.dial()
    world.executor.run()
    world.dial(to: other)
    world.executor.run()
    let link = try #require(handler.links.first)
    #expect(link.send("12 1000 01") == .later)
    #expect(world.log == ["1 up by 2"])
    world.radio.heal()
    world.executor.run()
    #expect(world.log == ["1 up by 2", "1 writable", "2 up by 1"])
    second.send("1b 1000 41")
    world.executor.runUntilIdle()
    #expect(world.log.last == "1 < 1b100041")
    #expect(world.executor.timerCount == 0)
  }

  @Test func healingBringsTheAdapterAndAbsentDevicesBack() throws {
    let world = try world { $0.strike(.adapterOff(.seconds(1000)), of: .request) }
    #expect(try world.up().send("12 1000 01") == .sent)
    world.executor.run()
    world.radio.carryAway(world.device)
    world.radio.heal()
    world.executor.run()
    #expect(world.log.last == "adapter on")
    _ = try world.up()
    #expect(world.log.last == "2 up by 2")
  }
}
