internal import CBenchmark
internal import Relink
internal import RelinkBlueZ

/// One operation through the machine of the journal, without session, link and store: called, offered, answered.
struct JournalMemoryBenchmark {
  var batches = 200
  /// Operations in one batch.
  var size: Int64 = 2_000

  func run() async throws -> [Figure] {
    try await onLoop(RadioLoop()) {
      _ = bench_pin(0)
      return [
        figure("journal in memory, an operation called, offered, settled", behind: 0, 0.5),
        figure("the same, behind 32 that wait for an answer", behind: 32),
      ]
    }
  }

  private func figure(_ name: String, behind count: Int64, _ limit: Double? = nil) -> Figure {
    var run = JournalRun(behind: count)
    // The first batch grows what stays allocated.
    run.take(size)
    let times = (0..<batches).map { _ in
      let start = bench_now()
      run.take(size)
      return bench_now() - start
    }
    let each = Double(Sample(times).median) / Double(size) / 1e3
    return Figure(goal: "G14", name: name, value: each, unit: "us", limit: limit)
  }
}

/// A journal that is given operations as a session gives them, each settled before the next.
private struct JournalRun {
  private var journal: OperationJournal
  private var last: Int64 = 0
  private let link = OperationJournal.LinkFacts(Generation(rawValue: 1))
  private let now = Timestamp(monotonic: .zero, bootTime: 0, wall: 0)
  private let deadline = MonotonicInstant.zero.advanced(by: .seconds(30))
  private let request = JournalRun.write(to: Characteristic(.heartRateControlPoint))

  /// Makes a journal in which so many operations are on the link, each on an attribute of its own.
  init(behind count: Int64) {
    journal = OperationJournal(policy: .standard, now: now)
    for number in 0..<count {
      offer(JournalRun.write(to: Characteristic(BluetoothUUID(UInt16(0xAB00 + number)))))
    }
  }

  private static func write(to name: Characteristic) -> GATTRequest {
    .write(name, [UInt8](repeating: 1, count: 20))
  }

  /// Takes so many through.
  mutating func take(_ count: Int64) {
    for _ in 0..<count {
      offer(request)
      let settled = journal.answered(RequestID(rawValue: UInt64(last)), with: .success(.done), now: now)
      precondition(settled?.number.rawValue == last, "the journal settled another operation")
    }
  }

  /// One call, handed over, and the look for the next one.
  private mutating func offer(_ request: GATTRequest) {
    last += 1
    let number = OperationNumber(rawValue: last)
    _ = journal.operationRequested(
      OperationJournal.Call(
        number: number, request: request, idempotency: .nonIdempotent, deadline: deadline,
        readyOn: link.generation), now: now)
    guard case .offer(number, _) = journal.next(taking: .any, on: link, now: now) else {
      preconditionFailure("the journal offers another operation")
    }
    journal.offering(number, as: RequestID(rawValue: UInt64(last)), on: link.generation, now: now)
    guard case .nothing = journal.next(taking: .withoutResponse, on: link, now: now) else {
      preconditionFailure("the journal offers too much")
    }
  }
}
