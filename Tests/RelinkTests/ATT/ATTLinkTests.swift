import BluetoothWire
import Relink
import RelinkTesting
import Testing

@Suite struct ATTLinkTests {
  private var bench = ATTBench(to: .standard())

  // MARK: Accepted, later, refused

  @Test mutating func readIsSentAndAnswered() {
    #expect(bench.perform(.read(.level)) == .accepted)
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0x00]])
    #expect(bench.recorder.take() == [])
    bench.receive([0x0B, 0x2A])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.value([0x2A])))])
  }

  @Test mutating func writeIsSentAndAnswered() {
    #expect(bench.perform(.write(.level, [1, 2])) == .accepted)
    #expect(bench.channel.takeSent() == [[0x12, 0x10, 0x00, 1, 2]])
    bench.receive([0x13])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.done))])
    _ = bench.perform(.write(.level, [3]))
    bench.receive([0x01, 0x12, 0x10, 0x00, 0x80])
    #expect(
      bench.recorder.take()
        == [.answered(bench.latest, .failure(.rejected(ATTErrorCode(rawValue: 0x80))))])
  }

  @Test mutating func oneRequestAtATime() {
    _ = bench.perform(.read(.level))
    #expect(bench.perform(.read(.location)) == .later)
    #expect(bench.perform(.exchangeMTU) == .later)
    #expect(bench.perform(.discover) == .later)
    #expect(bench.channel.takeSent().count == 1)
    bench.receive([0x0B])
    #expect(bench.perform(.read(.location)) == .accepted)
    #expect(bench.channel.takeSent() == [[0x0A, 0x23, 0x00]])
  }

  @Test mutating func nextRequestMayBeMadeInsideAnAnswer() {
    let link = bench.link
    bench.recorder.react { delivery in
      guard case .answered(RequestID(rawValue: 2), _) = delivery else { return }
      #expect(link.perform(.read(.location), id: RequestID(rawValue: 9)) == .accepted)
    }
    _ = bench.perform(.read(.level))
    bench.receive([0x0B, 1])
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0x00], [0x0A, 0x23, 0x00]])
    bench.receive([0x0B, 2])
    #expect(
      bench.recorder.take() == [
        .answered(RequestID(rawValue: 2), .success(.value([1]))),
        .answered(RequestID(rawValue: 9), .success(.value([2]))),
      ])
  }

  @Test mutating func fullChannelTakesNothingAndSaysWhenItDoes() {
    bench.channel.answerSends(with: .later)
    #expect(bench.perform(.read(.level)) == .later)
    #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .later)
    #expect(bench.channel.takeSent() == [])
    bench.becomeWritable()
    #expect(bench.recorder.take() == [.writable])
    bench.becomeWritable()
    #expect(bench.recorder.take() == [])
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  @Test mutating func systemErrorRefusesAndLeavesNothingBehind() {
    bench.channel.answerNextSends(with: [.failed(107), .failed(11)])
    #expect(bench.perform(.read(.level)) == .refused(.system(107)))
    #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .refused(.system(11)))
    #expect(bench.perform(.read(.level)) == .accepted)
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [bench.latest])])
  }

  @Test func securityIsWhatTheChannelSaysAtThatMoment() {
    for level in [.none, .encrypted, .secureConnections, .none] as [SecurityLevel] {
      bench.channel.security = level
      #expect(bench.link.capabilities.security == level)
    }
  }

  @Test mutating func namesThatTheTableDoesNotHaveAreRefused() {
    let unknown = Characteristic(.batteryLevel, in: .battery, occurrence: 1)
    for request in [
      .read(unknown), .write(unknown, []), .writeLong(unknown, []), .writeWithoutResponse(unknown, []),
      .setNotifying(unknown, true), .writeReliably([ReliableWrite(.level, []), ReliableWrite(unknown, [])]),
    ] as [GATTRequest] {
      #expect(bench.perform(request) == .refused(.characteristicNotFound))
    }
    #expect(bench.channel.takeSent() == [])
  }

  @Test mutating func namesWithoutTheServiceWillDo() {
    #expect(bench.perform(.read(Characteristic(.batteryLevel))) == .accepted)
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0x00]])
  }

  @Test func nothingIsLookedUpBeforeTheTableIsKnownOnThisLink() {
    var fresh = ATTBench(tables: bench.tables)
    #expect(fresh.perform(.read(.level)) == .later)
    #expect(fresh.perform(.setNotifying(.level, true)) == .later)
    #expect(fresh.channel.takeSent() == [])
  }

  @Test mutating func valuesThatDoNotFitAreRefused() {
    let value = [UInt8](repeating: 1, count: 21)
    #expect(bench.perform(.write(.level, value)) == .refused(.valueTooLong(limit: 20)))
    #expect(bench.perform(.writeWithoutResponse(.level, value)) == .refused(.valueTooLong(limit: 20)))
    #expect(
      bench.perform(.writeLong(.level, [UInt8](repeating: 1, count: 513)))
        == .refused(.valueTooLong(limit: 512)))
    #expect(bench.channel.takeSent() == [])
    #expect(bench.perform(.write(.level, Array(value[..<20]))) == .accepted)
  }

  // MARK: Writes without response

  @Test mutating func writeWithoutResponseGoesBesideARequestAndIsAnsweredLater() {
    _ = bench.perform(.read(.level))
    #expect(bench.perform(.writeWithoutResponse(.level, [7])) == .accepted)
    let first = bench.latest
    #expect(bench.perform(.writeWithoutResponse(.level, [8])) == .accepted)
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0], [0x52, 0x10, 0, 7], [0x52, 0x10, 0, 8]])
    #expect(bench.recorder.take() == [])
    bench.executor.run()
    #expect(
      bench.recorder.take()
        == [.answered(first, .success(.done)), .answered(bench.latest, .success(.done))])
  }

  @Test mutating func closeBeforeTheAnswerOfAWriteWithoutResponseLeavesItInDoubt() {
    _ = bench.perform(.writeWithoutResponse(.level, [7]))
    let id = bench.latest
    bench.close()
    bench.executor.run()
    #expect(bench.recorder.take() == [])
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [id])])
  }

  @Test mutating func closeInsideAnAnswerLeavesTheOthersInDoubt() {
    let link = bench.link
    bench.recorder.react { if case .answered = $0 { link.close() } }
    _ = bench.perform(.writeWithoutResponse(.level, [7]))
    let first = bench.latest
    _ = bench.perform(.writeWithoutResponse(.level, [8]))
    bench.executor.run()
    bench.lose()
    #expect(
      bench.recorder.take()
        == [.answered(first, .success(.done)), .closed(.lost, inDoubt: [bench.latest])])
  }

  // MARK: Subscriptions

  @Test(
    arguments: [
      (Characteristic.level, true, [0x12, 0x11, 0, 1, 0]), (.level, false, [0x12, 0x11, 0, 0, 0]),
      (.beat, true, [0x12, 0x21, 0, 2, 0]), (.beat, false, [0x12, 0x21, 0, 0, 0]),
    ] as [(Characteristic, Bool, [UInt8])])
  mutating func subscriptionWritesTheConfiguration(_ name: Characteristic, _ isOn: Bool, _ bytes: [UInt8]) {
    #expect(bench.perform(.setNotifying(name, isOn)) == .accepted)
    #expect(bench.channel.takeSent() == [bytes])
    bench.receive([0x13])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.done))])
  }

  @Test mutating func characteristicWithoutConfigurationCannotNotify() {
    #expect(bench.perform(.setNotifying(.location, true)) == .refused(.cannotNotify))
  }

  /// B15.
  @Test mutating func valueBeforeTheConfigurationIsAcknowledgedIsDelivered() {
    let now = bench.executor.timestamp()
    _ = bench.perform(.setNotifying(.level, true))
    bench.receive([0x1B, 0x10, 0x00, 0x41])
    bench.receive([0x13])
    bench.receive([0x1B, 0x10, 0x00, 0x42])
    #expect(
      bench.recorder.take() == [
        .value([0x41], .level, now), .answered(bench.latest, .success(.done)), .value([0x42], .level, now),
      ])
  }

  // MARK: Values

  @Test mutating func severalValuesInOnePDU() {
    let now = bench.executor.timestamp()
    bench.receive([0x23, 0x10, 0, 1, 0, 0x41, 0x99, 0, 0, 0, 0x20, 0, 2, 0, 0x42, 0x43])
    #expect(bench.recorder.take() == [.value([0x41], .level, now), .value([0x42, 0x43], .beat, now)])
    #expect(bench.link.droppedValueCount == 1)
  }

  @Test mutating func closeBetweenTwoValuesOfOnePDUStopsThem() {
    let link = bench.link
    bench.recorder.react { _ in link.close() }
    bench.receive([0x23, 0x10, 0, 1, 0, 0x41, 0x20, 0, 2, 0, 0x42, 0x43])
    #expect(bench.recorder.take().count == 1)
  }

  @Test mutating func indicationIsConfirmedOnceAndDelivered() {
    let now = bench.executor.timestamp()
    bench.receive([0x1D, 0x20, 0x00, 5])
    #expect(bench.channel.takeSent() == [[0x1E]])
    #expect(bench.recorder.take() == [.value([5], .beat, now)])
  }

  @Test mutating func confirmationsThatFindNoRoomGoOutFirst() {
    bench.channel.answerSends(with: .later)
    bench.receive([0x1D, 0x20, 0x00, 5])
    bench.receive([0x1D, 0x20, 0x00, 6])
    #expect(bench.recorder.take().count == 2)
    #expect(bench.perform(.read(.level)) == .later)
    bench.becomeWritable()
    #expect(bench.channel.takeSent() == [[0x1E], [0x1E]])
    #expect(bench.recorder.take() == [.writable])
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  @Test mutating func confirmationThatTheSystemRefusedIsSentWithTheNextEvent() {
    bench.channel.answerNextSends(with: [.failed(107)])
    bench.receive([0x1D, 0x20, 0x00, 5])
    #expect(bench.channel.takeSent() == [])
    bench.receive([0x1B, 0x10, 0x00, 1])
    #expect(bench.channel.takeSent() == [[0x1E]])
  }

  // MARK: The device as a client

  @Test func requestsOfTheDeviceAreAnswered() {
    bench.receive([0x02, 0x17, 0x00])
    bench.receive([0x0A, 0x01])
    bench.receive([0x3F])
    bench.receive([0x7F, 1, 2])
    bench.receive([0x52, 0x01, 0x00, 1])
    #expect(
      bench.channel.takeSent()
        == [[0x01, 0x02, 0, 0, 0x06], [0x01, 0x0A, 0, 0, 0x04], [0x01, 0x3F, 0, 0, 0x06]])
    #expect(bench.recorder.take() == [])
    #expect(bench.channel.closes == 0)
  }

  @Test func deviceThatFloodsAFullChannelLosesIt() {
    bench.channel.answerSends(with: .later)
    for _ in 0..<9 { bench.receive([0x0A, 0x01, 0x00]) }
    #expect(bench.channel.closes == 1)
    bench.lose()
    let evidence: [Evidence] = [
      .observation("more than 8 answers owed on a full channel"), .system(110, call: .receive),
    ]
    #expect(bench.recorder.take() == [.closed(LinkLoss(.protocolViolation, evidence: evidence), inDoubt: [])])
  }

  // MARK: The end

  @Test mutating func closeIsFollowedByNothingButClosed() {
    _ = bench.perform(.read(.level))
    bench.close()
    bench.close()
    #expect(bench.channel.closes == 1)
    #expect(bench.perform(.read(.level)) == .refused(.linkClosed))
    bench.receive([0x0B, 1])
    bench.receive([0x1B, 0x10, 0x00, 0x41])
    bench.becomeWritable()
    bench.abandon(RequestID(rawValue: 2))
    bench.executor.advance(by: .seconds(60))
    #expect(bench.recorder.take() == [])
    #expect(bench.link.counters.swallowed == 2)
    bench.lose(LinkLoss(.requested))
    bench.lose()
    #expect(bench.recorder.take() == [.closed(LinkLoss(.requested), inDoubt: [RequestID(rawValue: 2)])])
    #expect(bench.executor.timerCount == 0)
    bench.close()
    #expect(bench.channel.closes == 1)
  }

  @Test mutating func lossWithNothingOutstandingLeavesNothingInDoubt() {
    _ = bench.perform(.read(.level))
    bench.receive([0x0B, 1])
    _ = bench.recorder.take()
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [])])
    #expect(bench.perform(.read(.level)) == .refused(.linkClosed))
    #expect(bench.executor.timerCount == 0)
  }

  @Test func handlerIsHeldWeakly() {
    let channel = ScriptedChannel(maximumPDULength: 23)
    var recorder: DeliveryRecorder? = DeliveryRecorder()
    weak let held = recorder
    let executor = ManualExecutor()
    guard let handler = recorder else { return }
    let link = ATTLink(
      id: LinkID(rawValue: 1), over: channel, on: executor, for: handler, tables: AttributeTableMemory())
    link.start()
    recorder = nil
    _ = consume handler
    #expect(held == nil)
    channel.handler?.channelClosed(.lost)
  }
}
