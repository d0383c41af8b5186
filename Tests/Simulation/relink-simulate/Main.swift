internal import RelinkSimulation

/// Plays seeds and sweeps, and says which of them show what must not be.
@main
enum Main {
  static let usage = """
    relink-simulate: real sessions over a virtual radio and a virtual store, random operations under random faults.

      relink-simulate [--seeds COUNT] [--from SEED] [--jobs COUNT] [--trace] [--first]
      relink-simulate sweep NAME|all [PLACE]

    Plays COUNT seeds (default 10000) from SEED (default 1), in so many jobs at once (default 2). --trace prints
    everything that happens. --first stops at a seed that fails; without it the first three that fail are also shrunken
    to what they cannot do without. Every hundredth seed is played twice, and the two traces must be the same, byte for
    byte. A sweep plays one scenario with one fault at each place at which it can strike; with PLACE, only there, and
    everything that happens is printed.
    Exit status: 0, 1 if something failed, 2 for a wrong argument.
    """

  static func main() async {
    var plan = Seeds()
    var words = CommandLine.arguments.dropFirst()
    if words.first == "sweep" { return sweep(Array(words.dropFirst())) }
    while let word = words.popFirst() {
      switch (word, words.first.flatMap { UInt64($0) }) {
      case ("--seeds", let value?): plan.count = value
      case ("--from", let value?): plan.first = value
      case ("--jobs", let value?) where (1...64).contains(value): plan.jobs = Int(value)
      case ("--trace", _):
        plan.isTracing = true
        continue
      case ("--first", _):
        plan.stopsAtFirst = true
        continue
      default:
        print(usage)
        if word != "--help" { fatalExit(2) }
        return
      }
      words.removeFirst()
    }
    if plan.isTracing { plan.jobs = 1 }
    fatalExit(await plan.play() ? 0 : 1)
  }

  private static func sweep(_ words: [String]) {
    let all = words.first == "all"
    let chosen = Sweep.allCases.filter { all || $0.rawValue == words.first }
    guard !chosen.isEmpty else {
      print(usage)
      print("Sweeps: all \(Sweep.allCases.map(\.rawValue).joined(separator: " "))")
      fatalExit(2)
    }
    let place = words.dropFirst().first.flatMap { Int($0) }
    var failed = 0
    for one in chosen {
      if let place { Shrinking.inOrder(one.trace(place)).forEach { print($0) } }
      let result = one.run(only: place)
      failed += result.problems.isEmpty ? 0 : 1
      for problem in result.problems { print("  \(problem)") }
      print("\(one.rawValue): \(result.places) places, \(result.problems.isEmpty ? "clean" : "FAILED")")
    }
    print("\(chosen.count - failed) passed, \(failed) failed")
    fatalExit(failed == 0 ? 0 : 1)
  }
}
