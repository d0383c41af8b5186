internal import CBenchmark
internal import Relink
internal import RelinkBlueZ

/// Every link lost at the same moment, on links that cost nothing: when the last session is ready again.
struct StormBenchmark {
  var count = 10_000

  func run() async throws -> [Figure] {
    let loop = try RadioLoop()
    let channels = Locked<[DeviceID: ZeroCostChannel]>([:])
    let transport = BenchTransport(on: loop) { device in
      let channel = ZeroCostChannel(on: loop)
      channels.withLock { $0[device] = channel }
      return channel
    }
    let crowd = try await SessionCrowd(transport, count: count, prefix: "storm")
    var totals: [Int64] = []
    var firsts: [Int64] = []
    for _ in 0..<5 {
      let goal = crowd.ready.withLock { $0 } + count
      let lost = channels.withLock { Array($0.values) }
      let first = FirstEvent()
      async let seen = first.wait(crowd.sessions[0].events())
      await Task.yield()
      let start = bench_now()
      for channel in lost { channel.lose(.supervisionTimeout) }
      while crowd.ready.withLock({ $0 }) < goal { try await Pause(on: loop).wait(.milliseconds(1)) }
      totals.append(bench_now() - start)
      firsts.append(await seen - start)
    }
    await crowd.close()
    return [
      Figure(
        goal: "G11", name: "\(count) links lost at once, all ready",
        value: Double(Sample(totals).median) / 1e6,
        unit: "ms", limit: 1000),
      Figure(
        goal: "G11", name: "first event out", value: Double(Sample(firsts).median) / 1e6, unit: "ms",
        limit: 20),
    ]
  }
}

/// When the first event after the snapshot arrives.
private struct FirstEvent {
  func wait(_ events: AsyncStream<ConnectionEvent>) async -> Int64 {
    var isFirst = true
    for await _ in events {
      if !isFirst { return bench_now() }
      isFirst = false
    }
    return bench_now()
  }
}
