import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B03: what belongs to an earlier link, and comes late, changes nothing on the link that is up.
@Suite struct LateDisconnectTests {
  let peripheral = VirtualPeripheral.twoValues()

  @Test("B03: the word that link 1 is gone is awaited before the next dial")
  func theNextDialWaitsForTheEndOfTheLinkBefore() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      scene.radio.hold([.closed])
      _ = scene.spawn("disconnect") { await $0.disconnect() }
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(10))
      #expect(!connect.hasEnded)
      #expect(scene.statistics.dials == 1)
      #expect(scene.radio.heldDeliveries.map(\.kind) == [.closed])
      scene.radio.stopHolding()
      scene.executor.run()
      #expect(connect.value?.generation == Generation(rawValue: 2))
      #expect(
        scene.outline
          == "connecting(1) ready(1) disconnected(requested) idle(disconnected) waiting(previousLink) "
          + "connecting(1) ready(2)")
      #expect(scene.statistics.dials == 2)
    }
  }

  /// How the first link of two ended.
  enum FirstEnd: CaseIterable { case here, lost }

  /// Whether the late word of the transport names a link of its own, or says only what an address or a handle says.
  enum LateWord: CaseIterable {
    case closed, closedTwice, closedNamingRequests, answer, answerToTheRequestInFlight, value, tableChanged
    case writable, attemptFailed
  }

  @Test("B03: each late word of link 1", arguments: FirstEnd.allCases, LateWord.allCases)
  func aLateWordOfTheLinkBeforeChangesNothingAndIsCounted(_ end: FirstEnd, _ word: LateWord) throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      if end == .here { try scene.drive("disconnect") { await $0.disconnect() } }
      if end == .lost { scene.radio.lose(scene.device, .connectionTimeout) }
      try scene.connect()
      let values = Locked<[[UInt8]]>([])
      let consumer = scene.spawn("consumer") { session in
        for try await update in session.notifications(from: Scene.first) {
          values.withLock { $0.append(update.value) }
        }
      }
      scene.executor.run()
      peripheral.react(to: .read(Scene.second), with: .answerLate(.seconds(2)))
      let read = scene.spawn("read") { try await $0.read(Scene.second) }
      scene.executor.advance(by: .seconds(1))
      let request = try #require(
        scene.session.assumeIsolated { session -> RequestID? in
          guard case .offered(let id) = session.operations.entries.first?.state else { return nil }
          return id
        })
      let old = try #require(scene.radio.linkIDs(of: scene.device).first)
      let before = scene.session.snapshot()
      let events = scene.recorder.events.count
      for delivery in deliveries(word, old, request) {
        scene.radio.deliverStale(delivery, to: scene.device)
      }
      scene.executor.run()
      #expect(!read.hasEnded)
      let count = deliveries(word, old, request).count
      #expect(scene.session.snapshot().staleDeliveries == before.staleDeliveries + count)
      #expect(scene.session.snapshot().state == before.state)
      #expect(scene.recorder.events.count == events)
      scene.executor.advance(by: .seconds(2))
      #expect(read.value == [0x0B])
      #expect(values.withLock { $0 } == [])
      peripheral.update([5], of: Scene.first)
      scene.executor.run()
      #expect(values.withLock { $0 } == [[5]])
      #expect(scene.recorder.readiness.count == 2)
      consumer.cancel()
    }
  }

  private func deliveries(_ word: LateWord, _ old: LinkID, _ request: RequestID) -> [VirtualRadio
    .StaleDelivery]
  {
    let loss = LinkLoss(.localHostTerminated, evidence: [.hci(.connectionTerminatedByLocalHost)])
    return switch word {
    case .closed: [.closed(old, loss, inDoubt: [])]
    case .closedTwice: [.closed(old, loss, inDoubt: []), .closed(old, loss, inDoubt: [])]
    case .closedNamingRequests: [.closed(old, loss, inDoubt: [request])]
    case .answer: [.answered(old, RequestID(rawValue: 2), .success(.value([0xAA])))]
    case .answerToTheRequestInFlight: [.answered(old, request, .success(.value([0xAA])))]
    case .value: [.value(old, [0xAA], of: Characteristic(Scene.first.uuid, in: BluetoothUUID(0xFFF0)))]
    case .tableChanged: [.tableChanged(old)]
    case .writable: [.writable(old)]
    case .attemptFailed: [.attemptFailed(AttemptID(rawValue: 1), loss)]
    }
  }

  @Test("B03: bytes of link 1 that the host reads only when link 2 is up")
  func bytesOfTheLinkBeforeReachNobody() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      scene.radio.hold([.towardsCentral])
      let first = scene.spawn("first") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(1))
      let late = try #require(scene.radio.heldDeliveries.first)
      scene.radio.hold([])
      scene.radio.lose(scene.device, .connectionTimeout)
      peripheral.setValue([0x0C], of: Scene.first)
      peripheral.react(to: .read(Scene.first), with: .answerLate(.seconds(1)))
      #expect(scene.run { scene.session.snapshot().isReady })
      scene.executor.advance(by: .milliseconds(500))
      scene.radio.release(late.id)
      scene.executor.run()
      #expect(!first.hasEnded)
      scene.executor.advance(by: .seconds(1))
      #expect(first.value == [0x0C])
    }
  }

  @Test("B03: a link that nobody dialled comes up before the old one is gone")
  func theLateEndOfTheOldLinkLeavesALinkAloneThatCameUpByItself() throws {
    try Scene.play(peripheral) { scene in
      try scene.connect()
      scene.radio.hold([.closed])
      _ = scene.spawn("disconnect") { await $0.disconnect() }
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(3))
      scene.radio.restoreLink(to: scene.device)
      scene.executor.run()
      #expect(connect.hasEnded)
      scene.radio.stopHolding()
      scene.executor.advance(by: .seconds(60))
      #expect(scene.session.snapshot().isReady)
      #expect(scene.outline.hasSuffix("connecting(1) ready(2)"))
      #expect(peripheral.openLinks.count == 1)
    }
  }
}
