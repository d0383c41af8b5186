internal import CBenchmark
internal import Relink
internal import RelinkBlueZ

/// A read through a session beside the same read in C with epoll: same PDUs, same kind of socket, same peer, both ends
/// pinned to one processor, in alternating batches.
struct RoundTripBenchmark {
  var batches = 40
  var size = 500

  func run() async throws -> [Figure] {
    var near: Int32 = 0
    var far: Int32 = 0
    try check(bench_socket_pair(&near, &far), "socketpair")
    try check(bench_start_peer(far, 0), "peer")
    let raw = near

    let loop = try RadioLoop()
    let transport = BenchTransport.overSockets(on: loop)
    guard let device = DeviceID("bench") else { return [] }
    let session = try DeviceSession(with: device, over: transport)
    let name = Characteristic(.heartRateMeasurement)
    let (ours, theirs) = try await onLoop(loop) { [batches, size] in
      _ = bench_pin(0)
      try await session.connect()
      var ours: [[Int64]] = []
      var theirs: [[Int64]] = []
      for batch in 0...batches {
        var mine: [Int64] = []
        mine.reserveCapacity(size)
        for _ in 0..<size {
          let start = bench_now()
          _ = try await session.read(name)
          mine.append(bench_now() - start)
        }
        var bare = [Int64](repeating: 0, count: size)
        try check(bench_epoll_round_trips(raw, 3, size, &bare), "epoll")
        if batch > 0 {
          ours.append(mine)
          theirs.append(bare)
        }
      }
      return (ours, theirs)
    }
    await session.close()
    let median = Ratio(ours.map { Sample($0).median }, to: theirs.map { Sample($0).median })
    let all = (Sample(ours.flatMap { $0 }), Sample(theirs.flatMap { $0 }))
    let tail = Double(all.0.percentile(0.99)) / Double(all.1.percentile(0.99))
    return [
      Figure(goal: "G1", name: "round trip, raw epoll, p50", value: Double(all.1.median) / 1e3, unit: "us"),
      Figure(goal: "G1", name: "round trip, session, p50", value: Double(all.0.median) / 1e3, unit: "us"),
      Figure(
        goal: "G1", name: "round trip, session, p99", value: Double(all.0.percentile(0.99)) / 1e3, unit: "us"),
      Figure(goal: "G1", name: "ratio of p50", value: median.point, unit: "x", limit: 1.25),
      Figure(goal: "G1", name: "ratio of p50, upper 95 %", value: median.high, unit: "x", limit: 1.25),
      Figure(goal: "G1", name: "ratio of p99", value: tail, unit: "x", limit: 1.5),
    ]
  }
}

/// Throws what a C function of the benchmark reports.
func check(_ result: Int32, _ what: String) throws {
  if result != 0 { throw RelinkError(.system, "\(what) failed with error \(-result).") }
}

/// Runs `body` in a task that prefers the loop, so that calls into a session change no thread.
func onLoop<Value: Sendable>(
  _ loop: RadioLoop, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  try await withTaskExecutorPreference(loop) { try await body() }
}
