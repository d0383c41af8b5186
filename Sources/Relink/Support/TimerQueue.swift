/// The timers of one clock: set, cancelled and fired by ID, in the order of their instants, in nanoseconds.
///
/// A binary heap with the position of each timer beside it, so that a cancelled or replaced timer leaves nothing
/// behind. Each operation costs O(log n).
package struct TimerQueue {
  private struct Entry {
    var rank: Rank
    var id: TimerID
    var fire: @Sendable () -> Void
  }

  /// The place of a timer among the others.
  package struct Rank: Hashable, Comparable {
    /// When it is due.
    package var instant: Int64
    /// Breaks ties, so that timers of one instant fire in the order in which they were set.
    package var sequence: UInt64

    package static func < (left: Rank, right: Rank) -> Bool {
      (left.instant, left.sequence) < (right.instant, right.sequence)
    }
  }

  private var heap: [Entry] = []
  private var positions: [TimerID: Int] = [:]

  package init() {}

  /// How many timers are set.
  package var count: Int { heap.count }

  /// The place of the first of them.
  package var first: Rank? { heap.first?.rank }

  /// Sets a timer in place of one of the same ID, which is returned.
  @discardableResult
  package mutating func set(
    _ id: TimerID, _ rank: Rank, _ fire: @escaping @Sendable () -> Void
  ) -> (@Sendable () -> Void)? {
    let replaced = cancel(id)
    heap.append(Entry(rank: rank, id: id, fire: fire))
    positions[id] = heap.count - 1
    siftUp(heap.count - 1)
    return replaced
  }

  /// Forgets a timer and returns it, so that what dies with it does so outside the queue.
  @discardableResult
  package mutating func cancel(_ id: TimerID) -> (@Sendable () -> Void)? {
    guard !heap.isEmpty, let position = positions.removeValue(forKey: id) else { return nil }
    let cancelled = heap[position].fire
    removeEntry(at: position)
    return cancelled
  }

  /// Takes out the first timer that is due at `now`.
  package mutating func popDue(_ now: Int64) -> (@Sendable () -> Void)? {
    guard let first = heap.first, first.rank.instant <= now else { return nil }
    positions[first.id] = nil
    removeEntry(at: 0)
    return first.fire
  }

  private mutating func removeEntry(at position: Int) {
    let last = heap.count - 1
    if position != last {
      heap.swapAt(position, last)
      positions[heap[position].id] = position
    }
    heap.removeLast()
    guard position < heap.count else { return }
    siftDown(position)
    siftUp(position)
  }

  private func precedes(_ left: Int, _ right: Int) -> Bool {
    heap[left].rank < heap[right].rank
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      guard precedes(child, parent) else { return }
      exchange(child, parent)
      child = parent
    }
  }

  private mutating func siftDown(_ start: Int) {
    var parent = start
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && precedes(child, least) {
        least = child
      }
      guard least != parent else { return }
      exchange(parent, least)
      parent = least
    }
  }

  private mutating func exchange(_ left: Int, _ right: Int) {
    heap.swapAt(left, right)
    positions[heap[left].id] = left
    positions[heap[right].id] = right
  }
}
