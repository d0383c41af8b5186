internal import Relink

/// The rules that every `PDUChannel` keeps, whatever carries it.
///
/// It works on a manual executor and on an event loop, and depends on no test library, so a program may run it on
/// another machine.
public enum PDUChannelContract {
  typealias Check = @Sendable (ChannelBench) async throws -> Void

  /// Tries the rules, each on a channel of its own.
  ///
  /// - Parameters:
  ///   - environment: The implementation.
  ///   - names: The rules to try; nil for all.
  /// - Returns: What came out.
  public static func check(
    _ environment: any ChannelContractEnvironment, only names: Set<String>? = nil
  ) async -> ContractReport {
    await runChecks("PDUChannel", names, checks) { body in
      let bench = ChannelBench(environment, try await environment.connect())
      let result: Result<Void, any Error>
      do {
        try await body(bench)
        result = .success(())
      } catch { result = .failure(error) }
      await bench.finish()
      // The cause of whatever else went wrong.
      try require(
        bench.recorder.deliveriesInsideCalls == 0, "something was delivered inside the call that caused it")
      try result.get()
    }
  }

  /// The names of the rules.
  public static var names: [String] { checks.map(\.name) }

  private static let checks: [(name: String, body: Check)] = [
    ("carriesPDUsWholeAndInOrderFromTheDevice", fromDevice),
    ("carriesPDUsWholeAndInOrderToTheDevice", toDevice),
    ("keepsWhatComesBeforeItIsOpened", beforeOpen),
    ("carriesTheLongestPDU", longest),
    ("closesOnceWhenTheDeviceEndsIt", endedThere),
    ("closesOnceWhenItIsEndedHere", endedHere),
    ("deliversNothingButClosedAfterClose", silentAfterClose),
    ("takesNothingOnceClosed", takesNothing),
    ("saysLaterWhenFullAndThenWritable", flowControl),
    ("holdsItsHandlerWeakly", holdsWeakly),
  ]

  private static let samples: [[UInt8]] = [
    [0x1B, 0x10, 0x00, 0x01], [0x0B], [0x1B, 0x10, 0x00] + Array(0..<20),
  ]

  private static func fromDevice(_ bench: ChannelBench) async throws {
    await bench.open()
    for pdu in samples { await bench.far.send(pdu) }
    await bench.settle(untilReceived: samples.count)
    try require(bench.recorder.received == samples, "what came was \(bench.recorder.received)")
  }

  private static func toDevice(_ bench: ChannelBench) async throws {
    await bench.open()
    for pdu in samples {
      let result = await bench.send(pdu)
      try require(result == .sent, "a PDU was not taken: \(result)")
    }
    let received = await bench.arrived(samples.count)
    try require(received == samples, "what arrived was \(received)")
  }

  private static func beforeOpen(_ bench: ChannelBench) async throws {
    for pdu in samples { await bench.far.send(pdu) }
    await bench.driver.settle()
    await bench.open()
    await bench.settle(untilReceived: samples.count)
    try require(bench.recorder.received == samples, "what came was \(bench.recorder.received)")
  }

  private static func longest(_ bench: ChannelBench) async throws {
    await bench.open()
    let length = await bench.driver.perform { [channel = bench.channel] in channel.maximumPDULength }
    try require(length >= 23, "the longest PDU is \(length) bytes")
    let pdu = [0x52, 0x10, 0x00] + (3..<length).map { UInt8(truncatingIfNeeded: $0) }
    let result = await bench.send(pdu)
    try require(result == .sent, "a PDU of \(length) bytes was not taken: \(result)")
    await bench.far.send(pdu)
    await bench.settle(untilReceived: 1)
    let received = await bench.arrived(1)
    try require(received == [pdu], "what arrived has \(received.map(\.count)) bytes, not \(length)")
    try require(
      bench.recorder.received == [pdu], "what came has \(bench.recorder.received.map(\.count)) bytes")
  }

  private static func endedThere(_ bench: ChannelBench) async throws {
    await bench.open()
    await bench.far.send(samples[0])
    await bench.settle(untilReceived: 1)
    await bench.far.end()
    try await bench.closed()
    await bench.driver.settle()
    try require(
      bench.recorder.closings.count == 1, "the channel was closed \(bench.recorder.closings.count) times")
    await bench.close()
    await bench.driver.settle()
    try require(bench.recorder.closings.count == 1, "the channel was closed once more from here")
    try require(bench.recorder.received == [samples[0]], "what came was \(bench.recorder.received)")
  }

  private static func endedHere(_ bench: ChannelBench) async throws {
    await bench.open()
    await bench.close()
    await bench.close()
    try await bench.closed()
    await bench.far.end()
    await bench.driver.settle()
    try require(
      bench.recorder.closings.count == 1, "the channel was closed \(bench.recorder.closings.count) times")
    let reason = bench.recorder.closings.first?.reason
    try require(
      reason == .requested, "a channel that was closed here ended with \(String(describing: reason))")
  }

  private static func silentAfterClose(_ bench: ChannelBench) async throws {
    await bench.open()
    await bench.far.send(samples[0])
    await bench.close()
    let before = bench.recorder.received.count
    await bench.far.send(samples[1])
    try await bench.closed()
    await bench.far.send(samples[2])
    await bench.driver.settle()
    let after = bench.recorder.received.dropFirst(before)
    try require(after.isEmpty, "behind `close()` came \(Array(after))")
    try require(bench.recorder.isSilentBehindClosed, "something was delivered behind the last word")
  }

  private static func takesNothing(_ bench: ChannelBench) async throws {
    await bench.open()
    await bench.close()
    let closing = await bench.send(samples[0])
    try require(closing.isFailure, "a channel that is closing took a PDU: \(closing)")
    try await bench.closed()
    let closed = await bench.send(samples[0])
    try require(closed.isFailure, "a closed channel took a PDU: \(closed)")
    await bench.driver.settle()
    let received = await bench.far.received()
    try require(received.isEmpty, "what arrived was \(received)")
  }

  private static func flowControl(_ bench: ChannelBench) async throws {
    await bench.open()
    guard await bench.far.setStalled(true) else {
      throw ContractEnd.skipped("the channel cannot be filled")
    }
    var taken: [[UInt8]] = []
    var end = PDUSendResult.sent
    // A system buffers some PDUs; that it takes a million of them without a reader is a fault of its own.
    for number in 0..<1_000_000 {
      let pdu = [0x52, 0x10, 0x00, UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
      end = await bench.send(pdu)
      guard end == .sent else { break }
      taken.append(pdu)
    }
    try require(end == .later, "a full channel said \(end)")
    try require(bench.recorder.writables == 0, "a full channel said that it is writable")
    _ = await bench.far.setStalled(false)
    let came = await bench.driver.wait { [recorder = bench.recorder] in recorder.writables > 0 }
    try require(came, "a channel that said `later` was not writable again")
    let received = await bench.arrived(taken.count)
    try require(received == taken, "\(taken.count) PDUs were taken and \(received.count) arrived")
    let next = await bench.send(samples[0])
    try require(next == .sent, "a writable channel said \(next)")
  }

  private static func holdsWeakly(_ bench: ChannelBench) async throws {
    weak var held: ChannelRecorder?
    do {
      let passing = ChannelRecorder()
      held = passing
      await bench.driver.perform { [channel = bench.channel] in channel.open(passing) }
      await bench.driver.settle()
    }
    try require(held == nil, "the channel keeps its handler alive")
  }
}

extension PDUSendResult {
  fileprivate var isFailure: Bool { if case .failed = self { true } else { false } }
}
