internal import RelinkCore
internal import Synchronization

/// Where the transitions of a journal go out to those who look at them.
///
/// Fed on the session's executor. A subscriber that falls behind loses what it has not taken, gets the count, and slows
/// nobody.
final class JournalFeed: Sendable {
  private typealias Waiting = CheckedContinuation<JournalUpdate?, Never>

  private struct Subscriber {
    var id: UInt64
    let limit: Int
    var events: [JournalEvent] = []
    var head = 0
    var missed = 0
    var waiting: Waiting?

    mutating func append(_ event: JournalEvent) {
      if events.count - head >= limit {
        missed += events.count - head
        events.removeAll()
        head = 0
      }
      if head >= limit {
        // A subscriber that is always a little behind never empties the list.
        events.removeFirst(head)
        head = 0
      }
      events.append(event)
    }

    /// The next update; nil where there is none yet.
    mutating func next() -> JournalUpdate? {
      if missed > 0 {
        defer { missed = 0 }
        return .missed(missed)
      }
      guard head < events.count else { return nil }
      defer {
        head += 1
        if head == events.count {
          events = []
          head = 0
        }
      }
      return .event(events[head])
    }
  }

  private struct State {
    /// In the order in which they came.
    var subscribers: [Subscriber] = []
    var lastID: UInt64 = 0
    var hasEnded = false

    func index(of id: UInt64) -> Int? { subscribers.firstIndex { $0.id == id } }
  }

  private let state = Locked(State())

  /// Whether anybody looks.
  var hasSubscribers: Bool { state.withLock { !$0.subscribers.isEmpty } }

  /// Tells all subscribers.
  func publish(_ events: [JournalEvent]) {
    let resumed = state.withLock { state in
      var resumed: [(Waiting, JournalUpdate)] = []
      for index in state.subscribers.indices {
        for event in events { state.subscribers[index].append(event) }
        guard let waiting = state.subscribers[index].waiting else { continue }
        guard let next = state.subscribers[index].next() else { continue }
        state.subscribers[index].waiting = nil
        resumed.append((waiting, next))
      }
      return resumed
    }
    for (continuation, update) in resumed { continuation.resume(returning: update) }
  }

  /// There will be no further event.
  func finish() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      var waiting: [Waiting] = []
      for index in state.subscribers.indices {
        if let one = state.subscribers[index].waiting.take() { waiting.append(one) }
      }
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: nil) }
  }

  /// A new subscription.
  func subscribe(limit: Int) -> AsyncStream<JournalUpdate> {
    let id = state.withLock { state in
      state.lastID += 1
      state.subscribers.append(Subscriber(id: state.lastID, limit: max(limit, 1)))
      return state.lastID
    }
    let subscription = JournalSubscription(feed: self, id: id)
    return AsyncStream(
      unfolding: { await withCheckedContinuation { subscription.next($0) } },
      onCancel: { subscription.cancel() })
  }

  fileprivate func next(_ id: UInt64, _ continuation: CheckedContinuation<JournalUpdate?, Never>) {
    let update = state.withLock { state -> JournalUpdate?? in
      guard let index = state.index(of: id) else { return .some(nil) }
      precondition(
        state.subscribers[index].waiting == nil,
        "a journal stream has one consumer; ask for journalEvents() again")
      if let next = state.subscribers[index].next() { return next }
      if state.hasEnded { return .some(nil) }
      state.subscribers[index].waiting = continuation
      return nil
    }
    if let update { continuation.resume(returning: update) }
  }

  fileprivate func remove(_ id: UInt64) {
    let waiting = state.withLock { state in
      state.index(of: id).flatMap { state.subscribers.remove(at: $0).waiting }
    }
    waiting?.resume(returning: nil)
  }
}

/// The subscriber's end: unsubscribes when the stream is dropped or its consumer cancelled.
private final class JournalSubscription: Sendable {
  private let feed: JournalFeed
  private let id: UInt64

  init(feed: JournalFeed, id: UInt64) {
    self.feed = feed
    self.id = id
  }

  deinit { feed.remove(id) }

  func next(_ continuation: CheckedContinuation<JournalUpdate?, Never>) { feed.next(id, continuation) }

  func cancel() { feed.remove(id) }
}
