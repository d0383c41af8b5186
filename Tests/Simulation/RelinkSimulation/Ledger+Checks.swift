internal import Relink
internal import RelinkTesting

extension Ledger {
  /// Everything in which the peripheral disagrees with what was told.
  func disagreements(with counters: PeripheralCounters) -> [String] {
    var found: [String] = []
    let applied = effects(in: counters)
    for (number, entry) in entries.sorted(by: { $0.key < $1.key }) {
      let parts =
        entry.write.way == .reliable ? [number, number | Scenario.Write.secondPart] : [number]
      let allowed = allowed(entry)
      for part in parts where !allowed.contains(applied[part] ?? 0) {
        let told = entry.tellings.map { "\($0.outcome)" }.joined(separator: ", ")
        found.append(
          "write \(number) (\(entry.write.text)) was told \(told.isEmpty ? "nothing" : told) and applied "
            + "\(applied[part] ?? 0) times")
      }
      if entry.wasRecorded, entry.tellings.isEmpty {
        found.append("write \(number) was recorded, and nobody was told what became of it")
      }
    }
    return found + overtakings(in: counters)
  }

  /// How often each write took effect.
  private func effects(in counters: PeripheralCounters) -> [UInt64: Int] {
    var counts: [UInt64: Int] = [:]
    for write in counters.applied {
      guard let tag = write.tag else { continue }
      counts[tag, default: 0] += 1
    }
    return counts
  }

  /// How often the peripheral may have applied a write, by what was told of it.
  private func allowed(_ entry: Entry) -> ClosedRange<Int> {
    if entry.mayBeMisjudged { return 0...Int.max }
    let most = entry.write.tag == .idempotent ? Int.max : 1
    var range = 0...most
    for (index, telling) in entry.tellings.enumerated() {
      switch telling.outcome {
      case .succeeded:
        // Without a response it was only handed over.
        if entry.write.way != .command { range = 1...most }
      case .rejected(let rejection):
        if rejection.provesNotApplied, most == 1 { range = 0...0 }
      case .notSent:
        let isLast = index == entry.tellings.count - 1 && telling.submissions == entry.submissions.count
        if isLast, !entry.mayHaveBeenUntold, entry.tellings.allSatisfy(\.saysNotSent) { range = 0...0 }
      case .indeterminate: break
      }
    }
    return range
  }

  /// Writes that took effect on an attribute, or in a lane, after a later call's write had taken effect there.
  ///
  /// Over the end of a process that holds among the durable ones, and among the others: an app that writes one attribute
  /// both ways asks for trouble, since the session does not hold up what is in memory until the store can be read.
  private func overtakings(in counters: PeripheralCounters) -> [String] {
    let hasCrashed = !powerLosses.isEmpty || entries.contains { $0.value.submissions.contains { $0 > 1 } }
    var found: [String] = []
    var last: [String: (place: Int, number: UInt64)] = [:]
    for applied in counters.applied {
      guard let tag = applied.tag, let entry = entries[tag & ~Scenario.Write.secondPart] else { continue }
      let number = tag & ~Scenario.Write.secondPart
      var keys = ["\(Characteristic(applied.characteristic.uuid))"]
      if let lane = entry.write.lane { keys.append("lane \(lane)") }
      if hasCrashed { keys = keys.map { "\($0) \(entry.write.isDurable)" } }
      for key in keys {
        if let before = last[key], entry.place < before.place {
          found.append("write \(number) was applied after write \(before.number), which is younger")
        }
        last[key] = (entry.place, number)
      }
    }
    return found
  }
}

extension Ledger.Entry {
  /// Whether it may have been done for a caller who died with his process, untold, while the calls of the others became no
  /// operation; of a durable one the next process would tell.
  fileprivate var mayHaveBeenUntold: Bool {
    !write.isDurable && tellings.count < submissions.count && tellings.allSatisfy(\.isOfNoOperation)
  }
}

extension Ledger.Telling {
  var saysNotSent: Bool {
    if case .notSent = outcome { true } else { false }
  }
}
