import BluetoothWire
import Testing

@testable import RelinkCore

/// Durable calls that cannot be taken: what an earlier process did under their name is looked up before they are refused.
@Suite struct JournalLookUpTests {
  private var bench = JournalBench(durable: true)
  private static let lock = JournalBench.lock
  private static let level = JournalBench.level
  private static let value = GATTRequest.write(lock, [1])
  private static let refusal = Outcome<GATTAnswer>.notSent(.disconnected)

  /// What an earlier process left: one that it had told about, one that it had not, one that is open.
  private mutating func leaveBehind() {
    bench.durable(1, Self.value, id: "told")
    bench.durable(2, .write(Self.level, [2]), id: "untold")
    bench.commit()
    #expect(bench.markedOffers() == [1, 2])
    bench.answer(1)
    bench.answer(2)
    bench.commit()
    bench.journal.delivered(OperationID("told")!)
    bench.durable(3, .write(Self.level, [3]), id: "open")
    bench.commit()
    bench.crash()
    bench.journal.claimRequested()
  }

  private mutating func claimed() -> OperationJournal.StoreEffects {
    let effects = bench.journal.claimed(bench.disk.claimed(), isWallRight: true, now: bench.now)
    bench.take(effects)
    return effects
  }

  private func unknown(_ error: JournalStoreError, at second: Int64 = 0) -> Outcome<GATTAnswer> {
    bench.doubt(.storeFailed(error), on: 0, at: second, offers: 0)
  }

  // MARK: What is there

  @Test(arguments: [true, false])
  mutating func whatAnEarlierProcessToldIsToldAgain(_ isBeforeTheClaim: Bool) {
    leaveBehind()
    if !isBeforeTheClaim { _ = claimed() }
    #expect(bench.refuse(1, Self.value, id: "told") == .recorded(timer: bench.seconds(1)))
    #expect(bench.journal.isRecording(bench.op(1)))
    #expect(bench.journal.refusal(of: bench.op(1)) == .disconnected)
    if isBeforeTheClaim { _ = claimed() }
    #expect(bench.outcomes(1) == [])
    #expect(bench.commit().recorded == [bench.op(1)])
    #expect(bench.outcomes(1) == [.succeeded(.done)])
    #expect(bench.journal.isEmpty == false)
    // From now on it is known.
    #expect(bench.refuse(2, Self.value, id: "told") == .kept(.succeeded(.acknowledged)))
    #expect(bench.refuse(3, .write(Self.lock, [9]), id: "told") == .refused(.conflictingID))
  }

  @Test mutating func whatWasNotToldIsToldToTheCaller() {
    leaveBehind()
    bench.refuse(1, .write(Self.level, [2]), id: "untold")
    let effects = claimed()
    #expect(effects.settled == [Settlement(number: bench.op(1), outcome: .succeeded(.done))])
    bench.commit()
    #expect(bench.disk.row("untold")?.isDelivered == true)
  }

  @Test mutating func whatIsOpenIsWaitedFor() {
    leaveBehind()
    bench.refuse(1, .write(Self.level, [3]), id: "open")
    let effects = claimed()
    #expect(effects.merged == [OperationJournal.Merge(from: bench.op(1), into: bench.op(-1))])
    #expect(effects.settled == [])
    #expect(bench.refuse(2, .write(Self.level, [3]), id: "open") == .joined(bench.op(-1)))
  }

  @Test(arguments: ["told", "untold", "open"])
  mutating func otherBytesUnderItsNameAreAConflict(_ id: String) {
    leaveBehind()
    bench.refuse(1, .write(Self.lock, [99]), id: id)
    _ = claimed()
    let before = bench.disk.row(id)
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.conflictingID)])
    #expect(bench.disk.row(id) == before)
  }

  @Test mutating func aRowThatCannotBeReadIsADoubt() {
    leaveBehind()
    let index = bench.disk.rows.firstIndex { $0.id == "told" }!
    bench.disk.rows[index].outcome = [0xFF]
    _ = claimed()
    bench.refuse(1, Self.value, id: "told")
    bench.commit()
    let error = JournalStoreError(.corrupt, "The store's record of told cannot be read.")
    #expect(bench.outcomes(1) == [unknown(error)])
  }

  @Test mutating func whatALaterVersionKeepsIsLeftAsItIs() {
    leaveBehind()
    let index = bench.disk.rows.firstIndex { $0.id == "open" }!
    bench.disk.rows[index].operation[0] = 0x7F
    _ = claimed()
    guard case .unknown(let doubt) = bench.refuse(1, .write(Self.level, [3]), id: "open") else {
      Issue.record("it is known")
      return
    }
    guard case .storeFailed(let error) = doubt.cause else {
      Issue.record("\(doubt)")
      return
    }
    #expect(error.code == .corrupt)
    bench.commit()
    #expect(bench.disk.row("open")?.isDelivered == false)
  }

  // MARK: What is not there

  @Test(
    arguments: [.disconnected, .ended, .adapterUnavailable(.off), .attemptsExhausted] as [NotSentReason])
  mutating func whatTheStoreDoesNotHaveIsRefusedAndLeavesNothing(_ reason: NotSentReason) {
    bench.refuse(1, Self.value, id: "new", reason)
    #expect(bench.outcomes(1) == [])
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(reason)])
    #expect(bench.disk.rows == [])
    #expect(bench.disk.lastPlace == 0)
    #expect(bench.journal.isEmpty)
    // It was no operation: the same call may be made again.
    #expect(bench.durable(2, Self.value, id: "new") == .recorded(timer: nil))
    #expect(bench.commit().failure == nil)
    #expect(bench.markAndOffer() == 2)
  }

  @Test mutating func onlyACallThatMayBeKnownIsLookedUp() {
    #expect(bench.refuse(1, Self.value, id: "new", isNewName: true) == .refused(.disconnected))
    #expect(bench.refuse(2, Self.value, id: "new", isDurable: false) == .refused(.disconnected))
    var other = JournalBench()
    #expect(other.refuse(3, Self.value, id: "new") == .refused(.disconnected))
  }

  @Test mutating func aFullJournalLooksUpToo() {
    bench = JournalBench(policy: JournalPolicy(capacity: 1), durable: true)
    bench.durable(1, Self.value, id: "done")
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.commit()
    bench.journal.delivered(OperationID("done")!)
    bench.commit()
    bench.restart()
    bench.call(1, .read(Self.level))
    #expect(bench.named(2, Self.value, id: "done") == .recorded(timer: bench.seconds(1)))
    // As many may wait as the journal may hold.
    guard case .unknown(let doubt) = bench.named(3, Self.value, id: "new"),
      case .storeFailed(let error) = doubt.cause
    else {
      Issue.record("there is no limit")
      return
    }
    #expect(error.code == .busy)
    bench.commit()
    #expect(bench.outcomes(2) == [.succeeded(.done)])
    bench.named(4, Self.value, id: "new")
    bench.commit()
    #expect(bench.outcomes(4) == [.notSent(.journalFull(limit: 1))])
  }

  @Test mutating func aCallThatMayNotBeMixedIsLookedUpToo() {
    bench.call(1, .write(Self.lock, [9]))
    bench.named(2, Self.value, id: "new")
    bench.commit()
    #expect(bench.outcomes(2) == [.notSent(.mixedDurability)])
  }

  // MARK: A store that fails

  @Test mutating func nobodyCanTellWhereTheClaimIsRefused() {
    leaveBehind()
    bench.refuse(1, Self.value, id: "told")
    let error = JournalBench.error(.locked)
    bench.take(bench.journal.claimFailed(error, now: bench.now))
    #expect(bench.outcomes(1) == [unknown(error)])
    // Nobody has asked for the claim anew.
    guard case .unknown = bench.refuse(2, Self.value, id: "told") else {
      Issue.record("it waits for nothing")
      return
    }
  }

  @Test mutating func nobodyCanTellWhereTheStoreIsLost() {
    leaveBehind()
    _ = claimed()
    bench.refuse(1, Self.value, id: "told")
    bench.failCommit(.superseded)
    let error = JournalBench.error(.superseded)
    #expect(bench.outcomes(1) == [unknown(error)])
    for admission in [bench.refuse(2, Self.value, id: "told"), bench.named(3, Self.value, id: "told")] {
      guard case .unknown(let doubt) = admission else {
        Issue.record("\(admission)")
        continue
      }
      #expect(doubt.cause == .storeFailed(error))
    }
    #expect(bench.durable(4, Self.value) == .refused(.storeFailed(error)))
  }

  @Test(arguments: [true, false])
  mutating func nobodyCanTellWhereTheStoreFails(_ isCertain: Bool) {
    bench.durable(1, .write(Self.level, [1]))
    bench.beginCommit()
    bench.refuse(2, Self.value, id: "new")
    bench.durable(3, .write(Self.level, [3]))
    bench.commit(1)
    #expect(bench.failCommit(.full, isCertain: isCertain).failure?.code == .full)
    #expect(bench.outcomes(2) == [unknown(JournalBench.error(.full, isCertain: isCertain))])
    // What came behind goes on.
    bench.pass(1)
    bench.journal.retryDue(now: bench.now.monotonic)
    bench.commit()
    #expect(bench.state(3) == .queued)
    #expect(bench.disk.row("new") == nil)
  }

  @Test mutating func aNameThatIsNotThereShowsNotThatTheStoreWorks() {
    bench.durable(1)
    bench.commit()
    _ = bench.next()
    bench.commit()
    // Marked, and the store fails over something else.
    bench.durable(2, .write(Self.level, [2]))
    bench.failCommit()
    #expect(bench.offer() == nil)
    bench.refuse(3, Self.value, id: "new")
    bench.pass(1)
    bench.journal.retryDue(now: bench.now.monotonic)
    bench.commit()
    #expect(bench.outcomes(3) == [Self.refusal])
    #expect(bench.offer() == 1)
  }

  // MARK: Time

  @Test(arguments: [nil, 5] as [Int64?])
  mutating func aSilentStoreHoldsNobodyLongerThanASecondBeyondHisDeadline(_ deadline: Int64?) {
    let last = bench.seconds((deadline ?? 0) + 1)
    #expect(bench.refuse(1, Self.value, id: "new", within: deadline) == .recorded(timer: last))
    bench.beginCommit()
    bench.pass(deadline ?? 0)
    #expect(bench.fireTimer() == [])
    bench.pass(1)
    bench.fireTimer()
    guard case .indeterminate(let doubt)? = bench.outcomes(1).first, case .storeFailed = doubt.cause else {
      Issue.record("\(bench.outcomes(1))")
      return
    }
    #expect(bench.journal.isEmpty)
    bench.commit()
    #expect(bench.outcomes(1).count == 1)
  }

  @Test mutating func timeThatWasSleptThroughCounts() {
    bench.refuse(1, Self.value, id: "new", within: 59)
    bench.beginCommit()
    bench.suspend(50)
    #expect(bench.journal.noteSuspension(bench.now) == true)
    #expect(bench.journal.takeTimer() == bench.seconds(10))
  }

  @Test mutating func whoWasCancelledIsNotToldOnceMore() {
    bench.refuse(1, Self.value, id: "new")
    let wasOne = (0..<2).map { _ in bench.journal.lookUpAbandoned(bench.op(1)) }
    #expect(wasOne == [true, false])
    #expect(bench.commit().settled == [])
    #expect(bench.journal.isEmpty)
  }

  // MARK: What is seen of it

  @Test mutating func itIsNoOperation() {
    bench.journal.isObserved = true
    bench.refuse(1, Self.value, id: "new")
    #expect(bench.journal.entries == [])
    #expect(!bench.journal.hasOpenWork)
    bench.commit()
    #expect(bench.journal.takeEvents() == [])
  }

  @Test mutating func thatAnOutcomeWasToldIsSeen() {
    leaveBehind()
    _ = claimed()
    bench.journal.isObserved = true
    bench.refuse(1, Self.value, id: "told")
    bench.commit()
    #expect(bench.journal.takeEvents().map(\.change) == [.delivered])
  }
}

extension JournalBench {
  /// A call under a name that was given.
  private func given(
    _ number: Int64, _ request: GATTRequest, id: String, isNewName: Bool, isDurable: Bool, within: Int64?
  ) -> OperationJournal.Call {
    var options = OperationOptions.plain
    options.durability = isDurable ? .durable : .inMemory
    return OperationJournal.Call(
      number: op(number), id: OperationID(id), isNewName: isNewName, request: request,
      idempotency: .nonIdempotent, deadline: within.map { now.monotonic.advanced(by: .seconds($0)) },
      options: options)
  }

  /// The session cannot take a call.
  @discardableResult
  fileprivate mutating func refuse(
    _ number: Int64, _ request: GATTRequest, id: String, _ reason: NotSentReason = .disconnected,
    isNewName: Bool = false, isDurable: Bool = true, within: Int64? = nil
  ) -> OperationJournal.Admission {
    let call = given(
      number, request, id: id, isNewName: isNewName, isDurable: isDurable, within: within)
    return journal.callRefused(call, reason, now: now)
  }

  /// A durable call whose name somebody has given.
  @discardableResult
  fileprivate mutating func named(
    _ number: Int64, _ request: GATTRequest, id: String
  ) -> OperationJournal.Admission {
    let call = given(number, request, id: id, isNewName: false, isDurable: true, within: nil)
    return journal.operationRequested(call, now: now)
  }

  /// The store answers so many batches.
  fileprivate mutating func commit(_ count: Int) {
    for _ in 0..<count {
      beginCommit()
      answerCommit()
    }
  }
}
