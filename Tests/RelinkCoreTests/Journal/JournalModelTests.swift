import BluetoothWire
import Testing

@testable import RelinkCore

/// Random lives of a journal, each compared step by step with the naive one.
@Suite struct JournalModelTests {
  @Test(arguments: 0..<40 as Range<UInt64>)
  func theJournalAgreesWithTheNaiveOne(seed: UInt64) throws {
    var life = JournalLife(seed: seed)
    for _ in 0..<250 { try life.step() }
    try life.end()
  }
}

/// One random life: a journal, the naive one, a link that comes and goes.
private struct JournalLife {
  private static let names = (0..<3 as Range<UInt16>).map { Characteristic(BluetoothUUID(0xAA00 + $0)) }
  private static let answers: [Result<GATTAnswer, GATTFailure>] = [
    .success(.done), .success(.value([1, 2])), .failure(.rejected(ATTErrorCode(rawValue: 0x03))),
    .failure(.rejected(ATTErrorCode(rawValue: 0x80))),
    .failure(.executionRejected(ATTErrorCode(rawValue: 0x0D))),
    .failure(.executionRejected(ATTErrorCode(rawValue: 0x05))), .failure(.refused(.calledOff)),
    .failure(.refused(.characteristicNotFound)), .failure(.malformedAnswer),
  ]

  private var generator: SplitMix
  private var journal: OperationJournal
  private var naive: NaiveJournal
  private var now = MonotonicInstant.zero
  private var timer: MonotonicInstant?
  private var lastOperation: Int64 = 0
  private var lastRequest: UInt64 = 0
  private var generation: UInt64 = 1
  private var out: [RequestID] = []
  private var settled: [OperationNumber] = []
  private var requested: [OperationNumber] = []

  init(seed: UInt64) {
    generator = SplitMix(seed: seed)
    let capacity = seed.isMultiple(of: 3) ? 4 : 64
    journal = OperationJournal(policy: JournalPolicy(capacity: capacity))
    naive = NaiveJournal(records: [], capacity: capacity)
  }

  mutating func step() throws {
    now = now.advanced(by: .milliseconds(Int64.random(in: 0...400, using: &generator)))
    if let due = timer, due <= now { try fireTimer() }
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<30: try request()
    case 30..<60: try offer()
    case 60..<82: try answer()
    case 82..<90: try cancel()
    case 90..<93: try fireTimer()
    case 93..<99: try loseLink()
    default: try settleEverything()
    }
    try compare()
  }

  mutating func end() throws {
    try settleEverything()
    try compare()
    try #require(settled.sorted() == requested, "each operation has exactly one outcome")
  }

  // MARK: Steps

  private mutating func request() throws {
    lastOperation += 1
    let id = OperationNumber(rawValue: lastOperation)
    let request = randomRequest()
    let idempotency: Idempotency = Bool.random(using: &generator) ? .idempotent : .nonIdempotent
    let deadline: MonotonicInstant? =
      chance(4) ? nil : now.advanced(by: .milliseconds(Int64.random(in: 0...20_000, using: &generator)))
    let admission = journal.operationRequested(id, request, idempotency: idempotency, deadline: deadline)
    guard naive.unsettled.count < naive.capacity else {
      try #require(admission == .refused(.journalFull(limit: naive.capacity)))
      return
    }
    guard case .recorded(let wanted, _) = admission else {
      Issue.record("refused although there is room")
      return
    }
    naive.records.append(
      NaiveJournal.Record(number: id, request: request, idempotency: idempotency, deadline: deadline))
    requested.append(id)
    if let wanted { timer = wanted }
  }

  private mutating func offer() throws {
    let onlyBeside = chance(4)
    let next = journal.nextOffer(taking: onlyBeside ? .withoutResponse : .any)
    let allowed = naive.mayBeOffered(onlyWithoutResponse: onlyBeside)
    try #require(next?.number == allowed.first)
    guard let next, let index = naive.index(next.number) else { return }
    lastRequest += 1
    let request = RequestID(rawValue: lastRequest)
    let link = Generation(rawValue: generation)
    journal.offering(next.number, as: request, on: link, now: .at(now))
    switch Int.random(in: 0..<10, using: &generator) {
    case 0:
      journal.offerNotTaken(next.number)
    case 1:
      let settlement = journal.offerRefused(next.number, .cannotNotify)
      try #require(settlement == naive.refused(index, .cannotNotify))
      settled.append(next.number)
    default:
      naive.records[index].out = (request, link, now)
      out.append(request)
    }
  }

  private mutating func answer() throws {
    guard
      let request = chance(10)
        ? RequestID(rawValue: lastRequest + 1000) : out.randomElement(using: &generator),
      let answer = Self.answers.randomElement(using: &generator)
    else { return }
    let settlement = journal.answered(request, with: answer)
    try #require(settlement == naive.answered(request, answer))
    out.removeAll { $0 == request }
    if let settlement { settled.append(settlement.number) }
  }

  private mutating func cancel() throws {
    let id = OperationNumber(rawValue: Int64.random(in: 0...lastOperation + 1, using: &generator))
    let expected = naive.index(id).map { naive.abandon($0, .cancelled, .cancelled) }
    try #require(journal.cancelled(id) == expected)
    if expected != nil { settled.append(id) }
  }

  private mutating func fireTimer() throws {
    let fired = journal.timerFired(now: .at(now))
    let due = naive.unsettled.filter { naive.records[$0].deadline.map { $0 <= now } ?? false }
    try #require(fired.expired == due.map { naive.abandon($0, .deadline, .deadline) })
    settled += fired.expired.compactMap(\.settlement?.number)
    timer = fired.timer
  }

  private mutating func loseLink() throws {
    let inDoubt = out.filter { _ in Bool.random(using: &generator) }.shuffled(using: &generator)
    let loss = journal.linkLost(
      Generation(rawValue: generation), reason: .supervisionTimeout, inDoubt: inDoubt, now: .at(now))
    let expected = naive.linkLost(.supervisionTimeout, inDoubt, now)
    try #require(loss.settled == expected.settled)
    try #require(loss.inDoubt == expected.inDoubt)
    settled += loss.settled.map(\.number)
    out.removeAll()
    generation += 1
  }

  private mutating func settleEverything() throws {
    let all = journal.settleAll(notSent: .disconnected, doubt: .disconnected)
    try #require(all == naive.settleAll(.disconnected, .disconnected))
    settled += all.compactMap(\.settlement?.number)
    timer = nil
    out.removeAll()
    generation += 1
  }

  // MARK: What must hold after each step

  private mutating func compare() throws {
    naive.forgetWhatIsOver()
    let unsettled = naive.unsettled.map { naive.records[$0] }
    try #require(journal.entries.map(\.number) == unsettled.map(\.number))
    try #require(journal.hasQueued == unsettled.contains { $0.out == nil })
    for (entry, record) in zip(journal.entries, unsettled) {
      let state: JournalEntry.State = record.out.map { .offered($0.request) } ?? .queued
      try #require(entry.state == state)
      try #require(entry.offers == record.possible.count + (record.out == nil ? 0 : 1))
      try #require(entry.idempotency == .idempotent || record.possible.isEmpty, "offered again in doubt")
    }
    try #require(
      journal.nextOffer(taking: .any)?.number == naive.mayBeOffered(onlyWithoutResponse: false).first)
    // A timer is set whenever a deadline waits, and not later than the first of them.
    if let first = unsettled.compactMap(\.deadline).min() {
      let armed = try #require(timer)
      try #require(armed <= first)
    }
  }

  private mutating func randomRequest() -> GATTRequest {
    let name = Self.names[Int.random(in: 0..<Self.names.count, using: &generator)]
    return switch Int.random(in: 0..<6, using: &generator) {
    case 0: .read(name)
    case 1: .write(name, [1])
    case 2: .writeLong(Characteristic(name.uuid, in: BluetoothUUID(0x1800 as UInt16)), [1])
    case 3: .writeWithoutResponse(name, [1])
    case 4: .discover
    default: .write(Characteristic(name.uuid, occurrence: 1), [2])
    }
  }

  private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
}
