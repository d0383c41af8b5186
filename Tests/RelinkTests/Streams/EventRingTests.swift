import Testing

@testable import Relink

@Suite struct EventRingTests {
  private static let now = Snapshot(state: .idle(.neverAsked), since: .zero)

  @Test func aSubscriberGetsTheSnapshotFirstAndThenEachEvent() {
    var ring = EventRing(limit: 4, from: Self.now)
    // The snapshot is that of the moment at which it subscribed, so it covers nothing of what comes then.
    ring.append(.idle(.disconnected))
    #expect(ring.take(5, now: .idle(.disconnected)) == [.snapshot(Self.now), .idle(.disconnected)])
    ring.append(.idle(.withdrawn))
    ring.append(.idle(.notReconnecting))
    #expect(ring.take(5) == [.idle(.withdrawn), .idle(.notReconnecting)])
    #expect(ring.take(1) == [])
  }

  @Test func aSubscriberThatFallsBehindGetsTheCountAndASnapshot() {
    var ring = EventRing(limit: 3, from: Self.now)
    _ = ring.take(1)
    for _ in 0..<3 { ring.append(.idle(.withdrawn)) }
    ring.append(.idle(.withdrawn))
    ring.append(.idle(.withdrawn))
    #expect(ring.take(5) == [.missed(5), .snapshot(Self.now)])
    ring.append(.idle(.disconnected))
    #expect(ring.take(5) == [.idle(.disconnected)])
  }

  @Test func aSubscriberThatNeverAskedGetsItsFirstSnapshotBeforeTheCount() {
    var ring = EventRing(limit: 2, from: Self.now)
    for _ in 0..<3 { ring.append(.idle(.withdrawn)) }
    let later = Snapshot(state: .idle(.withdrawn), since: .zero)
    #expect(ring.take(5, now: .idle(.withdrawn)) == [.snapshot(Self.now), .missed(3), .snapshot(later)])
  }

  @Test func aSubscriberOfAnEndedSessionGetsItsEnd() {
    let ended = Snapshot(state: .ended(.closed), since: .zero)
    var ring = EventRing(limit: 2, from: ended)
    #expect(ring.take(5) == [.snapshot(ended), .ended(.closed)])
    #expect(ring.hasFinished() == true)
  }

  @Test func whatHappensBetweenTheCountAndTheSnapshotIsInTheSnapshot() {
    var ring = EventRing(limit: 1, from: Self.now)
    _ = ring.take(1)
    for _ in 0..<2 { ring.append(.idle(.withdrawn)) }
    #expect(ring.take(1) == [.missed(2)])
    ring.append(.idle(.disconnected))
    #expect(ring.take(5) == [.snapshot(Self.now)])
    ring.append(.idle(.notReconnecting))
    #expect(ring.take(5) == [.idle(.notReconnecting)])
  }

  @Test func aFullRingHoldsAsManyEventsAsItMay() {
    var ring = EventRing(limit: 2, from: Self.now)
    _ = ring.take(1)
    ring.append(.idle(.withdrawn))
    ring.append(.idle(.disconnected))
    #expect(ring.take(5) == [.idle(.withdrawn), .idle(.disconnected)])
  }

  @Test func theEndComesLastAndOnce() {
    var ring = EventRing(limit: 2, from: Self.now)
    _ = ring.take(1)
    ring.append(.idle(.withdrawn))
    ring.append(.idle(.disconnected))
    ring.append(.ended(.closed))
    #expect(ring.take(5) == [.idle(.withdrawn), .idle(.disconnected), .ended(.closed)])
    #expect(ring.hasFinished() == true)
  }

  @Test func theEndIsNotAmongTheMissed() {
    var ring = EventRing(limit: 1, from: Self.now)
    _ = ring.take(1)
    ring.append(.idle(.withdrawn))
    ring.append(.idle(.disconnected))
    ring.append(.ended(.released))
    #expect(ring.take(5) == [.missed(2), .snapshot(Self.now), .ended(.released)])
    #expect(ring.hasFinished() == true)
  }

  @Test func theEndComesAfterTheFirstSnapshotToo() {
    var ring = EventRing(limit: 1, from: Self.now)
    ring.append(.ended(.closed))
    #expect(ring.take(5) == [.snapshot(Self.now), .ended(.closed)])
    #expect(ring.hasFinished() == true)
  }

  @Test func aSubscriberThatIsAlwaysOneBehindCostsNoMoreThanItsLimit() {
    var ring = EventRing(limit: 8, from: Self.now)
    _ = ring.take(1)
    ring.append(.missed(-1))
    for number in 0..<10_000 {
      ring.append(.missed(number))
      #expect(ring.take(1) == [.missed(number - 1)])
      #expect(ring.held <= 16)
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func everyEventIsTakenOrCountedInOrder(seed: UInt64) {
    var generator = SeededSteps(seed: seed)
    var ring = EventRing(limit: Int(seed % 7), from: Self.now)
    _ = ring.take(1)
    var appended = 0
    var expected = 0
    for _ in 0..<2_000 {
      if generator.next() % 5 < 2 {
        for event in ring.take(1) {
          switch event {
          case .waiting(for: .backoff, until: let number?):
            #expect(number.nanoseconds == Int64(expected))
            expected += 1
          case .missed(let count): expected += count
          case .snapshot: expected = appended
          default: Issue.record("\(event)")
          }
        }
      } else {
        ring.append(.waiting(for: .backoff, until: MonotonicInstant(nanoseconds: Int64(appended))))
        appended += 1
      }
    }
  }
}

extension EventRing {
  fileprivate mutating func take(
    _ count: Int, now state: Snapshot.State = .idle(.neverAsked)
  ) -> [ConnectionEvent] {
    var taken: [ConnectionEvent] = []
    for _ in 0..<count {
      guard case .event(let event) = next(snapshot: Snapshot(state: state, since: .zero)) else { break }
      taken.append(event)
    }
    return taken
  }

  fileprivate mutating func hasFinished() -> Bool {
    if case .finished = next(snapshot: Snapshot(state: .idle(.neverAsked), since: .zero)) {
      true
    } else {
      false
    }
  }

  /// How many elements it keeps in memory, taken ones included.
  fileprivate var held: Int {
    let stored = Mirror(reflecting: self).children.first { $0.label == "events" }?.value
    return (stored as? [ConnectionEvent])?.count ?? .max
  }
}
