import RelinkTesting
import Testing

@testable import Relink

@Suite struct EventPublisherTests {
  private final class Owner: Sendable {}

  private let executor = ManualExecutor()
  private let publisher = EventPublisher(Snapshot(state: .idle(.neverAsked), since: .zero))

  @Test func theSnapshotIsThatOfTheLatestStep() {
    publisher.publish([], Self.snapshot(.idle(.disconnected)))
    #expect(publisher.snapshot.state == .idle(.disconnected))
  }

  @Test func eachSubscriberGetsTheSnapshotAndThenEachEvent() {
    let one = collect()
    executor.run()
    #expect(one.all == [.snapshot(Self.snapshot(.idle(.neverAsked)))])
    let other = collect()
    publisher.publish([.idle(.withdrawn), .idle(.disconnected)], Self.snapshot(.idle(.disconnected)))
    executor.run()
    #expect(one.all.dropFirst() == [.idle(.withdrawn), .idle(.disconnected)])
    // It subscribed before, and took nothing until then.
    #expect(
      other.all == [.snapshot(Self.snapshot(.idle(.neverAsked))), .idle(.withdrawn), .idle(.disconnected)])
    publisher.publish([.idle(.withdrawn)], Self.snapshot(.idle(.withdrawn)))
    executor.run()
    #expect(one.all.last == .idle(.withdrawn))
    #expect(other.all.last == .idle(.withdrawn))
  }

  @Test func aSlowSubscriberIsToldAndSlowsNobody() {
    let slow = collect(limit: 2)
    let quick = collect(limit: 100)
    executor.run()
    for _ in 0..<5 { publisher.publish([.idle(.withdrawn)], Self.snapshot(.idle(.withdrawn))) }
    executor.run()
    #expect(quick.all.dropFirst() == Array(repeating: .idle(.withdrawn), count: 5)[...])
    // The first one woke it; of the others it could hold two.
    #expect(slow.all[1...] == [.idle(.withdrawn), .missed(4), .snapshot(Self.snapshot(.idle(.withdrawn)))])
  }

  @Test func aStreamEndsAfterTheLastEvent() {
    let one = collect()
    executor.run()
    publisher.publish([.idle(.withdrawn), .ended(.closed)], Self.snapshot(.ended(.closed)))
    executor.run()
    #expect(one.all.dropFirst() == [.idle(.withdrawn), .ended(.closed)])
    #expect(one.hasEnded)
  }

  @Test func aStreamThatIsAskedForAfterTheEndEndsToo() {
    publisher.publish([.ended(.closed)], Self.snapshot(.ended(.closed)))
    let late = collect()
    executor.run()
    #expect(late.all == [.snapshot(Self.snapshot(.ended(.closed))), .ended(.closed)])
    #expect(late.hasEnded)
  }

  @Test func aCancelledConsumerGetsNothingMore() {
    let one = collect()
    executor.run()
    #expect(!one.hasEnded)
    one.cancel()
    executor.run()
    #expect(one.hasEnded)
    publisher.publish([.idle(.withdrawn)], Self.snapshot(.idle(.withdrawn)))
    executor.run()
    #expect(one.all == [.snapshot(Self.snapshot(.idle(.neverAsked)))])
  }

  @Test func aStreamKeepsItsOwnerUntilItIsDropped() {
    weak var owner: Owner?
    var stream: AsyncStream<ConnectionEvent>?
    do {
      let held = Owner()
      owner = held
      stream = publisher.subscribe(limit: 1, keeping: held)
    }
    #expect(owner != nil)
    stream = nil
    #expect(owner == nil)
    #expect(stream == nil)
  }

  // MARK: Parts

  private static func snapshot(_ state: Snapshot.State) -> Snapshot { Snapshot(state: state, since: .zero) }

  private func collect(limit: Int = 16) -> Collected<ConnectionEvent> {
    let stream = publisher.subscribe(limit: limit, keeping: Owner())
    let collected = Collected<ConnectionEvent>()
    collected.runs(
      executor.spawn {
        for await event in stream { collected.add(event) }
        collected.end()
      })
    return collected
  }
}
