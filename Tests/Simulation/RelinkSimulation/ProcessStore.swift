internal import Relink
internal import RelinkTesting

/// The journal store as one process sees it: until the process ends, and then not at all.
final class ProcessStore: JournalStore {
  private struct State {
    var isDead = false
    var hasClaimFailed = false
    var commits = 0
    var onCommit: (@Sendable () -> Void)?
    var killAt: Int?
  }

  private let store: VirtualJournalStore
  private let state = Locked(State())

  init(_ store: VirtualJournalStore) {
    self.store = store
  }

  /// Whether a claim of this process failed: until the next one nothing is known of what an earlier process left.
  var hasClaimFailed: Bool { state.withLock { $0.hasClaimFailed } }

  /// Ends the process.
  func kill() { state.withLock { $0.isDead = true } }

  /// Calls `body` when the nth commit from now on has been asked for.
  func atCommit(_ count: Int, _ body: @escaping @Sendable () -> Void) {
    state.withLock { ($0.killAt, $0.onCommit) = ($0.commits + count, body) }
  }

  /// Forgets what was to happen.
  func disarm() { state.withLock { ($0.killAt, $0.onCommit) = (nil, nil) } }

  func claim(
    _ device: DeviceID, owner: String, epoch: UInt64?,
    _ done: @escaping @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void
  ) {
    guard !state.withLock({ $0.isDead }) else {
      return store.executor.post { done(.failure(ProcessStore.ended)) }
    }
    store.claim(device, owner: owner, epoch: epoch) { [state] result in
      if case .failure = result { state.withLock { $0.hasClaimFailed = true } }
      done(result)
    }
    count()
  }

  func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync,
    _ done: @escaping @Sendable (Result<[JournalRow], JournalStoreError>) -> Void
  ) {
    guard !state.withLock({ $0.isDead }) else {
      return store.executor.post { done(.failure(ProcessStore.ended)) }
    }
    store.append(records, to: claim, sync: sync, done)
    count()
  }

  private func count() {
    let due = state.withLock { state -> (@Sendable () -> Void)? in
      state.commits += 1
      guard let at = state.killAt, state.commits >= at else { return nil }
      defer { (state.killAt, state.onCommit) = (nil, nil) }
      return state.onCommit
    }
    due?()
  }

  private static let ended = JournalStoreError(.closed, "The process has ended.", isCertain: false)
}
