import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

@Suite(.timeLimit(.minutes(1))) struct RadioLoopTests {
  @Test func postedWorkRunsInOrderAndNeverInsideTheCall() async throws {
    try await withLoop { loop in
      let facts = Facts<Int>()
      loop.post {
        facts.add(0)
        loop.post { facts.add(2) }
        facts.add(1)
      }
      #expect(await facts.first(3) == [0, 1, 2])
    }
  }

  @Test func workOfEachThreadKeepsItsOrderAndNoneIsLost() async throws {
    try await withLoop { loop in
      let threads = 4
      let each = 5_000
      let facts = Facts<[Int]>()
      let seen = Locked([Int](repeating: 0, count: threads))
      await withTaskGroup(of: Void.self) { group in
        for thread in 0..<threads {
          group.addTask {
            for number in 0..<each {
              loop.post {
                let finished = seen.withLock { seen -> [Int]? in
                  #expect(seen[thread] == number)
                  seen[thread] += 1
                  return seen.allSatisfy { $0 == each } ? seen : nil
                }
                if let finished { facts.add(finished) }
              }
            }
          }
        }
      }
      #expect(await facts.first(1) == [[Int](repeating: each, count: threads)])
    }
  }

  @Test func whatAnotherThreadPostedFirstRunsBeforeWhatTheLoopPostsAfterwards() async throws {
    try await withLoop { loop in
      let facts = Facts<String>()
      loop.post {
        // The other thread has posted for certain when it has been joined.
        onAnotherThread { loop.post { facts.add("foreign") } }
        loop.post { facts.add("own") }
      }
      #expect(await facts.first(2) == ["foreign", "own"])
    }
  }

  @Test func whatDiesWithAJobOrATimerMayPostAndSetTimers() async throws {
    try await withLoop { loop in
      let facts = Facts<String>()
      let owner = Owner()
      try await loop.run {
        let dying = Dying { loop.post { facts.add("job") } }
        loop.post { withExtendedLifetime(dying) {} }
      }
      #expect(await facts.first(1) == ["job"])
      try await loop.run {
        for number in 0..<3 {
          let dying = Dying {
            loop.cancelTimer(TimerID(owner: owner, number: 9))
            loop.setTimer(TimerID(owner: owner, number: 10 + number), at: loop.now) { facts.add("timer") }
          }
          loop.setTimer(TimerID(owner: owner, number: number), at: .distantFuture) {
            withExtendedLifetime(dying) {}
          }
        }
        loop.cancelTimer(TimerID(owner: owner, number: 0))
        loop.setTimer(TimerID(owner: owner, number: 1), at: loop.now) {}
        loop.setTimer(TimerID(owner: owner, number: 2), at: .distantFuture) {}
      }
      #expect(await facts.first(4).count == 4)
    }
  }

  @Test func actorsAndTasksRunOnTheLoopsThread() async throws {
    try await withLoop { loop in
      let actor = LoopActor(loop)
      #expect(await actor.isOnLoop)
      let inTask = await withTaskExecutorPreference(loop) { loop.isCurrent }
      #expect(inTask)
      #expect(!loop.isCurrent)
      let assumed = try await loop.run { actor.assumeIsolated { $0.count() } }
      #expect(assumed == 1)
    }
  }

  @Test func timersFireInTheOrderOfTheirInstants() async throws {
    try await withLoop { loop in
      let facts = Facts<Int>()
      let owner = Owner()
      try await loop.run {
        let now = loop.now
        for (number, delay) in [(1, 30), (2, 10), (3, 20), (4, -5)] {
          loop.setTimer(
            TimerID(owner: owner, number: number), at: now.advanced(by: .milliseconds(delay))
          ) { facts.add(number) }
        }
        loop.setTimer(TimerID(owner: owner, number: 5), at: now.advanced(by: .milliseconds(1))) {
          facts.add(5)
        }
        loop.cancelTimer(TimerID(owner: owner, number: 5))
        // A timer of the same ID takes the place of the earlier one.
        loop.setTimer(TimerID(owner: owner, number: 3), at: now.advanced(by: .milliseconds(40))) {
          facts.add(33)
        }
      }
      #expect(await facts.first(4) == [4, 2, 1, 33])
      let count = try await loop.run { loop.timerCount }
      #expect(count == 0)
    }
  }

  @Test func aTimerNeverFiresEarlyAndAnEarlierOneSetLaterIsNotMissed() async throws {
    try await withLoop { loop in
      let facts = Facts<Bool>()
      let owner = Owner()
      try await loop.run {
        let late = loop.now.advanced(by: .seconds(3_600))
        loop.setTimer(TimerID(owner: owner, number: 1), at: late) { facts.add(false) }
      }
      // The loop waits for the late one by now.
      try await loop.run {}
      try await loop.run {
        let early = loop.now.advanced(by: .milliseconds(2))
        loop.setTimer(TimerID(owner: owner, number: 2), at: early) { facts.add(loop.now >= early) }
      }
      #expect(await facts.first(1) == [true])
    }
  }

  /// That one fires which was slept through cannot be tried here: it would take a suspended machine.
  @Test func timersOnBootTimeFireBesideTheOthersAndUnderTheSameIDs() async throws {
    try await withLoop { loop in
      let facts = Facts<Int>()
      let owner = Owner()
      try await loop.run {
        let now = loop.timestamp()
        for (number, delay) in [(1, 30), (2, 10), (3, -5)] as [(Int, Int64)] {
          loop.setTimer(
            TimerID(owner: owner, number: number), atBootTime: now.bootTime + delay * 1_000_000
          ) { facts.add(loop.timestamp().bootTime < now.bootTime + delay * 1_000_000 ? -number : number) }
        }
        loop.setTimer(TimerID(owner: owner, number: 4), at: now.monotonic.advanced(by: .milliseconds(20))) {
          facts.add(4)
        }
        // One of the same ID on the other clock takes the place of the earlier one.
        loop.setTimer(TimerID(owner: owner, number: 5), atBootTime: now.bootTime) { facts.add(5) }
        loop.setTimer(TimerID(owner: owner, number: 5), at: now.monotonic.advanced(by: .milliseconds(50))) {
          facts.add(55)
        }
        loop.setTimer(TimerID(owner: owner, number: 6), atBootTime: now.bootTime) { facts.add(6) }
        loop.cancelTimer(TimerID(owner: owner, number: 6))
      }
      let fired = await facts.first(5)
      // A loop that is held up sees what is due on both clocks at once: the order is that of each clock.
      #expect(fired.filter { $0 < 4 } == [3, 2, 1])
      #expect(fired.filter { $0 >= 4 } == [4, 55])
      let count = try await loop.run { loop.timerCount }
      #expect(count == 0)
    }
  }

  @Test func anEarlierTimerOnBootTimeSetLaterIsNotMissed() async throws {
    try await withLoop { loop in
      let facts = Facts<Int>()
      let owner = Owner()
      try await loop.run {
        let late = loop.timestamp().bootTime + 3_600_000_000_000
        loop.setTimer(TimerID(owner: owner, number: 1), atBootTime: late) { facts.add(1) }
      }
      // The loop waits for the late one by now.
      try await loop.run {}
      try await loop.run {
        let early = loop.timestamp().bootTime + 2_000_000
        loop.setTimer(TimerID(owner: owner, number: 2), atBootTime: early) { facts.add(2) }
      }
      #expect(await facts.first(1) == [2])
    }
  }

  @Test func aTimerThatSetsItselfAgainDoesNotKeepOthersOut() async throws {
    try await withLoop { loop in
      let facts = Facts<Int>()
      let repeating = RepeatingTimer(loop)
      loop.post { repeating.start() }
      for number in 0..<3 {
        let ran = try await loop.run { number }
        facts.add(ran)
      }
      #expect(facts.all == [0, 1, 2])
      try await loop.run { repeating.stop() }
      let count = try await loop.run { loop.timerCount }
      #expect(count == 0)
    }
  }

  @Test func jobsThatNeverEndDoNotKeepDescriptorsWaiting() async throws {
    try await withLoop { loop in
      let pair = try SocketPair()
      let facts = Facts<String>()
      let listener = Listener { facts.add("ready") }
      let busy = BusyLoop(loop)
      let registration = try await loop.run {
        busy.start()
        return try loop.register(OwnedDescriptor(adopting: pair.near), for: .readable, listener).get()
      }
      pair.far.send([1])
      #expect(await facts.first(1).first == "ready")
      try await loop.run {
        busy.stop()
        loop.close(registration)
      }
    }
  }

  @Test func aDescriptorClosedInTheSameRoundIsNotTold() async throws {
    try await withLoop { loop in
      let facts = Facts<Int>()
      let pairs = try [SocketPair(), SocketPair()]
      let rivals = Rivals(loop, facts)
      // Both become ready before the loop looks, and who is told first closes both.
      try await loop.run {
        try rivals.register(pairs.map(\.near))
        for pair in pairs { pair.far.send([1]) }
      }
      _ = await facts.first(1)
      try await loop.run {}
      #expect(facts.all.count == 1)
      let count = try await loop.run { loop.descriptorCount }
      #expect(count == 0)
    }
  }

  @Test func anEventOfAnEarlierDescriptorOfTheSameNumberFindsNobody() {
    var table = DescriptorTable()
    let first = table.add(7, Listener {})
    #expect(table.handler(tag: first.tag) != nil)
    let removed = [table.remove(first) != nil, table.remove(first) != nil]
    #expect(removed == [true, false])
    let second = table.add(7, Listener {})
    #expect(table.handler(tag: first.tag) == nil)
    #expect(table.handler(tag: second.tag) != nil)
    #expect(table.handler(tag: 7) == nil, "the loop's own descriptors have generation 0")
    #expect(table.handler(tag: 1 << 32 | 8) == nil)
    #expect(table.count == 1)
    #expect(table.registrations == [second])
  }

  @Test func stoppingRunsWhatIsQueuedClosesWhatIsOpenAndLateWorkIsStillRun() async throws {
    let loop = try RadioLoop()
    let pair = try SocketPair()
    let facts = Facts<Int>()
    loop.post {
      _ = loop.register(OwnedDescriptor(adopting: pair.near), for: .readable, Listener {})
      for number in 0..<500 { loop.post { facts.add(number) } }
    }
    loop.stop()
    #expect(facts.all == Array(0..<500))
    #expect(pair.far.receive() == [], "the far end sees the end of file")
    loop.post { facts.add(-1) }
    #expect(await facts.first(501).last == -1)
    loop.stop()
  }

  @Test func theClocksAgreeWithTheMachine() throws {
    let loop = try RadioLoop()
    let first = loop.timestamp()
    let second = loop.timestamp()
    #expect(first.monotonic <= second.monotonic)
    #expect(first.bootTime <= second.bootTime)
    #expect(first.bootTime >= first.monotonic.nanoseconds)
    #expect(first.wall > 1_600_000_000_000_000_000)
    loop.stop()
  }

  @Test func theSharedLoopIsOne() throws {
    #expect(try RadioLoop.shared() === RadioLoop.shared())
  }
}

// MARK: - Helpers

private final class Owner: Sendable {}

/// Does something when it dies.
private final class Dying: Sendable {
  private let last: @Sendable () -> Void

  init(_ last: @escaping @Sendable () -> Void) { self.last = last }

  deinit { last() }
}

private actor LoopActor {
  private let loop: RadioLoop
  private var calls = 0

  init(_ loop: RadioLoop) { self.loop = loop }

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  var isOnLoop: Bool { loop.isCurrent }

  func count() -> Int {
    calls += 1
    return calls
  }
}

private final class Listener: DescriptorHandler {
  private let told: @Sendable () -> Void

  init(_ told: @escaping @Sendable () -> Void) { self.told = told }

  func descriptorReady(_ events: DescriptorEvents) { told() }
}

// Touched on the loop alone.
private final class RepeatingTimer: @unchecked Sendable {
  private let loop: RadioLoop
  private var runs = true

  init(_ loop: RadioLoop) { self.loop = loop }

  func start() {
    guard runs else { return }
    loop.setTimer(TimerID(owner: self, number: 0), at: loop.now) { self.start() }
  }

  func stop() {
    runs = false
    loop.cancelTimer(TimerID(owner: self, number: 0))
  }
}

// Touched on the loop alone.
private final class BusyLoop: @unchecked Sendable {
  private let loop: RadioLoop
  private var runs = true

  init(_ loop: RadioLoop) { self.loop = loop }

  func start() {
    guard runs else { return }
    loop.post { self.start() }
  }

  func stop() { runs = false }
}

// Touched on the loop alone.
private final class Rivals: @unchecked Sendable {
  private let loop: RadioLoop
  private let facts: Facts<Int>
  private var registrations: [DescriptorRegistration] = []

  init(_ loop: RadioLoop, _ facts: Facts<Int>) {
    self.loop = loop
    self.facts = facts
  }

  func register(_ descriptors: [Int32]) throws {
    for (number, descriptor) in descriptors.enumerated() {
      let listener = Listener { self.told(number) }
      registrations.append(
        try loop.register(OwnedDescriptor(adopting: descriptor), for: .readable, listener).get())
    }
  }

  private func told(_ number: Int) {
    facts.add(number)
    registrations.forEach(loop.close)
  }
}

/// Runs `body` on another thread and waits for its end.
private func onAnotherThread(_ body: @escaping @Sendable () -> Void) {
  final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let context = Unmanaged.passRetained(Box(body)).toOpaque()
  let result = pthread_create(
    &thread, nil,
    { context in
      if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
      return nil
    }, context)
  #expect(result == 0)
  pthread_join(thread, nil)
}
