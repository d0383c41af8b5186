internal import Relink
internal import RelinkTesting

/// What the callers of one run were told, to be compared with what the peripheral counted.
struct Ledger {
  /// One write and what its caller was told.
  struct Entry {
    var call: Scenario.Call
    var outcome: Outcome<[UInt8]>
    var endedAt: MonotonicInstant
  }

  var entries: [UInt64: Entry] = [:]
  /// Lines that say what happened, for comparing two runs of one seed.
  var lines: [String] = []
  var problems: [String] = []

  /// Everything in which the peripheral disagrees with what was told.
  func disagreements(with counters: PeripheralCounters) -> [String] {
    var found: [String] = []
    let applied = counters.appliedByTag
    for (number, entry) in entries.sorted(by: { $0.key < $1.key }) {
      let count = applied[number] ?? 0
      guard let allowed = allowed(entry) else { continue }
      if !allowed.contains(count) {
        found.append(
          "call \(number) (\(entry.call.step)) was told \(entry.outcome) and applied \(count) times")
      }
    }
    return found + overtakings(in: counters)
  }

  /// How often the peripheral may have applied a write, by what its caller was told.
  private func allowed(_ entry: Entry) -> ClosedRange<Int>? {
    let isAcknowledged: Bool
    let most: Int
    switch entry.call.step {
    case .write(_, let idempotency, _):
      isAcknowledged = true
      most = idempotency == .idempotent ? .max : 1
    case .writeWithoutResponse:
      isAcknowledged = false
      most = 1
    case .read, .discover, .connect, .disconnect, .subscribe, .listen, .notify, .changeTable, .stale:
      return nil
    }
    switch entry.outcome {
    case .succeeded: return (isAcknowledged ? 1 : 0)...most
    case .rejected(let rejection): return rejection.provesNotApplied && most == 1 ? 0...0 : 0...most
    case .notSent: return 0...0
    case .indeterminate: return 0...most
    }
  }

  /// Writes that took effect on an attribute after a later call's write had taken effect there.
  private func overtakings(in counters: PeripheralCounters) -> [String] {
    var found: [String] = []
    var last: [Characteristic: UInt64] = [:]
    for write in counters.applied {
      guard let tag = write.tag, let order = order[tag] else { continue }
      let name = Characteristic(write.characteristic.uuid)
      if let before = last[name], let other = self.order[before], order < other {
        found.append("call \(tag) was applied after call \(before), which is younger")
      }
      last[name] = tag
    }
    return found
  }

  /// The place of each write in the order of the calls.
  var order: [UInt64: Int] = [:]
}
