internal import RelinkCore

/// Where a session's events go out to its subscribers, and where its snapshot is kept for those who just look.
///
/// Fed on the session's executor, read anywhere. A subscriber that falls behind slows nobody.
final class EventPublisher: Sendable {
  private struct Subscriber {
    var id: UInt64
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
    /// In the order in which they came.
    var subscribers: [Subscriber] = []
    var lastID: UInt64 = 0

    func index(of id: UInt64) -> Int? { subscribers.firstIndex { $0.id == id } }
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
      for index in state.subscribers.indices {
        for event in events { state.subscribers[index].ring.append(event) }
        guard let waiting = state.subscribers[index].waiting else { continue }
        guard let next = state.subscribers[index].take(snapshot) else { continue }
        state.subscribers[index].waiting = nil
        resumed.append((waiting, next))
      }
      return resumed
    }
    for (continuation, event) in resumed { continuation.resume(returning: event) }
  }

  /// A new subscription; it keeps `owner` alive as long as it is kept itself.
  func subscribe(limit: Int, keeping owner: any AnyObject & Sendable) -> AsyncStream<ConnectionEvent> {
    let id = state.withLock { state in
      state.lastID += 1
      let ring = EventRing(limit: limit, from: state.snapshot)
      state.subscribers.append(Subscriber(id: state.lastID, ring: ring))
      return state.lastID
    }
    let subscription = Subscription(publisher: self, id: id, owner: owner)
    // No asynchronous function in between: each would keep a frame in the task of a consumer that waits.
    return AsyncStream(
      unfolding: { await withCheckedContinuation { subscription.next($0) } },
      onCancel: { subscription.cancel() })
  }

  /// Gives the next event to the consumer that waits, now or when there is one.
  fileprivate func next(_ id: UInt64, _ continuation: CheckedContinuation<ConnectionEvent?, Never>) {
    let event = state.withLock { state -> ConnectionEvent?? in
      guard let index = state.index(of: id) else { return .some(nil) }
      precondition(
        state.subscribers[index].waiting == nil, "an event stream has one consumer; ask for events() again")
      if let next = state.subscribers[index].take(state.snapshot) { return next }
      state.subscribers[index].waiting = continuation
      return nil
    }
    if let event { continuation.resume(returning: event) }
  }

  fileprivate func remove(_ id: UInt64) {
    let waiting = state.withLock { state in
      state.index(of: id).flatMap { state.subscribers.remove(at: $0).waiting }
    }
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

  func next(_ continuation: CheckedContinuation<ConnectionEvent?, Never>) {
    publisher.next(id, continuation)
  }

  func cancel() { publisher.remove(id) }
}
