import Relink
import RelinkTesting
import Testing

@Suite struct RawPeripheralTests {
  @Test func theScriptComesFirstThenStandingAnswersThenTheClosure() throws {
    let world = try World()
    world.peer.expect("0a 1000", answer: "0b 01")
    world.peer.expect("0a 1000", answer: "0b 02", "1b 1000 41")
    world.peer.always("0a*", answer: "0b ff")
    world.peer.always("0a 2000", answer: "0b ee")
    world.peer.otherwise { pdu, link in
      guard pdu.first == 0x52 else { return false }
      link.send([0x1B])
      return true
    }
    let link = try world.up()
    for pdu: PDUBytes in ["0a 2000", "0a 1000", "0a 1000", "0a 1000", "52 1000", "12 1000"] {
      #expect(link.send(pdu) == .sent)
      world.executor.run()
    }
    #expect(
      world.log.dropFirst() == [
        "1 < 0bee", "1 < 0b01", "1 < 0b02", "1 < 1b100041", "1 < 0bff", "1 < 1b",
      ])
    #expect(world.peer.unexpected.map(\.pdu) == [[0x12, 0x10, 0x00]])
    #expect(world.peer.received.count == 6)
    #expect(world.peer.awaited.isEmpty)
  }

  @Test func whatHasNotComeIsAwaited() throws {
    let world = try World()
    world.peer.expect("0a 1000")
    world.peer.expect("12*")
    #expect(try world.up().send("0a 1000") == .sent)
    world.executor.run()
    #expect(world.peer.awaited.map(\.description) == ["12*"])
    #expect(world.log == ["1 up by 1"])
    #expect(world.peer.unexpected.isEmpty)
  }

  @Test func aStepMayEndTheLinkOrTakeItsTime() throws {
    let world = try World()
    world.peer.expect("0a 1000", answer: "0b aa", after: .seconds(2))
    world.peer.expect("12 1000 01") { $0.terminate(.remoteUserTerminatedConnection) }
    let link = try world.up()
    #expect(link.send("0a 1000") == .sent)
    world.executor.advance(by: .milliseconds(1999))
    #expect(world.log.count == 1)
    world.executor.advance(by: .milliseconds(1))
    #expect(world.log.last == "1 < 0baa")
    #expect(link.send("12 1000 01") == .sent)
    world.executor.run()
    #expect(world.log.last == "1 closed remoteUserTerminated")
    let end = try #require(world.peer.endedLinks.first)
    #expect(end.linkNumber == 1)
    #expect(end.at == .zero.advanced(by: .seconds(2)))
    #expect(world.peer.received.map(\.at) == [.zero, .zero.advanced(by: .seconds(2))])
  }

  @Test func itSendsUnaskedOnTheLinkThatIsNamed() throws {
    let world = try World()
    #expect(!world.peer.send("1b"))
    #expect(!world.peer.terminate(.connectionTimeout))
    world.peer.whenOpened { $0.send([0x02, 0x17, 0x00]) }
    _ = try world.up()
    #expect(world.log == ["1 up by 1", "1 < 021700"])
    #expect(world.peer.send("1b 1000 41", on: 1))
    #expect(!world.peer.send("1b 1000 42", on: 2))
    world.executor.run()
    #expect(world.log.last == "1 < 1b100041")
    #expect(world.peer.terminate(.remoteUserTerminatedConnection, on: 1))
    world.executor.run()
    #expect(world.peer.links.isEmpty)
  }

  @Test func patternsMatchOctetsAnyOctetAndAnyRest() throws {
    let exact: PDUPattern = "12 1000 01"
    #expect(exact.matches([0x12, 0x10, 0x00, 0x01]))
    #expect(!exact.matches([0x12, 0x10, 0x00]))
    #expect(!exact.matches([0x12, 0x10, 0x00, 0x01, 0x02]))
    let any: PDUPattern = "12 .... 01"
    #expect(any.matches([0x12, 0xFF, 0xFE, 0x01]))
    #expect(!any.matches([0x12, 0xFF, 0xFE, 0x02]))
    let open: PDUPattern = "12 10*"
    #expect(open.matches([0x12, 0x10]))
    #expect(open.matches([0x12, 0x10, 0x00]))
    #expect(!open.matches([0x12]))
    #expect(PDUPattern(reading: "")?.matches([]) == true)
    #expect(PDUPattern(reading: "1") == nil)
    #expect(PDUPattern(reading: "xy") == nil)
    #expect(PDUPattern([0x0A]).matches([0x0A]))
    #expect(PDUBytes("0A ff").bytes == [0x0A, 0xFF])
    #expect(PDUBytes([1, 2]) == [1, 2])
  }

  @Test func aPeersEndOfALinkNeedsNoRadio() {
    let executor = ManualExecutor()
    let journal = Journal()
    let link = PeerLink(
      number: 3, on: executor, send: { journal.note("sent \($0)") },
      terminate: { journal.note("ended \($0.rawValue)") })
    link.send([1])
    link.terminate(.connectionTimeout)
    link.later(.zero) { journal.note("soon") }
    link.later(.seconds(1)) { journal.note("later") }
    link.later(.milliseconds(1)) { journal.note("sooner") }
    #expect(journal.all == ["sent [1]", "ended 8"])
    executor.runUntilIdle()
    #expect(journal.all == ["sent [1]", "ended 8", "soon", "sooner", "later"])
    #expect(link.now == .zero.advanced(by: .seconds(1)))
  }
}
