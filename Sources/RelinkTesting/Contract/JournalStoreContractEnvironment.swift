public import Relink

/// What ``JournalStoreContract`` needs to try a store.
public protocol JournalStoreContractEnvironment: Sendable {
  /// Lets the suite wait. For a store with a thread of its own, a ``LoopContractDriver`` on any executor that runs by
  /// itself does.
  var driver: any ContractDriver { get }

  /// Makes an empty store.
  ///
  /// - Returns: The store; nobody else uses it.
  /// - Throws: Anything, where it cannot be made; the check fails with it.
  func makeStore() async throws -> any JournalStore

  /// Ends the process that uses a store, as far as that can be done here, and opens what it left.
  ///
  /// - Parameter store: The store, which is not used any more.
  /// - Returns: A store with what was committed; nil where that cannot be done, and the rule is skipped.
  /// - Throws: Anything, where it cannot be opened again; the check fails with it.
  func reopen(_ store: any JournalStore) async throws -> (any JournalStore)?

  /// Lets go of a store, with all that it has kept.
  ///
  /// - Parameter store: The store, which is not used any more.
  func discard(_ store: any JournalStore) async
}

extension JournalStoreContractEnvironment {
  /// Cannot be done, as of an environment that says nothing else.
  public func reopen(_ store: any JournalStore) async throws -> (any JournalStore)? { nil }

  /// Nothing, as of a store that leaves nothing behind.
  public func discard(_ store: any JournalStore) async {}
}
