/// What a durable journal still has to commit, and what is being committed: one batch at a time, in order.
///
/// ```
///            next                committed
///   idle ───────────► in flight ───────────► idle
///     ▲                   │ failed
///     └───── retry ── failing
/// ```
///
/// Records come in while a batch is in flight and go out with the next one, so that a slow disk is asked less often. A
/// batch that failed goes again, before everything younger, once the retry is due.
struct DurableLog: Hashable, Sendable {
  /// One record, the operation that it is about, and what its commit is waited for by.
  struct Item: Hashable, Sendable {
    /// What follows from the commit.
    enum Purpose: Hashable, Sendable {
      /// The operation may be offered.
      case admission
      /// Its bytes may leave.
      case mark
      /// Its callers may be told.
      case settlement
      /// Whether the store has an operation of that name is known. It travels alone, since it fails where there is none.
      case lookUp
      /// Nobody waits for it.
      case note
    }

    var number: OperationNumber?
    var purpose: Purpose
    var record: JournalRecord
    var sync: JournalSync
    /// A commit of it has failed, and may have taken place all the same.
    var mayBeThere = false

    /// What goes to the store.
    ///
    /// A name is asked for by two: one that fails where there is no such operation, so that the other adds none.
    var records: [JournalRecord] {
      guard purpose == .lookUp, case .admitted(let row) = record else { return [record] }
      return [.delivered(id: row.id), record]
    }
  }

  private(set) var pending: [Item] = []
  private(set) var inFlight: [Item] = []
  /// The latest failure, until a commit succeeds.
  private(set) var failure: JournalStoreError?
  /// When a batch that failed goes again.
  private(set) var retryAt: MonotonicInstant?
  private var failures = 0

  /// The first delay before a failed batch goes again; it doubles up to `longestRetry`.
  static let shortestRetry = Duration.milliseconds(500)
  static let longestRetry = Duration.seconds(30)

  /// Whether durable operations may be offered: the store does what it is asked.
  var isWorking: Bool { failure == nil }

  /// Whether the store may be asked for something: it works, or it is time to see whether it does again.
  var mayTry: Bool { retryAt == nil }

  /// Whether nothing is left to commit.
  var isEmpty: Bool { pending.isEmpty && inFlight.isEmpty }

  /// Whether the store owes an answer.
  var isInFlight: Bool { !inFlight.isEmpty }

  /// Something is to be committed, after everything before it.
  mutating func append(_ item: Item) {
    pending.append(item)
  }

  /// What is to be committed now, if anything.
  mutating func next() -> (records: [JournalRecord], sync: JournalSync)? {
    guard inFlight.isEmpty, !pending.isEmpty, retryAt == nil else { return nil }
    if pending[0].purpose == .lookUp {
      inFlight = [pending.removeFirst()]
    } else if let count = pending.firstIndex(where: { $0.purpose == .lookUp }) {
      inFlight = Array(pending.prefix(count))
      pending.removeFirst(count)
    } else {
      swap(&inFlight, &pending)
    }
    return (inFlight.flatMap(\.records), inFlight.lazy.map(\.sync).max() ?? .normal)
  }

  /// The batch in flight is committed.
  mutating func committed() -> [Item] {
    defer { inFlight = [] }
    failure = nil
    failures = 0
    return inFlight
  }

  /// The batch in flight failed.
  ///
  /// - Returns: what of it certainly was not recorded, and is not tried again; a settlement always is.
  mutating func failed(_ error: JournalStoreError, now: MonotonicInstant) -> [Item] {
    var dropped: [Item] = []
    var kept: [Item] = []
    for var item in inFlight {
      // That one commit certainly failed says nothing about an earlier one.
      if item.purpose == .lookUp {
        dropped.append(item)
      } else if error.isCertain, !item.mayBeThere, item.purpose != .settlement {
        dropped.append(item)
      } else {
        if !error.isCertain { item.mayBeThere = true }
        kept.append(item)
      }
    }
    pending = kept + pending
    inFlight = []
    failure = error
    let delay = min(Self.shortestRetry * (1 << min(failures, 10)), Self.longestRetry)
    failures += 1
    retryAt = now.advanced(by: delay)
    return dropped
  }

  /// The store will not have one of the records in flight: it goes again at once, without those that nobody waits for.
  ///
  /// - Returns: whether there were any, so that it is not the same again.
  mutating func dropNotes() -> Bool {
    let rest = inFlight.filter { $0.purpose != .note }
    guard rest.count < inFlight.count else { return false }
    pending = rest + pending
    inFlight = []
    return true
  }

  /// The call whose name the store is being asked for, if that is in flight.
  var lookUpInFlight: OperationNumber? {
    guard let first = inFlight.first, first.purpose == .lookUp else { return nil }
    return first.number
  }

  /// The store has nothing of the name that it was asked for.
  mutating func dropLookUp() { inFlight = [] }

  /// The store will do nothing any more: what was to be committed is dropped.
  mutating func ended(_ error: JournalStoreError) {
    failure = error
    pending = []
    inFlight = []
    retryAt = nil
  }

  /// The timer for the retry went off.
  ///
  /// Where nothing is left to try again, the next mark finds out whether the store works.
  mutating func retryDue(now: MonotonicInstant) {
    guard let at = retryAt, at <= now else { return }
    retryAt = nil
    // Where nothing is left that could show whether the store works again, it is taken to, or what waits would wait for
    // ever.
    if isEmpty { failure = nil }
  }

  /// Takes back what is not in flight yet for an operation.
  mutating func dropPending(of number: OperationNumber) {
    pending.removeAll { $0.number == number }
  }
}
