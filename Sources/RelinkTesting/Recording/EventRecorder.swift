public import Relink

/// Collects the events of a session and checks each against the grammar of histories.
///
/// Feed it from a stream with ``record(from:)``, or by hand with ``record(_:)``. May be used on any thread.
public final class EventRecorder: Sendable {
  private struct State {
    var events: [ConnectionEvent] = []
    var grammar = HistoryGrammar()
    var finishes = 0
  }

  private let state = Locked(State())

  /// Makes an empty recorder.
  public init() {}

  /// Adds an event.
  ///
  /// - Parameter event: The event.
  public func record(_ event: ConnectionEvent) {
    state.withLock { state in
      state.events.append(event)
      state.grammar.accept(event)
    }
  }

  /// Adds every event of a stream, until the stream ends or the task is cancelled.
  ///
  /// It waits as long as the stream lives; run it in a task of its own. The end of the stream is counted.
  ///
  /// - Parameter stream: The stream, such as a session's `events()`.
  public func record<Events: AsyncSequence & Sendable>(from stream: Events) async
  where Events.Element == ConnectionEvent, Events.Failure == Never {
    for await event in stream { record(event) }
    state.withLock { $0.finishes += 1 }
  }

  /// What was recorded so far, in order.
  public var events: [ConnectionEvent] { state.withLock { $0.events } }

  /// The latest event.
  public var last: ConnectionEvent? { state.withLock { $0.events.last } }

  /// How many streams that were recorded have ended.
  public var finishedStreams: Int { state.withLock { $0.finishes } }

  /// The first event that breaks the grammar; nil so far.
  public var violation: HistoryGrammar.Violation? { state.withLock { $0.grammar.violation } }

  /// The first event that breaks the grammar, or the missing end of a history that is to be complete.
  public var violationOfComplete: HistoryGrammar.Violation? { state.withLock { $0.grammar.end() } }

  /// Whether the history has ended.
  public var hasEnded: Bool { state.withLock { $0.grammar.hasEnded } }

  /// What each `ready` said, in order.
  public var readiness: [Readiness] {
    events.compactMap { if case .ready(let readiness) = $0 { readiness } else { nil } }
  }

  /// How each ready session was lost, in order.
  public var disconnections: [DisconnectInfo] {
    events.compactMap { if case .disconnected(let info) = $0 { info } else { nil } }
  }

  /// How each attempt failed, in order.
  public var failures: [DisconnectInfo] {
    events.compactMap { if case .attemptFailed(let info) = $0 { info } else { nil } }
  }

  /// How many attempts began.
  public var attempts: Int {
    events.reduce(0) { count, event in if case .connecting = event { count + 1 } else { count } }
  }

  /// The events as short words, one each, for a comparison that a person can read: `connecting(1) ready(1)`.
  public var outline: String { events.map(\.outline).joined(separator: " ") }

  /// Forgets what was recorded; the grammar goes on where it stands.
  public func forget() { state.withLock { $0.events = [] } }
}

extension ConnectionEvent {
  /// The event as a short word with its number or reason, such as `connecting(1)` or `disconnected(requested)`.
  public var outline: String {
    switch self {
    case .snapshot(let snapshot): "snapshot(\(snapshot.state.outline))"
    case .idle(let reason): "idle(\(reason))"
    case .waiting(let reason, _): "waiting(\(reason))"
    case .connecting(let info): "connecting(\(info.number))"
    case .phase(let phase): "phase(\(phase))"
    case .attemptFailed(let info): "attemptFailed(\(info.reason))"
    case .ready(let readiness): "ready(\(readiness.generation))"
    case .disconnected(let info): "disconnected(\(info.reason))"
    case .seen(let other, let isFollowed, _): "seen(\(other)\(isFollowed ? ", followed" : ""))"
    case .missed(let count): "missed(\(count))"
    case .ended(let reason): "ended(\(reason))"
    }
  }
}

extension Snapshot.State {
  fileprivate var outline: String {
    switch self {
    case .idle: "idle"
    case .waiting: "waiting"
    case .connecting(let info, _): "connecting(\(info.number))"
    case .ready(let readiness): "ready(\(readiness.generation))"
    case .ended: "ended"
    }
  }
}
