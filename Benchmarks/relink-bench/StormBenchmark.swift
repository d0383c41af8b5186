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
      crowd.firstEvent.withLock { $0 = nil }
      let start = bench_now()
      Losses(of: lost, on: loop).begin()
      while crowd.ready.withLock({ $0 }) < goal { try await Pause(on: loop).wait(.milliseconds(1)) }
      totals.append(bench_now() - start)
      firsts.append((crowd.firstEvent.withLock { $0 } ?? bench_now()) - start)
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

/// Links that are lost in the batches in which a loop learns it from its descriptors: 64 at a time, jobs in between.
private final class Losses: Sendable {
  private let batches: [[ZeroCostChannel]]
  private let loop: RadioLoop

  init(of channels: [ZeroCostChannel], on loop: RadioLoop) {
    batches = stride(from: 0, to: channels.count, by: 64).map { start in
      Array(channels[start..<min(start + 64, channels.count)])
    }
    self.loop = loop
  }

  func begin(_ number: Int = 0) {
    guard number < batches.count else { return }
    loop.post {
      for channel in self.batches[number] { channel.lose(.supervisionTimeout) }
      self.begin(number + 1)
    }
  }
}
