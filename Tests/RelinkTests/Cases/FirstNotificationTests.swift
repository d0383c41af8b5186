import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B15: a value that comes before the answer to the subscription is not lost.
@Suite struct FirstNotificationTests {
  private func consume(_ scene: Scene, _ values: Locked<[[UInt8]]>) -> SpawnedTask<Void> {
    scene.spawn("consumer") { session in
      for try await update in session.notifications(from: Scene.first) {
        values.withLock { $0.append(update.value) }
      }
    }
  }

  /// Whether the subscription is made on a ready session, or is waiting when the link comes up.
  @Test("B15: before and behind the answer", arguments: [true, false])
  func valuesAroundTheAnswerArriveInOrder(_ isReadyFirst: Bool) throws {
    let peer = RawPeripheral.twoValues()
    peer.expect("12 1100 0100", answer: "1b 1000 41", "13", "1b 1000 42")
    try Scene.play(peer) { scene in
      let values = Locked<[[UInt8]]>([])
      if isReadyFirst { try scene.connect() }
      let consumer = consume(scene, values)
      scene.executor.run()
      #expect(values.withLock { $0 } == [[0x41], [0x42]])
      #expect(scene.session.snapshot().isReady)
      #expect(peer.received(opcode: 0x12) == ["1211000100"])
      peer.always("12 1100 0000", answer: "13")
      consumer.cancel()
      scene.executor.run()
      #expect(peer.received(opcode: 0x12).last == "1211000000")
    }
  }

  @Test("B15: the answer never comes", arguments: [true, false])
  func withoutAnAnswerTheLinkIsRenewedAndTheValueKept(_ isReadyFirst: Bool) throws {
    let peer = RawPeripheral.twoValues()
    peer.expect("12 1100 0100", answer: "1b 1000 41")
    peer.always("12 1100 0100", answer: "13")
    peer.always("12 1100 0000", answer: "13")
    try Scene.play(peer) { scene in
      let values = Locked<[[UInt8]]>([])
      if isReadyFirst { try scene.connect() }
      let consumer = consume(scene, values)
      scene.executor.advance(by: .seconds(29))
      #expect(values.withLock { $0 } == [[0x41]])
      #expect(scene.session.snapshot().isReady == isReadyFirst)
      // The bearer gives up after 30 s; the link lingers for 2 s.
      scene.executor.advance(by: .seconds(10))
      #expect(scene.session.snapshot().isReady)
      #expect(peer.linksOpened == 2)
      let end = isReadyFirst ? scene.recorder.disconnections.first : scene.recorder.failures.first
      #expect(end?.reason == .transactionTimeout)
      peer.send("1b 1000 42")
      scene.executor.run()
      #expect(values.withLock { $0 } == [[0x41], [0x42]])
      #expect(!consumer.hasEnded)
      consumer.cancel()
    }
  }

  @Test("B15: the answer is an error", arguments: [true, false], [UInt8(0x03), 0x05, 0x0E, 0x80, 0xFD])
  func anErrorEndsTheSubscriptionAndNothingIsDeliveredLater(_ isReadyFirst: Bool, _ code: UInt8) throws {
    let peer = RawPeripheral.twoValues()
    peer.expect("12 1100 0100") { link in
      link.send([0x1B, 0x10, 0x00, 0x41])
      link.send([0x01, 0x12, 0x11, 0x00, code])
      link.send([0x1B, 0x10, 0x00, 0x42])
    }
    try Scene.play(peer) { scene in
      let values = Locked<[[UInt8]]>([])
      if isReadyFirst { try scene.connect() }
      let consumer = consume(scene, values)
      scene.executor.run()
      #expect(consumer.relinkError?.code == .rejected)
      guard case .rejected(let rejection) = consumer.relinkError?.outcome else {
        Issue.record("the error has no rejection in it")
        return
      }
      #expect(rejection.code == ATTErrorCode(rawValue: code))
      #expect(values.withLock { $0 } == [[0x41]])
      #expect(scene.belongings.consumers == 0)
      #expect(scene.session.snapshot().isReady)
      peer.send("1b 1000 43")
      scene.executor.run()
      #expect(values.withLock { $0 } == [[0x41]])
      // The next link does not ask again.
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(5))
      #expect(scene.session.snapshot().isReady)
      #expect(peer.received(opcode: 0x12).count == 1)
    }
  }

  @Test("B15: the link is lost instead of the answer")
  func aLossInsteadOfTheAnswerKeepsTheValueAndMarksTheGap() throws {
    let peer = RawPeripheral.twoValues()
    peer.expect("12 1100 0100") { link in
      link.send([0x1B, 0x10, 0x00, 0x41])
      link.terminate(.remoteUserTerminatedConnection)
    }
    peer.expect("12 1100 0100", answer: "1b 1000 42", "13")
    peer.always("12 1100 0000", answer: "13")
    try Scene.play(peer) { scene in
      let updates = Locked<[ValueUpdate]>([])
      let consumer = scene.spawn("consumer") { session in
        for try await update in session.notifications(from: Scene.first) {
          updates.withLock { $0.append(update) }
        }
      }
      scene.executor.advance(by: .seconds(5))
      let seen = updates.withLock { $0 }
      #expect(seen.map(\.value) == [[0x41], [0x42]])
      #expect(seen.map(\.generation.rawValue) == [1, 2])
      #expect(seen.map(\.gap) == [nil, Gap(isAfterLoss: true, dropped: 0)])
      consumer.cancel()
    }
  }
}
