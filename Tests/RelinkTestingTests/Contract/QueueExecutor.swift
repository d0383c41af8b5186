import Dispatch
import Relink

/// An executor that runs by itself in real time: a serial queue with timers.
final class QueueExecutor: SessionExecutor {
  private let queue = DispatchQueue(label: "relink.test")
  private let key = DispatchSpecificKey<ObjectIdentifier>()
  private let timers = Locked<[TimerID: Int]>([:])
  private let numbers = Locked(0)

  init() { queue.setSpecific(key: key, value: ObjectIdentifier(self)) }

  var now: MonotonicInstant { MonotonicInstant(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds)) }

  func timestamp() -> Timestamp {
    Timestamp(monotonic: now, bootTime: now.nanoseconds, wall: now.nanoseconds)
  }

  func post(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { [self] in
      job.runSynchronously(
        isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
  }

  func setTimer(_ id: TimerID, at instant: MonotonicInstant, _ fire: @escaping @Sendable () -> Void) {
    let number = numbers.withLock { count in
      count += 1
      return count
    }
    timers.withLock { $0[id] = number }
    let span = max(now.duration(to: instant).clampedNanoseconds, 0)
    queue.asyncAfter(deadline: .now() + .nanoseconds(Int(span))) { [self] in
      let isCurrent = timers.withLock { timers in
        guard timers[id] == number else { return false }
        timers[id] = nil
        return true
      }
      if isCurrent { fire() }
    }
  }

  /// Its clocks are one: what runs by itself in real time here is never suspended.
  func setTimer(_ id: TimerID, atBootTime instant: Int64, _ fire: @escaping @Sendable () -> Void) {
    setTimer(id, at: MonotonicInstant(nanoseconds: instant), fire)
  }

  func cancelTimer(_ id: TimerID) { timers.withLock { $0[id] = nil } }

  func isIsolatingCurrentContext() -> Bool? {
    DispatchQueue.getSpecific(key: key) == ObjectIdentifier(self)
  }

  func checkIsolated() { precondition(isIsolatingCurrentContext() == true) }
}
