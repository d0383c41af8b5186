import Relink
import RelinkTesting
import Testing

@Suite struct DeliveryTests {
  @Test func pdusTakeTheirTimeAndKeepTheirOrder() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.latency = .milliseconds(10)
    let world = try World(configuration)
    world.peer.always("0a*", answer: "0b aa", "1b 1000 41")
    let link = try world.up()
    #expect(link.send("0a 1000") == .sent)
    world.executor.advance(by: .milliseconds(10))
    #expect(world.peer.receivedText == ["0a1000"])
    #expect(world.log == ["1 up by 1"])
    world.executor.advance(by: .milliseconds(10))
    #expect(world.log == ["1 up by 1", "1 < 0baa", "1 < 1b100041"])
  }

  @Test func eachDeliveryIsOneJob() throws {
    let world = try World()
    let link = try world.up()
    #expect(link.send("0a 1000") == .sent)
    #expect(link.send("0a 2000") == .sent)
    #expect(world.peer.received.isEmpty)
    world.executor.step()
    #expect(world.peer.receivedText == ["0a1000"])
    world.executor.step()
    #expect(world.peer.receivedText == ["0a1000", "0a2000"])
    #expect(world.executor.pendingJobs == 0)
  }

  @Test func deliveriesHappenAtConnectionEvents() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.connectionInterval = .milliseconds(30)
    let world = try World(configuration)
    world.executor.advance(by: .milliseconds(7))
    world.peer.always("0a*", answer: "0b aa")
    let link = try world.up()
    world.executor.advance(by: .milliseconds(40))
    #expect(link.send("0a 1000") == .sent)
    world.executor.run()
    world.executor.runUntilIdle()
    let arrival = try #require(world.peer.received.first)
    #expect(arrival.at == .zero.advanced(by: .milliseconds(67)))
    // The answer needs the next event.
    #expect(world.executor.now == .zero.advanced(by: .milliseconds(97)))
    #expect(world.log.last == "1 < 0baa")
  }

  @Test func whatIsTooLongIsRefused() throws {
    var configuration = VirtualRadio.Configuration()
    configuration.maximumPDULength = 23
    let world = try World(configuration)
    let link = try world.up()
    #expect(link.channel.maximumPDULength == 23)
    #expect(link.send(PDUBytes([UInt8](repeating: 0x12, count: 24))) == .failed(90))
    #expect(link.send(PDUBytes([UInt8](repeating: 0x12, count: 23))) == .sent)
    world.executor.run()
    #expect(world.peer.received.map(\.pdu.count) == [23])
  }

  @Test func aFullChannelSaysWhenItIsWritable() throws {
    let world = try World()
    let link = try world.up()
    world.radio.block(world.device)
    world.radio.unblock(world.device)
    world.executor.run()
    #expect(world.log == ["1 up by 1"])
    world.radio.block(world.device)
    #expect(link.send("52 1000 01") == .later)
    #expect(link.send("52 1000 01") == .later)
    world.executor.run()
    #expect(world.log == ["1 up by 1"])
    world.radio.unblock(world.device)
    #expect(world.log == ["1 up by 1"])
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 writable"])
    #expect(link.send("52 1000 01") == .sent)
    world.executor.run()
    #expect(world.peer.receivedText == ["52100001"])
  }

  @Test func heldDeliveriesWaitForTheTest() throws {
    let world = try World()
    world.peer.always("0a 1000", answer: "0b aa")
    world.peer.always("0a 2000", answer: "0b bb")
    let link = try world.up()
    world.radio.hold()
    #expect(link.send("0a 1000") == .sent)
    #expect(link.send("0a 2000") == .sent)
    world.executor.run()
    #expect(world.radio.heldDeliveries.map(\.pdu) == [[0x0A, 0x10, 0], [0x0A, 0x20, 0]])
    #expect(world.radio.heldDeliveries.map(\.kind) == [.towardsPeer, .towardsPeer])
    #expect(world.peer.received.isEmpty)
    #expect(world.radio.releaseNext()?.linkNumber == 1)
    #expect(world.peer.received.isEmpty)
    world.executor.run()
    #expect(world.peer.receivedText == ["0a1000"])
    world.radio.releaseNext()
    world.executor.run()
    let answers = world.radio.heldDeliveries
    #expect(answers.map(\.pdu) == [[0x0B, 0xAA], [0x0B, 0xBB]])
    // The later one first, twice, and the earlier one never.
    world.radio.duplicate(answers[1].id)
    world.radio.release(answers[1].id)
    world.radio.drop(answers[0].id)
    world.executor.run()
    #expect(world.log == ["1 up by 1", "1 < 0bbb", "1 < 0bbb"])
    #expect(world.radio.heldDeliveries.isEmpty)
    #expect(world.radio.releaseNext() == nil)
  }

  @Test func wordsAreHeldToo() throws {
    let world = try World()
    world.radio.hold([.linkUp, .closed, .attemptFailed, .adapterChanged])
    world.dial()
    world.executor.run()
    world.radio.lose(world.device, .remoteUserTerminatedConnection)
    world.executor.run()
    world.radio.setAdapter(.off)
    world.dial()
    world.executor.run()
    #expect(world.log.isEmpty)
    #expect(
      world.radio.heldDeliveries.map(\.kind) == [.linkUp, .closed, .adapterChanged, .attemptFailed])
    world.radio.stopHolding()
    world.executor.run()
    #expect(
      world.log == [
        "1 up by 1", "1 closed remoteUserTerminated", "adapter off", "attempt 2 failed adapterOff",
      ])
  }

  @Test func aHeldRequestDiesWithItsLinkAndAHeldAnswerDoesNot() throws {
    let world = try World()
    let link = try world.up()
    world.radio.hold([.towardsPeer, .towardsCentral])
    #expect(link.send("0a 1000") == .sent)
    world.peer.send("1b 1000 41")
    world.executor.run()
    let held = world.radio.heldDeliveries
    #expect(held.count == 2)
    world.radio.hold([.closed])
    world.radio.lose(world.device, .connectionTimeout)
    world.executor.run()
    for delivery in held { world.radio.release(delivery.id) }
    world.executor.run()
    #expect(world.peer.received.isEmpty)
    #expect(world.log == ["1 up by 1", "1 < 1b100041"])
    world.radio.stopHolding()
    world.executor.run()
    #expect(world.log.last == "1 closed supervisionTimeout")
  }

  @Test func staleDeliveriesReachTheHandler() throws {
    let world = try World()
    _ = try world.up()
    world.radio.lose(world.device, .connectionTimeout)
    world.executor.run()
    _ = try world.up()
    let old = try #require(world.radio.linkIDs(of: world.device).first)
    let name = Characteristic(BluetoothUUID(0x2A19))
    world.radio.deliverStale(.answered(old, RequestID(rawValue: 7), .success(.done)), to: world.device)
    world.radio.deliverStale(.value(old, [1, 2], of: name), to: world.device)
    world.radio.deliverStale(.tableChanged(old), to: world.device)
    world.radio.deliverStale(.writable(old), to: world.device)
    let requests = [RequestID(rawValue: 7)]
    world.radio.deliverStale(.closed(old, LinkLoss(.notFound), inDoubt: requests), to: world.device)
    world.radio.deliverStale(.attemptFailed(AttemptID(rawValue: 1), LinkLoss(.busy)), to: world.device)
    #expect(world.log.count == 3)
    world.executor.run()
    #expect(
      world.log.suffix(6) == [
        "1 answered 7", "1 value 0102", "1 table changed", "1 link writable", "1 link closed notFound [7]",
        "attempt 1 failed busy",
      ])
  }

  @Test func whatComesBeforeTheChannelIsOpenedIsKept() throws {
    let world = try World()
    let channel = try #require(world.radio.connectChannel(to: world.device))
    #expect(world.radio.connectChannel(to: world.device) == nil)
    world.executor.run()
    world.peer.send("1b 1000 41")
    world.executor.run()
    world.radio.lose(world.device, .connectionTimeout)
    world.executor.run()
    let link = BareLink(id: LinkID(rawValue: 9), channel: channel, journal: world.journal)
    channel.open(link)
    #expect(world.log.isEmpty)
    world.executor.run()
    #expect(world.log == ["9 < 1b100041", "9 closed supervisionTimeout"])
  }

  @Test func theTraceIsTheSameEachTimeAndBounded() throws {
    func trace(limit: Int) throws -> [String] {
      var configuration = VirtualRadio.Configuration()
      configuration.traceLimit = limit
      configuration.latency = .milliseconds(1)
      let world = try World(configuration)
      var rates = FaultPlan.Rates.mixed(0.05)
      rates.dials = FaultPlan.DialRates()
      world.radio.setFaults(FaultPlan(seed: 11, rates: rates))
      world.peer.always("0a*", answer: "0b aa")
      for round in 0..<200 {
        if world.radio.existingLinks().isEmpty { world.dial() }
        world.executor.advance(by: .milliseconds(20))
        _ = world.handler.links.last?.send(PDUBytes([0x0A, UInt8(round), 0]))
        world.executor.advance(by: .milliseconds(20))
      }
      return world.radio.trace
    }
    let first = try trace(limit: 10_000)
    #expect(
      first.prefix(2) == [
        "0.000000000 C0:DE:00:00:00:01/random advertises",
        "0.000000000 dial C0:DE:00:00:00:01/random attempt 1",
      ])
    #expect(first.contains { $0.hasSuffix("#1 C>P 0a0000") })
    #expect(try trace(limit: 10_000) == first)
    #expect(try trace(limit: 10) == first.suffix(10))
    #expect(try trace(limit: 0).isEmpty)
  }
}
