internal import Relink

/// The rules that every `Transport` keeps, whatever it reaches devices with.
///
/// It works on a manual executor and on an event loop, and depends on no test library, so a program may run it on
/// another machine.
public enum TransportContract {
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
    await runChecks("Transport", names, checks) { body in
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
    ("endsEachDialOnceWithALink", dialled),
    ("endsADialToNobody", absent),
    ("leavesNothingOfACancelledDial", cancelled),
    ("endsADialOnceThatIsCancelledAtOnce", cancelledAtOnce),
    ("registersOneHandlerForADevice", registersOne),
    ("holdsItsHandlerWeakly", holdsWeakly),
    ("listsTheLinksThatAreUp", lists),
    ("dialsAgainAfterALoss", dialsAgain),
    ("bringsUpAFreshLinkBehindClosed", freshBehindClosed),
    ("waitsForALinkThatIsStillClosing", freshBehindClose),
    ("letsNoAnswerCrossToTheNextLink", answersStay),
    ("letsNoPreparedPartCrossToTheNextLink", partsStay),
    ("tellsWhenTheAdapterGoes", adapterGoes),
  ]

  // MARK: - Dials

  private static func dialled(_ bench: ContractBench) async throws {
    let before = await bench.peer.linkCount()
    let (id, _) = await bench.dial()
    let ends = await bench.ends(of: id)
    try require(ends.count == 1, "a dial ended \(ends.count) times")
    guard case .success(let up) = ends.first else {
      throw ContractEnd.failed("a dial to a device that is there ended with \(ends)")
    }
    try require(bench.recorder.link?.id == up, "the link that came up is gone")
    try require(bench.recorder.deliveries.count == 1, "beside the link came \(bench.recorder.deliveries)")
    let links = await bench.peer.linkCount() - before
    try require(links == 1, "the device saw \(links) links")
  }

  private static func absent(_ bench: ContractBench) async throws {
    guard let device = bench.environment.absentDevice else {
      throw ContractEnd.skipped("there is no device that is never there")
    }
    try bench.environment.transport.register(bench.recorder, for: device)
    let (id, _) = await bench.dial(device, limit: .seconds(1))
    let ended = await bench.driver.wait { [recorder = bench.recorder] in !recorder.ends(of: id).isEmpty }
    await bench.driver.settle()
    bench.environment.transport.unregister(device)
    try require(ended, "a dial to nobody did not end within its limit")
    let ends = bench.recorder.ends(of: id)
    guard ends.count == 1, case .failure(let failure) = ends.first else {
      throw ContractEnd.failed("a dial to nobody ended with \(ends)")
    }
    try require(failure.loss.reason == .notFound, "a dial to nobody ended with \(failure.loss)")
  }

  private static func cancelled(_ bench: ContractBench) async throws {
    guard await bench.peer.setPresent(false) else {
      throw ContractEnd.skipped("the device cannot be taken away")
    }
    let before = await bench.peer.linkCount()
    let (id, dial) = await bench.dial(limit: .seconds(60))
    try require(bench.recorder.ends(of: id).isEmpty, "a dial to a device that is away ended at once")
    await bench.driver.perform { [recorder = bench.recorder] in recorder.calling { dial.cancel() } }
    let ended = await bench.driver.wait { [recorder = bench.recorder] in !recorder.ends(of: id).isEmpty }
    try require(ended, "a cancelled dial did not end")
    _ = await bench.peer.setPresent(true)
    await bench.driver.settle()
    let ends = bench.recorder.ends(of: id)
    guard ends.count == 1, case .failure(let failure) = ends.first else {
      throw ContractEnd.failed("a cancelled dial ended with \(ends)")
    }
    try require(failure.loss.reason == .requested, "a cancelled dial ended with \(failure.loss)")
    try require(bench.recorder.link == nil, "a link came up behind the end of its dial")
    let environment = bench.environment
    if environment.endsCancelledDials {
      try require(await bench.peer.linkCount() == before, "the device saw a link of a cancelled dial")
    } else {
      let isGone = await bench.driver.wait {
        !environment.transport.existingLinks().contains(environment.device)
      }
      try require(isGone, "a link that came of a cancelled dial is still there")
    }
  }

  private static func cancelledAtOnce(_ bench: ContractBench) async throws {
    let id = AttemptID(rawValue: ContractBench.nextNumber())
    let environment = bench.environment
    await bench.driver.perform { [recorder = bench.recorder] in
      recorder.calling {
        environment.transport.dial(environment.device, attempt: id, options: DialOptions()).cancel()
      }
    }
    let ends = await bench.ends(of: id)
    try require(ends.count == 1, "a dial that was cancelled at once ended \(ends.count) times")
    if case .failure(let failure) = ends.first {
      try require(
        failure.loss.reason == .requested, "a dial that was cancelled at once ended with \(failure.loss)")
      try require(bench.recorder.link == nil, "a link came up behind the end of its dial")
    }
  }

  // MARK: - Handlers and links

  private static func registersOne(_ bench: ContractBench) async throws {
    let other = LinkRecorder()
    let (transport, device) = (bench.environment.transport, bench.environment.device)
    do {
      try transport.register(other, for: device)
      transport.unregister(device)
      throw ContractEnd.failed("a second handler was registered for a device")
    } catch let error as RelinkError {
      try require(error.code == .sessionExists, "a second handler was refused with \(error)")
    }
    transport.unregister(device)
    try transport.register(other, for: device)
    transport.unregister(device)
    try bench.register()
    _ = try await bench.linkUp()
    try require(other.deliveries.isEmpty, "a handler was told something after its registration had ended")
  }

  private static func holdsWeakly(_ bench: ContractBench) async throws {
    let (transport, device) = (bench.environment.transport, bench.environment.device)
    transport.unregister(device)
    weak var held: LinkRecorder?
    do {
      let passing = LinkRecorder()
      held = passing
      try transport.register(passing, for: device)
    }
    try require(held == nil, "the transport keeps its handler alive")
    // A handler that is gone takes up no place.
    try bench.register()
  }

  private static func lists(_ bench: ContractBench) async throws {
    let environment = bench.environment
    @Sendable func listed() async -> Int {
      await environment.driver.perform {
        environment.transport.existingLinks().filter { $0 == environment.device }.count
      }
    }
    try require(await listed() == 0, "a link is listed that is not there")
    let link = try await bench.linkUp()
    let times = await listed()
    try require(times == 1, "a link that is up is listed \(times) times")
    await bench.close(link)
    try await bench.closed(link)
    await bench.driver.settle()
    try require(await listed() == 0, "a link is listed that is gone")
  }

  private static func dialsAgain(_ bench: ContractBench) async throws {
    var seen: Set<LinkID> = []
    for _ in 0..<3 {
      let before = await bench.peer.linkCount()
      let link = try await bench.linkUp()
      try require(seen.insert(link.id).inserted, "the name of a link was used twice")
      try require(await bench.peer.linkCount() == before + 1, "the link is not a new one to the device")
      await bench.peer.endLink()
      try await bench.closed(link)
    }
    await bench.driver.settle()
    for id in seen {
      try require(bench.recorder.closings(of: id).count == 1, "a link was not closed exactly once")
      try require(bench.isSilentBehindClosed(id), "something was delivered behind the last word of a link")
    }
  }

  // MARK: - A generation is an ACL link

  private static func freshBehindClosed(_ bench: ContractBench) async throws {
    for _ in 0..<3 {
      let before = await bench.peer.linkCount()
      let link = try await bench.linkUp()
      try require(await bench.peer.linkCount() == before + 1, "a dial got a link that was there before")
      await bench.close(link)
      try await bench.closed(link)
    }
  }

  private static func freshBehindClose(_ bench: ContractBench) async throws {
    guard bench.environment.waitsForOldLinks else {
      throw ContractEnd.skipped("the transport leaves it to its user to wait for the end of a link")
    }
    let first = try await bench.connect()
    let before = await bench.peer.linkCount()
    await bench.peer.setValue([1])
    await bench.peer.answerNextReadLate()
    let old = try await bench.accepted(.read(bench.name), on: first)
    await bench.close(first)
    let second = try await bench.connect()
    try require(await bench.peer.linkCount() == before + 1, "a dial got the link that was closed just before")
    await bench.peer.setValue([2])
    let answer = try await bench.answer(.read(bench.name), on: second)
    try require(answer == .success(.value([2])), "the first read on the new link was answered with \(answer)")
    await bench.driver.settle()
    try require(bench.recorder.answers(to: old, on: first.id).isEmpty, "an answer came behind `close()`")
    try require(bench.recorder.closings(of: first.id).count == 1, "the old link was not closed exactly once")
  }

  private static func answersStay(_ bench: ContractBench) async throws {
    for endsHere in [true, false] {
      let first = try await bench.connect()
      await bench.peer.setValue([1])
      await bench.peer.answerNextReadLate()
      let old = try await bench.accepted(.read(bench.name), on: first)
      if endsHere { await bench.close(first) } else { await bench.peer.endLink() }
      try await bench.closed(first)
      await bench.peer.behave()
      let second = try await bench.connect()
      await bench.peer.setValue([2])
      // Late as well, so that the answer to the first read would find this one waiting.
      await bench.peer.answerNextReadLate()
      let answer = try await bench.answer(.read(bench.name), on: second)
      try require(answer == .success(.value([2])), "a read on the next link was answered with \(answer)")
      await bench.driver.settle()
      try require(
        bench.recorder.answers(to: old, on: first.id).isEmpty, "a read was answered behind its link")
      try require(
        bench.recorder.answers(to: old, on: second.id).isEmpty, "an answer crossed to the next link")
      await bench.close(second)
      try await bench.closed(second)
    }
  }

  private static func partsStay(_ bench: ContractBench) async throws {
    let first = try await bench.connect(withShortPDUs: true)
    let before = await bench.peer.writes().count
    await bench.peer.swallowNextExecution()
    _ = try await bench.accepted(.writeLong(bench.name, [UInt8](repeating: 1, count: 400)), on: first)
    // All parts are prepared by now; only their execution is missing.
    await bench.driver.settle()
    await bench.close(first)
    try await bench.closed(first)
    await bench.peer.behave()
    let second = try await bench.connect(withShortPDUs: true)
    let value = [UInt8](repeating: 2, count: 300)
    let answer = try await bench.answer(.writeLong(bench.name, value), on: second)
    try require(answer == .success(.done), "a long write on the next link was answered with \(answer)")
    await bench.driver.settle()
    let writes = await bench.peer.writes().dropFirst(before)
    try require(
      Array(writes) == [value],
      "the device applied values of \(writes.map(\.count)) bytes, not the one of 300")
  }

  // MARK: - The adapter

  private static func adapterGoes(_ bench: ContractBench) async throws {
    let link = try await bench.linkUp()
    guard await bench.peer.setAdapter(false) else {
      throw ContractEnd.skipped("the adapter cannot be switched")
    }
    try await bench.closed(link)
    await bench.driver.settle()
    let environment = bench.environment
    let state = await bench.driver.perform { environment.transport.adapterState(for: environment.device) }
    try require(state == .off, "the adapter is said to be \(state)")
    let told = bench.recorder.deliveries.contains {
      if case .adapterChanged(.off) = $0 { true } else { false }
    }
    try require(told, "nobody was told that the adapter is off")
    let reason = bench.recorder.closings(of: link.id).first?.loss.reason
    try require(reason == .adapterOff, "the link ended with \(String(describing: reason))")
    let (id, _) = await bench.dial()
    let ends = await bench.ends(of: id)
    guard ends.count == 1, case .failure(let failure) = ends.first else {
      throw ContractEnd.failed("a dial without an adapter ended with \(ends)")
    }
    try require(failure.loss.reason == .adapterOff, "a dial without an adapter ended with \(failure.loss)")
    _ = await bench.peer.setAdapter(true)
    await bench.driver.settle()
    let returned = bench.recorder.deliveries.last
    try require(returned == .adapterChanged(.on), "nobody was told that the adapter is on again")
    _ = try await bench.linkUp()
  }
}
