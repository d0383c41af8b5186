internal import Relink

/// Compares what callers were told with what the device counted.
package struct CrashJudge: Sendable {
  /// A thing that must hold, and where it does not.
  package struct Finding: Sendable {
    package var what: String
    package var faults: [String]
  }

  private let record: CrashRecord
  private let counts: [Int: Int]
  private let device: CrashDevice

  /// Judges a ledger by how often the device applied each number.
  package init(_ record: CrashRecord, counts: [Int: Int], on device: CrashDevice) {
    self.record = record
    self.counts = counts
    self.device = device
  }

  private var commands: [CrashCommand] {
    record.issued.sorted().map { CrashCommand(number: $0, on: device) }
  }

  private func outcome(of number: Int) -> CrashOutcome? { record.outcomes[number]?.first?.outcome }

  /// Everything that must hold.
  package func findings() -> [Finding] {
    [
      Finding(what: "the processes found nothing that must not be", faults: record.faults),
      Finding(
        what: "every one of \(record.issued.count) commands is accounted for",
        faults: commands.filter { outcome(of: $0.number) == nil }.map { "\($0.number) has no outcome" }),
      Finding(what: "no outcome contradicts one that was told before", faults: contradictions()),
      Finding(
        what: "none of the commands that may not be repeated was carried out twice",
        faults: commands.filter { $0.kind != .idempotent && count($0) > 1 }
          .map { "\($0.number), \($0.kind), was counted \(count($0)) times" }),
      Finding(what: "what was told is what the device counted", faults: lies()),
      Finding(
        what: "the device carried out nothing that nobody asked for",
        faults: counts.keys.filter { !record.issued.contains($0) }.sorted().map { "\($0)" }),
    ]
  }

  private func count(_ command: CrashCommand) -> Int { counts[command.number] ?? 0 }

  private func contradictions() -> [String] {
    record.outcomes.sorted { $0.key < $1.key }.compactMap { number, told in
      // What is told while the store cannot say is made more exact by what it says later.
      let certain = told.filter { !$0.outcome.isProvisional }
      guard let first = certain.first?.outcome,
        let other = certain.first(where: { !$0.outcome.agrees(with: first) })
      else { return nil }
      return "\(number): \(first), and then (\(other.source)) \(other.outcome)"
    }
  }

  private func lies() -> [String] {
    commands.compactMap { command in
      guard let outcome = outcome(of: command.number) else { return nil }
      let count = count(command)
      let isTrue =
        switch (outcome.word, command.kind) {
        case (.succeeded, .idempotent): count >= 1
        // It was handed over; more is not claimed.
        case (.succeeded, .unanswered): count <= 1
        case (.succeeded, _): count == 1
        case (.notSent, _): count == 0
        case (.rejected, .idempotent), (.indeterminate, .idempotent): true
        case (.rejected, _): outcome.detail.hasSuffix("proof") ? count == 0 : count <= 1
        case (.indeterminate, _): count <= 1
        }
      return isTrue
        ? nil : "\(command.number), \(command.kind): \(outcome), and it was counted \(count) times"
    }
  }

  /// How the commands ended, by kind, in words: what a run came across.
  package func summary() -> [String] {
    CrashCommand.Kind.allCases.compactMap { kind in
      let mine = commands.filter { $0.kind == kind }
      guard !mine.isEmpty else { return nil }
      let parts = CrashOutcome.Word.allCases.compactMap { word -> String? in
        let these = mine.filter { outcome(of: $0.number)?.word == word }
        guard !these.isEmpty else { return nil }
        let applied = these.filter { count($0) > 0 }.count
        return word == .indeterminate || word == .rejected
          ? "\(word) \(these.count) (\(applied) of them carried out)" : "\(word) \(these.count)"
      }
      return "\(kind): \(mine.count) commands, \(parts.joined(separator: ", "))"
    }
  }
}
