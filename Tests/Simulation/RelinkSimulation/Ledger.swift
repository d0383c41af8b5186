internal import Relink
internal import RelinkTesting

/// What the callers of one run were told, over all lives of the process, to be compared with what the peripheral counted.
struct Ledger: Sendable {
  /// One time that somebody was told what became of a write.
  struct Telling: Sendable {
    /// A success of a plain call does not say how it is known.
    var outcome: Outcome<Confirmation?>
    /// The life of the process.
    var life: Int
    /// How often the write had been asked for by then.
    var submissions: Int
    /// How often the peripheral had applied it by then.
    var applied: Int
    /// Whether the call became no operation, so that it says nothing of another one under the same ID.
    var isOfNoOperation = false

    /// Whether another telling of the same write need not agree with this one.
    var standsAlone: Bool {
      guard case .notSent(let reason) = outcome else { return false }
      return isOfNoOperation || reason.isRefusal
    }
  }

  /// One write, however often it was asked for.
  struct Entry: Sendable {
    var write: Scenario.Write
    /// The lives in which it was asked for.
    var submissions: [Int] = []
    var tellings: [Telling] = []
    /// Whether it was found in the store when a life ended, or the run.
    var wasRecorded = false
    /// The last life after whose end it was not in the store.
    var missingSince: Int?
    /// Callers who wait for it, in the life that lasts.
    var waiting = 0
    /// Whether a probe may have looked at what another write had left meanwhile.
    var mayBeMisjudged = false
    /// Its place in the order of calls; calls that nobody put in order share one.
    var place = 0
  }

  var entries: [UInt64: Entry] = [:]
  /// Lines that say what happened, for comparing two runs of one seed.
  var lines: [String] = []
  var problems: [String] = []
  /// How many callers were told something.
  var tellings = 0
  /// The lives that ended with the power.
  var powerLosses: [Int] = []
  private var turn = 0

  /// What is asked for from now on comes after everything before; what is asked for in one turn has no order.
  mutating func beginTurn() { turn += 1 }

  /// A write is asked for, once more or for the first time.
  ///
  /// - Returns: Whether it takes its place now, because nothing is left of earlier calls.
  mutating func submitted(
    _ number: UInt64, _ write: Scenario.Write, in life: Int, cameToNothing: Bool = false
  ) -> Bool {
    var entry = entries[number] ?? Entry(write: write)
    let isNew = hasComeToNothing(entry, in: life, cameToNothing)
    if isNew { entry.place = turn }
    entry.submissions.append(life)
    entry.waiting += 1
    entries[number] = entry
    return isNew
  }

  /// Whether nothing is left of the earlier calls of a write; `hasLatest` says it of those of this life.
  private func hasComeToNothing(_ entry: Entry, in life: Int, _ hasLatest: Bool) -> Bool {
    if entry.submissions.isEmpty { return true }
    if entry.submissions.last != life { return entry.missingSince == life - 1 }
    // What an earlier process left is not undone by a call for which the store could not be read.
    guard entry.missingSince == life - 1 || entry.submissions.allSatisfy({ $0 == life }) else { return false }
    guard entry.waiting == 0 else { return false }
    if hasLatest { return true }
    guard case .notSent = entry.tellings.last?.outcome else { return false }
    return true
  }

  /// A life of the process has ended, or the run: these operations are in the store.
  mutating func lifeEnded(_ life: Int, recorded: Set<UInt64>) {
    for number in entries.keys {
      entries[number]?.waiting = 0
      guard entries[number]?.write.isDurable == true else { continue }
      if recorded.contains(number) {
        entries[number]?.wasRecorded = true
        entries[number]?.missingSince = nil
      } else {
        entries[number]?.missingSince = life
      }
    }
  }

  /// Somebody is told what became of a write.
  mutating func told(_ number: UInt64, _ telling: Telling) {
    tellings += 1
    guard let entry = entries[number] else {
      problems.append("write \(number) was told \(telling.outcome), and nobody asked for it")
      return
    }
    if case .notSent = telling.outcome, telling.applied > 0, !entry.mayBeMisjudged,
      !(telling.standsAlone && entry.submissions.count > 1)
    {
      problems.append(
        "write \(number) was told \(telling.outcome) after it was applied \(telling.applied) times")
    }
    for earlier in entry.tellings where !agree(earlier, telling, entry) {
      problems.append(
        "write \(number) was told \(earlier.outcome) in life \(earlier.life), then \(telling.outcome) in life \(telling.life)"
      )
    }
    entries[number]?.tellings.append(telling)
  }

  /// Whether two tellings of one write go together.
  private func agree(_ earlier: Telling, _ later: Telling, _ entry: Entry) -> Bool {
    let mayForget =
      entry.write.tag == .idempotent
      && powerLosses.contains { $0 >= earlier.life && $0 < later.life }
    switch (earlier.outcome, later.outcome) {
    case (_, .notSent) where later.submissions > 1 && later.standsAlone: return true
    case (.notSent, _) where later.submissions > 1 && earlier.standsAlone: return true
    case (_, .indeterminate(let doubt)) where doubt.isUnrecorded:
      // Said in place of a store that could not be read.
      return true
    case (.succeeded(let one), .succeeded(let other)):
      return one == nil || other == nil || one == other || mayForget
    case (.rejected(let one), .rejected(let other)): return one == other || mayForget
    case (.indeterminate(let one), .indeterminate(let other)):
      return one.cause == other.cause || one.isUnrecorded || mayForget
    case (.indeterminate(let one), .notSent): return one.isUnrecorded
    case (.indeterminate(let one), .succeeded), (.indeterminate(let one), .rejected):
      return one.isUnrecorded || mayForget
    case (.notSent, .indeterminate) where mayForget: return true
    case (.notSent(let reason), _):
      if case .notSent(let other) = later.outcome, other == reason { return true }
      // Asked for again, after an answer with which nothing was recorded.
      guard later.submissions > earlier.submissions else { return false }
      return !entry.write.isDurable
        || (later.life > earlier.life && (entry.missingSince != nil || mayForget || !entry.wasRecorded))
    case (.succeeded, .notSent), (.rejected, .notSent): return false
    case (.succeeded, .rejected), (.succeeded, .indeterminate), (.rejected, .succeeded),
      (.rejected, .indeterminate):
      // What was told of an indeterminate commit later is never less than what was told first.
      return mayForget
    }
  }
}

extension NotSentReason {
  /// Whether it says that the call became no operation.
  var isRefusal: Bool {
    switch self {
    case .disconnected, .ended, .notReconnecting, .attemptsExhausted, .journalFull, .adapterUnavailable,
      .userActionNeeded, .storeFailed, .mixedDurability, .conflictingID:
      true
    case .deadline, .cancelled, .refused, .linkLost, .expired, .superseded, .continuityBroken,
      .securityTooLow:
      false
    @unknown default: false
    }
  }
}

extension Doubt {
  /// Whether it only says that the store did not answer in time: more may be known later.
  var isUnrecorded: Bool {
    if case .storeFailed = cause { true } else { false }
  }
}
