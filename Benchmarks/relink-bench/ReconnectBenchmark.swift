internal import CBenchmark
internal import Relink
internal import RelinkBlueZ

/// Relink's own time from the loss of a link to the answer of the request that was in doubt, on a link that costs
/// nothing: six events, four ATT steps (MTU, Database Hash, one descriptor, the request), one re-offered operation.
struct ReconnectBenchmark {
  var count = 5000

  func run() async throws -> [Figure] {
    let loop = try RadioLoop()
    let current = Locked<ZeroCostChannel?>(nil)
    let transport = BenchTransport(on: loop) { _ in
      let channel = ZeroCostChannel(on: loop)
      current.withLock { $0 = channel }
      return channel
    }
    guard let device = DeviceID("bench") else { return [] }
    var configuration = Configuration()
    configuration.reconnection.stability = .zero
    let session = try DeviceSession(with: device, over: transport, configuration: configuration)
    let name = Characteristic(.heartRateMeasurement)
    let (times, events, roundTrips) = try await onLoop(loop) { [count] in
      _ = bench_pin(0)
      let seen = Locked(0)
      let counter = Counter(seen)
      async let consumer: Void = counter.consume(session.events())
      let values = session.notifications(from: name)
      try await session.connect()
      var times: [Int64] = []
      var roundTrips = 0
      let before = seen.withLock { $0 }
      for _ in 0..<count {
        let channel = current.withLock { $0 }
        channel?.mute()
        async let written: Void = session.write([1], to: name, idempotency: .idempotent)
        // Lets the write go out, into the void, before the link is lost.
        await Task.yield()
        let start = bench_now()
        channel?.lose(.supervisionTimeout)
        try await written
        times.append(bench_now() - start)
        if case .ready(let readiness) = session.snapshot().state { roundTrips = readiness.roundTrips + 1 }
      }
      let events = Double(seen.withLock { $0 } - before) / Double(count)
      withExtendedLifetime(values) {}
      await session.close()
      await consumer
      return (Sample(Array(times.dropFirst(50))), events, roundTrips)
    }
    return [
      Figure(goal: "G2", name: "events per reconnection", value: events, unit: "events"),
      Figure(goal: "G2", name: "ATT steps per reconnection", value: Double(roundTrips), unit: "steps"),
      Figure(goal: "G2", name: "own time, p50", value: Double(times.median) / 1e3, unit: "us", limit: 50),
      Figure(
        goal: "G2", name: "own time, p99", value: Double(times.percentile(0.99)) / 1e3, unit: "us", limit: 250
      ),
    ]
  }
}

/// Counts the events of a stream to its end.
struct Counter: Sendable {
  let seen: Locked<Int>

  init(_ seen: Locked<Int>) {
    self.seen = seen
  }

  func consume(_ events: AsyncStream<ConnectionEvent>) async {
    for await _ in events { seen.withLock { $0 += 1 } }
  }
}
