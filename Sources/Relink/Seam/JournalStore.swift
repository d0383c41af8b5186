public import RelinkCore

/// A place that keeps durable operations across the end of a process: a database, a log in a simulation.
///
/// One store serves any number of devices and sessions of one process. It does its work on a thread of its own, in the
/// order in which it was asked, and says the result of each call once, on any thread, never inside the call. Calls may be
/// made on any thread and return at once.
public protocol JournalStore: AnyObject, Sendable {
  /// Takes a device's journal over and hands back what is open in it.
  ///
  /// With an epoch the claim gets that number, and fails as `superseded` where an equal or higher one was given already;
  /// with nil it gets the next one. Every earlier claim of the device is superseded by it. `owner` names who claims, for
  /// people who look into the store.
  func claim(
    _ device: DeviceID, owner: String, epoch: UInt64?,
    _ done: @escaping @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void)

  /// Commits the records in their order, all or none, so that they survive what `sync` says.
  ///
  /// The result has the rows that were there already for `admitted` records whose ID was taken, settled ones included. A
  /// failure says whether it is certain that nothing was committed; a store whose commit failed finds that out before it
  /// answers. A record of an operation that is not there fails its batch with `invalidRecord`, certainly. A claim that is
  /// superseded commits nothing.
  func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync,
    _ done: @escaping @Sendable (Result<[JournalRow], JournalStoreError>) -> Void)
}
