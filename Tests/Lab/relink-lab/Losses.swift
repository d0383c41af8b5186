internal import Relink
internal import RelinkBlueZ
internal import RelinkTesting

/// Losses of every kind under a session that is busy: what callers are told against what the peripheral counted.
///
/// Rounds of 20 losses. Between two rounds every caller has its outcome, and what a session keeps is measured.
struct Losses: Sendable {
  private static let reasons = [0x08, 0x13, 0x15, 0x22, 0x3d, 0x3e, 0x05, 0x06]
  private static let round = 20

  private let lab: Lab
  private let count: Int
  private let session: DeviceSession
  private let ledger = Locked(LossLedger())
  private let stream = Locked(StreamLedger())
  private let history = Locked(HistoryLedger())
  private let isQuiet = Locked(false)

  init(_ lab: Lab, count: Int) throws {
    self.lab = lab
    self.count = count
    session = try lab.session()
  }

  /// Runs it all; how many checks failed.
  func run() async throws -> Int {
    try await lab.begin()
    let first = try await lab.radio.ask("links", for: RadioLinks.self).links
    var samples: [Sample] = []
    var gone: [String: Int] = [:]
    // Callers that prefer the loop, as a program that counts microseconds has them.
    try await withTaskExecutorPreference(lab.loop) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await follow() }
        group.addTask { await listen() }
        try await session.connect()
        for start in stride(from: 0, to: count, by: Losses.round) {
          let losses = start..<min(start + Losses.round, count)
          let caused = try await busyRound(losses)
          gone.merge(caused, uniquingKeysWith: +)
          samples.append(try await sample(after: losses.upperBound))
        }
        await session.close()
        try await group.waitForAll()
      }
    }
    return try await conclude(samples, gone, firstLink: first)
  }

  // MARK: Callers

  private func follow() async {
    for await event in session.events(buffering: .newest(4096)) {
      let newest = ledger.withLock { $0.newestLink }
      history.withLock { $0.happened(event, at: lab.loop.now, newestLink: newest) }
    }
  }

  private func listen() async {
    do {
      for try await update in session.notifications(from: .stream, buffering: .newest(1024)) {
        stream.withLock { $0.received(update) }
      }
    } catch {
      // The session has ended: that is how the stream of one ends.
    }
  }

  private func busyRound(_ losses: Range<Int>) async throws -> [String: Int] {
    isQuiet.withLock { $0 = false }
    return try await withThrowingTaskGroup(of: [String: Int].self) { group in
      group.addTask { await repeatedly { await read() } }
      group.addTask { await repeatedly { await write(.idempotent, to: .idempotent, .idempotent) } }
      for _ in 0..<2 {
        group.addTask { await repeatedly { await write(.nonIdempotent, to: .lock, .nonIdempotent) } }
      }
      group.addTask {
        defer { isQuiet.withLock { $0 = true } }
        return try await lose(losses)
      }
      var gone: [String: Int] = [:]
      for try await part in group { gone.merge(part, uniquingKeysWith: +) }
      return gone
    }
  }

  private func repeatedly(_ call: () async -> Void) async -> [String: Int] {
    while !isQuiet.withLock({ $0 }) { await call() }
    return [:]
  }

  private func read() async {
    let (number, floor) = ledger.withLock { ($0.called(.read), $0.newestLink) }
    do {
      let answer = try Pair(await session.read(.counter))
      let now = lab.loop.now
      ledger.withLock { ledger in
        ledger.settled(.read, number, .succeeded)
        ledger.readAnswered(answer, floor: floor)
      }
      history.withLock { $0.readAnswered(by: answer.second, at: now) }
    } catch {
      ledger.withLock { $0.settled(.read, number, Fate(error)) }
    }
  }

  private func write(
    _ kind: LossLedger.Kind, to characteristic: Characteristic, _ idempotency: Idempotency
  ) async {
    let number = ledger.withLock { $0.called(kind) }
    do {
      try await session.write(number.littleEndianBytes, to: characteristic, idempotency: idempotency)
      ledger.withLock { $0.settled(kind, number, .succeeded) }
    } catch {
      ledger.withLock { $0.settled(kind, number, Fate(error)) }
    }
  }

  // MARK: Losses

  /// Causes losses one by one; what the peripheral should have counted of them, by reason.
  private func lose(_ losses: Range<Int>) async throws -> [String: Int] {
    var gone: [String: Int] = [:]
    for loss in losses {
      let isBack = await lab.wait(within: .seconds(60)) { history.withLock { $0.isBack || $0.losses == 0 } }
      guard isBack else { throw LabFailure("no read was answered within 60 s of loss \(loss)") }
      // Anywhere between the first read and the middle of the traffic.
      await lab.pause(.milliseconds(loss * 37 % 300))
      let reason = Losses.reasons[loss % Losses.reasons.count]
      let digits = (reason < 16 ? "0" : "") + String(reason, radix: 16)
      switch loss / Losses.reasons.count % 4 {
      case 0 where reason == 0x13 || reason == 0x15:
        try await lab.radio.tell("terminate \(digits)")
        // The peripheral ended it itself.
        gone["16", default: 0] += 1
      case 1:
        try await lab.radio.tell("cut-before-apply \(digits) lock")
        gone[digits, default: 0] += 1
      case 2:
        try await lab.radio.tell("cut-after-apply \(digits) lock")
        gone[digits, default: 0] += 1
      default:
        try await lab.radio.tell("lose \(digits)")
        gone[digits, default: 0] += 1
      }
      let isSeen = await lab.wait(within: .seconds(30)) { history.withLock { $0.losses > loss } }
      guard isSeen else { throw LabFailure("loss \(loss + 1), reason 0x\(digits), was not seen within 30 s") }
    }
    let isBack = await lab.wait(within: .seconds(60)) { history.withLock { $0.isBack } }
    guard isBack else { throw LabFailure("no read was answered after the last loss of a round") }
    return gone
  }

  // MARK: What is kept

  private func sample(after losses: Int) async throws -> Sample {
    let sample = try await Sample(after: losses, of: session, on: lab.loop)
    say(sample.line)
    return sample
  }

  // MARK: The verdict

  private func conclude(
    _ samples: [Sample], _ gone: [String: Int], firstLink: Int
  ) async throws -> Int {
    let stats = try await lab.stats { $0.live.isEmpty }
    let locks = try await lab.radio.ask("counts lock", for: RadioCounts.self).byNumber
    let values = try await lab.radio.ask("counts idempotent", for: RadioCounts.self).byNumber
    let ledger = ledger.withLock { $0 }
    let stream = stream.withLock { $0 }
    let history = history.withLock { $0 }
    var verdicts = Verdicts()

    say("reads: \(ledger[.read].summary)")
    say("idempotent writes: \(ledger[.idempotent].summary)")
    say("non-idempotent writes: \(ledger[.nonIdempotent].summary)")
    say(
      "stream: \(stream.received) values of \(stats.stream.sent), \(stream.gaps) gaps, \(stream.dropped) dropped here"
    )
    say("stale deliveries ignored and counted: \(session.snapshot().staleDeliveries)")
    say(
      "failed attempts: \(history.failedAttempts), round trips to ready: \(Set(history.roundTrips).sorted())")

    verdicts.equal("losses that the session saw, its own end included", history.losses, count + 1)
    verdicts.equal("links that came up", stats.links - firstLink, count + 1)
    var wanted = gone
    // The session's own last word.
    wanted["13", default: 0] += 1
    verdicts.equal("losses by the reason that the peripheral saw", stats.gone.sorted, wanted.sorted)
    verdicts.equal("losses after which it did not mean to reconnect", history.notReconnecting, 1)

    let pending = LossLedger.Kind.allCases.map { ledger[$0].count(.pending) }
    verdicts.equal("callers without an outcome", pending.reduce(0, +), 0)
    verdicts.equal("calls with two outcomes, without one, or with another's answer", ledger.faults, [])
    let violation = history.grammar.end()
    verdicts.check("the history is legal and has ended", violation == nil, "\(String(describing: violation))")
    verdicts.equal("events missed", history.missed, 0)
    verdicts.equal("faults of the stream", stream.faults, [])

    verdicts.equal("non-idempotent writes that were applied twice", stats.lock.duplicates, 0)
    let wrongLocks = ledger[.nonIdempotent].disagreements(with: locks, mayRepeat: false)
    verdicts.equal("non-idempotent outcomes against the counter", wrongLocks, [])
    let wrongValues = ledger[.idempotent].disagreements(with: values, mayRepeat: true)
    verdicts.equal("idempotent outcomes against the counter", wrongValues, [])
    let reads = ledger[.read]
    verdicts.check(
      "reads answered \(reads.count(.succeeded)), counted by the peripheral \(stats.counter.reads)",
      stats.counter.reads >= reads.count(.succeeded) && stats.counter.reads >= ledger.highestRead
        && stats.counter.reads <= reads.fates.count + count)
    verdicts.check(
      "there were writes in doubt", ledger[.nonIdempotent].count(.indeterminate) >= count / 4,
      "only \(ledger[.nonIdempotent].count(.indeterminate)): the losses hit nothing")

    if let first = samples.first, let last = samples.last {
      for (what, holds, detail) in last.comparison(with: first) { verdicts.check(what, holds, detail) }
    }
    say("reconnection, loss seen to ready: \(Distribution(history.readyTimes).summary)")
    say("reconnection, loss seen to first read answered: \(Distribution(history.reconnections).summary)")
    say("(other callers are busy; MTU, table check and subscription included; the policy adds no delay)")
    return verdicts.failed
  }
}

extension [String: Int] {
  fileprivate var sorted: String { map { "\($0.key):\($0.value)" }.sorted().joined(separator: " ") }
}
