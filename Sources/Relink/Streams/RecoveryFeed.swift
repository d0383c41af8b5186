internal import RelinkCore
internal import Synchronization

/// The outcomes of operations of earlier processes, until somebody takes them.
///
/// It holds at most what the store handed over, and what follows from that.
final class RecoveryFeed: Sendable {
  private typealias Waiting = CheckedContinuation<RecoveredOperation?, Never>

  private struct State {
    var operations: [RecoveredOperation] = []
    /// Consumers in the order in which they came; each operation goes to one.
    var waiting: [(id: UInt64, continuation: Waiting)] = []
    /// The streams that are neither cancelled nor gone.
    var subscribed: Set<UInt64> = []
    /// What each consumer has got and not come back from yet.
    var handed: [UInt64: OperationID] = [:]
    var lastID: UInt64 = 0
    var hasEnded = false
  }

  private let state = Locked(State())

  /// How much is kept for streams, whatever became of them.
  var kept: Int { state.withLock { $0.subscribed.count + $0.handed.count + $0.waiting.count } }

  /// Hands outcomes to the consumers that wait, or keeps them.
  func append(_ operations: [RecoveredOperation]) {
    let resumed = state.withLock { state in
      var resumed: [(Waiting, RecoveredOperation)] = []
      for operation in operations {
        if state.waiting.isEmpty {
          state.operations.append(operation)
        } else {
          let first = state.waiting.removeFirst()
          state.handed[first.id] = operation.id
          resumed.append((first.continuation, operation))
        }
      }
      return resumed
    }
    for (continuation, operation) in resumed { continuation.resume(returning: operation) }
  }

  /// Its outcome was told in another way.
  func remove(_ id: OperationID) {
    state.withLock { state in state.operations.removeAll { $0.id == id } }
  }

  /// There will be no further outcome; those that are kept can still be taken.
  func finish() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      defer { state.waiting.removeAll() }
      return state.waiting.map(\.continuation)
    }
    for continuation in waiting { continuation.resume(returning: nil) }
  }

  /// A stream of the outcomes; `taken` hears of each that a consumer got from it, once he asks for the next one: a process
  /// that dies before has not seen it.
  func subscribe(_ taken: @escaping @Sendable (OperationID) -> Void) -> AsyncStream<RecoveredOperation> {
    let id = state.withLock { state in
      state.lastID += 1
      state.subscribed.insert(state.lastID)
      return state.lastID
    }
    let subscription = RecoverySubscription(feed: self, id: id)
    return AsyncStream(
      unfolding: { await withCheckedContinuation { subscription.next($0, taken) } },
      onCancel: { subscription.cancel() })
  }

  fileprivate func next(
    _ id: UInt64, _ continuation: CheckedContinuation<RecoveredOperation?, Never>,
    _ taken: (OperationID) -> Void
  ) {
    let (seen, next) = state.withLock { state -> (OperationID?, RecoveredOperation??) in
      let seen = state.handed.removeValue(forKey: id)
      guard state.subscribed.contains(id) else { return (seen, .some(nil)) }
      if !state.operations.isEmpty {
        let first = state.operations.removeFirst()
        state.handed[id] = first.id
        return (seen, first)
      }
      if state.hasEnded { return (seen, .some(nil)) }
      state.waiting.append((id, continuation))
      return (seen, nil)
    }
    if let next { continuation.resume(returning: next) }
    if let seen { taken(seen) }
  }

  fileprivate func cancel(_ id: UInt64) {
    let waiting = state.withLock { state -> [Waiting] in
      state.subscribed.remove(id)
      let mine = state.waiting.filter { $0.id == id }.map(\.continuation)
      state.waiting.removeAll { $0.id == id }
      return mine
    }
    for continuation in waiting { continuation.resume(returning: nil) }
  }

  /// Nobody can ask for the next one any more.
  fileprivate func forget(_ id: UInt64) {
    state.withLock { state in
      state.subscribed.remove(id)
      state.handed[id] = nil
    }
  }
}

/// The consumer's end: what is kept for a stream goes with it.
private final class RecoverySubscription: Sendable {
  private let feed: RecoveryFeed
  private let id: UInt64

  init(feed: RecoveryFeed, id: UInt64) {
    self.feed = feed
    self.id = id
  }

  deinit { feed.forget(id) }

  func next(
    _ continuation: CheckedContinuation<RecoveredOperation?, Never>, _ taken: (OperationID) -> Void
  ) {
    feed.next(id, continuation, taken)
  }

  func cancel() { feed.cancel(id) }
}
