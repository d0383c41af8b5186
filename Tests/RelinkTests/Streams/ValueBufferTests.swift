import RelinkTesting
import Testing

@testable import Relink

@Suite struct ValueBufferTests {
  private let executor = ManualExecutor()

  @Test func valuesComeInTheirOrder() {
    let buffer = ValueBuffer(.newest(4))
    for number in 0..<3 as Range<UInt8> { buffer.append(.numbered(number)) }
    let taken = consume(buffer)
    executor.run()
    #expect(taken.all == (0..<3).map { .success(.numbered($0)) })
    #expect(!taken.hasEnded)
    buffer.append(.numbered(3))
    buffer.append(.numbered(4))
    executor.run()
    #expect(taken.all[3...] == [.success(.numbered(3)), .success(.numbered(4))])
  }

  @Test func whatASlowConsumerLostIsCountedAtTheNextValue() {
    let buffer = ValueBuffer(.newest(2))
    for number in 0..<6 as Range<UInt8> { buffer.append(.numbered(number)) }
    let taken = consume(buffer)
    executor.run()
    #expect(
      taken.all == [
        .success(.numbered(4, gap: Gap(isAfterLoss: false, dropped: 4))), .success(.numbered(5)),
      ])
  }

  @Test func aLossBeforeADroppedValueIsNotForgotten() {
    let buffer = ValueBuffer(.newest(1))
    buffer.append(.numbered(0, gap: Gap(isAfterLoss: true, dropped: 0)))
    buffer.append(.numbered(1))
    buffer.append(.numbered(2))
    let taken = consume(buffer)
    executor.run()
    #expect(taken.all == [.success(.numbered(2, gap: Gap(isAfterLoss: true, dropped: 2)))])
  }

  @Test func aLossAfterDroppedValuesJoinsTheirGap() {
    let buffer = ValueBuffer(.newest(1))
    buffer.append(.numbered(0))
    buffer.append(.numbered(1, gap: Gap(isAfterLoss: true, dropped: 0)))
    let taken = consume(buffer)
    executor.run()
    #expect(taken.all == [.success(.numbered(1, gap: Gap(isAfterLoss: true, dropped: 1)))])
  }

  @Test func aGapIsToldOnce() {
    let buffer = ValueBuffer(.newest(1))
    buffer.append(.numbered(0))
    buffer.append(.numbered(1))
    let taken = consume(buffer)
    executor.run()
    buffer.append(.numbered(2))
    executor.run()
    #expect(
      taken.all == [
        .success(.numbered(1, gap: Gap(isAfterLoss: false, dropped: 1))), .success(.numbered(2)),
      ])
  }

  @Test func theEndComesAfterTheValuesAndStays() {
    let buffer = ValueBuffer(.newest(4))
    buffer.append(.numbered(0))
    buffer.finish(.ended)
    buffer.finish(RelinkError(.cancelled, "later"))
    buffer.append(.numbered(1))
    let taken = consume(buffer)
    executor.run()
    #expect(taken.all == [.success(.numbered(0)), .failure(.ended)])
    let again = consume(buffer)
    executor.run()
    #expect(again.all == [.failure(.ended)])
  }

  @Test func theEndWakesEveryConsumer() {
    let buffer = ValueBuffer(.newest(4))
    let one = consume(buffer)
    let other = consume(buffer)
    executor.run()
    buffer.finish(.ended)
    executor.run()
    #expect(one.all == [.failure(.ended)])
    #expect(other.all == [.failure(.ended)])
  }

  @Test func aCancelledConsumerStopsAndTakesNothingWithIt() {
    let buffer = ValueBuffer(.newest(4))
    let one = consume(buffer)
    executor.run()
    one.cancel()
    executor.run()
    #expect(one.hasEnded)
    #expect(one.all == [])
    buffer.append(.numbered(0))
    let other = consume(buffer)
    executor.run()
    #expect(other.all == [.success(.numbered(0))])
  }

  @Test func aConsumerThatWasCancelledBeforeItAskedDoesNotWait() {
    // The cancellation comes before the continuation is stored.
    let buffer = ValueBuffer(.newest(4))
    let one = consume(buffer)
    one.cancel()
    executor.run()
    #expect(one.hasEnded)
    #expect(one.all == [])
    #expect(executor.waitingTasks == [])
    let other = consume(buffer)
    executor.run()
    buffer.append(.numbered(0))
    executor.run()
    #expect(other.all == [.success(.numbered(0))])
  }

  @Test func twoConsumersShareTheValues() {
    let buffer = ValueBuffer(.newest(4))
    let one = consume(buffer)
    let other = consume(buffer)
    executor.run()
    for number in 0..<4 as Range<UInt8> {
      buffer.append(.numbered(number))
      executor.run()
    }
    #expect(one.all == [.success(.numbered(0)), .success(.numbered(2))])
    #expect(other.all == [.success(.numbered(1)), .success(.numbered(3))])
  }

  @Test func aConsumerThatIsAlwaysOneBehindCostsNoMoreThanItsLimit() {
    let buffer = ValueBuffer(.newest(8))
    buffer.append(.numbered(0))
    let taken = Collected<Int>()
    executor.spawn {
      for number in 1...10_000 {
        buffer.append(.numbered(UInt8(truncatingIfNeeded: number)))
        guard case .success(let value?) = await buffer.next() else { break }
        if value != .numbered(UInt8(truncatingIfNeeded: number - 1)) { taken.add(number) }
      }
      taken.end()
    }
    executor.run()
    #expect(taken.hasEnded)
    #expect(taken.all == [])
    #expect(buffer.valuesInMemory <= 16)
  }

  private func consume(_ buffer: ValueBuffer) -> Collected<Result<ValueUpdate, RelinkError>> {
    let collected = Collected<Result<ValueUpdate, RelinkError>>()
    collected.runs(
      executor.spawn {
        defer { collected.end() }
        while true {
          switch await buffer.next() {
          case .success(let value?): collected.add(.success(value))
          case .success(nil): return
          case .failure(let error): return collected.add(.failure(error))
          }
        }
      })
    return collected
  }
}

extension ValueUpdate {
  fileprivate static func numbered(_ number: UInt8, gap: Gap? = nil) -> ValueUpdate {
    ValueUpdate(
      value: [number], generation: Generation(rawValue: 1),
      receivedAt: Timestamp(monotonic: .zero, bootTime: 0, wall: 0), gap: gap)
  }
}

extension RelinkError {
  fileprivate static let ended = RelinkError(.ended, "over")
}
