internal import RelinkSimulation

/// Which seeds are played, and how.
struct Seeds {
  var count: UInt64 = 10_000
  var first: UInt64 = 1
  var jobs = 2
  var isTracing = false
  var stopsAtFirst = false

  /// What one job has seen.
  private struct Part: Sendable {
    var failed: [(seed: UInt64, problems: [String])] = []
    var links = 0
    var operations = 0
    var faults = 0
    var crashes = 0
  }

  /// How many seeds lie between two lines that say how far it is.
  private static let round: UInt64 = 20_000
  private static let mostShown = 20
  private static let mostShrunken = 3

  /// Plays the seeds; whether all were as they must be.
  func play() async -> Bool {
    let clock = ContinuousClock()
    let start = clock.now
    var total = Part()
    var next = first
    let end = first + count
    while next < end, !(stopsAtFirst && !total.failed.isEmpty) {
      let last = min(next + Seeds.round, end)
      let parts = await play(next..<last)
      for part in parts {
        total.failed += part.failed
        total.links += part.links
        total.operations += part.operations
        total.faults += part.faults
        total.crashes += part.crashes
      }
      next = last
      if count > Seeds.round {
        print("up to \(last - 1): \(total.failed.count) failed, \(start.duration(to: clock.now))")
      }
    }
    total.failed.sort { $0.seed < $1.seed }
    for (index, failure) in total.failed.prefix(Seeds.mostShown).enumerated() {
      print("seed \(failure.seed) failed; play it again with --from \(failure.seed) --seeds 1 --trace")
      for problem in failure.problems { print("  \(problem)") }
      guard index < Seeds.mostShrunken, !stopsAtFirst, !isTracing else { continue }
      guard var shrinking = Shrinking(seed: failure.seed) else { continue }
      print("  what is left when it is shrunken:")
      for line in shrinking.lines() { print("    \(line)") }
    }
    let took = start.duration(to: clock.now)
    print(
      "\(total.operations) operations over \(total.links) links with \(total.faults) faults and \(total.crashes) crashes in \(took)"
    )
    print("\(Int(next - first) - total.failed.count) passed, \(total.failed.count) failed")
    return total.failed.isEmpty
  }

  private func play(_ seeds: Range<UInt64>) async -> [Part] {
    await withTaskGroup(of: Part.self) { group in
      for job in 0..<jobs {
        group.addTask {
          var part = Part()
          for seed in stride(from: seeds.lowerBound + UInt64(job), to: seeds.upperBound, by: jobs) {
            self.play(seed, &part)
            if stopsAtFirst, !part.failed.isEmpty { break }
          }
          return part
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  private func play(_ seed: UInt64, _ part: inout Part) {
    let isCompared = seed % 100 == 0
    guard let report = Simulation(seed: seed, tracing: isTracing || isCompared)?.run() else { return }
    if isTracing { Shrinking.inOrder(report.trace).forEach { print($0) } }
    var problems = report.problems
    if isCompared, Simulation(seed: seed, tracing: true)?.run().trace != report.trace {
      problems.append("two runs of the seed differ")
    }
    part.links += report.links
    part.operations += report.operations
    part.faults += report.faults
    part.crashes += report.crashes
    if !problems.isEmpty { part.failed.append((seed, problems)) }
  }
}
