internal import Relink
internal import RelinkBlueZ

/// What becomes of a session, connected and in the middle of a dial, when its adapter is switched, unplugged, blocked or
/// put to sleep, when the controller forgets a link, and when the device is named with the wrong type of its address: it
/// says so, and comes back by itself.
struct AdapterLife: Sendable {
  /// One thing that happens to an adapter, and its end.
  private struct Trouble {
    var name: String
    /// What the radio is told.
    var cause: String
    var reason: DisconnectReason
    /// What the session waits for meanwhile; nil where it may be over before that is asked.
    var wait: WaitReason?
    var remedies: [String]
  }

  private static let all = ["off", "cycle", "unplugged", "blocked", "asleep", "phantom", "type"]

  private let lab: Lab
  private let parts: [String]
  private let keepsOn = Lab.options.contains("--keep-on")

  init(_ lab: Lab, parts: [String]) {
    self.lab = lab
    self.parts = parts.isEmpty ? AdapterLife.all : parts
  }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    try await lab.begin()
    let readied = keepsOn ? [] : ["setup"]
    let switched = keepsOn ? [] : ["power 1"]
    for part in parts {
      switch part {
      case "off":
        let off = Trouble(
          name: "off and on", cause: "power 0", reason: .adapterOff, wait: .adapterOff, remedies: switched)
        try await both(off, &verdicts)
      case "cycle":
        let cycle = Trouble(
          name: "off and on at once", cause: "power cycle", reason: .adapterOff, wait: nil, remedies: [])
        try await both(cycle, &verdicts)
      case "unplugged":
        let moved = Trouble(
          name: "unplugged, and back under another number", cause: "unplug", reason: .adapterMissing,
          wait: .adapterMissing, remedies: ["plug behind"] + readied)
        let back = Trouble(
          name: "unplugged, and back", cause: "unplug", reason: .adapterMissing, wait: .adapterMissing,
          remedies: ["plug"] + readied)
        try await connected(moved, &verdicts)
        try await dialling(back, &verdicts)
      case "blocked":
        let blocked = Trouble(
          name: "blocked by rfkill", cause: "block 1", reason: .adapterBlocked, wait: .adapterBlocked,
          remedies: ["block 0"] + switched)
        try await both(blocked, &verdicts)
      case "asleep":
        let asleep = Trouble(
          name: "asleep", cause: "sleep 1", reason: .suspended, wait: .suspended, remedies: ["sleep 0"])
        try await both(asleep, &verdicts)
      case "phantom": try await phantom(&verdicts)
      case "type": try await wrongType(&verdicts)
      default: throw LabFailure("no part \(part); there are \(AdapterLife.all)")
      }
    }
    return verdicts.failed
  }

  // MARK: Parts

  private func both(_ trouble: Trouble, _ verdicts: inout Verdicts) async throws {
    try await connected(trouble, &verdicts)
    try await dialling(trouble, &verdicts)
  }

  /// A session that is polled all the while.
  private func connected(_ trouble: Trouble, _ verdicts: inout Verdicts) async throws {
    try await withWatch { watch in
      let isOver = Locked(false)
      let reads = Locked((begun: 0, ended: 0))
      try await watch.session.connect(within: .after(.seconds(60)))
      let (answered, events) = try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          while !isOver.withLock({ $0 }), !Task.isCancelled {
            reads.withLock { $0.begun += 1 }
            _ = try? await watch.session.read(.counter, within: .after(.seconds(90)))
            reads.withLock { $0.ended += 1 }
          }
        }
        let mark = watch.count
        try await lab.radio.tell(trouble.cause)
        let loss = try await watch.next(after: mark, within: .seconds(20)) { $0.loss }
        verdicts.check(
          "\(trouble.name), connected: \(loss.reason), \(loss.evidence)", loss.reason == trouble.reason,
          "wanted \(trouble.reason)")
        try await end(trouble, watch, after: mark, "connected", &verdicts)
        let seen = watch.events(after: mark)
        let before = reads.withLock { $0.ended }
        let goesOn = await lab.wait(within: .seconds(30)) { reads.withLock { $0.ended > before + 1 } }
        isOver.withLock { $0 = true }
        try await group.waitForAll()
        return (goesOn, seen)
      }
      let losses = events.count { if case .disconnected = $0 { true } else { false } }
      let count = reads.withLock { $0 }
      verdicts.check(
        "\(trouble.name), connected: one loss, \(count.ended) of \(count.begun) reads have an end, and more follow",
        losses == 1 && answered && count.begun == count.ended, "\(losses) losses")
    }
  }

  /// A session that waits for its device to be heard.
  private func dialling(_ trouble: Trouble, _ verdicts: inout Verdicts) async throws {
    try await withWatch { watch in
      try await lab.radio.tell("advertise 0")
      let begun = watch.count
      watch.beginToConnect()
      _ = try await watch.next(after: begun, within: .seconds(20)) { event in
        if case .connecting = event { true } else { nil }
      }
      await lab.pause(.seconds(1))
      let mark = watch.count
      try await lab.radio.tell(trouble.cause)
      let loss = try await watch.next(after: mark, within: .seconds(20)) { $0.loss }
      verdicts.check(
        "\(trouble.name), dialling: \(loss.reason), \(loss.evidence)", loss.reason == trouble.reason,
        "wanted \(trouble.reason)")
      try await lab.radio.tell("advertise 1")
      try await end(trouble, watch, after: mark, "dialling", &verdicts)
    }
  }

  /// The trouble ends, and the session comes back by itself.
  private func end(
    _ trouble: Trouble, _ watch: SessionWatch, after mark: Int, _ state: String, _ verdicts: inout Verdicts
  ) async throws {
    if let reason = trouble.wait {
      _ = try await watch.next(after: mark, within: .seconds(20)) { event in
        if case .waiting(let wait, _) = event, wait == reason { true } else { nil }
      }
    }
    for remedy in trouble.remedies { try await lab.radio.tell(remedy) }
    let began = lab.loop.now
    let number = try await watch.next(after: mark, within: .seconds(60)) { event in
      if case .ready(let readiness) = event { readiness.generation } else { nil }
    }
    let took = Distribution.tenths(began.duration(to: lab.loop.now).milliseconds)
    verdicts.check("\(trouble.name), \(state): ready again after \(took) ms", number.rawValue >= 1)
  }

  /// A link that the host lists and the controller does not have: nothing is adopted, and nothing loops.
  private func phantom(_ verdicts: inout Verdicts) async throws {
    try await withWatch { watch in
      let first = try Pair(await watch.session.read(.counter)).second
      try await lab.radio.tell("forget-links")
      let mark = watch.count
      let second = try Pair(await watch.session.read(.counter, within: .after(.seconds(90)))).second
      let loss = try await watch.next(after: mark, within: .seconds(1)) { $0.loss }
      verdicts.check(
        "phantom, in use: \(loss.reason), then the next link",
        loss.reason == .transactionTimeout && second == first + 1,
        "link \(second) follows link \(first)")
    }
    var faults: [String] = []
    let child = try Child(["victim", "link"] + Lab.options)
    let link = try await Killing.link(of: child, &faults)
    try await lab.radio.tell("forget-links")
    child.kill()
    let began = lab.loop.now
    try await withWatch { watch in
      let next = try Pair(await watch.session.read(.counter, within: .after(.seconds(60)))).second
      let took = Distribution.tenths(began.duration(to: lab.loop.now).milliseconds)
      verdicts.check(
        "phantom, left by a process: not adopted, a link of its own after \(took) ms", next == link + 1,
        "link \(next) follows link \(link)")
    }
    verdicts.equal("phantom: faults", faults, [])
  }

  private func wrongType(_ verdicts: inout Verdicts) async throws {
    guard let address = lab.device.address else { throw LabFailure("no address") }
    let device = DeviceID(address: address, type: .public)
    try await withWatch(of: device) { watch in
      let began = lab.loop.now
      watch.beginToConnect()
      let loss = try await watch.next(after: 0, within: .seconds(60)) { $0.loss }
      let took = began.duration(to: lab.loop.now)
      verdicts.check(
        "wrong type of address: \(loss.reason), \(loss.evidence)",
        loss.reason == .wrongAddressType && loss.evidence.description.contains("\(lab.device)"))
      verdicts.check(
        "wrong type of address: named after \(Distribution.tenths(took.milliseconds)) ms, within one discovery",
        took < .seconds(15))
      await watch.session.disconnect()
    }
    guard let impossible = DeviceID("80:00:00:00:00:01/random") else { throw LabFailure("no such name") }
    do {
      _ = try DeviceSession(with: impossible, over: lab.transport, configuration: Lab.configuration)
      verdicts.check("a random address that there cannot be is refused", false)
    } catch {
      verdicts.check(
        "a random address that there cannot be is refused: \(error)", error.code == .invalidArgument)
    }
  }

  // MARK: The session

  private func withWatch(
    of device: DeviceID? = nil, _ body: (SessionWatch) async throws -> Void
  ) async throws {
    _ = try await lab.stats { $0.live.isEmpty }
    let session = try DeviceSession(
      with: device ?? lab.device, over: lab.transport, configuration: Lab.configuration)
    try await SessionWatch.with(session, lab, body)
  }
}

/// A session whose events are kept.
final class SessionWatch: Sendable {
  let session: DeviceSession
  private let lab: Lab
  private let kept = Locked<[ConnectionEvent]>([])
  private let connects = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  private init(_ session: DeviceSession, _ lab: Lab) {
    self.session = session
    self.lab = lab
  }

  /// Runs `body` and closes the session.
  static func with(
    _ session: DeviceSession, _ lab: Lab, _ body: (SessionWatch) async throws -> Void
  ) async throws {
    let watch = SessionWatch(session, lab)
    let events = session.events(buffering: .newest(4096))
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { for await event in events { watch.kept.withLock { $0.append(event) } } }
      group.addTask {
        // What becomes of it is among the events.
        for await _ in watch.connects.stream { _ = try? await session.connect(within: .after(.seconds(120))) }
      }
      defer { watch.connects.continuation.finish() }
      do {
        try await body(watch)
      } catch {
        await session.close()
        throw error
      }
      await session.close()
      watch.connects.continuation.finish()
      try await group.waitForAll()
    }
  }

  /// Has the session want a link, and does not wait for it.
  func beginToConnect() { connects.continuation.yield() }

  /// How many events there have been.
  var count: Int { kept.withLock { $0.count } }

  func events(after mark: Int) -> [ConnectionEvent] { kept.withLock { Array($0.dropFirst(mark)) } }

  /// What `find` finds in the first event that it finds anything in.
  func next<Found: Sendable>(
    after mark: Int, within span: Duration, _ find: @Sendable (ConnectionEvent) -> Found?
  ) async throws -> Found {
    let isThere = await lab.wait(within: span) { self.events(after: mark).contains { find($0) != nil } }
    let events = events(after: mark)
    guard isThere, let found = events.lazy.compactMap(find).first else {
      throw LabFailure("nothing came within \(span); there was \(events)")
    }
    return found
  }
}

extension ConnectionEvent {
  /// What it says of a link or an attempt that ended.
  var loss: DisconnectInfo? {
    switch self {
    case .disconnected(let info), .attemptFailed(let info): info
    case .snapshot, .idle, .waiting, .connecting, .phase, .ready, .seen, .missed, .ended: nil
    }
  }
}
