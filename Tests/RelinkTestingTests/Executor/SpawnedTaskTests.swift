import Relink
import RelinkTesting
import Testing

private struct Refused: Error {}

@Suite struct SpawnedTaskTests {
  let executor = ManualExecutor()

  @Test func aSpawnedTaskRunsOnlyWhenTheExecutorRuns() throws {
    let counter = Counter(on: executor)
    let task = executor.spawn { await counter.increment() + 10 }
    #expect(task.result == nil)
    #expect(!task.hasEnded)
    executor.run()
    #expect(task.value == 11)
    #expect(task.hasEnded)
    #expect(executor.foreignJobs == 0)
  }

  @Test func whatATaskThrowsIsItsResult() throws {
    let task: SpawnedTask<Int> = executor.spawn { throw Refused() }
    executor.run()
    #expect(task.error is Refused)
    #expect(task.value == nil)
    #expect(throws: Refused.self) { try executor.drive { throw Refused() } }
    #expect(try executor.drive { 7 } == 7)
  }

  @Test func twoTasksInterleaveTheSameWayEachTime() {
    func history() -> [String] {
      let executor = ManualExecutor()
      let journal = Journal()
      let counter = Counter(on: executor)
      for name in ["a", "b", "c"] {
        executor.spawn(name) {
          for _ in 1...3 { journal.note("\(name)\(await counter.increment())") }
        }
      }
      executor.runUntilIdle()
      #expect(executor.foreignJobs == 0)
      return journal.all
    }
    let first = history()
    #expect(first.count == 9)
    for _ in 1...20 { #expect(history() == first) }
  }

  @Test(arguments: [false, true]) func aTaskElsewhereDoesNotPreferTheExecutor(_ isElsewhere: Bool) {
    let counter = Counter(on: executor)
    let task = executor.spawn(isElsewhere: isElsewhere) { [executor] in
      let count = await counter.increment()
      let prefers = withUnsafeCurrentTask { $0?.unownedTaskExecutor == executor.asUnownedTaskExecutor() }
      return (count, prefers)
    }
    executor.runUntilIdle()
    #expect(task.value?.0 == 1)
    #expect(task.value?.1 == !isElsewhere)
    #expect(executor.foreignJobs == 0)
  }

  @Test func tasksElsewhereHaveTheirTurnsInTheSameOrderEachTime() {
    let journal = Journal()
    let counter = Counter(on: executor)
    for name in ["a", "b"] {
      executor.spawn(name, isElsewhere: true) {
        for _ in 1...2 { journal.note("\(name)\(await counter.increment())") }
      }
    }
    executor.runUntilIdle()
    #expect(journal.all == ["a1", "b2", "a3", "b4"])
    #expect(executor.foreignJobs == 0)
    #expect(executor.waitingTasks.isEmpty)
  }

  @Test func childTasksStayOnTheExecutor() throws {
    let counter = Counter(on: executor)
    let sum = try executor.drive {
      await withTaskGroup(of: Int.self) { group in
        for _ in 1...10 { group.addTask { await counter.increment() } }
        return await group.reduce(0, +)
      }
    }
    #expect(sum == 55)
    #expect(executor.foreignJobs == 0)
  }

  @Test func aDeadlockNamesTheWaiters() throws {
    let stream = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingNewest(1))
    executor.spawn("ends") { 1 }
    let waiter = executor.spawn("waits for ever") { [values = stream.stream] in
      for await value in values { return value }
      return 0
    }
    let report = executor.runUntilIdle()
    #expect(report.isDeadlock)
    #expect(report.waitingTasks == ["waits for ever"])
    let error = #expect(throws: DeadlockError.self) { try executor.complete(waiter) }
    #expect(error?.description.contains("waits for ever") == true)
    stream.continuation.yield(5)
    #expect(try executor.complete(waiter).get() == 5)
    #expect(executor.waitingTasks.isEmpty)
  }

  @Test func aTaskWithoutANameIsCalledByItsPlace() {
    let task = executor.spawn { 1 }
    #expect(task.name.hasPrefix("RelinkTestingTests/SpawnedTaskTests.swift:"))
    executor.run()
  }

  @Test func cancelReachesTheTask() throws {
    let (stream, continuation) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let task = executor.spawn {
      for await _ in stream {}
      return Task.isCancelled
    }
    executor.run()
    #expect(!task.hasEnded)
    task.cancel()
    #expect(executor.runUntilIdle().end == .nothingLeft)
    #expect(task.value == true)
    #expect(executor.foreignJobs == 0)
    continuation.finish()
  }
}
