import BluetoothWire
import Testing

@testable import RelinkCore

/// Lanes and priorities: what must wait for what, and what goes first of the rest.
@Suite struct JournalOrderTests {
  private var bench = JournalBench()
  private let lock = JournalBench.lock
  private let level = JournalBench.level
  private let third = Characteristic(BluetoothUUID(0xAA03 as UInt16))

  @Test mutating func aLaneOrdersWritesToDifferentAttributes() {
    bench.call(1, .write(lock, [1])) { $0.lane = "door" }
    bench.call(2, .write(level, [2])) { $0.lane = "door" }
    bench.call(3, .write(third, [3])) { $0.lane = "window" }
    #expect(bench.offer() == 1)
    #expect(bench.offer() == 3)
    #expect(bench.offer() == nil)
    bench.answer(1)
    #expect(bench.offer() == 2)
  }

  @Test mutating func aLaneDoesNotFreeFromTheOrderOfTheAttribute() {
    bench.call(1, .write(lock, [1])) { $0.lane = "door" }
    bench.call(2, .write(lock, [2])) { $0.lane = "window" }
    bench.call(3, .write(lock, [3]))
    #expect(bench.offer() == 1)
    #expect(bench.offer() == nil)
    bench.answer(1)
    #expect(bench.offer() == 2)
    #expect(bench.offer() == nil)
  }

  @Test mutating func aReliableWriteKeepsTheOrderOfAllItsAttributes() {
    bench.call(1, .write(level, [1]))
    bench.call(2, .writeReliably([ReliableWrite(lock, [2]), ReliableWrite(level, [2])]))
    bench.call(3, .read(lock))
    bench.call(4, .read(third))
    #expect(bench.offer() == 1)
    #expect(bench.offer() == 4)
    bench.answer(1)
    #expect(bench.offer() == 2)
    #expect(bench.offer() == nil)
    bench.answer(2)
    #expect(bench.offer() == 3)
  }

  @Test mutating func theHighestPriorityGoesFirstThenCallOrder() {
    bench.call(1, .read(lock)) { $0.priority = .low }
    bench.call(2, .read(level))
    bench.call(3, .read(third)) { $0.priority = .high }
    bench.call(4, .discover) { $0.priority = .high }
    #expect(bench.offers(4) == [3, 4, 2, 1])
  }

  @Test mutating func priorityNeverOvertakesOnAKey() {
    bench.call(1, .write(lock, [1])) { $0.priority = .low }
    bench.call(2, .write(lock, [2])) { $0.priority = .high }
    #expect(bench.offer() == 1)
    #expect(bench.offer() == nil)
  }

  @Test mutating func anOperationLendsItsPriorityToAllThatItWaitsFor() {
    // 4 waits for 3 (attribute), 3 for 2 (lane), 2 for 1 (attribute); 0 waits for nobody and nobody for it.
    bench.call(0, .discover)
    bench.call(1, .write(lock, [1])) { $0.priority = .low }
    bench.call(2, .write(lock, [2])) {
      $0.priority = .low
      $0.lane = "door"
    }
    bench.call(3, .write(level, [3])) {
      $0.priority = .low
      $0.lane = "door"
    }
    bench.call(4, .write(level, [4])) { $0.priority = .high }
    for number in [1, 2, 3, 4] as [Int64] {
      #expect(bench.offer() == number)
      bench.answer(number)
    }
    #expect(bench.offer() == 0)
  }

  @Test mutating func whatWasLentIsGivenBackWithTheEndOfTheLender() {
    bench.call(1, .write(lock, [1])) { $0.priority = .low }
    bench.call(2, .write(level, [2]))
    bench.call(3, .write(lock, [3])) { $0.priority = .high }
    #expect(bench.next() == 1)
    bench.cancel(3)
    #expect(bench.next() == 2)
  }

  @Test mutating func whatIsInDoubtKeepsItsLane() {
    bench.call(1, .write(lock, [1])) { $0.lane = "door" }
    bench.call(2, .write(level, [2])) { $0.lane = "door" }
    bench.offer()
    bench.lose()
    #expect(bench.offer() == 1)
    #expect(bench.offer() == nil)
  }

  @Test mutating func anAbandonedRequestKeepsItsLane() {
    bench.call(1, .write(lock, [1])) { $0.lane = "door" }
    bench.call(2, .write(level, [2])) {
      $0.lane = "door"
      $0.priority = .high
    }
    bench.offer()
    #expect(bench.cancel(1)?.abandon == bench.request(1))
    #expect(bench.offer() == nil)
    bench.answer(1)
    #expect(bench.offer() == 2)
  }

  @Test mutating func aBusyLinkIsOfferedTheBestOfWhatFlowsBeside() {
    bench.call(1, .write(lock, [1])) { $0.priority = .high }
    bench.call(2, .writeWithoutResponse(level, [2]))
    bench.call(3, .writeWithoutResponse(third, [3])) { $0.priority = .high }
    #expect(bench.offer(.withoutResponse) == 3)
    #expect(bench.offer(.withoutResponse) == 2)
    #expect(bench.offer(.withoutResponse) == nil)
  }
}
