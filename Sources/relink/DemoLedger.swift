internal import Relink
internal import RelinkTesting

/// What callers were told about each command, beside what the lock counted.
struct DemoLedger: Sendable {
  /// One command and what its caller was told.
  struct Entry: Sendable {
    var number: UInt64
    var what: String
    var outcome: Outcome<[UInt8]>
  }

  private(set) var entries: [Entry] = []

  mutating func add(_ number: UInt64, _ what: String, _ outcome: Outcome<[UInt8]>) {
    entries.append(Entry(number: number, what: what, outcome: outcome))
  }

  /// One line of the comparison.
  struct Comparison: Equatable {
    var what: String
    var told: String
    var counted: Int
    var agrees: Bool
  }

  /// Compares with the lock's own counters.
  func compare(with counters: PeripheralCounters) -> [Comparison] {
    entries.map { entry in
      let counted = counters.applied(tag: entry.number)
      return Comparison(
        what: entry.what, told: entry.outcome.told, counted: counted,
        agrees: entry.outcome.allowed.contains(counted))
    }
  }
}

extension Outcome {
  /// The outcome in the words in which it should be remembered.
  var told: String {
    switch self {
    case .succeeded: "done"
    case .rejected(let rejection): "refused (\(rejection.code))"
    case .notSent(let reason): "not sent (\(reason))"
    case .indeterminate: "in doubt"
    }
  }

  /// How often the device may have carried the command out, by what its caller was told.
  var allowed: ClosedRange<Int> {
    switch self {
    case .succeeded: 1...1
    case .rejected(let rejection): rejection.provesNotApplied ? 0...0 : 0...1
    case .notSent: 0...0
    case .indeterminate: 0...1
    }
  }
}

extension Outcome<Confirmation> {
  /// The same outcome as that of a call that returns nothing.
  var withoutValue: Outcome<[UInt8]> {
    switch self {
    case .succeeded: .succeeded([])
    case .rejected(let rejection): .rejected(rejection)
    case .notSent(let reason): .notSent(reason)
    case .indeterminate(let doubt): .indeterminate(doubt)
    }
  }
}
