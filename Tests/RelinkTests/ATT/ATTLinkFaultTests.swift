import BluetoothWire
import Relink
import Testing

/// Timeouts, violations, MTU: what ends a bearer, and what it says then.
@Suite struct ATTLinkFaultTests {
  private var bench = ATTBench(to: .standard())

  // MARK: Case B04

  @Test mutating func nothingGoesOutAfterATransactionTimeout() {
    _ = bench.perform(.read(.level))
    let first = bench.latest
    bench.executor.advance(by: .seconds(29))
    #expect(bench.channel.closes == 0)
    bench.executor.advance(by: .seconds(1))
    #expect(bench.channel.closes == 1)
    #expect(bench.channel.takeSent().count == 1)
    #expect(bench.perform(.read(.location)) == .refused(.linkClosed))
    #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .refused(.linkClosed))
    bench.receive([0x0B, 0xAA])
    bench.receive([0x0B, 0xBB])
    bench.receive([0x1D, 0x20, 0x00, 1])
    #expect(bench.channel.takeSent() == [])
    #expect(bench.recorder.take() == [])
    #expect(bench.link.counters.swallowed == 3)
    bench.lose(LinkLoss(.localHostTerminated, evidence: [.hci(HCIErrorCode(rawValue: 0x16))]))
    let evidence: [Evidence] = [
      .observation("request 0x0A was not answered within 30 s"), .hci(HCIErrorCode(rawValue: 0x16)),
    ]
    #expect(
      bench.recorder.take() == [.closed(LinkLoss(.transactionTimeout, evidence: evidence), inDoubt: [first])])
  }

  @Test mutating func lateAnswerToAnAbandonedReadIsNotTheNextOnes() {
    _ = bench.perform(.read(.level))
    let first = bench.latest
    bench.abandon(first)
    #expect(bench.perform(.read(.location)) == .later)
    bench.receive([0x0B, 0xAA])
    #expect(bench.recorder.take() == [.answered(first, .success(.value([0xAA])))])
    #expect(bench.perform(.read(.location)) == .accepted)
    bench.receive([0x0B, 0xBB])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.value([0xBB])))])
    #expect(bench.link.counters.swallowed == 1)
  }

  @Test mutating func abandonedReadThatIsNeverAnsweredEndsTheLink() {
    _ = bench.perform(.read(.level))
    bench.abandon(bench.latest)
    bench.executor.advance(by: .seconds(30))
    #expect(bench.channel.closes == 1)
  }

  @Test mutating func answeredRequestsCostNoTimer() {
    for _ in 0..<100 {
      _ = bench.perform(.read(.level))
      #expect(bench.executor.timerCount == 1)
      bench.receive([0x0B])
      bench.executor.advance(by: .milliseconds(100))
    }
    bench.executor.advance(by: .seconds(60))
    #expect(bench.executor.timerCount == 0)
    #expect(bench.channel.closes == 0)
  }

  @Test mutating func eachRequestHasItsOwn30Seconds() {
    _ = bench.perform(.read(.level))
    bench.executor.advance(by: .seconds(20))
    bench.receive([0x0B])
    _ = bench.perform(.read(.level))
    bench.executor.advance(by: .seconds(29))
    #expect(bench.channel.closes == 0)
    bench.executor.advance(by: .seconds(1))
    #expect(bench.channel.closes == 1)
  }

  // MARK: Violations

  /// A request that found no room has no transaction yet, and nobody but this limit would end it.
  @Test mutating func channelThatTakesNothingFor30SecondsEndsTheLink() {
    bench.channel.answerSends(with: .later)
    #expect(bench.perform(.read(.level)) == .later)
    bench.executor.advance(by: .seconds(10))
    // It says that it has room, and has none.
    bench.channel.handler?.channelWritable()
    #expect(bench.perform(.read(.level)) == .later)
    bench.executor.advance(by: .seconds(20) - .nanoseconds(1))
    #expect(bench.channel.closes == 0)
    bench.executor.advance(by: .nanoseconds(1))
    #expect(bench.channel.closes == 1)
    #expect(bench.perform(.read(.level)) == .refused(.linkClosed))
    bench.lose()
    let evidence = Evidence.observation("the channel took nothing for 30 s")
    #expect(
      bench.recorder.take().last
        == .closed(
          LinkLoss(.transactionTimeout, evidence: [evidence] + LinkLoss.lost.evidence), inDoubt: []))
  }

  @Test mutating func channelThatTakesSomethingNowAndThenIsNotBlocked() {
    for _ in 0..<4 {
      bench.channel.answerSends(with: .later)
      #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .later)
      bench.executor.advance(by: .seconds(20))
      bench.becomeWritable()
      #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .accepted)
      bench.executor.run()
    }
    #expect(bench.channel.closes == 0)
  }

  @Test mutating func answerWithoutARequestEndsTheLink() {
    bench.receive([0x0B, 1])
    #expect(bench.channel.closes == 1)
    #expect(bench.recorder.take() == [])
    bench.lose()
    let evidence: [Evidence] = [
      .observation("response 0x0B without a request"), .system(110, call: .receive),
    ]
    #expect(bench.recorder.take() == [.closed(LinkLoss(.protocolViolation, evidence: evidence), inDoubt: [])])
  }

  @Test mutating func answerToAnotherRequestReachesNobodyAndLeavesTheRequestInDoubt() {
    _ = bench.perform(.write(.level, [1]))
    bench.receive([0x0B, 1])
    #expect(bench.channel.closes == 1)
    #expect(bench.recorder.take() == [])
    bench.lose()
    let evidence: [Evidence] = [
      .observation("response 0x0B to request 0x12"), .system(110, call: .receive),
    ]
    #expect(
      bench.recorder.take()
        == [.closed(LinkLoss(.protocolViolation, evidence: evidence), inDoubt: [bench.latest])])
  }

  @Test mutating func malformedAnswerIsSaidAndEndsTheLink() {
    _ = bench.perform(.write(.level, [1]))
    bench.receive([0x13, 0x00])
    #expect(bench.channel.closes == 1)
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.malformedAnswer))])
    bench.lose()
    let evidence: [Evidence] = [.observation("malformed response 0x13"), .system(110, call: .receive)]
    #expect(bench.recorder.take() == [.closed(LinkLoss(.protocolViolation, evidence: evidence), inDoubt: [])])
  }

  @Test mutating func closeAfterAViolationKeepsItsReason() {
    bench.receive([0x13])
    bench.close()
    #expect(bench.channel.closes == 1)
    bench.lose(LinkLoss(.requested))
    #expect(
      bench.recorder.take() == [
        .closed(
          LinkLoss(.protocolViolation, evidence: [.observation("response 0x13 without a request")]),
          inDoubt: [])
      ])
  }

  // MARK: PDUs longer than the MTU

  @Test mutating func valueLongerThanTheMTUIsSwallowed() {
    bench.receive([0x1B, 0x10, 0x00] + [UInt8](repeating: 1, count: 21))
    bench.receive([0x1D, 0x20, 0x00] + [UInt8](repeating: 1, count: 21))
    #expect(bench.recorder.take() == [])
    #expect(bench.channel.takeSent() == [[0x1E]])
    #expect(bench.link.counters.malformed == 2)
    #expect(bench.channel.closes == 0)
  }

  @Test mutating func answerLongerThanTheMTUEndsTheLink() {
    _ = bench.perform(.read(.level))
    bench.receive([0x0B] + [UInt8](repeating: 1, count: 23))
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.malformedAnswer))])
    #expect(bench.channel.closes == 1)
  }

  // MARK: Case B13

  /// One link of the case: what the device answers to `02 cb 00`, and the MTU that is then in force.
  @Test(
    arguments: [([0x03, 0xCB, 0x00], 203), ([0x03, 0x17, 0x00], 23), ([0x01, 0x02, 0, 0, 0x06], 23)]
      as [([UInt8], Int)])
  func mtuIsThatOfTheLink(_ answer: [UInt8], _ mtu: Int) {
    // The link before it agreed on more; what is remembered of the device does not include that.
    var before = ATTBench(maximumPDULength: 203, tables: bench.tables)
    _ = before.perform(.exchangeMTU)
    before.receive([0x03, 0xCB, 0x00])

    var bench = ATTBench(maximumPDULength: 203, tables: bench.tables)
    #expect(bench.link.capabilities.mtu == 23)
    #expect(bench.perform(.exchangeMTU) == .accepted)
    #expect(bench.channel.takeSent() == [[0x02, 0xCB, 0x00]])
    bench.receive(answer)
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.mtu(mtu)))])
    #expect(bench.link.capabilities.mtu == mtu)

    bench.discover(.standard())
    let value = [UInt8](repeating: 9, count: 100)
    if mtu == 23 {
      #expect(bench.perform(.write(.level, value)) == .refused(.valueTooLong(limit: 20)))
      #expect(bench.channel.takeSent() == [])
    } else {
      #expect(bench.perform(.write(.level, value)) == .accepted)
      #expect(bench.channel.takeSent() == [[0x12, 0x10, 0x00] + value])
    }
  }

  @Test func deviceThatNeverAnswersTheExchangeLosesTheLink() {
    var bench = ATTBench(maximumPDULength: 203)
    _ = bench.perform(.exchangeMTU)
    bench.executor.advance(by: .seconds(30))
    #expect(bench.channel.closes == 1)
    bench.lose()
    guard case .closed(let loss, inDoubt: [bench.latest])? = bench.recorder.take().first else {
      Issue.record("not closed")
      return
    }
    #expect(loss.reason == .transactionTimeout)
  }

  @Test(arguments: [(23, 23), (10, 23), (185, 185), (517, 517), (65_535, 517)])
  func offerIsWhatTheChannelCarries(_ channel: Int, _ offered: UInt16) {
    var bench = ATTBench(maximumPDULength: channel)
    _ = bench.perform(.exchangeMTU)
    #expect(bench.channel.takeSent() == [ATTPDU.exchangeMTURequest(mtu: offered).encoded()])
  }

  @Test mutating func exchangeHappensOncePerLink() {
    _ = bench.perform(.exchangeMTU)
    bench.receive([0x03, 0x40, 0x00])
    _ = bench.recorder.take()
    _ = bench.channel.takeSent()
    #expect(bench.perform(.exchangeMTU) == .accepted)
    #expect(bench.channel.takeSent() == [])
    #expect(bench.recorder.take() == [])
    bench.executor.run()
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.mtu(64)))])
  }
}
