import Testing

@testable import Relink

/// Timers on two clocks, of which one stands still while the system is suspended.
@Suite struct ExecutorTimersTests {
  private final class Owner: Sendable {}

  private let owner = Owner()
  private let fired = Locked<[Int]>([])
  private var timers = ExecutorTimers()

  @Test mutating func anIDStandsForOneTimerWhicheverClockItRunsOn() {
    set(1, on: .monotonic, at: 10)
    let replacesOther = set(1, on: .boot, at: 20)
    #expect(replacesOther)
    #expect(timers.count == 1)
    #expect(timers.count(on: .monotonic) == 0)
    let replacesAgain = set(1, on: .monotonic, at: 30)
    #expect(replacesAgain)
    #expect(timers.next(on: .boot) == nil)
    #expect(timers.next(on: .monotonic) == 30)
    let first = timers.cancel(id(1))
    #expect(first != nil)
    let second = timers.cancel(id(1))
    #expect(second == nil)
    set(2, on: .boot, at: 20)
    let third = timers.cancel(id(2))
    #expect(third != nil)
    #expect(timers.count == 0)
  }

  @Test mutating func timersOfBothClocksFireInTheOrderOfTheirInstantsAndThenOfTheirSetting() {
    set(1, on: .boot, at: 130)
    set(2, on: .monotonic, at: 30)
    set(3, on: .boot, at: 130)
    set(4, on: .monotonic, at: 20)
    set(5, on: .boot, at: 110)
    drain(at: time(9, suspended: 100))
    #expect(all.isEmpty)
    drain(at: time(30, suspended: 100))
    #expect(all == [5, 4, 1, 2, 3])
  }

  @Test mutating func whatWasSleptThroughIsDueAndTheMonotonicClockStandsStill() {
    set(1, on: .monotonic, at: 20)
    set(2, on: .boot, at: 40)
    #expect(timers.next(after: time(10)) == MonotonicInstant(nanoseconds: 20))
    #expect(timers.next(after: time(10, suspended: 25)) == MonotonicInstant(nanoseconds: 15))
    #expect(timers.next(after: time(10, suspended: 300)) == MonotonicInstant(nanoseconds: -260))
    drain(at: time(10, suspended: 300))
    #expect(all == [2])
    #expect(timers.next(after: time(10, suspended: 300)) == MonotonicInstant(nanoseconds: 20))
  }

  @Test mutating func aTimerThatIsNeverDueStaysInTheRange() {
    set(1, on: .boot, at: .max)
    #expect(timers.next(after: time(10, suspended: 5)) == MonotonicInstant(nanoseconds: .max - 5))
    #expect(timers.next(after: time(0, suspended: -5)) == .distantFuture)
    drain(at: time(1_000))
    #expect(all.isEmpty)
  }

  // MARK: Parts

  private var all: [Int] { fired.withLock { $0 } }

  private func id(_ number: Int) -> TimerID { TimerID(owner: owner, number: number) }

  private func time(_ monotonic: Int64, suspended: Int64 = 0) -> Timestamp {
    Timestamp(
      monotonic: MonotonicInstant(nanoseconds: monotonic), bootTime: monotonic + suspended, wall: 0)
  }

  @discardableResult
  private mutating func set(_ number: Int, on clock: ExecutorTimers.Clock, at instant: Int64) -> Bool {
    let replaced = timers.set(id(number), on: clock, at: instant) { [fired] in
      fired.withLock { $0.append(number) }
    }
    return replaced != nil
  }

  private mutating func drain(at now: Timestamp) {
    while let fire = timers.popDue(now) { fire() }
  }
}
