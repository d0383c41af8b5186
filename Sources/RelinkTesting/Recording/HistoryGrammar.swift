public import Relink

/// Checks a sequence of events against the grammar of a session's history.
///
/// ```
/// history := (idle | waiting | connecting (attemptFailed | ready disconnected))* ended
/// ```
///
/// with phases in between where they belong. A subscriber's view may begin with a snapshot, which stands for what was
/// before it, and restarts at the snapshot that follows a `missed`. Beyond the order of events it checks what their
/// numbers say: attempts are counted one by one within an outage, generations only grow, and a `disconnected` names
/// the link of its `ready`.
public struct HistoryGrammar: Hashable, Sendable {
  /// An event that may not stand where it stands.
  public struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
    /// The number of the event, from 0.
    public var index: Int
    /// The event; nil where the history ends too early.
    public var event: ConnectionEvent?
    /// Why it may not stand there.
    public var reason: String

    /// The place, the event and the reason on one line.
    public var description: String {
      let subject = event.map { "event \(index), \($0)" } ?? "the end after \(index) events"
      return "\(subject): \(reason)"
    }
  }

  /// Where a history stands.
  ///
  /// ```
  ///            ┌────────── idle, waiting ──────────┐
  ///            ▼                                   │
  ///   start ► resting ── connecting ► attempting ──┤ attemptFailed
  ///            │ ▲                      │ ready    │
  ///            │ └─── disconnected ── ready        │
  ///            ▼
  ///          ended        missed ► behind ── snapshot ► any of them
  /// ```
  private enum Place: Hashable {
    case start
    case resting
    case attempting
    case ready
    case behind
    case ended
  }

  private var place: Place = .start
  private var count = 0
  /// The number of the latest attempt of this outage; nil where the next one may be any (after a snapshot).
  private var attempt: Int? = 0
  private var generation: Generation?
  /// Whether the table is being learnt anew while ready, which the phases of that may follow.
  private var isRevalidating = false
  /// What a snapshot of an ended session still allows: its end, once.
  private var endIsDue: EndReason?
  private var firstViolation: Violation?

  /// Starts at the beginning of a history, or of a subscriber's view of it.
  public init() {}

  /// Checks a whole sequence.
  ///
  /// - Parameters:
  ///   - events: The events.
  ///   - isComplete: Whether the sequence is to end with `ended`.
  /// - Returns: The first event that may not stand where it stands; nil if all is well.
  public static func check(_ events: some Sequence<ConnectionEvent>, isComplete: Bool = false) -> Violation? {
    var grammar = HistoryGrammar()
    for event in events { grammar.accept(event) }
    return isComplete ? grammar.end() : grammar.violation
  }

  /// The first event that may not stand where it stood; nil so far.
  public var violation: Violation? { firstViolation }

  /// Whether `ended` has come.
  public var hasEnded: Bool { place == .ended }

  /// Takes the next event.
  ///
  /// After a violation the rest is not looked at.
  ///
  /// - Parameter event: The event.
  /// - Returns: The first violation so far.
  @discardableResult
  public mutating func accept(_ event: ConnectionEvent) -> Violation? {
    guard firstViolation == nil else { return firstViolation }
    if let reason = step(event) { firstViolation = Violation(index: count, event: event, reason: reason) }
    count += 1
    return firstViolation
  }

  /// Says that nothing more follows: the history has to be complete.
  ///
  /// - Returns: The first violation, which may be the missing end.
  public func end() -> Violation? {
    if let firstViolation { return firstViolation }
    return hasEnded ? nil : Violation(index: count, event: nil, reason: "the history has not ended")
  }

  /// Moves on, or says why not.
  private mutating func step(_ event: ConnectionEvent) -> String? {
    switch (place, event) {
    case (.start, .snapshot(let snapshot)), (.behind, .snapshot(let snapshot)): restart(at: snapshot)
    case (.behind, _): "after `missed` a snapshot has to follow"
    case (_, .snapshot): "a snapshot stands only at the start and after `missed`"
    case (.ended, .ended(let reason)) where endIsDue == reason: sawEnd()
    case (.ended, _): "nothing follows `ended`"
    case (.start, .missed): "a view starts with a snapshot or with the first event of the history"
    case (_, .missed(let number)): missed(number)
    case (.resting, .seen), (.attempting, .seen), (.ready, .seen): nil
    case (.start, .idle), (.resting, .idle): rested(startsAnew: true)
    case (.start, .waiting), (.resting, .waiting): rested(startsAnew: false)
    case (.start, .connecting(let info)), (.resting, .connecting(let info)): connecting(info)
    case (.start, .ended), (.resting, .ended): ended()
    case (.start, _): "a history starts with `idle`, `waiting` or `connecting`"
    case (.attempting, .phase(.revalidating)): "a table is revalidated only while ready"
    case (.attempting, .phase): nil
    case (.attempting, .attemptFailed): failed()
    case (.attempting, .ready(let readiness)): becameReady(readiness)
    case (.attempting, _): "an attempt ends with `attemptFailed` or `ready` before anything else"
    case (.ready, .phase(let phase)): phaseWhileReady(phase)
    case (.ready, .disconnected(let info)): disconnected(info)
    case (.ready, _): "`ready` ends with `disconnected` before anything else"
    case (.resting, .phase): "a phase belongs to an attempt or to a ready session"
    case (.resting, .attemptFailed): "there is no attempt that could fail"
    case (.resting, .ready): "`ready` follows `connecting`"
    case (.resting, .disconnected): "the session was not ready"
    }
  }

  private mutating func restart(at snapshot: Snapshot) -> String? {
    endIsDue = nil
    isRevalidating = false
    switch snapshot.state {
    case .idle, .waiting:
      place = .resting
      attempt = nil
    case .connecting(let info, _):
      place = .attempting
      attempt = info.number
    case .ready(let readiness):
      if let generation, readiness.generation < generation { return "the generation went back" }
      place = .ready
      generation = readiness.generation
      isRevalidating = true
      attempt = 0
    case .ended(let reason):
      place = .ended
      endIsDue = reason
    }
    return nil
  }

  private mutating func missed(_ number: Int) -> String? {
    guard number > 0 else { return "`missed` says that nothing was missed" }
    place = .behind
    return nil
  }

  private mutating func rested(startsAnew: Bool) -> String? {
    place = .resting
    if startsAnew { attempt = 0 }
    return nil
  }

  private mutating func connecting(_ info: AttemptInfo) -> String? {
    if let attempt, info.number != attempt + 1 {
      return "attempt \(info.number) follows attempt \(attempt) of this outage"
    }
    guard info.number > 0 else { return "attempts are counted from 1" }
    place = .attempting
    attempt = info.number
    return nil
  }

  private mutating func failed() -> String? {
    place = .resting
    return nil
  }

  private mutating func becameReady(_ readiness: Readiness) -> String? {
    if let generation, readiness.generation <= generation {
      return "generation \(readiness.generation) follows generation \(generation)"
    }
    place = .ready
    generation = readiness.generation
    isRevalidating = false
    attempt = 0
    return nil
  }

  private mutating func phaseWhileReady(_ phase: ConnectionPhase) -> String? {
    if phase == .revalidating {
      isRevalidating = true
      return nil
    }
    let belongs = phase == .discovering || phase == .restoringSubscriptions
    return belongs && isRevalidating ? nil : "a ready session has no phase but that of its table"
  }

  private mutating func disconnected(_ info: DisconnectInfo) -> String? {
    if let generation, let lost = info.generation, lost != generation {
      return "generation \(lost) is lost, but \(generation) was ready"
    }
    place = .resting
    return nil
  }

  private mutating func ended() -> String? {
    place = .ended
    return nil
  }

  private mutating func sawEnd() -> String? {
    endIsDue = nil
    return nil
  }
}
