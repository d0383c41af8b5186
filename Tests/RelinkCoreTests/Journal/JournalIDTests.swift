import BluetoothWire
import Testing

@testable import RelinkCore

/// Names that callers give: the same name is the same command.
@Suite struct JournalIDTests {
  private var bench = JournalBench()
  private let lock = JournalBench.lock
  private let value = GATTRequest.write(JournalBench.lock, [7])

  private mutating func done(
    _ number: Int64, _ id: String, _ request: GATTRequest? = nil, sensitive: Bool = false
  ) {
    bench.call(number, request ?? value, id: id) { $0.isSensitive = sensitive }
    bench.offer()
    bench.answer(number)
  }

  @Test mutating func theSameIDJoinsInEveryState() {
    bench.call(1, value, .verified(by: .named("p")), id: "a")
    func join(_ bench: inout JournalBench, _ number: Int64) -> OperationJournal.Admission {
      bench.call(number, .write(JournalBench.lock, [7]), .verified(by: .named("p")), id: "a")
    }
    #expect(join(&bench, 2) == .joined(bench.op(1)))
    bench.offer()
    #expect(join(&bench, 3) == .joined(bench.op(1)))
    bench.lose()
    #expect(join(&bench, 4) == .joined(bench.op(1)))
    bench.probe()
    #expect(join(&bench, 5) == .joined(bench.op(1)))
    #expect(bench.journal.entries.count == 1)
  }

  @Test mutating func theSameIDJoinsWhileItIsRecordedAndSettled() {
    bench = JournalBench(durable: true)
    bench.durable(1, value, id: "a")
    #expect(bench.durable(2, value, id: "a") == .joined(bench.op(1)))
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    #expect(bench.state(1) == .settling)
    #expect(bench.durable(3, value, id: "a") == .joined(bench.op(1)))
    bench.commit()
    #expect(bench.durable(4, value, id: "a") == .kept(.succeeded(.acknowledged)))
    #expect(bench.disk.rows.count == 1)
  }

  @Test mutating func aFullJournalStillJoins() {
    bench = JournalBench(policy: JournalPolicy(capacity: 1))
    bench.call(1, value, id: "a")
    #expect(bench.call(2, value, id: "a") == .joined(bench.op(1)))
    #expect(bench.call(3, value, id: "b") == .refused(.journalFull(limit: 1)))
  }

  @Test mutating func otherBytesOrAnotherTagAreAConflict() {
    bench.call(1, value, id: "a")
    #expect(bench.call(2, .write(lock, [8]), id: "a") == .refused(.conflictingID))
    #expect(bench.call(3, value, .nonIdempotent, id: "a") == .refused(.conflictingID))
    bench.offer()
    bench.answer(1)
    #expect(bench.call(4, .write(lock, [8]), id: "a") == .refused(.conflictingID))
    #expect(bench.call(5, value, .nonIdempotent, id: "a") == .refused(.conflictingID))
  }

  @Test mutating func everyOutcomeIsKept() {
    done(1, "succeeded")
    #expect(bench.call(2, value, id: "succeeded") == .kept(.succeeded(.acknowledged)))

    bench.call(3, value, id: "rejected")
    bench.offer()
    let code = ATTErrorCode(rawValue: 3)
    bench.answer(3, .failure(.rejected(code)))
    #expect(
      bench.call(4, value, id: "rejected") == .kept(.rejected(Rejection(code: code, provesNotApplied: true))))

    bench.call(5, value, id: "cancelled")
    bench.cancel(5)
    #expect(bench.call(6, value, id: "cancelled") == .kept(.notSent(.cancelled)))

    bench.call(7, value, .nonIdempotent, id: "lost")
    bench.offer()
    bench.lose()
    guard case .kept(.indeterminate(let doubt)) = bench.call(8, value, .nonIdempotent, id: "lost") else {
      Issue.record("it was not kept")
      return
    }
    #expect(doubt.cause == .linkLost(.supervisionTimeout))
    #expect(bench.journal.entries == [])
  }

  @Test mutating func aWriteWithoutResponseIsKeptAsHandedOver() {
    let request = GATTRequest.writeWithoutResponse(lock, [1])
    done(1, "a", request)
    #expect(bench.call(2, request, id: "a") == .kept(.succeeded(.handedOver)))
  }

  @Test mutating func aReadIsNotKept() {
    done(1, "a", .read(lock))
    #expect(bench.call(2, .read(lock), id: "a") == .recorded(timer: nil))
  }

  @Test mutating func anOutcomeIsKeptForADayWithTheSleepInIt() {
    done(1, "a")
    bench.suspend(43_200)
    bench.pass(43_200)
    #expect(bench.call(2, value, id: "a") == .kept(.succeeded(.acknowledged)))
    bench.pass(1)
    #expect(bench.call(3, value, id: "a") == .recorded(timer: nil))
  }

  @Test mutating func theOldestGoWhereThereAreTooMany() {
    bench = JournalBench(policy: JournalPolicy(keptInMemory: 2))
    for (number, id) in [(1, "a"), (2, "b"), (3, "c")] as [(Int64, String)] { done(number, id) }
    #expect(bench.call(4, value, id: "c") == .kept(.succeeded(.acknowledged)))
    #expect(bench.call(5, value, id: "b") == .kept(.succeeded(.acknowledged)))
    #expect(bench.call(6, value, id: "a") == .recorded(timer: nil))
  }

  @Test mutating func manyOutcomesStayWithinTheirBound() {
    bench = JournalBench(policy: JournalPolicy(keptInMemory: 10))
    for number in 1...1_000 as ClosedRange<Int64> { done(number, "id\(number)") }
    #expect(bench.journal.kept.count == 10)
    #expect(bench.call(1_001, value, id: "id991") == .kept(.succeeded(.acknowledged)))
    #expect(bench.call(1_002, value, id: "id990") == .recorded(timer: nil))
  }

  @Test(arguments: [false, true])
  mutating func ofASensitiveValueOnlyTheDigestIsKept(_ isDurable: Bool) throws {
    bench = JournalBench(durable: isDurable)
    let tag = Idempotency.verified(by: .value(of: lock, is: [7]))
    if isDurable {
      bench.durable(1, value, tag, id: "a") { $0.isSensitive = true }
      bench.commit()
      bench.markAndOffer()
    } else {
      bench.call(1, value, tag, id: "a") { $0.isSensitive = true }
      bench.offer()
    }
    bench.answer(1)
    if isDurable { bench.commit() }
    #expect(bench.call(2, value, tag, id: "a") == .kept(.succeeded(.acknowledged)))
    #expect(bench.call(3, .write(lock, [8]), tag, id: "a") == .refused(.conflictingID))
    #expect(bench.call(4, .write(JournalBench.level, [7]), tag, id: "a") == .refused(.conflictingID))
    let other = Idempotency.verified(by: .value(of: lock, is: [8]))
    #expect(bench.call(5, value, other, id: "a") == .refused(.conflictingID))
    let id = try #require(OperationID("a"))
    let found = bench.journal.kept.outcome(of: id, now: bench.now.bootTime)
    let kept = try #require(found)
    #expect(kept.request == .write(lock, []))
    #expect(kept.idempotency == .verified(by: .value(of: lock, is: [])))
    #expect(kept.fingerprint?.count == 32)
  }

  @Test mutating func noDigestIsMadeOfAValueThatIsNotSensitive() throws {
    done(1, "a")
    let id = try #require(OperationID("a"))
    let found = bench.journal.kept.outcome(of: id, now: bench.now.bootTime)
    let kept = try #require(found)
    #expect(kept.request == value)
    #expect(kept.fingerprint == nil)
  }

  @Test mutating func aSensitiveProbeThatIsAClosureIsTheSameAsAnother() {
    func tag() -> Idempotency { .verified(by: Probe(.closure(ProbeClosure(())))) }
    bench.call(1, value, tag(), id: "a") { $0.isSensitive = true }
    bench.offer()
    bench.answer(1)
    #expect(bench.call(2, value, tag(), id: "a") == .kept(.succeeded(.acknowledged)))
    #expect(bench.call(3, .write(lock, [8]), tag(), id: "a") == .refused(.conflictingID))
  }

  @Test mutating func whatAnIDIsKeptForIsToldToTheStore() {
    bench = JournalBench(durable: true)
    bench.durable(1, value, id: "a")
    bench.commit()
    bench.markAndOffer()
    bench.answer(1)
    bench.commit()
    #expect(bench.disk.row("a")?.isDelivered == false)
    bench.durable(2, value, id: "a")
    bench.commit()
    #expect(bench.disk.row("a")?.isDelivered == true)
  }
}
