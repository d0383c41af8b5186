import BluetoothWire
import Relink
import Testing

@testable import RelinkBlueZ

struct ControllerLedgerTests {
  private static let place = ControllerLedger.Place(adapter: 0, handle: 0x40)
  private static let first = LinkName(rawValue: 1)
  private static let second = LinkName(rawValue: 2)

  private func disconnected(_ reason: UInt8, _ handle: UInt16 = 0x40, status: UInt8 = 0) -> HCIEvent {
    .disconnectionComplete(
      status: HCIErrorCode(rawValue: status), handle: handle, reason: HCIErrorCode(rawValue: reason))
  }

  @Test func aReasonIsToldOfTheLinkThatHasTheHandle() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    ledger.cameUp(Self.second, at: ControllerLedger.Place(adapter: 1, handle: 0x40))
    #expect(ledger.owes(Self.first))
    ledger.heard(disconnected(0x3E), from: 0)
    #expect(ledger.facts(of: Self.first) == ControllerLedger.Facts(reason: HCIErrorCode(rawValue: 0x3E)))
    #expect(!ledger.owes(Self.first))
    #expect(ledger.facts(of: Self.second) == ControllerLedger.Facts(), "another adapter's")
    #expect(ledger.owes(Self.second))
    #expect(ledger.stale == 0)
  }

  /// The second link has the handle of the first: what comes late is the first one's, or nobody's.
  @Test func aLateReasonIsNotCreditedToTheNextLinkWithTheSameHandle() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    // The event of the first is read when the second comes up, before that is taken down.
    ledger.heard(disconnected(0x16), from: 0)
    ledger.cameUp(Self.second, at: Self.place)
    #expect(ledger.facts(of: Self.first)?.reason == HCIErrorCode(rawValue: 0x16))
    #expect(ledger.facts(of: Self.second)?.reason == nil)
    ledger.heard(disconnected(0x08), from: 0)
    ledger.heard(disconnected(0x13), from: 0)
    #expect(ledger.facts(of: Self.first)?.reason == HCIErrorCode(rawValue: 0x16))
    #expect(ledger.facts(of: Self.second)?.reason == HCIErrorCode(rawValue: 0x08))
    #expect(ledger.stale == 1, "the third is about no link of ours")
  }

  @Test func aReasonOfALinkThatIsForgottenChangesNothing() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    ledger.forget(Self.first)
    ledger.heard(disconnected(0x16), from: 0)
    #expect(ledger.facts(of: Self.first) == nil)
    #expect(ledger.stale == 1)
    #expect(ledger.count == 0)
  }

  @Test func aLinkThatCouldNotBeEndedLives() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    ledger.heard(disconnected(0x16, status: 0x02), from: 0)
    #expect(ledger.owes(Self.first))
    #expect(ledger.facts(of: Self.first)?.reason == nil)
  }

  @Test func theLatestWordOnEncryptionCounts() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    ledger.heard(.encryptionChange(status: .success, handle: 0x40, isOn: true, keySize: nil), from: 0)
    #expect(ledger.facts(of: Self.first)?.encryption == .success)
    ledger.heard(.encryptionKeyRefreshComplete(status: HCIErrorCode(rawValue: 0x06), handle: 0x40), from: 0)
    #expect(ledger.facts(of: Self.first)?.encryption == HCIErrorCode(rawValue: 0x06))
    ledger.heard(.encryptionChange(status: .success, handle: 0x41, isOn: true, keySize: nil), from: 0)
    #expect(ledger.facts(of: Self.first)?.encryption == HCIErrorCode(rawValue: 0x06))
  }

  @Test func aFaultOfAControllerIsToldOfEveryLinkItHas() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    ledger.cameUp(Self.second, at: ControllerLedger.Place(adapter: 1, handle: 1))
    ledger.heard(.hardwareError(code: 3), from: 0)
    #expect(ledger.facts(of: Self.first)?.hardwareError == 3)
    #expect(ledger.facts(of: Self.second)?.hardwareError == nil)
  }

  @Test func anAdapterThatIsGoneOwesNothing() {
    var ledger = ControllerLedger()
    ledger.cameUp(Self.first, at: Self.place)
    ledger.adapterLeft(0)
    #expect(!ledger.owes(Self.first))
    // The next adapter of that number has handles of its own.
    ledger.heard(disconnected(0x16), from: 0)
    #expect(ledger.facts(of: Self.first) == ControllerLedger.Facts())
  }

  @Test func whatIsToldOfOtherProgramsLinksIsNotKept() {
    var ledger = ControllerLedger()
    for handle in UInt16(0)..<0x0F00 { ledger.heard(disconnected(0x13, handle), from: 0) }
    for _ in 0..<100 {
      for number in UInt64(0)..<64 {
        ledger.cameUp(LinkName(rawValue: number), at: Self.place)
        ledger.forget(LinkName(rawValue: number))
      }
    }
    #expect(ledger.count == 0)
    #expect(ledger.stale == 0x0F00)
  }
}

@Suite(.timeLimit(.minutes(1))) struct ControllerViewTests {
  private struct Rig: Sendable {
    let loop: RadioLoop
    let far: FarEnd
    let events: Facts<HCIEvent>
    let ends: Facts<Int>
    let view: ControllerView
  }

  private func withView(_ body: (Rig) async throws -> Void) async throws {
    try await withLoop { loop in
      let pair = try SocketPair()
      let (events, ends) = (Facts<HCIEvent>(), Facts<Int>())
      let near = pair.near
      let view = try await loop.run {
        ControllerView(
          over: OwnedDescriptor(adopting: near), as: 0, on: loop, heard: { events.add($0) },
          ended: { ends.add(1) })
      }
      let rig = Rig(loop: loop, far: pair.far, events: events, ends: ends, view: try #require(view))
      try await body(rig)
      try await loop.run {
        rig.view.close()
        #expect(loop.descriptorCount == 0)
      }
    }
  }

  private static let gone: [UInt8] = [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x3E]

  @Test func eventsAreReadAndOtherPacketsAreNot() async throws {
    try await withView { rig in
      for packet in [[0x02, 0x40, 0x00], [0x04], [0x04, 0x05, 0x09, 0x00], Self.gone] { rig.far.send(packet) }
      let wanted = HCIEvent.disconnectionComplete(
        status: .success, handle: 0x40, reason: HCIErrorCode(rawValue: 0x3E))
      #expect(await rig.events.first(1) == [wanted])
      #expect(rig.ends.all.isEmpty)
    }
  }

  /// Whoever asks gets what was told before, however much that is.
  @Test func everythingThatWasToldIsReadOnDemand() async throws {
    try await withView { rig in
      try await rig.loop.run {
        for _ in 0..<200 { rig.far.trySend(Self.gone) }
        rig.view.readEverything()
        #expect(rig.events.all.count == 200)
      }
    }
  }

  @Test func theEndOfTheSocketIsToldOnce() async throws {
    try await withView { rig in
      rig.far.close()
      #expect(await rig.ends.first(1) == [1])
      try await rig.loop.run {
        rig.view.readEverything()
        #expect(rig.loop.descriptorCount == 0)
      }
      #expect(rig.ends.all == [1])
    }
  }
}
