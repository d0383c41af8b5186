import Relink
import RelinkTesting
import Testing

@Suite struct HistoryGrammarTests {
  // MARK: - Whole histories

  @Test(
    arguments: [
      [.ended(.closed)],
      [.idle(.neverAsked), .ended(.released)],
      [
        .idle(.neverAsked), connecting(1), ready(1), lost(1), connecting(1), ready(2), lost(2),
        .ended(.closed),
      ],
      [
        connecting(1), failed, backoff, connecting(2), failed, backoff, connecting(3), ready(7), lost(7),
        idle,
        .ended(.closed),
      ],
      [
        connecting(1), .phase(.exchangingMTU), .phase(.discovering), .phase(.restoringSubscriptions),
        .phase(.settingUp), ready(1), .phase(.revalidating), .phase(.discovering), lost(1), .ended(.closed),
      ],
      // Nobody wants a link for a while: the outage, and with it the count, starts anew.
      [connecting(1), failed, idle, connecting(1), failed, .ended(.closed)],
      [
        waitingForAdapter, waitingForAdapter, idle, waitingForAdapter, connecting(1), failed, .ended(.closed),
      ],
    ] as [[ConnectionEvent]])
  func isLegal(history: [ConnectionEvent]) {
    #expect(HistoryGrammar.check(history, isComplete: true) == nil)
  }

  @Test(
    arguments: [
      ([.phase(.discovering)], 0),
      ([ready(1)], 0),
      ([lost(1)], 0),
      ([failed], 0),
      ([.missed(1)], 0),
      ([idle, ready(1)], 1),
      ([idle, failed], 1),
      ([idle, lost(1)], 1),
      ([idle, .phase(.discovering)], 1),
      ([connecting(1), connecting(2)], 1),
      ([connecting(1), idle], 1),
      ([connecting(1), waitingForAdapter], 1),
      ([connecting(1), lost(1)], 1),
      ([connecting(1), .ended(.closed)], 1),
      ([connecting(1), .phase(.revalidating)], 1),
      ([connecting(1), ready(1), idle], 2),
      ([connecting(1), ready(1), waitingForAdapter], 2),
      ([connecting(1), ready(1), failed], 2),
      ([connecting(1), ready(1), ready(2)], 2),
      ([connecting(1), ready(1), connecting(1)], 2),
      ([connecting(1), ready(1), .ended(.closed)], 2),
      ([connecting(1), ready(1), .phase(.discovering)], 2),
      ([connecting(1), ready(1), .phase(.settingUp)], 2),
      ([connecting(1), ready(1), lost(1), lost(1)], 3),
      ([connecting(1), failed, failed], 2),
      ([idle, .ended(.closed), idle], 2),
      ([idle, .ended(.closed), .ended(.closed)], 2),
      ([idle, snapshot(.idle(.neverAsked))], 1),
      // Numbers.
      ([connecting(2)], 0),
      ([connecting(1), failed, connecting(3)], 2),
      ([connecting(1), failed, connecting(1)], 2),
      ([connecting(1), ready(1), lost(1), connecting(2)], 3),
      ([connecting(1), ready(2), lost(1)], 2),
      ([connecting(1), ready(1), lost(1), connecting(1), ready(1)], 4),
      ([connecting(1), ready(2), lost(2), connecting(1), ready(1)], 4),
    ] as [([ConnectionEvent], Int)])
  func isIllegal(history: [ConnectionEvent], at index: Int) {
    let violation = HistoryGrammar.check(history)
    #expect(violation?.index == index)
    #expect(violation?.event == history[index])
    #expect(violation?.reason.isEmpty == false)
  }

  @Test func aHistoryThatDoesNotEndIsLegalUntilItHasTo() {
    let history: [ConnectionEvent] = [idle, connecting(1)]
    #expect(HistoryGrammar.check(history) == nil)
    #expect(HistoryGrammar.check(history, isComplete: true)?.index == 2)
    #expect(HistoryGrammar.check([], isComplete: true)?.event == nil)
    #expect(HistoryGrammar.check([], isComplete: true) != nil)
  }

  // MARK: - A subscriber's view

  @Test(
    arguments: [
      [snapshot(.idle(.neverAsked)), connecting(1), failed],
      [snapshot(.connecting(attempt(4), .discovering)), ready(9), lost(9), connecting(1)],
      [snapshot(.connecting(attempt(4), nil)), failed, connecting(5)],
      [snapshot(.waiting(.backoff, until: nil)), connecting(3)],
      [snapshot(.ready(readiness(4))), .phase(.discovering), lost(4), connecting(1)],
      [snapshot(.ready(readiness(4))), .missed(3), snapshot(.ready(readiness(6))), lost(6)],
      [idle, connecting(1), .missed(12), snapshot(.idle(.disconnected)), connecting(1)],
      [connecting(1), ready(3), .missed(1), snapshot(.connecting(attempt(2), nil)), ready(4)],
      [snapshot(.ended(.closed))],
      [snapshot(.ended(.closed)), .ended(.closed)],
    ] as [[ConnectionEvent]])
  func isALegalView(events: [ConnectionEvent]) {
    #expect(HistoryGrammar.check(events) == nil)
  }

  @Test(
    arguments: [
      ([snapshot(.idle(.neverAsked)), lost(1)], 1),
      ([snapshot(.ready(readiness(4))), lost(3)], 1),
      ([snapshot(.connecting(attempt(4), nil)), failed, connecting(4)], 2),
      ([idle, .missed(0)], 1),
      ([idle, .missed(3), connecting(1)], 2),
      ([idle, .missed(3), .missed(3)], 2),
      ([idle, .missed(3), snapshot(.idle(.neverAsked)), snapshot(.idle(.neverAsked))], 3),
      ([connecting(1), ready(5), .missed(2), snapshot(.ready(readiness(4)))], 3),
      ([connecting(1), ready(5), .missed(2), snapshot(.idle(.disconnected)), connecting(1), ready(5)], 5),
      ([snapshot(.ended(.closed)), idle], 1),
      ([snapshot(.ended(.closed)), .ended(.released)], 1),
      ([snapshot(.ended(.closed)), .ended(.closed), .ended(.closed)], 2),
    ] as [([ConnectionEvent], Int)])
  func isAnIllegalView(events: [ConnectionEvent], at index: Int) {
    #expect(HistoryGrammar.check(events)?.index == index)
  }

  @Test func theFirstViolationStays() {
    var grammar = HistoryGrammar()
    #expect(grammar.accept(idle) == nil)
    let first = grammar.accept(lost(1))
    #expect(first?.index == 1)
    #expect(grammar.accept(connecting(1)) == first)
    #expect(grammar.end() == first)
    #expect(first?.description.contains("event 1") == true)
  }

  // MARK: - The recorder

  @Test func aRecorderKeepsAndChecks() {
    let recorder = EventRecorder()
    for event in [idle, connecting(1), ready(1), lost(1), connecting(1), failed] { recorder.record(event) }
    #expect(recorder.violation == nil)
    #expect(recorder.violationOfComplete != nil)
    #expect(recorder.readiness.map(\.generation.rawValue) == [1])
    #expect(recorder.disconnections.count == 1)
    #expect(recorder.failures.count == 1)
    #expect(recorder.attempts == 2)
    #expect(
      recorder.outline
        == "idle(disconnected) connecting(1) ready(1) disconnected(supervisionTimeout) connecting(1) "
        + "attemptFailed(notFound)")
    recorder.record(.ended(.closed))
    #expect(recorder.hasEnded)
    #expect(recorder.violationOfComplete == nil)
    recorder.record(idle)
    #expect(recorder.violation?.index == 7)
  }

  @Test func aRecorderFollowsAStreamToItsEnd() throws {
    let executor = ManualExecutor()
    let recorder = EventRecorder()
    let (stream, input) = AsyncStream.makeStream(
      of: ConnectionEvent.self, bufferingPolicy: .bufferingNewest(8))
    let task = executor.spawn { await recorder.record(from: stream) }
    executor.run()
    input.yield(idle)
    executor.run()
    #expect(recorder.events == [idle])
    #expect(recorder.finishedStreams == 0)
    input.finish()
    try executor.complete(task).get()
    #expect(recorder.finishedStreams == 1)
  }
}

// MARK: - Events in short

private let idle = ConnectionEvent.idle(.disconnected)
private let failed = ConnectionEvent.attemptFailed(info(.notFound, generation: nil))
private let backoff = ConnectionEvent.waiting(for: .backoff, until: MonotonicInstant(nanoseconds: 1))
private let waitingForAdapter = ConnectionEvent.waiting(for: .adapterOff, until: nil)

private func attempt(_ number: Int) -> AttemptInfo {
  AttemptInfo(number: number, remaining: nil, isReconnection: false, after: nil)
}

private func connecting(_ number: Int) -> ConnectionEvent { .connecting(attempt(number)) }

private func readiness(_ generation: UInt64) -> Readiness {
  Readiness(
    generation: Generation(rawValue: generation), outage: .seconds(1), attempts: 1, mtu: 23, roundTrips: 3,
    tableChanged: false, continuity: .unknown)
}

private func ready(_ generation: UInt64) -> ConnectionEvent { .ready(readiness(generation)) }

private func lost(_ generation: UInt64) -> ConnectionEvent {
  .disconnected(info(.supervisionTimeout, generation: Generation(rawValue: generation)))
}

private func snapshot(_ state: Snapshot.State) -> ConnectionEvent {
  .snapshot(Snapshot(state: state, since: .zero))
}

private func info(_ reason: DisconnectReason, generation: Generation?) -> DisconnectInfo {
  DisconnectInfo(
    reason: reason, evidence: [], confidence: .high, recovery: .retryConnection, willReconnect: true,
    generation: generation, inDoubt: 0)
}
