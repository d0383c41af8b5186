internal import RelinkSimulation

/// Plays seeds and says which of them show what must not be.
@main
enum Main {
  static let usage = """
    relink-simulate: real sessions over a virtual radio, random operations under random faults.

      relink-simulate [--seeds COUNT] [--from SEED] [--trace]

    Plays COUNT seeds (default 10000) from SEED (default 1). --trace prints everything that happens.
    Every hundredth seed is played twice, and the two traces must be the same, byte for byte.
    Exit status: 0, 1 if a seed failed, 2 for a wrong argument.
    """

  static func main() {
    var count: UInt64 = 10_000
    var first: UInt64 = 1
    var isTracing = false
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
      switch (word, words.first.flatMap { UInt64($0) }) {
      case ("--seeds", let value?): count = value
      case ("--from", let value?): first = value
      case ("--trace", _):
        isTracing = true
        continue
      default:
        print(usage)
        if word != "--help" { fatalExit(2) }
        return
      }
      words.removeFirst()
    }
    fatalExit(play(count, from: first, isTracing: isTracing) ? 0 : 1)
  }

  private static func play(_ count: UInt64, from first: UInt64, isTracing: Bool) -> Bool {
    let clock = ContinuousClock()
    let start = clock.now
    var failed: [UInt64] = []
    var links = 0
    var operations = 0
    var faults = 0
    for seed in first..<first + count {
      let isCompared = seed % 100 == 0
      guard let report = Simulation(seed: seed, tracing: isTracing || isCompared)?.run() else { continue }
      if isTracing { report.trace.forEach { print($0) } }
      var problems = report.problems
      if isCompared, Simulation(seed: seed, tracing: true)?.run().trace != report.trace {
        problems.append("two runs of the seed differ")
      }
      links += report.links
      operations += report.operations
      faults += report.faults
      if problems.isEmpty { continue }
      failed.append(seed)
      if failed.count > 20 { continue }
      print("seed \(seed) failed; play it again with --from \(seed) --seeds 1 --trace")
      for problem in problems { print("  \(problem)") }
    }
    let took = start.duration(to: clock.now)
    print("\(operations) operations over \(links) links with \(faults) faults in \(took)")
    print("\(Int(count) - failed.count) passed, \(failed.count) failed")
    return failed.isEmpty
  }
}
