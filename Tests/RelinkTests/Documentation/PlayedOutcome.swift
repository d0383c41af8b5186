import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A column of the tables: what the write was tagged with.
enum WriteTag: String, CaseIterable, CustomTestStringConvertible {
  case idempotent = "`.idempotent`"
  case nonIdempotent = "`.nonIdempotent`"
  case probed = "`.verified(by:)` a value"
  case app = "`.verified(by: .app)`"

  var testDescription: String { rawValue }

  /// What the device is asked to write.
  static let value: [UInt8] = [1]

  /// The tag, with a probe that sees what was written, or one that sees nothing.
  func idempotency(canTell: Bool = true) -> Idempotency {
    switch self {
    case .idempotent: .idempotent
    case .nonIdempotent: .nonIdempotent
    case .probed where canTell: .verified(by: .value(of: Scene.first, is: Self.value))
    case .probed: .verified(by: Probe { _ in .unknown })
    case .app: .verified(by: .app)
    }
  }
}

/// What a caller was told, and how often the device had applied the write in the end.
struct PlayedOutcome: Equatable, CustomStringConvertible {
  var outcome: String
  var applied: Int
  /// Whether a rejection came with the proof that nothing was applied.
  var isProven = false

  init<Value>(_ outcome: Outcome<Value>, applied: Int) {
    self.outcome = outcome.word
    self.applied = applied
    if case .rejected(let rejection) = outcome { isProven = rejection.provesNotApplied }
  }

  /// The cell as the article writes it.
  var description: String { "`\(outcome)`, \(applied)" }

  /// The row of the table of outcomes that it belongs to.
  var row: String {
    outcome == "rejected" ? "`rejected`, \(isProven ? "proven" : "unproven")" : "`\(outcome)`"
  }
}

extension Outcome {
  var word: String {
    switch self {
    case .succeeded: "succeeded"
    case .rejected: "rejected"
    case .notSent: "notSent"
    case .indeterminate: "indeterminate"
    }
  }
}

extension SpawnedTask<Void> {
  /// What the caller of a write was told.
  var outcome: Outcome<[UInt8]>? {
    switch result {
    case .success: .succeeded([])
    case .failure(let error as RelinkError): error.outcome
    case .failure, nil: nil
    }
  }
}

extension DeviceSession {
  /// What an app does that looks at the device and tells the truth about each operation that waits for its word.
  ///
  /// Nil stands for an app that cannot tell.
  func resolveAll(lookingAt peripheral: VirtualPeripheral?) async {
    let events = journalEvents()
    await resolveOnce(lookingAt: peripheral)
    for await _ in events { await resolveOnce(lookingAt: peripheral) }
  }

  private func resolveOnce(lookingAt peripheral: VirtualPeripheral?) async {
    for operation in journal where operation.state == .unresolved {
      let verdict: Verdict = peripheral.map { $0.wr(0x0010) > 0 ? .applied : .notApplied } ?? .unknown
      try? await resolve(operation.id, as: verdict, by: "the app of the test")
    }
  }
}
