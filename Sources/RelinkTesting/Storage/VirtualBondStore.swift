public import Relink

/// A store of bonds in memory, which answers in later jobs of an executor and fails on demand.
///
/// Everything may be called on any thread.
public final class VirtualBondStore: BondStore {
  private struct State {
    var bonds: [Bond] = []
    var lastID: UInt64 = 0
    var failure: RelinkError?
  }

  private let executor: any SessionExecutor
  private let state = Locked(State())

  /// Makes an empty store.
  ///
  /// - Parameter executor: Where it answers.
  public init(on executor: any SessionExecutor) {
    self.executor = executor
  }

  /// The bonds that are kept, in the order of their numbers.
  public var bonds: [Bond] { state.withLock { $0.bonds.sorted { $0.id < $1.id } } }

  /// Has every later call fail, and change nothing.
  ///
  /// - Parameter error: What they fail with; nil for no failure any more.
  public func setFailure(_ error: RelinkError?) { state.withLock { $0.failure = error } }

  // MARK: - BondStore

  /// Hands back every bond, and the highest number that a bond ever had here.
  ///
  /// - Parameter done: Called once, on the executor.
  public func load(_ done: @escaping @Sendable (Result<KeptBonds, RelinkError>) -> Void) {
    answer(done) { KeptBonds($0.bonds.sorted { $0.id < $1.id }, lastID: $0.lastID) }
  }

  /// Keeps a bond, in place of an earlier one of the same device and adapter.
  ///
  /// - Parameters:
  ///   - bond: The bond.
  ///   - done: Called once, on the executor; nil when it is kept.
  public func keep(_ bond: Bond, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    answer({ done($0.failure) }) { state in
      state.bonds.removeAll { $0.device == bond.device && $0.adapter == bond.adapter }
      state.bonds.append(bond)
      state.lastID = max(state.lastID, bond.id)
    }
  }

  /// Removes the bond of a device with an adapter.
  ///
  /// - Parameters:
  ///   - device: The device, by its identity address.
  ///   - adapter: The public address of the adapter.
  ///   - done: Called once, on the executor; nil when no such bond is left.
  public func remove(
    _ device: DeviceID, of adapter: BluetoothAddress, _ done: @escaping @Sendable (RelinkError?) -> Void
  ) {
    answer({ done($0.failure) }) { state in
      state.bonds.removeAll { $0.device == device && $0.adapter == adapter }
    }
  }

  private func answer<Value: Sendable>(
    _ done: @escaping @Sendable (Result<Value, RelinkError>) -> Void, _ body: (inout State) -> Value
  ) {
    let result: Result<Value, RelinkError> = state.withLock { state in
      if let failure = state.failure { return .failure(failure) }
      return .success(body(&state))
    }
    executor.post { done(result) }
  }
}

extension Result where Failure == RelinkError {
  fileprivate var failure: RelinkError? {
    if case .failure(let error) = self { error } else { nil }
  }
}
