import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

@Suite(.timeLimit(.minutes(1))) struct SeqPacketChannelTests {
  @Test func pdusArriveWholeAndInOrderBothWays() async throws {
    try await withChannel { rig in
      for number in UInt8(0)..<100 { rig.pair.far.send([0x1B, number]) }
      let deliveries = await rig.recorder.first(100)
      #expect(deliveries == (UInt8(0)..<100).map { .pdu([0x1B, $0]) })
      let results = try await rig.loop.run { (UInt8(0)..<10).map { rig.channel.send([0x52, $0, 1]) } }
      #expect(results == [PDUSendResult](repeating: .sent, count: 10))
      for number in UInt8(0)..<10 { #expect(rig.pair.far.receive() == [0x52, number, 1]) }
    }
  }

  @Test func nothingIsDeliveredBeforeOpenAndNothingIsLostByIt() async throws {
    try await withChannel(opens: false) { rig in
      rig.pair.far.send([1])
      try await rig.loop.run {}
      #expect(rig.recorder.all.isEmpty)
      try await rig.open()
      #expect(await rig.recorder.first(1) == [.pdu([1])])
    }
  }

  @Test func aPDULongerThanTheChannelsOwnIsDeliveredWhole() async throws {
    try await withChannel { rig in
      let long = [UInt8](repeating: 0x1B, count: 2_000)
      rig.pair.far.send(long)
      #expect(await rig.recorder.first(1) == [.pdu(long)])
      #expect(rig.channel.maximumPDULength == 517)
    }
  }

  @Test func aSocketWithoutALinkIsNotSecured() async throws {
    try await withChannel(opens: false) { rig in
      #expect(try await rig.loop.run { rig.channel.security } == .none)
      try await rig.open()
      #expect(try await rig.loop.run { rig.channel.security } == .none)
      try await rig.loop.run { rig.channel.close() }
      #expect(try await rig.loop.run { rig.channel.security } == .none)
    }
  }

  @Test func anEmptyPDUIsNoEndOfFile() async throws {
    try await withChannel { rig in
      rig.pair.far.send([])
      rig.pair.far.send([7])
      #expect(await rig.recorder.first(2) == [.pdu([]), .pdu([7])])
    }
  }

  @Test func aFullChannelTakesNothingAndSaysOnceThatItHasRoom() async throws {
    try await withChannel { rig in
      let pdu = [UInt8](repeating: 0x52, count: 500)
      let sent = try await rig.loop.run {
        var sent = 0
        while rig.channel.send(pdu) == .sent { sent += 1 }
        #expect(rig.channel.send(pdu) == .later)
        return sent
      }
      #expect(sent > 0)
      #expect(rig.recorder.all.isEmpty)
      for _ in 0..<sent { #expect(rig.pair.far.receive() == pdu) }
      #expect(await rig.recorder.first(1) == [.writable])
      let last = try await rig.loop.run { rig.channel.send([0x52]) }
      #expect(last == .sent)
      #expect(rig.pair.far.receive() == [0x52], "of the PDUs that were refused nothing had left")
      #expect(rig.recorder.all == [.writable])
    }
  }

  @Test(arguments: [ENOBUFS, ENOMEM])
  func aChannelThatTheSystemHasNoMemoryForSaysWhenToAskAgain(error: Int32) async throws {
    try await withChannel { rig in
      let begun = rig.loop.now
      try await rig.loop.run {
        // Refused twice, as a full host does with each PDU: one word is enough for all of them.
        #expect(rig.channel.port.simulateRefusal(error) == .later)
        #expect(rig.channel.port.simulateRefusal(error) == .later)
        #expect(rig.recorder.all.isEmpty, "never inside the call")
      }
      #expect(await rig.recorder.first(1) == [.writable])
      #expect(begun.duration(to: rig.loop.now) >= .milliseconds(20), "no busy loop")
      try await rig.loop.run {
        #expect(rig.loop.timerCount == 0)
        #expect(rig.channel.send([1]) == .sent)
      }
      #expect(rig.recorder.all == [.writable])
    }
  }

  @Test func aChannelThatIsClosedWhileItWaitsForMemorySaysNothingMore() async throws {
    try await withChannel { rig in
      try await rig.loop.run {
        #expect(rig.channel.port.simulateRefusal(ENOBUFS) == .later)
        #expect(rig.loop.timerCount == 1)
        rig.channel.close()
        #expect(rig.loop.timerCount == 0)
      }
      #expect(await rig.recorder.first(1) == [.closed(LinkLoss(.requested))])
    }
  }

  /// Two answers lie in the socket: the second is one too many, and not the answer to what is asked after the first.
  @Test func whatHasArrivedIsReadBeforeTheWorkThatItBrings() async throws {
    try await withChannel { rig in
      let seen = Facts<Int>()
      rig.recorder.replyOnEach { [recorder = rig.recorder, loop = rig.loop] _ in
        loop.post { seen.add(recorder.all.count) }
      }
      try await rig.loop.run { for _ in 0..<2 { rig.pair.far.send([0x13]) } }
      #expect(await seen.first(2) == [2, 2])
      rig.recorder.replyOnEach(nil)
    }
  }

  @Test func endOfFileComesAfterEverythingThatWasSentBefore() async throws {
    try await withChannel { rig in
      for number in UInt8(0)..<20 { rig.pair.far.send([number]) }
      rig.pair.far.close()
      let all = await rig.recorder.first(21)
      #expect(all.dropLast() == (UInt8(0)..<20).map { .pdu([$0]) }[...])
      #expect(all.last == .closed(LinkLoss(.unknown, evidence: [.endOfFile])))
      try await rig.loop.run {
        #expect(rig.channel.send([1]) == .failed(EBADF))
        #expect(rig.loop.descriptorCount == 0)
      }
    }
  }

  @Test func anAnswerThatArrivedBeforeAResetIsDeliveredBeforeTheEnd() async throws {
    try await withChannel { rig in
      try await rig.loop.run {
        // The far end leaves our request unread, so its close is a reset that overtakes its own last PDU.
        #expect(rig.channel.send([0x0A, 1, 0]) == .sent)
        rig.pair.far.send([0x0B, 42])
        rig.pair.far.close()
      }
      let all = await rig.recorder.first(2)
      #expect(
        all == [
          .pdu([0x0B, 42]),
          .closed(LinkLoss(.unknown, evidence: [.system(ECONNRESET, call: .receive)])),
        ])
    }
  }

  @Test func theErrorOfASendIsAmongTheEvidence() async throws {
    try await withChannel { rig in
      try await rig.loop.run {
        rig.pair.far.close()
        #expect(rig.channel.send([1]) == .failed(EPIPE))
      }
      let loss = LinkLoss(.unknown, evidence: [.system(EPIPE, call: .send), .endOfFile])
      #expect(await rig.recorder.first(1) == [.closed(loss)])
    }
  }

  @Test func closeIsPostedAndNothingElseFollows() async throws {
    try await withChannel { rig in
      try await rig.loop.run {
        rig.pair.far.send([1])
        rig.channel.close()
        rig.channel.close()
        #expect(rig.recorder.all.isEmpty, "never inside the call")
        #expect(rig.channel.send([2]) == .failed(EBADF))
      }
      #expect(await rig.recorder.first(1) == [.closed(LinkLoss(.requested))])
      #expect(rig.pair.far.receive() == [])
      try await rig.loop.run {}
      #expect(rig.recorder.all.count == 1)
    }
  }

  @Test func closingAChannelThatWasNeverOpenedClosesItsDescriptor() async throws {
    try await withChannel(opens: false) { rig in
      try await rig.loop.run { rig.channel.close() }
      #expect(rig.pair.far.receive() == [])
    }
  }

  @Test func aDroppedChannelEndsItsLink() async throws {
    try await withLoop { loop in
      let pair = try SocketPair()
      let recorder = ChannelRecorder()
      try await loop.run {
        let channel = SeqPacketChannel(adopting: OwnedDescriptor(adopting: pair.near), on: loop)
        channel.open(recorder)
        #expect(loop.descriptorCount == 1)
      }
      try await loop.run { #expect(loop.descriptorCount == 0) }
      #expect(pair.far.receive() == [])
    }
  }

  @Test func aChannelWhoseReceiverIsGoneEndsWithTheNextPDU() async throws {
    try await withLoop { loop in
      let pair = try SocketPair()
      let channel = SeqPacketChannel(adopting: OwnedDescriptor(adopting: pair.near), on: loop)
      try await loop.run { channel.open(ChannelRecorder()) }
      pair.far.send([1])
      #expect(pair.far.receive() == [])
    }
  }

  @Test func aTalkativeChannelDoesNotKeepJobsWaiting() async throws {
    try await withChannel { rig in
      rig.recorder.replyOnEach { rig.pair.far.send([$0]) }
      rig.pair.far.send([0])
      for _ in 0..<100 { try await rig.loop.run {} }
      _ = await rig.recorder.first(100)
      rig.recorder.replyOnEach(nil)
    }
  }
}

// MARK: - Helpers

enum ChannelDelivery: Equatable, Sendable {
  case pdu([UInt8])
  case writable
  case closed(LinkLoss)
}

final class ChannelRecorder: PDUChannelHandler {
  private let facts = Facts<ChannelDelivery>()
  private let reply = Locked<(@Sendable (UInt8) -> Void)?>(nil)

  var all: [ChannelDelivery] { facts.all }
  func first(_ count: Int) async -> [ChannelDelivery] { await facts.first(count) }

  func replyOnEach(_ action: (@Sendable (UInt8) -> Void)?) {
    reply.withLock { $0 = action }
  }

  func channelReceived(_ pdu: borrowing RawSpan) {
    let bytes = pdu.withUnsafeBytes { Array($0) }
    reply.withLock { $0 }?(bytes.first ?? 0)
    facts.add(.pdu(bytes))
  }

  func channelWritable() { facts.add(.writable) }

  func channelClosed(_ loss: LinkLoss) { facts.add(.closed(loss)) }
}

/// A channel over one end of a socket pair, and the other end.
final class ChannelRig: Sendable {
  let loop: RadioLoop
  let channel: SeqPacketChannel
  let recorder = ChannelRecorder()
  let pair: SocketPair

  init(_ loop: RadioLoop) throws {
    self.loop = loop
    pair = try SocketPair()
    channel = SeqPacketChannel(adopting: OwnedDescriptor(adopting: pair.near), on: loop)
  }

  func open() async throws {
    try await loop.run { self.channel.open(self.recorder) }
  }
}

func withChannel(opens: Bool = true, _ body: (ChannelRig) async throws -> Void) async throws {
  try await withLoop { loop in
    let rig = try ChannelRig(loop)
    if opens { try await rig.open() }
    try await body(rig)
  }
}
