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

  enum End: CaseIterable { case cancelledWhileItWaits, cancelledWithAnOutcome, leftWithAnOutcome, neverAsked }

  @Test("a stream that has ended leaves nothing behind", arguments: End.allCases)
  func aStreamThatHasEndedLeavesNothingBehind(_ end: End) throws {
    let (feed, executor) = (RecoveryFeed(), ManualExecutor())
    let taken = Locked(0)
    for number in 0..<100 {
      let stream = feed.subscribe { _ in taken.withLock { $0 += 1 } }
      let gate = Gate()
      guard end != .neverAsked else { continue }
      let consumer = executor.spawn("consumer \(number)") {
        for await _ in stream {
          if end == .leftWithAnOutcome { break }
          await gate.wait()
        }
      }
      executor.run()
      if end != .cancelledWhileItWaits { feed.append([try recovered("\(number)")]) }
      executor.run()
      consumer.cancel()
      gate.open()
      executor.run()
      #expect(consumer.hasEnded)
    }
    #expect(feed.kept == 0)
    // Whoever did not ask for the next one may not have looked at what he got.
    #expect(taken.withLock { $0 } == 0)
  }

  @Test("an outcome goes to nobody who was cancelled")
  func anOutcomeGoesToNobodyWhoWasCancelled() throws {
    let (feed, executor) = (RecoveryFeed(), ManualExecutor())
    let seen = Locked<[Int]>([])
    let streams = (0..<2).map { _ in feed.subscribe { _ in } }
    let consumers = streams.enumerated().map { number, stream in
      executor.spawn("consumer \(number)") {
        for await _ in stream { seen.withLock { $0.append(number) } }
      }
    }
    executor.run()
    consumers[0].cancel()
    executor.run()
    #expect(consumers[0].hasEnded)
    feed.append([try recovered("a")])
    executor.run()
    #expect(seen.withLock { $0 } == [1])
    feed.finish()
    executor.run()
    #expect(consumers[1].hasEnded)
  }
}
