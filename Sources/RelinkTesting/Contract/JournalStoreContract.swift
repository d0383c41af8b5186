internal import Relink

/// The rules that every `JournalStore` keeps, whatever it writes to.
///
/// It works for a store that answers on an executor and for one that answers on a thread of its own, and depends on no
/// test library. In each check every call has to be answered once, in the order of the calls, and not inside the call.
public enum JournalStoreContract {
  typealias Check = @Sendable (JournalStoreBench) async throws -> Void

  /// Tries the rules, each on a store of its own.
  ///
  /// - Parameters:
  ///   - environment: The implementation.
  ///   - names: The rules to try; nil for all.
  /// - Returns: What came out.
  public static func check(
    _ environment: any JournalStoreContractEnvironment, only names: Set<String>? = nil
  ) async -> ContractReport {
    await runChecks("JournalStore", names, checks) { body in
      let bench = JournalStoreBench(environment, try await environment.makeStore())
      let result: Result<Void, any Error>
      do {
        try await body(bench)
        result = .success(())
      } catch { result = .failure(error) }
      // The cause of whatever else went wrong.
      try await bench.finish()
      try result.get()
    }
  }

  /// The names of the rules.
  public static var names: [String] { checks.map(\.name) }

  private static let checks: [(name: String, body: Check)] = [
    ("givesEachClaimAHigherEpoch", epochs),
    ("refusesAClaimThatIsNotHigher", lowClaims),
    ("handsBackWhatIsOpenInTheOrderOfPlaces", openRows),
    ("keepsEveryPartOfARow", wholeRows),
    ("knowsTheHighestPlaceThatWasGiven", lastPlace),
    ("commitsABatchWholeOrNotAtAll", allOrNone),
    ("refusesRecordsOfUnknownOperations", unknownNames),
    ("handsBackTheRowOfATakenID", takenIDs),
    ("tellsNamesApartByTheirBytes", bytewiseNames),
    ("letsTheLatestMarkStand", marks),
    ("letsTheFirstOutcomeStand", outcomes),
    ("replacesTheRequestThatIsToBeErased", erasure),
    ("prunesWhatWasSettledBefore", pruningByAge),
    ("prunesAllButTheNewest", pruningByCount),
    ("commitsNothingForASupersededClaim", superseded),
    ("commitsNothingForADeviceThatNobodyClaimed", unclaimed),
    ("keepsDevicesApart", devices),
    ("answersManyCallsOnceAndInOrder", manyCalls),
    ("answersAnEmptyBatch", emptyBatch),
    ("keepsWhatIsCommittedOverTheEndOfTheProcess", restart),
  ]

  private static func row(
    _ id: String, _ place: Int64, operation: [UInt8] = [1, 2, 3], isSensitive: Bool = false
  ) -> JournalRow {
    JournalRow(
      id: id, place: place, operation: operation, fingerprint: [UInt8](repeating: 7, count: 32),
      isSensitive: isSensitive, admittedAt: 1_000 + place)
  }

  private static func settled(_ id: String, at instant: Int64 = 5_000) -> JournalRecord {
    .settled(id: id, outcome: [9], at: instant, operation: nil)
  }

  // MARK: Claims

  private static func epochs(_ bench: JournalStoreBench) async throws {
    let first = try await bench.claim()
    try require(first.claim.device == bench.device, "the claim is of \(first.claim.device)")
    try require(first.claim.epoch > 0, "the first epoch is 0")
    try require(first.rows.isEmpty && first.lastPlace == 0, "an empty store has handed back \(first)")
    let second = try await bench.claim()
    try require(second.claim.epoch > first.claim.epoch, "\(second.claim.epoch) follows \(first.claim.epoch)")
    let given = second.claim.epoch + 5
    let third = try await bench.claim(epoch: given)
    try require(third.claim.epoch == given, "a claim of \(given) got \(third.claim.epoch)")
    let fourth = try await bench.claim()
    try require(fourth.claim.epoch > given, "\(fourth.claim.epoch) follows \(given)")
  }

  private static func lowClaims(_ bench: JournalStoreBench) async throws {
    let present = try await bench.claim(epoch: 7)
    for (epoch, name) in [(6, "lower"), (7, "equal")] as [(UInt64, String)] {
      try await refused(bench.claimed(bench.beginClaim(bench.device, epoch: epoch)), "\(name) epoch")
    }
    // A claim that was refused has changed nothing.
    try await bench.append([.admitted(row("a", 1))], to: present.claim)
    let last = try await bench.claim(epoch: .max)
    try require(last.claim.epoch == .max, "the highest epoch became \(last.claim.epoch)")
    try await refused(bench.claimed(bench.beginClaim(bench.device)), "an epoch behind the highest")
  }

  private static func refused(_ result: JournalStoreBench.Claimed, _ what: String) throws {
    guard case .failure(let error) = result else {
      throw ContractEnd.failed("\(what) was granted: \(result)")
    }
    try require(error.code == .superseded, "\(what) was refused with \(error)")
    try require(error.isCertain, "\(what) is said to be uncertain")
  }

  private static func superseded(_ bench: JournalStoreBench) async throws {
    let old = try await bench.claim()
    try await bench.append([.admitted(row("a", 1))], to: old.claim)
    let new = try await bench.claim()
    for record in [.admitted(row("b", 2)), .marked(id: "a", mark: [1])] as [JournalRecord] {
      let error = try await bench.refusal(of: [record], to: old.claim)
      try require(error.code == .superseded, "a superseded claim was refused with \(error)")
    }
    try await bench.append([.delivered(id: "a")], to: new.claim)
    var expected = row("a", 1)
    expected.isDelivered = true
    try await holds([expected], bench)
    // Nor one that was never given.
    let future = JournalClaim(device: bench.device, epoch: new.claim.epoch + 9)
    let error = try await bench.refusal(of: [.admitted(row("b", 2))], to: future)
    try require(error.code == .superseded, "a claim that was never given was refused with \(error)")
  }

  private static func unclaimed(_ bench: JournalStoreBench) async throws {
    for epoch in [0, 1] as [UInt64] {
      let claim = JournalClaim(device: bench.device, epoch: epoch)
      let error = try await bench.refusal(of: [.admitted(row("a", 1))], to: claim)
      try require(error.code == .superseded, "a claim that nobody made was refused with \(error)")
    }
    try await holds([], bench)
  }

  /// Claims anew and compares what is open.
  private static func holds(
    _ rows: [JournalRow], of device: DeviceID? = nil, _ bench: JournalStoreBench
  ) async throws {
    let open = try await bench.claim(device).rows
    try require(open == rows, "open is \(open) and not \(rows)")
  }

  // MARK: Rows

  private static func openRows(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append(
      [
        .admitted(row("late", 30)), .admitted(row("early", 10)), .admitted(row("told", 25)),
        .admitted(row("untold", 20)), .admitted(row("first", -5)), .admitted(row("toldEarly", 40)),
      ], to: claim)
    try await bench.append(
      [settled("told"), settled("untold"), .delivered(id: "told"), .delivered(id: "toldEarly")], to: claim)
    var untold = row("untold", 20)
    untold.outcome = [9]
    untold.settledAt = 5_000
    var toldEarly = row("toldEarly", 40)
    toldEarly.isDelivered = true
    try await holds([row("first", -5), row("early", 10), untold, row("late", 30), toldEarly], bench)
  }

  private static func wholeRows(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    let rows = [
      JournalRow(
        id: "\u{0}'\"\n🔋", place: .min, operation: [], fingerprint: [], isSensitive: false, admittedAt: .min,
        mark: [], outcome: [], settledAt: .max),
      row("plain", 0),
      JournalRow(
        id: String(repeating: "x", count: 128), place: .max, operation: Array(0...255), fingerprint: [0],
        isSensitive: true, admittedAt: .max, mark: [UInt8](repeating: 0, count: 100_000), isDelivered: true),
    ]
    try await bench.append(rows.map { .admitted($0) }, to: claim, sync: .full)
    try await holds(rows, bench)
  }

  private static func lastPlace(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append([.admitted(row("a", 9)), .admitted(row("b", 4))], to: claim)
    // Neither of these gives a place.
    _ = try await bench.refusal(of: [.admitted(row("c", 50)), .delivered(id: "unknown")], to: claim)
    try await bench.append([.admitted(row("a", 60))], to: claim)
    try await bench.append([settled("a"), .pruned(settledBefore: .max, keeping: 0)], to: claim)
    let place = try await bench.claim().lastPlace
    try require(place == 9, "the last place is \(place) and not 9")
  }

  private static func allOrNone(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append([.admitted(row("a", 1))], to: claim)
    _ = try await bench.refusal(
      of: [
        .admitted(row("b", 2)), .marked(id: "a", mark: [1]), settled("a"), .delivered(id: "a"),
        .pruned(settledBefore: .max, keeping: 0), .marked(id: "unknown", mark: [1]), .admitted(row("c", 3)),
      ], to: claim)
    try await holds([row("a", 1)], bench)
  }

  private static func unknownNames(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    for record in [.marked(id: "x", mark: [1]), settled("x"), .delivered(id: "x")] as [JournalRecord] {
      let error = try await bench.refusal(of: [record], to: claim)
      try require(
        error.code == .invalidRecord && error.isCertain, "an unknown operation was refused with \(error)")
    }
    // What comes behind is not concerned.
    try await bench.append([.admitted(row("x", 1)), .marked(id: "x", mark: [1])], to: claim)
  }

  private static func takenIDs(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append(
      [
        .admitted(row("a", 1)), .admitted(row("b", 2)), .marked(id: "a", mark: [4]), settled("b"),
        .delivered(id: "b"),
      ],
      to: claim)
    let rows = try await bench.append(
      [
        .admitted(row("b", 12, operation: [5])), .admitted(row("c", 13)),
        .admitted(row("a", 11, operation: [5])),
        .admitted(row("c", 14)),
      ], to: claim)
    var (first, second) = (row("a", 1), row("b", 2))
    first.mark = [4]
    (second.outcome, second.settledAt, second.isDelivered) = ([9], 5_000, true)
    try require(rows == [second, first, row("c", 13)], "what was there already is \(rows)")
    try await holds([first, row("c", 13)], bench)
  }

  private static func bytewiseNames(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    // One letter, and a letter with a mark behind it: the same text for a reader.
    let rows = [row("\u{FC}", 1), row("u\u{308}", 2), row("U", 3), row("u", 4)]
    let taken = try await bench.append(rows.map { .admitted($0) }, to: claim)
    try require(taken.isEmpty, "different names are taken for the same: \(taken)")
    try await bench.append([settled("u\u{308}"), .delivered(id: "u\u{308}")], to: claim)
    let open = try await bench.claim().rows.map(\.place)
    try require(open == [1, 3, 4], "open are the places \(open)")
  }

  // MARK: Changes

  private static func marks(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append([.admitted(row("a", 1)), .marked(id: "a", mark: [1])], to: claim)
    try await bench.append([.marked(id: "a", mark: [2])], to: claim, sync: .full)
    var expected = row("a", 1)
    expected.mark = [2]
    try await holds([expected], bench)
  }

  private static func outcomes(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append([.admitted(row("a", 1)), settled("a", at: 10)], to: claim)
    let error = try await bench.refusal(
      of: [.settled(id: "a", outcome: [8], at: 11, operation: nil)], to: claim)
    try require(error.code != .superseded, "another outcome was refused with \(error)")
    // A batch that is asked for once more, since its fate was not known.
    try await bench.append([settled("a", at: 12)], to: claim)
    var expected = row("a", 1)
    (expected.outcome, expected.settledAt) = ([9], 10)
    try await holds([expected], bench)
  }

  private static func erasure(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append(
      [.admitted(row("a", 1, isSensitive: true)), .admitted(row("b", 2, isSensitive: true))], to: claim)
    try await holds([row("a", 1, isSensitive: true), row("b", 2, isSensitive: true)], bench)
    let next = try await bench.claim().claim
    try await bench.append(
      [.settled(id: "a", outcome: [9], at: 5_000, operation: [0]), settled("b")], to: next)
    var rows = [row("a", 1, operation: [0], isSensitive: true), row("b", 2, isSensitive: true)]
    for index in rows.indices { (rows[index].outcome, rows[index].settledAt) = ([9], 5_000) }
    try await holds(rows, bench)
  }

  private static func pruningByAge(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append((1...4).map { .admitted(row("\($0)", $0)) }, to: claim)
    try await bench.append([settled("1", at: 10), settled("2", at: 20), settled("3", at: 30)], to: claim)
    try await bench.append([.pruned(settledBefore: 20, keeping: 100)], to: claim)
    let open = try await bench.claim().rows.map(\.id)
    try require(open == ["2", "3", "4"], "left are \(open)")
    let next = try await bench.claim().claim
    let taken = try await bench.append([.admitted(row("1", 5))], to: next)
    try require(taken.isEmpty, "what was pruned is still there: \(taken)")
  }

  private static func pruningByCount(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    try await bench.append((1...6).map { .admitted(row("\($0)", $0)) }, to: claim)
    // Two of one instant: the later place is the newer one.
    try await bench.append(
      [
        settled("1", at: 40), settled("2", at: 10), settled("3", at: 20), settled("4", at: 20),
        settled("5", at: 30),
      ],
      to: claim)
    try await bench.append([.pruned(settledBefore: .min, keeping: 3)], to: claim)
    let open = try await bench.claim().rows.map(\.id)
    try require(open == ["1", "4", "5", "6"], "left are \(open)")
  }

  private static func devices(_ bench: JournalStoreBench) async throws {
    let first = try await bench.claim(epoch: 5)
    let second = try await bench.claim(bench.other)
    try require(second.claim.epoch < 5, "the first epoch of a device is \(second.claim.epoch)")
    try await bench.append([.admitted(row("a", 1)), .admitted(row("b", 2))], to: first.claim)
    let taken = try await bench.append([.admitted(row("a", 7))], to: second.claim)
    try require(taken.isEmpty, "an ID is taken by another device: \(taken)")
    try await bench.append([settled("a"), .pruned(settledBefore: .max, keeping: 0)], to: second.claim)
    _ = try await bench.refusal(of: [.delivered(id: "b")], to: second.claim)
    let again = try await bench.claim(bench.other)
    try require(again.rows.isEmpty && again.lastPlace == 7, "the second device has \(again)")
    // The first device's claim still stands.
    try await bench.append([.marked(id: "b", mark: [3])], to: first.claim)
    var marked = row("b", 2)
    marked.mark = [3]
    try await holds([row("a", 1), marked], bench)
  }

  // MARK: Calls

  private static func manyCalls(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    var calls: [Int] = []
    for number in 1...100 as ClosedRange<Int64> {
      var records: [JournalRecord] = [.admitted(row("\(number)", number))]
      records.append(.marked(id: "1", mark: [UInt8(number)]))
      if number.isMultiple(of: 10) { records.append(.delivered(id: "unknown")) }
      let sync: JournalSync = number.isMultiple(of: 7) ? .full : .normal
      calls.append(await bench.beginAppend(records, to: claim, sync: sync))
    }
    let next = await bench.beginClaim(bench.device)
    let late = await bench.beginAppend([.admitted(row("late", 200))], to: claim)
    var expected: [JournalRow] = []
    for (number, call) in zip(1...100 as ClosedRange<Int64>, calls) {
      let result = try await bench.appended(call)
      let hasFailed = if case .failure = result { true } else { false }
      try require(hasFailed == number.isMultiple(of: 10), "call \(number) of a hundred ended with \(result)")
      if !hasFailed { expected.append(row("\(number)", number)) }
    }
    expected[0].mark = [99]
    guard case .success(let journal) = try await bench.claimed(next) else {
      throw ContractEnd.failed("a claim behind many calls failed")
    }
    try require(journal.rows == expected, "a claim behind a hundred calls has found \(journal.rows)")
    guard case .failure(let error) = try await bench.appended(late), error.code == .superseded else {
      throw ContractEnd.failed("a batch that was asked behind a claim was committed")
    }
  }

  private static func emptyBatch(_ bench: JournalStoreBench) async throws {
    let claim = try await bench.claim().claim
    let rows = try await bench.append([], to: claim)
    try require(rows.isEmpty, "an empty batch has handed back \(rows)")
    _ = try await bench.claim()
    let error = try await bench.refusal(of: [], to: claim)
    try require(error.code == .superseded, "an empty batch of a superseded claim was refused with \(error)")
  }

  private static func restart(_ bench: JournalStoreBench) async throws {
    let before = try await bench.claim(epoch: 3)
    try await bench.append([.admitted(row("a", 1)), .admitted(row("b", 2))], to: before.claim)
    try await bench.append(
      [.marked(id: "a", mark: [1]), settled("b"), .delivered(id: "b")], to: before.claim)
    try await bench.append([.admitted(row("c", 8))], to: before.claim, sync: .full)
    try await bench.reopen()
    var marked = row("a", 1)
    marked.mark = [1]
    let after = try await bench.claim()
    try require(after.claim.epoch > 3, "after the epoch 3 came \(after.claim.epoch)")
    try require(after.rows == [marked, row("c", 8)], "what was open is \(after.rows)")
    try require(after.lastPlace == 8, "the last place is \(after.lastPlace)")
    let taken = try await bench.append([.admitted(row("b", 9))], to: after.claim)
    try require(taken.map(\.place) == [2], "what was delivered is \(taken)")
  }
}
