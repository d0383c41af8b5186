import BluetoothWire
import Testing

@testable import RelinkCore

/// Calls that come before the journal of the device is claimed, and claims that are refused.
@Suite struct JournalClaimTests {
  private var bench = JournalBench(durable: true)
  private let lock = JournalBench.lock
  private let level = JournalBench.level

  /// What an earlier process left: one that it had told about, one that it had not, one that is open.
  private mutating func leaveBehind() {
    bench.durable(1, .write(lock, [1]))
    bench.durable(2, .write(level, [2]), id: "untold")
    bench.commit()
    #expect(bench.markedOffers() == [1, 2])
    bench.answer(1)
    bench.answer(2)
    bench.commit()
    bench.journal.delivered(OperationID("op1")!)
    bench.durable(3, .write(level, [3]))
    bench.commit()
    bench.crash()
    bench.journal.claimRequested()
  }

  private mutating func claimed() -> OperationJournal.StoreEffects {
    let effects = bench.journal.claimed(bench.disk.claimed(), isWallRight: true, now: bench.now)
    bench.take(effects)
    return effects
  }

  @Test mutating func noWriteIsOfferedBeforeTheClaimIsHeld() {
    leaveBehind()
    bench.call(1, .write(Characteristic(BluetoothUUID(0xAA09 as UInt16)), [1]))
    bench.durable(2, .write(lock, [4]))
    #expect(bench.offer() == nil)
    #expect(bench.journal.nextCommit() == nil)
    _ = claimed()
    bench.commit()
    #expect(bench.journal.entries.map(\.number) == [bench.op(-1), bench.op(1), bench.op(2)])
    #expect(bench.offer() == 1)
    #expect(bench.markAndOffer() == -1)
  }

  @Test mutating func oneClaimIsAskedForAtATime() {
    bench.crash()
    #expect(bench.journal.needsClaim)
    bench.journal.claimRequested()
    #expect(!bench.journal.needsClaim)
    _ = claimed()
    #expect(!bench.journal.needsClaim)
    #expect(claimed() == OperationJournal.StoreEffects())
  }

  @Test mutating func aRefusedClaimEndsWhatWaitsForItAndLetsTheRestGo() {
    bench.crash()
    bench.journal.claimRequested()
    bench.durable(1)
    bench.call(2, .read(level))
    let error = JournalBench.error(.locked)
    let effects = bench.journal.claimFailed(error, now: bench.now)
    #expect(effects.settled == [Settlement(number: bench.op(1), outcome: .notSent(.storeFailed(error)))])
    #expect(bench.offer() == 2)
    #expect(bench.journal.needsClaim)
    bench.journal.claimRequested()
    _ = claimed()
    bench.durable(3)
    #expect(bench.commit().recorded == [bench.op(3)])
  }

  @Test mutating func whatIsNotDurableWaitsForAClaimAndNotForAStoreThatCannotBeOpened() {
    leaveBehind()
    bench.call(1, .write(level, [9]))
    #expect(bench.offer() == nil)
    _ = bench.journal.claimFailed(JournalBench.error(.locked), now: bench.now)
    // What is there of the same attribute nobody knows, and may not know for long.
    #expect(bench.offer() == 1)
    bench.call(2, .write(level, [10]))
    bench.journal.claimRequested()
    _ = claimed()
    bench.answer(1)
    // From here on the order holds.
    #expect(bench.journal.entries.map(\.number) == [bench.op(-1), bench.op(2)])
    #expect(bench.offer() == nil)
    #expect(bench.markAndOffer() == -1)
  }

  @Test mutating func nobodyCanTellOfAGivenNameWhenTheClaimIsRefused() {
    bench.crash()
    bench.journal.claimRequested()
    var options = OperationOptions.plain
    options.durability = .durable
    _ = bench.journal.operationRequested(
      OperationJournal.Call(
        number: bench.op(1), id: OperationID("given"), isNewName: false, request: .write(lock, [1]),
        idempotency: .nonIdempotent, deadline: nil, options: options), now: bench.now)
    let error = JournalBench.error(.locked)
    let told = bench.journal.claimFailed(error, now: bench.now).settled.map(\.outcome)
    #expect(told == [bench.doubt(.storeFailed(error), on: 0, offers: 0)])
  }

  @Test mutating func aClaimThatIsRefusedForGoodIsNotAskedForAgain() {
    bench.crash()
    bench.journal.claimRequested()
    let error = JournalBench.error(.superseded)
    _ = bench.journal.claimFailed(error, now: bench.now)
    #expect(!bench.journal.needsClaim)
    #expect(bench.durable(1) == .refused(.storeFailed(error)))
  }

  @Test mutating func whatIsCancelledMeanwhileKeepsItsOutcomeWhenTheClaimIsRefused() {
    bench.crash()
    bench.journal.claimRequested()
    bench.durable(1)
    bench.cancel(1)
    #expect(
      bench.journal.claimFailed(JournalBench.error(.locked), now: bench.now).settled.map(\.outcome)
        == [.notSent(.cancelled)])
  }

  @Test mutating func whatIsCancelledMeanwhileIsRecordedWithItsOutcome() {
    bench.crash()
    bench.journal.claimRequested()
    bench.durable(1)
    bench.cancel(1)
    _ = claimed()
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.cancelled)])
    #expect(bench.disk.row("op1")?.outcome != nil)
  }

  @Test mutating func whoWasToldInsteadIsNotToldOnceMore() {
    bench.crash()
    bench.journal.claimRequested()
    bench.durable(1)
    bench.cancel(1)
    bench.pass(1)
    #expect(bench.fireTimer().count == 1)
    #expect(bench.journal.claimFailed(JournalBench.error(.locked), now: bench.now).settled == [])
  }

  // MARK: The same ID

  @Test mutating func aCallForAnOpenOneWaitsForThat() {
    leaveBehind()
    bench.durable(1, .write(level, [3]), id: "op3")
    let effects = claimed()
    #expect(effects.merged == [OperationJournal.Merge(from: bench.op(1), into: bench.op(-1))])
    #expect(effects.recorded == [bench.op(1)])
    #expect(bench.journal.entries.map(\.number) == [bench.op(-1)])
  }

  /// What an earlier process had may have been done, so nobody is told that it was not sent.
  @Test mutating func aCallThatIsOverSaysNothingOfTheOpenOne() {
    leaveBehind()
    bench.durable(1, .write(level, [3]), id: "op3")
    bench.cancel(1)
    let effects = claimed()
    #expect(
      effects.merged == [OperationJournal.Merge(from: bench.op(1), into: bench.op(-1), end: .cancelled)])
    #expect(effects.settled == [])
    #expect(bench.journal.entries.map(\.number) == [bench.op(-1)])
  }

  @Test mutating func aCallForAnUntoldOneGetsItsOutcome() {
    leaveBehind()
    bench.durable(1, .write(level, [2]), id: "untold")
    let effects = claimed()
    #expect(effects.settled == [Settlement(number: bench.op(1), outcome: .succeeded(.done))])
    #expect(bench.journal.takeReports() == [])
    bench.commit()
    #expect(bench.disk.row("untold")?.isDelivered == true)
  }

  @Test mutating func aCallForAToldOneGetsItsOutcomeFromTheStore() {
    leaveBehind()
    bench.durable(1, .write(lock, [1]), id: "op1")
    #expect(claimed().settled == [])
    bench.commit()
    #expect(bench.outcomes(1) == [.succeeded(.done)])
    #expect(bench.disk.rows.count == 3)
    #expect(bench.durable(2, .write(lock, [1]), id: "op1") == .kept(.succeeded(.acknowledged)))
  }

  @Test mutating func aCancelledCallForAToldOneChangesNothing() {
    leaveBehind()
    bench.durable(1, .write(lock, [1]), id: "op1")
    bench.cancel(1)
    bench.durable(2, .write(lock, [2]))
    let before = bench.disk.row("op1")?.outcome
    _ = claimed()
    #expect(bench.commit().failure == nil)
    #expect(bench.outcomes(1) == [.succeeded(.done)])
    #expect(bench.disk.row("op1")?.outcome == before)
    #expect(bench.state(2) == .queued)
  }

  @Test(arguments: ["op1", "untold", "op3"])
  mutating func otherBytesUnderAKnownIDAreAConflictAndChangeNothing(_ id: String) {
    leaveBehind()
    bench.durable(1, .write(lock, [99]), id: id)
    _ = claimed()
    let reports = bench.journal.takeReports().map(\.id.description)
    #expect(reports == ["untold"])
    let before = bench.disk.row(id)
    bench.commit()
    #expect(bench.outcomes(1) == [.notSent(.conflictingID)])
    #expect(bench.disk.row(id) == before)
    // Whoever asks for the right one is not refused for that.
    let right: GATTRequest =
      switch id {
      case "op1": .write(lock, [1])
      case "untold": .write(level, [2])
      default: .write(level, [3])
      }
    switch bench.durable(2, right, id: id) {
    case .refused(let reason): Issue.record("\(reason)")
    case .recorded, .joined, .kept, .unknown: break
    }
  }

  @Test mutating func aCallThatIsNotDurableJoinsTheDurableOneOfItsID() {
    // Asked for again with other options, it is still the same command.
    leaveBehind()
    bench.call(1, .write(level, [3]), .nonIdempotent, id: "op3")
    bench.call(2, .write(level, [2]), .nonIdempotent, id: "untold")
    let effects = claimed()
    #expect(effects.merged == [OperationJournal.Merge(from: bench.op(1), into: bench.op(-1))])
    #expect(effects.settled == [Settlement(number: bench.op(2), outcome: .succeeded(.done))])
    #expect(bench.journal.entries.map(\.number) == [bench.op(-1)])
  }

  // MARK: What is seen of it

  private mutating func changes() -> [JournalEvent.Change] { bench.journal.takeEvents().map(\.change) }

  /// The process dies before it tells an outcome; the next one is asked for the same command twice while its claim hangs,
  /// both callers hear that the store is silent, and then the claim brings the outcome.
  @Test mutating func theJoinedCallsOfASilentStoreAreSeenToEnd() {
    leaveBehind()
    bench.journal.isObserved = true
    bench.durable(1, .write(level, [2]), id: "untold", within: 3)
    #expect(bench.durable(2, .write(level, [2]), id: "untold", within: 3) == .joined(bench.op(1)))
    bench.pass(3)
    #expect(bench.fireTimer().count == 1)
    bench.pass(1)
    #expect(bench.fireTimer().count == 1)
    #expect(claimed().settled == [])
    #expect(changes().filter { $0 != .recovered } == [.joined, .settled(.succeeded(.acknowledged))])
    #expect(bench.journal.takeReports().map(\.id.description) == ["untold"])
  }

  @Test mutating func aCallForAnUntoldOneIsSeenToEnd() {
    leaveBehind()
    bench.journal.isObserved = true
    bench.durable(1, .write(level, [2]), id: "untold")
    bench.durable(2, .write(level, [2]), id: "untold")
    bench.call(3, .write(lock, [99]), .nonIdempotent, id: "other")
    _ = claimed()
    #expect(
      changes() == [
        .joined, .recorded, .recovered, .settled(.succeeded(.acknowledged)), .delivered,
      ])
  }

  @Test(arguments: [[2], [99]] as [[UInt8]])
  mutating func aCallInMemoryForAnUntoldOneIsSeenToEnd(_ value: [UInt8]) {
    leaveBehind()
    bench.journal.isObserved = true
    bench.call(1, .write(level, value), .nonIdempotent, id: "untold")
    _ = claimed()
    let end: [JournalEvent.Change] =
      value == [2]
      ? [.settled(.succeeded(.acknowledged)), .delivered] : [.settled(.notSent(.conflictingID))]
    #expect(changes() == [.recorded, .recovered] + end)
  }

  @Test mutating func aSensitiveOneIsKnownByItsDigest() {
    let tag = Idempotency.verified(by: .value(of: lock, is: [7]))
    bench.durable(1, .write(lock, [7]), tag, id: "secret") { $0.isSensitive = true }
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.commit()
    bench.restart()
    #expect(bench.durable(1, .write(lock, [7]), tag, id: "secret") == .kept(.succeeded(.acknowledged)))
    #expect(bench.durable(2, .write(lock, [8]), tag, id: "secret") == .refused(.conflictingID))
  }
}
