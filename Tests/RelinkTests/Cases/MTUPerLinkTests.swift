import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B13: the ATT_MTU belongs to its link, and nothing is sent that is longer.
@Suite struct MTUPerLinkTests {
  let value = [UInt8](repeating: 0x55, count: 100)

  /// A peer that answers the exchange of the links after each other in these ways.
  private func peer(_ answers: [PDUBytes?]) -> RawPeripheral {
    let peer = RawPeripheral()
    for answer in answers {
      peer.expect("02 ....") { link in if let answer { link.send(answer.bytes) } }
    }
    peer.always("12 1000*", answer: "13")
    peer.always("18 01", answer: "19")
    peer.showTwoValues { pdu, link in
      // A prepared part comes back as it went.
      guard pdu.first == 0x16 else { return false }
      link.send([0x17] + pdu.dropFirst())
      return true
    }
    return peer
  }

  private func write(_ scene: Scene, allowsLong: Bool) -> SpawnedTask<Void> {
    let value = value
    return scene.spawn("write") { session in
      try await session.write(
        value, to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(allowsLong: allowsLong))
    }
  }

  private func expectNothingOversized(_ peer: RawPeripheral, mtu: [Int: Int]) {
    for one in peer.received {
      #expect(one.pdu.count <= mtu[one.linkNumber] ?? 23, "\(one)")
    }
  }

  @Test("B13: four links: 203, 23, no answer, an error")
  func eachLinkHasItsOwn() throws {
    let peer = peer(["03 cb00", "03 1700", nil, "01 02 0000 06"])
    try Scene.play(peer) { scene in
      try scene.connect()
      #expect(scene.recorder.readiness.last?.mtu == 203)
      let plain = write(scene, allowsLong: false)
      scene.executor.run()
      #expect(plain.hasEnded && plain.error == nil)
      let free = write(scene, allowsLong: true)
      scene.executor.run()
      #expect(free.hasEnded && free.error == nil)
      #expect(peer.received(opcode: 0x12).count == 2)
      #expect(peer.received(opcode: 0x16).isEmpty)

      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(scene.recorder.readiness.last?.mtu == 23)
      try expectSmall(scene, peer, prepared: 6)

      // The third link is closed after 30 s without an answer, and the fourth refuses to exchange.
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(29))
      #expect(scene.recorder.readiness.count == 2)
      scene.executor.advance(by: .seconds(30))
      #expect(scene.recorder.failures.map(\.reason) == [.transactionTimeout])
      #expect(scene.recorder.failures.map(\.recovery) == [.retryConnection])
      #expect(scene.recorder.readiness.count == 3)
      #expect(scene.recorder.readiness.last?.mtu == 23)
      try expectSmall(scene, peer, prepared: 12)
      expectNothingOversized(peer, mtu: [1: 203])
      #expect(peer.awaited.isEmpty)
    }
  }

  private func expectSmall(_ scene: Scene, _ peer: RawPeripheral, prepared: Int) throws {
    let plain = write(scene, allowsLong: false)
    scene.executor.run()
    #expect(plain.relinkError?.notSentReason == .refused(.valueTooLong(limit: 20)))
    let long = write(scene, allowsLong: true)
    scene.executor.run()
    #expect(long.hasEnded && long.error == nil)
    #expect(peer.received(opcode: 0x12).count == 2)
    #expect(peer.received(opcode: 0x16).count == prepared)
  }

  @Test("B13: a write that waits from one link to the next", arguments: [true, false])
  func aWaitingWriteIsCutForTheLinkThatTakesIt(_ shrinks: Bool) throws {
    let answers: [PDUBytes] = shrinks ? ["03 cb00", "03 1700"] : ["03 1700", "03 cb00"]
    let peer = peer(answers)
    try Scene.play(peer) { scene in
      try scene.connect()
      scene.radio.block(scene.device)
      let long = write(scene, allowsLong: true)
      scene.executor.run()
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(long.hasEnded && long.error == nil, "\(String(describing: long.error))")
      #expect(peer.received(opcode: 0x16).count == (shrinks ? 6 : 0))
      #expect(peer.received(opcode: 0x12).count == (shrinks ? 0 : 1))
      expectNothingOversized(peer, mtu: shrinks ? [1: 203] : [2: 203])
    }
  }

  @Test("B13: each size at the edge of what one PDU carries", arguments: [23, 24, 185, 203, 247, 517])
  func theLastByteThatFitsGoesInOnePDU(_ mtu: Int) throws {
    let answer = PDUBytes([0x03, UInt8(mtu & 0xFF), UInt8(mtu >> 8)])
    let peer = peer([answer])
    try Scene.play(peer) { scene in
      try scene.connect()
      for (size, fits) in [(mtu - 3, true), (mtu - 2, false)] {
        let task = scene.spawn("\(size)") { session in
          try await session.write(
            [UInt8](repeating: 1, count: size), to: Scene.first, idempotency: .idempotent)
        }
        scene.executor.run()
        #expect(task.hasEnded)
        #expect((task.error == nil) == fits)
        if !fits { #expect(task.relinkError?.notSentReason == .refused(.valueTooLong(limit: mtu - 3))) }
      }
      #expect(peer.received(opcode: 0x12).count == 1)
      expectNothingOversized(peer, mtu: [1: mtu])
    }
  }
}
