public import RelinkCore

/// The values of one characteristic, across any number of links, for one consumer.
///
/// Iterating waits for the next value however long it takes: an outage only delays it. The iteration ends when its
/// task is cancelled, and throws when there will be no further value: the device has no such characteristic
/// (`characteristicNotFound`) or refuses to notify it (`rejected`), or the session has ended (`ended`). A stream that is
/// kept keeps its session and the subscription; dropping it ends the subscription on the device.
public struct ValueStream: AsyncSequence, Sendable {
  private let subscription: ValueSubscription

  init(_ subscription: ValueSubscription) {
    self.subscription = subscription
  }

  /// An iterator; all iterators of one stream share its values.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(subscription: subscription)
  }

  /// Takes the values one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let subscription: ValueSubscription

    /// The next value; nil when the task is cancelled.
    ///
    /// Waits without a bound.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(RelinkError) -> ValueUpdate? {
      try await subscription.buffer.next().get()
    }

    /// The next value; nil when the task is cancelled.
    ///
    /// Waits without a bound.
    public mutating func next() async throws(RelinkError) -> ValueUpdate? {
      try await subscription.buffer.next().get()
    }
  }
}

/// A consumer's end of a subscription: takes it back when the last holder is gone.
final class ValueSubscription: Sendable {
  let buffer: ValueBuffer
  private let id: ConsumerID
  private let session: DeviceSession

  init(buffer: ValueBuffer, id: ConsumerID, session: DeviceSession) {
    self.buffer = buffer
    self.id = id
    self.session = session
  }

  deinit { session.consumerGone(id) }
}

/// The values that one consumer has not taken yet: the newest `limit` of them.
final class ValueBuffer: Sendable {
  private typealias Waiting = CheckedContinuation<Result<ValueUpdate?, RelinkError>, Never>

  private struct State {
    var values: [ValueUpdate] = []
    var head = 0
    var dropped = 0
    var lostLink = false
    var end: RelinkError?
    var waiting: [(id: UInt64, continuation: Waiting)] = []
    var cancelled: [UInt64] = []
    var lastWaiter: UInt64 = 0

    /// The next value or the end; nil where the consumer has to wait, and is stored.
    mutating func take(
      for id: UInt64, _ continuation: Waiting
    ) -> Result<ValueUpdate?, RelinkError>? {
      if let index = cancelled.firstIndex(of: id) {
        cancelled.remove(at: index)
        return .success(nil)
      }
      if head < values.count {
        var update = values[head]
        head += 1
        if head == values.count {
          values.removeAll(keepingCapacity: true)
          head = 0
        }
        if dropped > 0 || lostLink {
          let isAfterLoss = lostLink || (update.gap?.isAfterLoss ?? false)
          update.gap = Gap(isAfterLoss: isAfterLoss, dropped: dropped + (update.gap?.dropped ?? 0))
          dropped = 0
          lostLink = false
        }
        return .success(update)
      }
      if let end { return .failure(end) }
      waiting.append((id, continuation))
      return nil
    }
  }

  private let limit: Int
  private let state = Locked(State())

  init(_ buffering: Buffering) {
    limit = buffering.limit
  }

  /// How many values are in memory, those included that were taken: at most twice the limit.
  var valuesInMemory: Int { state.withLock { $0.values.count } }

  /// Keeps a value, or hands it to the consumer that waits for it.
  func append(_ update: ValueUpdate) {
    let waiting = state.withLock { state -> Waiting? in
      guard state.end == nil else { return nil }
      if !state.waiting.isEmpty { return state.waiting.removeFirst().continuation }
      if state.values.count - state.head == limit {
        let oldest = state.values[state.head]
        state.dropped += 1 + (oldest.gap?.dropped ?? 0)
        state.lostLink = state.lostLink || (oldest.gap?.isAfterLoss ?? false)
        state.head += 1
      }
      if state.head >= limit {
        // A consumer that is always a little behind never empties the list.
        state.values.removeFirst(state.head)
        state.head = 0
      }
      state.values.append(update)
      return nil
    }
    waiting?.resume(returning: .success(update))
  }

  /// There will be no further value.
  func finish(_ error: RelinkError) {
    let waiting = state.withLock { state in
      if state.end == nil { state.end = error }
      defer { state.waiting.removeAll() }
      return state.waiting.map(\.continuation)
    }
    for continuation in waiting { continuation.resume(returning: .failure(error)) }
  }

  func next() async -> Result<ValueUpdate?, RelinkError> {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { $0.take(for: id, continuation) }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      let waiting = state.withLock { state -> Waiting? in
        guard let index = state.waiting.firstIndex(where: { $0.id == id }) else {
          // Cancelled before it was stored: leave word for `take`.
          state.cancelled.append(id)
          return nil
        }
        return state.waiting.remove(at: index).continuation
      }
      waiting?.resume(returning: .success(nil))
    }
    state.withLock { $0.cancelled.removeAll { $0 == id } }
    return result
  }
}
