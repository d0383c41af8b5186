internal import Relink
internal import RelinkBlueZ

/// What is left outstanding on a link that is ended from here.
enum Outstanding: String, CaseIterable, Sendable {
  /// A read that the peripheral has and does not answer yet.
  case slowRead = "slow"
  /// A long write, of which everything but its execution has been done.
  case preparedWrite = "long"

  /// A value that no PDU of the small MTU holds, different for each seed.
  static func value(_ seed: Int, length: Int) -> [UInt8] {
    (0..<length).map { UInt8(truncatingIfNeeded: seed &* 31 &+ $0 &* 7) }
  }

  /// Has the peripheral leave the next one outstanding; how many requests it has left unanswered by then.
  func hold(_ radio: RadioControl) async throws -> Int {
    let held = try await radio.ask("stats", for: RadioStats.self).discarded
    switch self {
    case .slowRead: try await radio.tell("slow hold")
    case .preparedWrite: try await radio.tell("hold-answers discarded execute")
    }
    return held
  }

  /// Has the peripheral answer as usual.
  func answer(_ radio: RadioControl) async throws {
    switch self {
    case .slowRead: try await radio.tell("slow 50")
    case .preparedWrite: try await radio.tell("hold-answers off")
    }
  }

  /// Begins it; comes back when it has its outcome.
  func begin(on session: DeviceSession, seed: Int) async -> Fate {
    do {
      switch self {
      case .slowRead:
        _ = try await session.read(.slow)
      case .preparedWrite:
        try await session.write(
          Outstanding.value(seed, length: 512), to: .long, idempotency: .nonIdempotent,
          options: WriteOptions(allowsLong: true))
      }
      return .succeeded
    } catch {
      return Fate(error)
    }
  }

  /// Whether the peripheral has it, and has not answered: of a queued write, Execute Write.
  func isOutstanding(_ stats: RadioStats, on link: Int, since held: Int) -> Bool {
    switch self {
    case .slowRead: stats.slow.waiting == 1
    case .preparedWrite: stats.long.queuedBytes[String(link)] == 512 && stats.discarded > held
    }
  }

  /// Does the same on the next link, answered; what is wrong with the answer or its effect.
  func repeatSoundly(on session: DeviceSession, link: Int, seed: Int, _ radio: RadioControl) async throws
    -> String?
  {
    try await answer(radio)
    switch self {
    case .slowRead:
      let asked = try await radio.ask("stats", for: RadioStats.self).slow.asked
      let answer = try Pair(await session.read(.slow))
      return answer.first == link && answer.second == asked + 1
        ? nil
        : "read \(asked + 1) on link \(link) got the answer to read \(answer.second) on link \(answer.first)"
    case .preparedWrite:
      let value = Outstanding.value(seed ^ 0x55, length: 100 + seed % 100)
      try await session.write(
        value, to: .long, idempotency: .nonIdempotent, options: WriteOptions(allowsLong: true))
      let last = try await radio.ask("stats", for: RadioStats.self).long.executions.last
      guard last?.link == link, last?.value == value.hexadecimal else {
        return
          "on link \(link) \(value.count) bytes were written, and \(String(describing: last)) was executed"
      }
      return nil
    }
  }
}

extension [UInt8] {
  var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

/// Links that are ended from here with something outstanding, and dialled again at once: nothing crosses.
struct Crossing: Sendable {
  private let lab: Lab
  private let count: Int

  init(_ lab: Lab, count: Int) {
    self.lab = lab
    self.count = count
  }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    for outstanding in Outstanding.allCases {
      try await lab.begin()
      try await lab.radio.tell("mtu 64")
      let before = try await lab.radio.ask("links", for: RadioLinks.self).links
      var faults: [String] = []
      var times: [Double] = []
      var session = try lab.session()
      var link = try await newLink(of: session, after: before, &faults)
      for round in 0..<count {
        let held = try await outstanding.hold(lab.radio)
        let cancels = round % 2 == 1
        let fate = try await end(
          session, link, with: outstanding, since: held, cancels: cancels, seed: round)
        if fate != .indeterminate { faults.append("round \(round): the caller was told \(fate)") }
        if cancels { session = try lab.session() }
        let began = lab.loop.now
        link = try await newLink(of: session, after: link, &faults)
        times.append(began.duration(to: lab.loop.now).milliseconds)
        if outstanding == .slowRead { try await lab.radio.tell("release") }
        if let fault = try await outstanding.repeatSoundly(on: session, link: link, seed: round, lab.radio) {
          faults.append("round \(round): \(fault)")
        }
      }
      await session.close()
      let stats = try await lab.stats { $0.live.isEmpty && $0.slow.waiting == 0 }
      verdicts.equal("\(outstanding): what crossed to a later link in \(count) rounds", faults, [])
      verdicts.equal("\(outstanding): links", stats.links - before, count + 1)
      verdicts.check(outstanding, stats, rounds: count)
      say("\(outstanding): ended to first answer on the next link: \(Distribution(times).summary)")
    }
    return verdicts.failed
  }

  /// Ends the link with something outstanding: by `disconnect()`, or by cancelling the caller and closing the session.
  private func end(
    _ session: DeviceSession, _ link: Int, with outstanding: Outstanding, since held: Int, cancels: Bool,
    seed: Int
  ) async throws -> Fate {
    try await withThrowingTaskGroup(of: Fate.self) { group in
      group.addTask { await outstanding.begin(on: session, seed: seed) }
      _ = try await lab.stats { outstanding.isOutstanding($0, on: link, since: held) }
      if cancels { group.cancelAll() } else { await session.disconnect() }
      guard let fate = try await group.next() else { throw LabFailure("no caller") }
      if cancels { await session.close() }
      return fate
    }
  }

  /// Connects; the number of the link, which has to be the next one after `last`.
  private func newLink(of session: DeviceSession, after last: Int, _ faults: inout [String]) async throws
    -> Int
  {
    try await session.connect()
    let link = try Pair(await session.read(.counter)).second
    if link != last + 1 { faults.append("link \(link) follows link \(last)") }
    return link
  }
}

extension Verdicts {
  /// What the peripheral counted of the requests that were left outstanding.
  mutating func check(_ outstanding: Outstanding, _ stats: RadioStats, rounds: Int) {
    switch outstanding {
    case .slowRead:
      equal("\(outstanding): slow reads that were answered", stats.slow.answered, rounds)
      equal("\(outstanding): slow reads whose link was gone", stats.slow.discarded, rounds)
    case .preparedWrite:
      equal("\(outstanding): prepared bytes that died with their link", stats.long.diedBytes, rounds * 512)
      let sound = (0..<rounds).reduce(0) { $0 + 100 + $1 % 100 }
      equal("\(outstanding): bytes executed", stats.long.executedBytes, sound)
    }
  }
}
