internal import Relink

/// What the checks of links and transports have in common: a recorder in the place of a session, and calls with
/// numbers of their own.
final class ContractBench: Sendable {
  let environment: any ContractEnvironment
  let recorder = LinkRecorder()
  /// Numbers are never used twice, not even by two benches of one run.
  private static let numbers = Locked<UInt64>(1)

  init(_ environment: any ContractEnvironment) {
    self.environment = environment
  }

  var driver: any ContractDriver { environment.driver }
  var peer: any ContractPeer { environment.peer }
  var name: Characteristic { environment.peer.characteristic }

  static func nextNumber() -> UInt64 {
    numbers.withLock { number in
      number += 1
      return number
    }
  }

  func register() throws {
    try environment.transport.register(recorder, for: environment.device)
  }

  func dial(_ device: DeviceID? = nil, limit: Duration? = nil) async -> (id: AttemptID, dial: any Attempt) {
    let id = AttemptID(rawValue: Self.nextNumber())
    let dial = await driver.perform { [self] in
      recorder.calling {
        environment.transport.dial(
          device ?? environment.device, attempt: id, options: DialOptions(limit: limit))
      }
    }
    return (id, dial)
  }

  /// Dials until a link is up.
  func linkUp() async throws -> any Link {
    let (id, _) = await dial()
    let ended = await driver.wait { [recorder] in !recorder.ends(of: id).isEmpty }
    try require(ended, "a dial to a device that is there did not end")
    guard case .success(let up) = recorder.ends(of: id).first, let link = recorder.link, link.id == up else {
      throw ContractEnd.failed(
        "a dial to a device that is there ended without a link: \(recorder.ends(of: id))")
    }
    return link
  }

  /// Dials, and lets the link get ready for requests by name.
  ///
  /// With short PDUs, where the link leaves the choice, a long write takes parts.
  func connect(withShortPDUs isShort: Bool = false) async throws -> any Link {
    let link = try await linkUp()
    let exchanges = await driver.perform { link.capabilities.needsMTUExchange }
    if exchanges, !isShort {
      _ = try await answer(.exchangeMTU, on: link)
    }
    let table = try await answer(.discover, on: link)
    guard case .success(.table(let services, _)) = table, services.resolve(name) != nil else {
      throw ContractEnd.failed("the characteristic was not discovered: \(table)")
    }
    return link
  }

  func perform(_ request: GATTRequest, on link: any Link) async -> (id: RequestID, acceptance: LinkAcceptance)
  {
    let id = RequestID(rawValue: Self.nextNumber())
    let acceptance = await driver.perform { [recorder] in
      recorder.calling { link.perform(request, id: id) }
    }
    return (id, acceptance)
  }

  /// Makes a request that has to be accepted.
  func accepted(_ request: GATTRequest, on link: any Link) async throws -> RequestID {
    let (id, acceptance) = await perform(request, on: link)
    try require(acceptance == .accepted, "\(request) was not accepted: \(acceptance)")
    return id
  }

  /// Makes a request and waits for its answer.
  func answer(_ request: GATTRequest, on link: any Link) async throws -> Result<GATTAnswer, GATTFailure> {
    let id = try await accepted(request, on: link)
    let came = await driver.wait { [recorder] in !recorder.answers(to: id, on: link.id).isEmpty }
    guard came, let answer = recorder.answers(to: id, on: link.id).first else {
      throw ContractEnd.failed("\(request) was accepted and not answered")
    }
    return answer
  }

  /// Makes a request, waits for its answer, and then for whatever else comes.
  func answers(to request: GATTRequest, on link: any Link) async throws -> [Result<GATTAnswer, GATTFailure>] {
    let id = try await accepted(request, on: link)
    _ = await driver.wait { [recorder] in !recorder.answers(to: id, on: link.id).isEmpty }
    await driver.settle()
    return recorder.answers(to: id, on: link.id)
  }

  /// Waits for the end of a dial, and then for whatever else comes.
  func ends(of attempt: AttemptID) async -> [Result<LinkID, LinkRecorder.AttemptFailure>] {
    _ = await driver.wait { [recorder] in !recorder.ends(of: attempt).isEmpty }
    await driver.settle()
    return recorder.ends(of: attempt)
  }

  func close(_ link: any Link) async {
    await driver.perform { [recorder] in recorder.calling { link.close() } }
  }

  /// Waits until the link has said its last word.
  func closed(_ link: any Link) async throws {
    let came = await driver.wait { [recorder] in !recorder.closings(of: link.id).isEmpty }
    try require(came, "the end of the link was not delivered")
  }

  /// Leaves nothing behind for the next check.
  func finish() async {
    await peer.behave()
    _ = await peer.setPresent(true)
    _ = await peer.setAdapter(true)
    if let link = recorder.link {
      await close(link)
      _ = await driver.wait { [recorder] in recorder.link == nil }
    }
    environment.transport.unregister(environment.device)
    await driver.settle()
  }

  /// Whether nothing was delivered about a link behind its last word.
  func isSilentBehindClosed(_ link: LinkID) -> Bool {
    let deliveries = recorder.deliveries(of: link)
    guard let index = deliveries.firstIndex(where: { if case .closed = $0 { true } else { false } }) else {
      return true
    }
    return index == deliveries.count - 1
  }
}
