import Testing

@testable import Relink

@Suite struct TimerQueueTests {
  private final class Owner: Sendable {}

  private let owner = Owner()
  private let fired = Locked<[Int]>([])
  private let sequence = Locked<UInt64>(0)

  @Test func timersFireInTheOrderOfTheirInstantsAndThenOfTheirSetting() {
    var queue = TimerQueue()
    for (number, instant) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 10)] {
      set(number, at: instant, in: &queue)
    }
    #expect(queue.count == 5)
    #expect(queue.first?.instant == 10)
    #expect(queue.popDue(9) == nil)
    drain(&queue, until: 25)
    #expect(all == [2, 4, 5, 3])
    drain(&queue, until: 30)
    #expect(all == [2, 4, 5, 3, 1])
    #expect(queue.first == nil)
    #expect(queue.count == 0)
  }

  @Test func aTimerThatIsSetAgainTakesThePlaceOfTheOldOne() {
    var queue = TimerQueue()
    set(1, at: 10, in: &queue)
    set(2, at: 20, in: &queue)
    set(1, at: 20, in: &queue)
    #expect(queue.count == 2)
    drain(&queue, until: 100)
    #expect(all == [2, 1])
  }

  @Test func aCancelledTimerLeavesNothingBehind() {
    var queue = TimerQueue()
    set(1, at: 10, in: &queue)
    set(2, at: 20, in: &queue)
    queue.cancel(id(1))
    queue.cancel(id(1))
    queue.cancel(id(9))
    #expect(queue.count == 1)
    #expect(queue.first?.instant == 20)
    drain(&queue, until: 100)
    #expect(all == [2])
    queue.cancel(id(2))
    #expect(queue.count == 0)
  }

  @Test func timersOfTwoOwnersAreApart() {
    var queue = TimerQueue()
    let other = Owner()
    set(1, at: 10, in: &queue)
    queue.set(TimerID(owner: other, number: 1), TimerQueue.Rank(instant: 5, sequence: 1)) { [fired] in
      fired.withLock { $0.append(100) }
    }
    #expect(queue.count == 2)
    queue.cancel(id(1))
    drain(&queue, until: 100)
    #expect(all == [100])
  }

  /// Compared with a plain sorted list over random sequences.
  @Test(arguments: 0..<20 as Range<UInt64>)
  func theHeapAgreesWithASortedList(seed: UInt64) {
    var generator = SeededSteps(seed: seed)
    var queue = TimerQueue()
    var list: [(number: Int, instant: Int, sequence: Int)] = []
    var expected: [Int] = []
    var now = 0
    for sequence in 0..<1_000 {
      let number = Int.random(in: 0..<40, using: &generator)
      switch generator.next() % 8 {
      case 0..<5:
        let instant = now + Int.random(in: 0..<50, using: &generator)
        set(number, at: instant, in: &queue)
        list.removeAll { $0.number == number }
        list.append((number, instant, sequence))
      case 5:
        queue.cancel(id(number))
        list.removeAll { $0.number == number }
      default:
        now += Int.random(in: 0..<10, using: &generator)
        drain(&queue, until: now)
        let due = list.filter { $0.instant <= now }
        expected += due.sorted { ($0.instant, $0.sequence) < ($1.instant, $1.sequence) }.map(\.number)
        list.removeAll { $0.instant <= now }
      }
      #expect(queue.count == list.count)
      #expect(queue.first?.instant == list.map { Int64($0.instant) }.min())
    }
    #expect(all == expected)
    #expect(!expected.isEmpty)
  }

  // MARK: Parts

  private var all: [Int] { fired.withLock { $0 } }

  private func id(_ number: Int) -> TimerID { TimerID(owner: owner, number: number) }

  private func set(_ number: Int, at instant: Int, in queue: inout TimerQueue) {
    let place = sequence.withLock { sequence in
      sequence += 1
      return TimerQueue.Rank(instant: Int64(instant), sequence: sequence)
    }
    queue.set(id(number), place) { [fired] in
      fired.withLock { $0.append(number) }
    }
  }

  private func drain(_ queue: inout TimerQueue, until now: Int) {
    while let fire = queue.popDue(Int64(now)) { fire() }
  }
}
