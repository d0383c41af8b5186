public import RelinkCore

// The journal seen from outside, and what the shell does for it: commits, timers, probes.
extension DeviceSession {
  // MARK: For apps

  /// Records a write, and returns a handle for its outcome: at once, or for a durable one when its record is committed.
  ///
  /// With an ID that is known already it is no second write: the handle is one for the first, whose outcome may be there
  /// by now. Asking for a link, waiting, order and repetition are those of ``write(_:to:idempotency:id:options:)``. It
  /// ends within the time that the store takes, at most ``WriteOptions/deadline`` and a second; cancelling the task that
  /// submits changes nothing. Across a disconnect the operation goes on as its tag says.
  /// - Throws: `notSent` with the reason where it is not recorded: the journal is full, the store refuses, the ID belongs
  ///   to another write, the session was disconnected or has ended.
  public func submit(_ request: WriteRequest) async throws(RelinkError) -> PendingOperation {
    lastOperation += 1
    let number = OperationNumber(rawValue: lastOperation)
    let now = executor.timestamp()
    let call = operationCall(
      number, request.request, request.idempotency, within: request.options.deadline, request.id,
      request.options,
      now: now)
    let id = call.id ?? OperationID(number)
    let isDurable = call.options?.durability == .durable
    let cell = OutcomeCell()
    switch enter(call, now: now) {
    case .ended(.settled(.notSent(let reason), _, _)) where request.id == nil || !isKept(call, now: now):
      throw RelinkError(
        operation: id, outcome: .notSent(reason), request: request.request, disconnect: machine.lastDisconnect
      )
    case .ended(let result):
      cell.settle(result.confirmed)
      return PendingOperation(id: id, cell: cell, session: self)
    case .waits(let known):
      waiters[known, default: OperationWaiters()].cells.append(cell)
      journalChanged()
      offerOperations()
      if isDurable, operations.isRecording(known) {
        let refusal = operations.refusal(of: known)
        await withCheckedContinuation { continuation in
          // The way here may leave the executor, and the record may be committed meanwhile.
          guard operations.isRecording(known) else { return continuation.resume() }
          recordings[known, default: []].append(continuation)
        }
        if case .notSent(let reason) = cell.outcome,
          reason.isRefusal || (reason == refusal && !isKept(call, now: executor.timestamp()))
        {
          throw RelinkError(
            operation: id, outcome: .notSent(reason), request: request.request,
            disconnect: machine.lastDisconnect)
        }
      }
      return PendingOperation(id: id, cell: cell, session: self)
    }
  }

  /// The operations that have no outcome yet, in call order, as they stand now.
  public var journal: [JournaledOperation] { operations.entries.map(\.summary) }

  /// Every transition of every operation from now on, in order.
  ///
  /// A consumer that falls `buffering` transitions behind loses what it has not taken and gets `missed` with their number.
  /// Waiting for the next one has no bound; the stream ends with the session, or when its task is cancelled.
  public func journalEvents(buffering: Buffering = .newest(256)) -> AsyncStream<JournalUpdate> {
    operations.isObserved = true
    return journalFeed.subscribe(limit: buffering.limit)
  }

  /// The outcomes of durable operations that were called in an earlier process and were told to nobody.
  ///
  /// Each is handed to one consumer, at least once: a process that dies right after it was handed over leaves it to the
  /// next one. Operations that were still open appear once they have their outcome. Asking for the same ID again is the
  /// other way to learn it. Waiting for the next one has no bound; the stream ends with the session, or when its task is
  /// cancelled.
  public nonisolated func recoveredOperations() -> AsyncStream<RecoveredOperation> {
    recovery.subscribe { [weak self] id in self?.outcomeTold(id) }
  }

  /// Says what became of an operation that is tagged `.verified(by: .app)` and in doubt; the journal keeps who said so.
  ///
  /// `applied` ends it as succeeded, `unknown` as indeterminate, and after `notApplied` it is offered again. It returns
  /// without waiting.
  /// - Throws: `invalidArgument` where no operation of that ID waits for such a word.
  public func resolve(_ id: OperationID, as verdict: Verdict, by who: String) async throws(RelinkError) {
    switch operations.resolved(id, as: verdict, by: who, now: executor.timestamp()) {
    case .resolved(let settlement):
      if let settlement { settle(settlement) }
      journalChanged()
      offerOperations()
    case .unknownID:
      throw RelinkError(.invalidArgument, "There is no operation \(id) without an outcome.", operation: id)
    case .notAwaited:
      throw RelinkError(
        .invalidArgument,
        "Operation \(id) does not wait to be resolved: only one that is tagged .verified(by: .app) does, once its link "
          + "is lost.", operation: id)
    }
  }

  // MARK: For handles and streams

  nonisolated func outcomeTold(_ id: OperationID) {
    executor.post { [weak self] in
      self?.assumeIsolated { $0.delivered(id) }
    }
  }

  nonisolated func operationCancelled(_ id: OperationID) {
    executor.post { [self] in
      assumeIsolated { session in
        guard let entry = session.operations.entries.first(where: { $0.id == id }) else { return }
        session.endOperation(entry.number, .cancelled)
      }
    }
  }

  func delivered(_ id: OperationID) {
    recovery.remove(id)
    operations.delivered(id, now: executor.timestamp())
    journalChanged()
  }

  private func isKept(_ call: OperationJournal.Call, now: Timestamp) -> Bool {
    guard let id = call.id, case .kept = operations.lookUp(id, call, now: now) else { return false }
    return true
  }

  // MARK: Commits

  /// The number of the timer after which a failed commit is tried again.
  static let storeTimer = 101
  /// The number of the timer after which the system clock is looked at again.
  static let clockTimer = 102
  /// How often the system clock is looked at while an operation waits until it is right.
  private static let clockRetry = Duration.seconds(10)

  /// Asks for the device's durable journal, unless that was done.
  func openStore() {
    guard operations.needsClaim, let store = configuration.store else { return }
    operations.claimRequested()
    store.claim(device, owner: configuration.owner, epoch: configuration.epoch) { [weak self] result in
      guard let self else { return }
      self.executor.post { [weak self] in
        self?.assumeIsolated { $0.storeOpened(result) }
      }
    }
  }

  /// Keeps a session that has ended until its store has answered.
  func linger() {
    guard case .ended = machine.snapshot.state else { return }
    lingering = operations.awaitsStore ? self : nil
  }

  private func storeOpened(_ result: Result<ClaimedJournal, JournalStoreError>) {
    defer { linger() }
    let now = executor.timestamp()
    if case .ended = machine.snapshot.state {
      // What an earlier process left is for the next session.
      let error = JournalStoreError(.closed, "The session has ended; make a new one to go on.")
      follow(operations.claimFailed(error, now: now))
      return finishFeeds()
    }
    switch result {
    case .success(let journal):
      claim = journal.claim
      claimFailures = 0
      follow(operations.claimed(journal, isWallRight: executor.isWallClockRight, now: now))
      if operations.awaitsClock { watchClock() }
      takeUpWork(now: now)
      markAhead(now: now)
    case .failure(let error):
      follow(operations.claimFailed(error, now: now))
      retryClaim(now: now)
    }
    offerOperations()
  }

  /// What an earlier process left needs a link too; where the app has disconnected meanwhile, it settles like all else.
  private func takeUpWork(now: Timestamp) {
    guard operations.hasOpenWork else { return }
    switch machine.workArrived(now: now.monotonic) {
    case .wait(let actions): perform(actions)
    case .refuse(let reason): settleOperations(reason, .disconnected)
    }
  }

  /// A claim that was refused for a reason that may pass is asked for again: nobody else takes up what was left.
  private func retryClaim(now: Timestamp) {
    guard operations.needsClaim else { return }
    let delay = min(.seconds(1) * (1 << min(claimFailures, 10)), Self.longestClaimRetry)
    claimFailures += 1
    executor.setTimer(timerID(Self.storeTimer), at: now.monotonic.advanced(by: delay)) { [weak self] in
      self?.assumeIsolated { $0.openStore() }
    }
  }

  private static let longestClaimRetry = Duration.seconds(30)

  func cancelJournalTimers() {
    for timer in [
      Self.journalTimer, Self.storeTimer, Self.clockTimer, Self.probeTimer, Self.refusalTimer,
    ] {
      executor.cancelTimer(timerID(timer))
    }
  }

  private func watchClock() {
    executor.setTimer(timerID(Self.clockTimer), at: executor.now.advanced(by: Self.clockRetry)) {
      [weak self] in
      self?.assumeIsolated { session in
        guard session.operations.awaitsClock else { return }
        guard session.executor.isWallClockRight else { return session.watchClock() }
        session.operations.wallClockConfirmed(now: session.executor.timestamp())
        session.journalChanged()
        session.offerOperations()
      }
    }
  }

  /// Passes on what the journal has put down: commits, timers, transitions.
  func journalChanged() {
    if let probe, !operations.isProbing(probe.number) { endProbe() }
    guard operations.hasOutput else { return }
    if let timer = operations.takeTimer() { setJournalTimer(timer) }
    let events = operations.takeEvents()
    if !events.isEmpty {
      if let audit = configuration.audit {
        for event in events { audit.record(event, of: device, owner: configuration.owner) }
      }
      journalFeed.publish(events)
      if configuration.audit == nil, !journalFeed.hasSubscribers { operations.isObserved = false }
    }
    let reports = operations.takeReports()
    if !reports.isEmpty {
      recovery.append(reports)
    }
    commit()
  }

  private func commit() {
    guard let store = configuration.store, let claim, let batch = operations.nextCommit() else { return }
    store.append(batch.records, to: claim, sync: batch.sync) { [weak self] result in
      guard let self else { return }
      self.executor.post { [weak self] in
        self?.assumeIsolated { $0.committed(result) }
      }
    }
  }

  private func committed(_ result: Result<[JournalRow], JournalStoreError>) {
    defer { linger() }
    let now = executor.timestamp()
    switch result {
    case .success(let existing):
      follow(operations.committed(existing: existing, now: now))
      markAhead(now: now)
    case .failure(let error):
      follow(operations.commitFailed(error, now: now))
      if let retry = operations.retryAt { setStoreTimer(retry) }
    }
    offerOperations()
    if case .ended = machine.snapshot.state { finishFeeds() }
  }

  /// The session has ended: its streams end with the last thing that they have to tell.
  func finishFeeds() {
    guard !operations.hasUntold else { return }
    journalFeed.finish()
    recovery.finish()
  }

  /// Has the mark of what will be offered first committed while the link is made ready.
  func markAhead(now: Timestamp) {
    guard machine.isPreparing, let generation = machine.currentLink?.generation else { return }
    operations.marksWanted(on: generation, now: now)
    journalChanged()
  }

  private func setStoreTimer(_ instant: MonotonicInstant) {
    executor.setTimer(timerID(Self.storeTimer), at: instant) { [weak self] in
      self?.assumeIsolated { session in
        session.operations.retryDue(now: session.executor.timestamp())
        session.commit()
        session.offerOperations()
      }
    }
  }

  /// Does what follows from a word of the store.
  private func follow(_ effects: OperationJournal.StoreEffects) {
    for merge in effects.merged {
      guard var moved = waiters.removeValue(forKey: merge.from) else { continue }
      if let first = moved.first {
        joinedCalls[first.call] = merge.into
        if let end = merge.end.flatMap(CallResult.Detachment.init) {
          _ = moved.remove(first.call)
          forgetJoin(first.call)
          first.continuation.resume(returning: .detached(end))
        } else if let deadline = merge.deadline {
          setJoinTimer(first.call, deadline)
        }
      }
      for (call, _) in moved.joined { joinedCalls[call] = merge.into }
      waiters[merge.into, default: OperationWaiters()].add(moved)
    }
    for settlement in effects.settled { settle(settlement) }
    for number in effects.recorded {
      for continuation in recordings.removeValue(forKey: number) ?? [] { continuation.resume() }
    }
    journalChanged()
  }

  // MARK: Probes

  /// The number of the timer that ends a probe which takes too long.
  static let probeTimer = 103

  /// Begins the probe that is due, if one is and none runs.
  func beginProbe(now: Timestamp) {
    guard let generation = machine.currentLink?.generation, link != nil else { return }
    guard let (number, wanted) = operations.nextProbe(on: generation, now: now) else { return }
    journalChanged()
    let scope = LinkScope(session: self, generation: generation, services: services)
    let named = configuration.probes
    let turn = ExclusiveTurn(of: self)
    let task = AppTask.run(on: executor) {
      let verdict = await turn.run(isolation: nil) { await wanted.look(through: scope, named: named) }
      turn.end()
      await self.probeEnded(number, on: generation, verdict)
    }
    probe = RunningProbe(number: number, task: task)
    let limit = now.monotonic.advanced(by: configuration.journal.probeTime)
    executor.setTimer(timerID(Self.probeTimer), at: limit) { [weak self] in
      self?.assumeIsolated { $0.probeEnded(number, on: generation, .unknown) }
    }
  }

  private func probeEnded(_ number: OperationNumber, on generation: Generation, _ verdict: Verdict) {
    guard probe?.number == number, machine.currentLink?.generation == generation else { return }
    endProbe()
    if let settlement = operations.probeFinished(number, on: generation, verdict, now: executor.timestamp()) {
      settle(settlement)
    }
    journalChanged()
    offerOperations()
  }

  /// Lets go of the probe that runs: it has ended, or nobody needs it any more.
  func endProbe() {
    probe?.task.cancel()
    probe = nil
    executor.cancelTimer(timerID(Self.probeTimer))
  }
}

/// A probe that looks at the device.
struct RunningProbe {
  var number: OperationNumber
  var task: AppTask
}

extension NotSentReason {
  /// Whether it says that the operation never became one.
  fileprivate var isRefusal: Bool {
    switch self {
    case .journalFull, .storeFailed, .mixedDurability, .conflictingID: true
    case .disconnected, .ended, .deadline, .cancelled, .notReconnecting, .attemptsExhausted, .refused,
      .linkLost, .expired, .superseded, .adapterUnavailable, .userActionNeeded, .continuityBroken,
      .securityTooLow:
      false
    }
  }
}
