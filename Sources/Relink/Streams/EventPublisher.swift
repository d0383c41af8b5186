internal import RelinkCore

/// Where a session's events go out to its subscribers, and where its snapshot is kept for those who just look.
///
/// Fed on the session's executor, read anywhere. A subscriber that falls behind slows nobody.
final class EventPublisher: Sendable {
  private struct Subscriber {
    var ring: EventRing
    var waiting: CheckedContinuation<ConnectionEvent?, Never>?

    /// The next event, `.some(nil)` at the end, nil where there is nothing yet.
    mutating func take(_ snapshot: Snapshot) -> ConnectionEvent?? {
      switch ring.next(snapshot: snapshot) {
      case .event(let event): .some(event)
      case .finished: .some(nil)
      case .nothing: nil
      }
    }
  }

  private struct State {
    var snapshot: Snapshot
    var subscribers: [UInt64: Subscriber] = [:]
    var lastID: UInt64 = 0
  }

  private let state: Locked<State>

  init(_ snapshot: Snapshot) {
    state = Locked(State(snapshot: snapshot))
  }

  /// Where the session stands.
  var snapshot: Snapshot {
    state.withLock { $0.snapshot }
  }

  /// Tells all subscribers what happened in one step of the session, and where it stands after it.
  func publish(_ events: [ConnectionEvent], _ snapshot: Snapshot) {
    let resumed = state.withLock { state in
      state.snapshot = snapshot
      var resumed: [(CheckedContinuation<ConnectionEvent?, Never>, ConnectionEvent?)] = []
      guard !events.isEmpty else { return resumed }
      for id in state.subscribers.keys.sorted() {
        guard var subscriber = state.subscribers[id] else { continue }
        for event in events { subscriber.ring.append(event) }
        if let waiting = subscriber.waiting, let next = subscriber.take(snapshot) {
          subscriber.waiting = nil
          resumed.append((waiting, next))
        }
        state.subscribers[id] = subscriber
      }
      return resumed
    }
    for (continuation, event) in resumed { continuation.resume(returning: event) }
  }

  /// A new subscription; it keeps `owner` alive as long as it is kept itself.
  func subscribe(limit: Int, keeping owner: any AnyObject & Sendable) -> AsyncStream<ConnectionEvent> {
    let id = state.withLock { state in
      state.lastID += 1
      state.subscribers[state.lastID] = Subscriber(ring: EventRing(limit: limit, from: state.snapshot))
      return state.lastID
    }
    let subscription = Subscription(publisher: self, id: id, owner: owner)
    return AsyncStream(unfolding: { await subscription.next() }, onCancel: { subscription.cancel() })
  }

  fileprivate func next(_ id: UInt64) async -> ConnectionEvent? {
    await withCheckedContinuation { continuation in
      let event = state.withLock { state -> ConnectionEvent?? in
        guard var subscriber = state.subscribers[id] else { return .some(nil) }
        precondition(subscriber.waiting == nil, "an event stream has one consumer; ask for events() again")
        defer { state.subscribers[id] = subscriber }
        if let next = subscriber.take(state.snapshot) { return next }
        subscriber.waiting = continuation
        return nil
      }
      if let event { continuation.resume(returning: event) }
    }
  }

  fileprivate func remove(_ id: UInt64) {
    let waiting = state.withLock { $0.subscribers.removeValue(forKey: id)?.waiting }
    waiting?.resume(returning: nil)
  }
}

/// The subscriber's end: unsubscribes when the stream is dropped or its consumer cancelled.
private final class Subscription: Sendable {
  private let publisher: EventPublisher
  private let id: UInt64
  /// A stream that is iterated keeps its session alive, even where nothing else does.
  private let owner: any AnyObject & Sendable

  init(publisher: EventPublisher, id: UInt64, owner: any AnyObject & Sendable) {
    self.publisher = publisher
    self.id = id
    self.owner = owner
  }

  deinit { publisher.remove(id) }

  func next() async -> ConnectionEvent? { await publisher.next(id) }

  func cancel() { publisher.remove(id) }
}
