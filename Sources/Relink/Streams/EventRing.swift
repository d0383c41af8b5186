internal import RelinkCore

/// The events that one subscriber has not taken yet.
///
/// Holds at most `limit` of them. When one more comes, all are dropped and counted: the subscriber then gets the
/// count, a snapshot of the moment at which it takes it, and every later event.
struct EventRing {
  private let limit: Int
  /// What the subscriber gets first: where the session stood when it subscribed.
  private var first: ConnectionEvent?
  private var events: [ConnectionEvent] = []
  private var head = 0
  private var missed = 0
  private var needsSnapshot = false
  private var end: EndReason?
  private var isFinished = false

  /// Begins with where the session stands.
  init(limit: Int, from snapshot: Snapshot) {
    self.limit = max(limit, 1)
    first = .snapshot(snapshot)
    // A session that has ended tells its end once more, so that the iteration ends too.
    if case .ended(let reason) = snapshot.state { end = reason }
  }

  /// Keeps an event for the subscriber.
  mutating func append(_ event: ConnectionEvent) {
    if case .ended(let reason) = event {
      // It needs no place: it comes after everything else, whatever was missed.
      end = reason
      return
    }
    // After a gap, until the subscriber has taken its snapshot, the snapshot that it will take covers this event.
    if needsSnapshot {
      if missed > 0 { missed += 1 }
      return
    }
    guard events.count - head < limit else {
      missed += events.count - head + 1
      events.removeAll()
      head = 0
      needsSnapshot = true
      return
    }
    if head >= limit {
      // A subscriber that is always a little behind never empties the list.
      events.removeFirst(head)
      head = 0
    }
    events.append(event)
  }

  /// What a subscriber gets that asks for its next event.
  enum Next {
    case event(ConnectionEvent)
    case finished
    case nothing
  }

  /// Takes out the next event.
  mutating func next(snapshot: Snapshot) -> Next {
    if let first = first.take() { return .event(first) }
    if missed > 0 {
      defer { missed = 0 }
      return .event(.missed(missed))
    }
    if needsSnapshot {
      needsSnapshot = false
      return .event(.snapshot(snapshot))
    }
    if head < events.count {
      let event = events[head]
      head += 1
      if head == events.count {
        // A subscriber that keeps up needs no storage while nothing happens.
        events = []
        head = 0
      }
      return .event(event)
    }
    if let reason = end.take() {
      isFinished = true
      return .event(.ended(reason))
    }
    return isFinished ? .finished : .nothing
  }
}
