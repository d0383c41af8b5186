internal import RelinkCore

/// What a caller who waits for an operation is told.
enum CallResult: Sendable {
  /// The operation has its outcome, and how a success is known; `recordedAs` names one whose outcome is in the store,
  /// which does not know yet that somebody was told.
  case settled(Outcome<GATTAnswer>, Confirmation, recordedAs: OperationID? = nil)
  /// The caller waits no longer; the operation goes on for others.
  case detached(Detachment)

  /// Why a caller waits no longer.
  enum Detachment: Sendable {
    /// His task was cancelled.
    case cancelled
    /// His deadline passed.
    case deadline

    /// Why a caller waits no longer whose call ended for this reason; nil where he goes on waiting for the operation.
    init?(_ reason: NotSentReason) {
      if reason == .cancelled {
        self = .cancelled
      } else if reason == .deadline {
        self = .deadline
      } else {
        return nil
      }
    }
  }

  /// The outcome as it is shown and kept; a caller that was let go of has none.
  var confirmed: Outcome<Confirmation> {
    switch self {
    case .settled(.succeeded, let confirmation, _): .succeeded(confirmation)
    case .settled(.rejected(let rejection), _, _): .rejected(rejection)
    case .settled(.notSent(let reason), _, _): .notSent(reason)
    case .settled(.indeterminate(let doubt), _, _): .indeterminate(doubt)
    case .detached(.cancelled): .notSent(.cancelled)
    case .detached(.deadline): .notSent(.deadline)
    }
  }

  /// The outcome of a call that never became an operation.
  static func refused(_ reason: NotSentReason) -> CallResult { .settled(.notSent(reason), .acknowledged) }

  /// An outcome that was kept.
  init(kept outcome: Outcome<Confirmation>) {
    switch outcome {
    case .succeeded(let confirmation): self = .settled(.succeeded(.done), confirmation)
    case .rejected(let rejection): self = .settled(.rejected(rejection), .acknowledged)
    case .notSent(let reason): self = .settled(.notSent(reason), .acknowledged)
    case .indeterminate(let doubt): self = .settled(.indeterminate(doubt), .acknowledged)
    }
  }
}

/// Everybody who waits for one operation; nearly always one call.
struct OperationWaiters {
  typealias Continuation = CheckedContinuation<CallResult, Never>

  /// The call that the operation began with, if it waits.
  var first: (call: OperationNumber, continuation: Continuation)?
  /// Calls that joined later.
  var joined: [(call: OperationNumber, continuation: Continuation)] = []
  /// Handles that somebody holds.
  var cells: [OutcomeCell] = []

  var isEmpty: Bool { first == nil && joined.isEmpty && cells.isEmpty }

  /// Takes one caller out.
  mutating func remove(_ call: OperationNumber) -> Continuation? {
    if let first, first.call == call {
      self.first = nil
      return first.continuation
    }
    guard let index = joined.firstIndex(where: { $0.call == call }) else { return nil }
    return joined.remove(at: index).continuation
  }

  /// Adds all of another operation's that turned out to be this one.
  mutating func add(_ others: OperationWaiters) {
    if let first = others.first { joined.append(first) }
    joined += others.joined
    cells += others.cells
  }

  /// Tells everybody.
  func resume(_ result: CallResult, _ confirmed: Outcome<Confirmation>, isRecorded: Bool) {
    for cell in cells { cell.settle(confirmed, isRecorded: isRecorded) }
    first?.continuation.resume(returning: result)
    for one in joined { one.continuation.resume(returning: result) }
  }
}

/// The outcome of an operation for whoever holds its handle.
final class OutcomeCell: Sendable {
  private struct State {
    var outcome: Outcome<Confirmation>?
    var waiting: [CheckedContinuation<Outcome<Confirmation>, Never>] = []
    /// The store has the outcome, and does not know yet that somebody was told.
    var isUntold = false
  }

  private let state = Locked(State())

  /// The outcome, if there is one.
  var outcome: Outcome<Confirmation>? { state.withLock { $0.outcome } }

  /// The operation has its outcome.
  func settle(_ outcome: Outcome<Confirmation>, isRecorded: Bool = false) {
    let waiting = state.withLock { state in
      if state.outcome == nil { (state.outcome, state.isUntold) = (outcome, isRecorded) }
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume(returning: outcome) }
  }

  /// Whether the store is to hear now that somebody was told the outcome: once, and only of one that it has.
  func takeUntold() -> Bool {
    state.withLock { state in
      defer { state.isUntold = false }
      return state.isUntold
    }
  }

  /// Waits for the outcome.
  func wait() async -> Outcome<Confirmation> {
    await withCheckedContinuation { continuation in
      let outcome = state.withLock { state -> Outcome<Confirmation>? in
        if let outcome = state.outcome { return outcome }
        state.waiting.append(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }
}
