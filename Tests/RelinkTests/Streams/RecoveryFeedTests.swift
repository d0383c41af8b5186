import RelinkTesting
import Testing

@testable import Relink

/// Who has got the outcome of an operation of an earlier process, and when the store may hear of that.
@Suite struct RecoveryFeedTests {
  private func recovered(_ name: String) throws -> RecoveredOperation {
    let id = try #require(OperationID(name))
    return RecoveredOperation(id: id, request: nil, outcome: .notSent(.deadline))
  }

  @Test(arguments: [true, false])
  func anOutcomeIsTakenOnceItsConsumerAsksForTheNext(_ isThereBefore: Bool) throws {
    let (feed, executor) = (RecoveryFeed(), ManualExecutor())
    let taken = Locked<[String]>([])
    let seen = Locked<[String]>([])
    let outcomes = try [recovered("a"), recovered("b")]
    if isThereBefore { feed.append(outcomes) }
    let stream = feed.subscribe { id in taken.withLock { $0.append(id.description) } }
    let consumer = executor.spawn("consumer") {
      for await one in stream {
        let before = taken.withLock { $0 }
        seen.withLock { $0.append("\(one.id) after \(before)") }
      }
    }
    executor.run()
    if !isThereBefore { feed.append(outcomes) }
    executor.run()
    #expect(seen.withLock { $0 } == ["a after []", #"b after ["a"]"#])
    #expect(taken.withLock { $0 } == ["a", "b"])
    feed.finish()
    executor.run()
    #expect(consumer.hasEnded)
  }
}
