internal import Relink

/// The rules that every `Link` keeps, whatever carries it.
///
/// Each rule is tried against a device whose own counters are the judge. It works on a manual executor and on an event
/// loop, and depends on no test library, so a program may run it on another machine.
public enum LinkContract {
  typealias Check = @Sendable (ContractBench) async throws -> Void

  /// Tries the rules.
  ///
  /// - Parameters:
  ///   - environment: The implementation with its device.
  ///   - names: The rules to try; nil for all.
  /// - Returns: What came out.
  public static func check(
    _ environment: any ContractEnvironment, only names: Set<String>? = nil
  ) async -> ContractReport {
    await runChecks("Link", names, checks) { body in
      let bench = ContractBench(environment)
      try bench.register()
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
    ("answersAReadOnceWithItsValue", read),
    ("appliesAWriteOnceAndAnswersIt", write),
    ("appliesALongWriteWhole", writeLong),
    ("appliesSeveralValuesTogetherOrSaysThatItCannot", writeReliably),
    ("answersACommandOnceItWasHandedOver", command),
    ("deliversValuesThatWereAskedFor", values),
    ("passesOnTheErrorOfTheDevice", rejected),
    ("refusesAnUnknownName", unknownName),
    ("refusesAValueThatDoesNotFit", tooLong),
    ("takesNoMoreThanItSays", outstanding),
    ("keepsThePlaceOfAnAbandonedRequest", abandoned),
    ("dropsASecondAnswer", answeredTwice),
    ("closesOnceWhenTheDeviceEndsIt", endedThere),
    ("closesOnceWhenItIsEndedHere", endedHere),
    ("namesWhatIsInDoubt", inDoubt),
    ("deliversNothingButClosedAfterClose", silentAfterClose),
    ("refusesRequestsOnceClosed", refusesClosed),
  ]

  // MARK: - Requests

  private static func read(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    // Longer than the smallest PDU, so that a link has to ask twice where nobody raised the MTU.
    let value = (0..<60).map { UInt8($0) }
    await bench.peer.setValue(value)
    let answers = try await bench.answers(to: .read(bench.name), on: link)
    try require(answers == [.success(.value(value))], "the answers were \(answers)")
  }

  private static func write(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let before = await bench.peer.writes().count
    let answers = try await bench.answers(to: .write(bench.name, [1, 2, 3]), on: link)
    try require(answers == [.success(.done)], "the answers were \(answers)")
    let writes = await bench.peer.writes().dropFirst(before)
    try require(Array(writes) == [[1, 2, 3]], "the device applied \(Array(writes))")
  }

  private static func writeLong(_ bench: ContractBench) async throws {
    let link = try await bench.connect(withShortPDUs: true)
    let before = await bench.peer.writes().count
    let value = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
    let answer = try await bench.answer(.writeLong(bench.name, value), on: link)
    try require(answer == .success(.done), "the answer was \(answer)")
    let writes = await bench.peer.writes().dropFirst(before)
    try require(Array(writes) == [value], "the device applied \(writes.map(\.count)) bytes")
  }

  private static func writeReliably(_ bench: ContractBench) async throws {
    guard let second = bench.peer.secondCharacteristic else {
      throw ContractEnd.skipped("the device has one characteristic only")
    }
    let link = try await bench.connect(withShortPDUs: true)
    let before = await bench.peer.writes().count
    let values = [(0..<60).map { UInt8($0) }, [7]]
    let writes = [ReliableWrite(bench.name, values[0]), ReliableWrite(second, values[1])]
    let beyond = ReliableWrite(second, [UInt8](repeating: 7, count: 513))
    let cannot = await bench.perform(.writeReliably([]), on: link).1 == .refused(.notSupported)
    for (request, refusal) in [([], .noValues), ([writes[0], beyond], .valueTooLong(limit: 512))]
      as [([ReliableWrite], GATTRefusal)]
    {
      let (id, acceptance) = await bench.perform(.writeReliably(request), on: link)
      try require(
        acceptance == .refused(cannot ? .notSupported : refusal),
        "\(request.count) values that cannot be written were \(acceptance)")
      await bench.driver.settle()
      try require(bench.recorder.answers(to: id, on: link.id).isEmpty, "a refused request was answered")
    }
    try require(await bench.peer.writes().count == before, "the device applied something that was refused")
    guard !cannot else {
      let (_, acceptance) = await bench.perform(.writeReliably(writes), on: link)
      try require(acceptance == .refused(.notSupported), "a link that cannot do it was \(acceptance)")
      return
    }
    let answers = try await bench.answers(to: .writeReliably(writes), on: link)
    try require(answers == [.success(.done)], "the answers were \(answers)")
    let applied = await bench.peer.writes().dropFirst(before)
    try require(Array(applied) == values, "the device applied \(Array(applied))")
  }

  private static func command(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let before = await bench.peer.writes().count
    let answers = try await bench.answers(to: .writeWithoutResponse(bench.name, [4]), on: link)
    try require(answers == [.success(.done)], "the answers were \(answers)")
    let writes = await bench.peer.writes().dropFirst(before)
    try require(Array(writes) == [[4]], "the device applied \(Array(writes))")
  }

  private static func values(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    await bench.peer.notify([1])
    await bench.driver.settle()
    try require(bench.recorder.values(of: link.id).isEmpty, "a value came that nobody had asked for")
    let armed = try await bench.answer(.setNotifying(bench.name, true), on: link)
    try require(armed == .success(.done), "the subscription was answered with \(armed)")
    for value in [[2], [3], [4]] as [[UInt8]] { await bench.peer.notify(value) }
    _ = await bench.driver.wait { [recorder = bench.recorder] in recorder.values(of: link.id).count >= 3 }
    await bench.driver.settle()
    let values = bench.recorder.values(of: link.id)
    try require(values == [[2], [3], [4]], "the values that came were \(values)")
    let named = bench.recorder.deliveries(of: link.id).allSatisfy {
      if case .value(_, _, let name) = $0 { name.uuid == bench.name.uuid } else { true }
    }
    try require(named, "a value came under another name")
    let disarmed = try await bench.answer(.setNotifying(bench.name, false), on: link)
    try require(disarmed == .success(.done), "the end of the subscription was answered with \(disarmed)")
    await bench.peer.notify([5])
    await bench.driver.settle()
    try require(
      bench.recorder.values(of: link.id).count == 3, "a value came after the subscription had ended")
  }

  private static func rejected(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let before = await bench.peer.writes().count
    let answer = try await bench.answer(.write(.genericDeviceName, [1]), on: link)
    guard case .failure(.rejected) = answer else {
      throw ContractEnd.failed("a write that the device does not permit was answered with \(answer)")
    }
    try require(await bench.peer.writes().count == before, "the device applied something")
  }

  private static func unknownName(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let nowhere = Characteristic(BluetoothUUID(0x1234_5678_0000_0000, 0x9ABC_DEF0_0000_0001))
    for request in [.read(nowhere), .write(nowhere, [1]), .setNotifying(nowhere, true)] as [GATTRequest] {
      let (id, acceptance) = await bench.perform(request, on: link)
      try require(acceptance == .refused(.characteristicNotFound), "\(request) was \(acceptance)")
      await bench.driver.settle()
      try require(bench.recorder.answers(to: id, on: link.id).isEmpty, "a refused request was answered")
    }
  }

  private static func tooLong(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let before = await bench.peer.writes().count
    let limit = await bench.driver.perform { link.capabilities.mtu } - 3
    let value = [UInt8](repeating: 7, count: limit + 1)
    let beyond = [UInt8](repeating: 7, count: 513)
    let requests: [(GATTRequest, Int)] = [
      (.write(bench.name, value), limit), (.writeWithoutResponse(bench.name, value), limit),
      (.writeLong(bench.name, beyond), 512),
    ]
    for (request, limit) in requests {
      let (id, acceptance) = await bench.perform(request, on: link)
      try require(
        acceptance == .refused(.valueTooLong(limit: limit)), "a value that is too long was \(acceptance)")
      await bench.driver.settle()
      try require(bench.recorder.answers(to: id, on: link.id).isEmpty, "a refused request was answered")
    }
    try require(await bench.peer.writes().count == before, "the device applied something")
  }

  private static func outstanding(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let limit = await bench.driver.perform { link.capabilities.maximumOutstanding }
    try require(limit > 0, "the link says that it takes no request")
    await bench.peer.answerNextReadLate()
    var ids: [RequestID] = []
    for _ in 0..<limit { ids.append(try await bench.accepted(.read(bench.name), on: link)) }
    let (extra, acceptance) = await bench.perform(.read(bench.name), on: link)
    try require(acceptance == .later, "one request more than it says was \(acceptance)")
    for id in ids {
      _ = await bench.driver.wait { [recorder = bench.recorder] in
        !recorder.answers(to: id, on: link.id).isEmpty
      }
    }
    await bench.driver.settle()
    for id in ids {
      let count = bench.recorder.answers(to: id, on: link.id).count
      try require(count == 1, "a request was answered \(count) times")
    }
    try require(
      bench.recorder.answers(to: extra, on: link.id).isEmpty, "a request that was put off was answered")
    _ = try await bench.answer(.read(bench.name), on: link)
  }

  private static func abandoned(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    await bench.peer.setValue([1])
    await bench.peer.answerNextReadLate()
    let first = try await bench.accepted(.read(bench.name), on: link)
    await bench.driver.perform { [recorder = bench.recorder] in recorder.calling { _ = link.abandon(first) } }
    _ = await bench.driver.wait { [recorder = bench.recorder] in
      !recorder.answers(to: first, on: link.id).isEmpty
    }
    await bench.driver.settle()
    let answers = bench.recorder.answers(to: first, on: link.id)
    try require(answers == [.success(.value([1]))], "the abandoned read was answered with \(answers)")
    await bench.peer.setValue([2])
    let answer = try await bench.answer(.read(bench.name), on: link)
    try require(answer == .success(.value([2])), "the read behind it was answered with \(answer)")
  }

  private static func answeredTwice(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    await bench.peer.setValue([1])
    await bench.peer.answerNextRequestTwice()
    let answers = try await bench.answers(to: .read(bench.name), on: link)
    try require(answers == [.success(.value([1]))], "the answers were \(answers)")
    // A link may take a surplus answer for a broken protocol and end, but it may not pass it on.
    guard bench.recorder.closings(of: link.id).isEmpty else { return }
    let write = try await bench.answer(.write(bench.name, [9]), on: link)
    try require(write == .success(.done), "the write behind it was answered with \(write)")
  }

  // MARK: - Ends

  private static func endedThere(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    await bench.peer.swallowNextRequest()
    let id = try await bench.accepted(.write(bench.name, [1]), on: link)
    await bench.peer.endLink()
    try await bench.closed(link)
    await bench.driver.settle()
    try requireOneEnd(bench, link, of: [id])
  }

  private static func endedHere(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    await bench.peer.swallowNextRequest()
    let id = try await bench.accepted(.write(bench.name, [1]), on: link)
    await bench.close(link)
    await bench.close(link)
    try await bench.closed(link)
    await bench.peer.endLink()
    await bench.driver.settle()
    try requireOneEnd(bench, link, of: [id])
    let reason = bench.recorder.closings(of: link.id).first?.loss.reason
    try require(reason == .requested, "a link that was closed here ended with \(String(describing: reason))")
  }

  /// Each accepted request has an answer or the end of the link, and nothing follows the end.
  private static func requireOneEnd(_ bench: ContractBench, _ link: any Link, of ids: [RequestID]) throws {
    let closings = bench.recorder.closings(of: link.id)
    try require(closings.count == 1, "the link was closed \(closings.count) times")
    try require(bench.isSilentBehindClosed(link.id), "something was delivered behind the last word")
    for id in ids {
      let answers = bench.recorder.answers(to: id, on: link.id).count
      let isInDoubt = closings.first?.inDoubt.contains(id) ?? false
      try require(answers + (isInDoubt ? 1 : 0) <= 1, "a request was answered and is in doubt as well")
    }
  }

  private static func inDoubt(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let before = await bench.peer.writes().count
    let settled = try await bench.accepted(.write(bench.name, [1]), on: link)
    let came = await bench.driver.wait { [recorder = bench.recorder] in
      !recorder.answers(to: settled, on: link.id).isEmpty
    }
    try require(came, "a write was not answered")
    await bench.peer.swallowNextRequest()
    let open = try await bench.accepted(.write(bench.name, [2]), on: link)
    // The request is at the device by now; only its answer is missing.
    await bench.driver.settle()
    if bench.recorder.closings(of: link.id).isEmpty {
      await bench.peer.endLink()
      try await bench.closed(link)
    }
    let closing = bench.recorder.closings(of: link.id).first
    try require(
      closing?.inDoubt == [open], "in doubt were \(String(describing: closing?.inDoubt)), not \([open])")
    let writes = await bench.peer.writes().dropFirst(before)
    try require(Array(writes) == [[1]], "the device applied \(Array(writes))")
  }

  private static func silentAfterClose(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    _ = try await bench.answer(.setNotifying(bench.name, true), on: link)
    await bench.peer.answerNextReadLate()
    let id = try await bench.accepted(.read(bench.name), on: link)
    let before = bench.recorder.deliveries(of: link.id).count
    await bench.close(link)
    await bench.peer.notify([1])
    await bench.driver.settle()
    try await bench.closed(link)
    let after = bench.recorder.deliveries(of: link.id).dropFirst(before)
    try require(after.count == 1, "behind `close()` came \(Array(after))")
    try require(bench.recorder.answers(to: id, on: link.id).isEmpty, "an answer came behind `close()`")
  }

  private static func refusesClosed(_ bench: ContractBench) async throws {
    let link = try await bench.connect()
    let before = await bench.peer.writes().count
    await bench.close(link)
    let (_, closing) = await bench.perform(.write(bench.name, [1]), on: link)
    try require(closing == .refused(.linkClosed), "a write on a link that is closing was \(closing)")
    try await bench.closed(link)
    let (_, closed) = await bench.perform(.write(bench.name, [1]), on: link)
    try require(closed == .refused(.linkClosed), "a write on a closed link was \(closed)")
    await bench.driver.settle()
    try require(await bench.peer.writes().count == before, "the device applied something")
  }
}

extension Characteristic {
  /// The Device Name, which every device has and hardly one lets a client write (Vol 3 Part C 12.1).
  fileprivate static let genericDeviceName = Characteristic(
    BluetoothUUID(0x2A00 as UInt16), in: BluetoothUUID(0x1800 as UInt16))
}
