internal import RelinkTesting

/// Takes out of a failing run what it can do without: steps, cancellations, faults of the radio and of the store.
public struct Shrinking {
  /// Something that a run can do without.
  private enum Part: Hashable {
    case step(UInt64)
    case cancellation(UInt64)
    case radioFault(Int)
    case storeFault(Int)
  }

  private let whole: Scenario
  private let signs: Set<String>
  private let strikes: (radio: Int, store: Int)
  private var runs = 0
  private static let mostRuns = 2_000

  /// Prepares the shrinking of a seed; nil where it does not fail.
  public init?(seed: UInt64) {
    whole = Scenario(seed: seed)
    guard let report = Simulation(whole)?.run(), !report.problems.isEmpty else { return nil }
    signs = Set(report.problems.map(Shrinking.sign))
    strikes = report.strikes
  }

  /// What is left, as lines to read, with what is wrong with it and what happens in it.
  public mutating func lines() -> [String] {
    var parts = whole.calls.map { Part.step($0.number) }
    parts += whole.calls.filter { $0.cancelledAfter != nil }.map { .cancellation($0.number) }
    parts += (0..<strikes.radio).map { .radioFault($0 + 1) }
    parts += (0..<strikes.store).map { .storeFault($0 + 1) }
    var size = max(parts.count / 2, 1)
    while runs < Shrinking.mostRuns {
      var hasShrunk = false
      var start = 0
      while start < parts.count, runs < Shrinking.mostRuns {
        let rest = Array(parts[..<start] + parts[min(start + size, parts.count)...])
        if fails(scenario(of: rest)) { (parts, hasShrunk) = (rest, true) } else { start += size }
      }
      if size == 1, !hasShrunk { break }
      size = max(size / 2, 1)
    }
    let small = scenario(of: parts)
    let report = Simulation(small, tracing: true)?.run()
    let faults = parts.filter {
      switch $0 {
      case .radioFault, .storeFault: true
      case .step, .cancellation: false
      }
    }
    return small.text + ["\(faults.count) of \(strikes.radio + strikes.store) faults are left"]
      + (report?.problems ?? []).map { "wrong: \($0)" } + ["what happens:"]
      + Shrinking.inOrder(report?.trace ?? []).suffix(150)
  }

  /// Brings the lines of a trace, each of which begins with its time, into the order of time.
  public static func inOrder(_ lines: [String]) -> [String] {
    let timed = lines.enumerated().map { index, line in
      (time: line.split(separator: " ").first.flatMap { Double($0) } ?? 0, index: index, line: line)
    }
    return timed.sorted { ($0.time, $0.index) < ($1.time, $1.index) }.map(\.line)
  }

  private mutating func fails(_ scenario: Scenario) -> Bool {
    runs += 1
    guard let problems = Simulation(scenario)?.run().problems else { return false }
    return problems.contains { signs.contains(Shrinking.sign($0)) }
  }

  /// What kind of problem it is: the words without the numbers.
  private static func sign(_ problem: String) -> String {
    String(problem.prefix(100).filter { !$0.isNumber })
  }

  private func scenario(of parts: [Part]) -> Scenario {
    let kept = Set(parts)
    var scenario = whole
    scenario.calls = whole.calls.filter { kept.contains(.step($0.number)) }
    for index in scenario.calls.indices where !kept.contains(.cancellation(scenario.calls[index].number)) {
      scenario.calls[index].cancelledAfter = nil
    }
    scenario.faults.spared = Set((1...max(strikes.radio, 1)).filter { !kept.contains(.radioFault($0)) })
    scenario.storeFaults.spared = Set((1...max(strikes.store, 1)).filter { !kept.contains(.storeFault($0)) })
    return scenario
  }
}
