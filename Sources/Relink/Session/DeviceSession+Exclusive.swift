public import RelinkCore
internal import Synchronization

/// One turn with a link, as the tasks know it that run in it: the body of `withLink`, a setup, a probe.
///
/// It is handed down to child tasks, and to what the body leaves behind; who knows of it and would wait for the link waits
/// for himself.
final class ExclusiveTurn: Sendable {
  @TaskLocal private static var current: ExclusiveTurn?

  private let session: ObjectIdentifier
  /// A turn with another session's link, within which this one began.
  private let outer: ExclusiveTurn?
  private let isOver = Atomic(false)

  /// A turn that begins in the current task.
  init(of session: DeviceSession) {
    self.session = ObjectIdentifier(session)
    var outer = Self.current
    while let one = outer, one.isOver.load(ordering: .relaxed) { outer = one.outer }
    self.outer = outer
  }

  /// Whether the current task runs in a turn of the session that is not over.
  static func isHeld(of session: DeviceSession) -> Bool {
    var turn = current
    while let one = turn {
      if one.session == ObjectIdentifier(session), !one.isOver.load(ordering: .relaxed) { return true }
      turn = one.outer
    }
    return false
  }

  func end() { isOver.store(true, ordering: .relaxed) }

  /// Runs the body of the turn.
  func run<Value: Sendable>(
    isolation: isolated (any Actor)?, _ body: @Sendable () async throws -> Value
  ) async rethrows -> Value {
    try await Self.$current.withValue(self, operation: body, isolation: isolation)
  }
}

/// Whose turn it is to have the link for himself.
struct ExclusiveTurns {
  typealias Continuation = CheckedContinuation<Result<Generation, RelinkError>, Never>

  private var waiting: [(number: OperationNumber, turn: ExclusiveTurn, continuation: Continuation)] = []
  /// The link that somebody has for himself, and his number.
  private(set) var holder: (number: OperationNumber, turn: ExclusiveTurn)?
  /// Operations up to this one go before the next turn: they waited while somebody had the link.
  private(set) var barrier: OperationNumber?

  var hasWaiting: Bool { !waiting.isEmpty }

  mutating func add(_ number: OperationNumber, _ turn: ExclusiveTurn, _ continuation: Continuation) {
    waiting.append((number, turn, continuation))
  }

  /// Gives the turn to the first who waits.
  mutating func grant() -> Continuation? {
    guard holder == nil, !waiting.isEmpty else { return nil }
    let first = waiting.removeFirst()
    holder = (first.number, first.turn)
    return first.continuation
  }

  /// Somebody does not wait any more.
  mutating func remove(_ number: OperationNumber) -> Continuation? {
    guard let index = waiting.firstIndex(where: { $0.number == number }) else { return nil }
    return waiting.remove(at: index).continuation
  }

  /// Nobody will get a turn.
  mutating func removeAll() -> [Continuation] {
    defer { waiting = [] }
    return waiting.map(\.continuation)
  }

  /// The turn is over.
  mutating func release(_ number: OperationNumber, after last: OperationNumber?) {
    guard holder?.number == number else { return }
    linkLost()
    barrier = last
  }

  /// What waited for the turn before has had its own.
  mutating func barrierPassed() { barrier = nil }

  /// The link is gone, and with it what anybody could do on it.
  mutating func linkLost() {
    holder?.turn.end()
    holder = nil
  }
}

// Work that needs a link for itself.
extension DeviceSession {
  /// Runs `body` with the link alone: nothing of the journal is offered while it runs, and what it asks for belongs to
  /// this one link.
  ///
  /// Waits until the session is ready and what was offered is answered; that wait ends within `limit`, by default
  /// ``Deadlines/operation``, and by cancelling. What `body` asks for is never journalled and never repeated; when
  /// the link is lost its requests end as `indeterminate` or `linkLost`, and the journal goes on with the next link. A
  /// scope that is kept beyond `body` can still be used, though no longer alone.
  ///
  /// Inside `body` ask the scope, not the session: what the session is asked for cannot be offered before `body` has
  /// ended. A call that would wait for that is refused at once, as `invalidArgument`, whether `body` makes it or a task
  /// that it has begun. ``submit(_:)`` does not wait and may be called; its outcome comes behind `body`.
  /// - Throws: what `body` throws; `deadlineExceeded`, `cancelled`, `attemptsExhausted`, `disconnected` or `ended` as a
  ///   ``RelinkError`` where it did not get its turn.
  public func withLink<Value: Sendable>(
    within limit: Deadline = .default, _ body: @Sendable (LinkScope) async throws -> Value
  ) async throws -> Value {
    guard !ExclusiveTurn.isHeld(of: self) else { throw RelinkError.insideTurn }
    let turn = ExclusiveTurn(of: self)
    lastOperation += 1
    let number = OperationNumber(rawValue: lastOperation)
    let now = executor.timestamp()
    let deadline = limit.bootTime(from: now, default: configuration.deadlines.operation)
    let timer = timerID(Self.firstTurnTimer + Int(clamping: number.rawValue))
    let granted = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: ExclusiveTurns.Continuation) in
        // The way here may leave the executor; a cancellation of that time found nothing to cancel.
        guard !Task.isCancelled else { return continuation.resume(returning: .failure(.noTurn(.cancelled))) }
        switch machine.workArrived(now: now.monotonic) {
        case .refuse(let reason): return continuation.resume(returning: .failure(.noTurn(reason)))
        case .wait(let actions): perform(actions)
        }
        exclusive.add(number, turn, continuation)
        if let deadline {
          executor.setTimer(timer, atBootTime: deadline) { [weak self] in
            self?.assumeIsolated { $0.endTurn(number, .noTurn(.deadline)) }
          }
        }
        offerOperations()
      }
    } onCancel: {
      executor.post { self.assumeIsolated { $0.endTurn(number, .noTurn(.cancelled)) } }
    }
    executor.cancelTimer(timer)
    let generation = try granted.get()
    defer {
      exclusive.release(number, after: operations.entries.last?.number)
      offerOperations()
    }
    let scope = LinkScope(session: self, generation: generation, services: services)
    return try await turn.run(isolation: self) { try await body(scope) }
  }

  /// Timers of those who wait for a turn have this number and higher ones.
  private static let firstTurnTimer = 1_000

  /// Whether somebody has the link for himself, or is about to: what was offered is waited for first.
  func isExclusive() -> Bool {
    if exclusive.holder != nil { return true }
    guard exclusive.hasWaiting, let generation = machine.currentLink?.generation else { return false }
    if let barrier = exclusive.barrier {
      if operations.hasWork(upTo: barrier, on: generation) { return false }
      exclusive.barrierPassed()
    }
    if outstanding == 0, probe == nil, let continuation = exclusive.grant() {
      continuation.resume(returning: .success(generation))
    }
    return true
  }

  private func endTurn(_ number: OperationNumber, _ error: RelinkError) {
    exclusive.remove(number)?.resume(returning: .failure(error))
    offerOperations()
  }

  /// Nobody is going to bring a link.
  func refuseTurns(_ reason: NotSentReason) {
    for continuation in exclusive.removeAll() { continuation.resume(returning: .failure(.noTurn(reason))) }
  }
}

extension RelinkError {
  /// The session is asked for something that would wait until the caller itself has ended.
  static var insideTurn: RelinkError {
    RelinkError(
      .invalidArgument,
      "Inside withLink, setup and a probe the link belongs to the closure: ask its scope, or submit the write."
    )
  }

  /// Why somebody did not get the link for himself.
  fileprivate static func noTurn(_ reason: NotSentReason) -> RelinkError {
    switch reason {
    case .deadline: RelinkError(.deadlineExceeded, "The link was not free, or not there, in time.")
    case .cancelled: RelinkError(.cancelled, "The task that waited for the link was cancelled.")
    case .ended: RelinkError(.ended, "The session has ended; make a new one to go on.")
    case .attemptsExhausted:
      RelinkError(.attemptsExhausted, "All the attempts that the policy allows have failed.")
    case .disconnected, .notReconnecting, .refused, .journalFull, .linkLost, .expired, .superseded,
      .adapterUnavailable, .userActionNeeded, .continuityBroken, .securityTooLow, .storeFailed,
      .mixedDurability,
      .conflictingID:
      RelinkError(.disconnected, "The session is disconnected; call connect() first.")
    }
  }
}
