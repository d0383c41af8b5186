internal import Relink

/// What the checks of stores have in common: calls with numbers, and a record of their answers.
final class JournalStoreBench: Sendable {
  typealias Claimed = Result<ClaimedJournal, JournalStoreError>
  typealias Appended = Result<[JournalRow], JournalStoreError>

  private enum Answer: Sendable {
    case claimed(Claimed)
    case appended(Appended)
  }

  private struct State {
    var calls = 0
    /// The numbers of calls in the order of their answers.
    var order: [Int] = []
    var answers: [Int: Answer] = [:]
    /// The threads that are inside a call.
    var callers: [ThreadIdentity] = []
    var answersInsideCalls = 0
  }

  let environment: any JournalStoreContractEnvironment
  private let current: Locked<any JournalStore>
  private let state = Locked(State())

  init(_ environment: any JournalStoreContractEnvironment, _ store: any JournalStore) {
    self.environment = environment
    current = Locked(store)
  }

  var store: any JournalStore { current.withLock { $0 } }
  let device = JournalStoreBench.device("C0:DE:00:00:00:01/random")
  let other = JournalStoreBench.device("C0:DE:00:00:00:02/random")

  private static func device(_ text: String) -> DeviceID {
    guard let device = DeviceID(text) else { preconditionFailure("\(text) is no device") }
    return device
  }

  // MARK: Calls

  /// Begins to claim; the result is the number of the call.
  func beginClaim(_ device: DeviceID, epoch: UInt64? = nil, owner: String = "contract") async -> Int {
    await call { store, number, bench in
      store.claim(device, owner: owner, epoch: epoch) { bench.answered(number, .claimed($0)) }
    }
  }

  /// Begins to append; the result is the number of the call.
  func beginAppend(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync = .normal
  ) async -> Int {
    await call { store, number, bench in
      store.append(records, to: claim, sync: sync) { bench.answered(number, .appended($0)) }
    }
  }

  private func call(
    _ body: @escaping @Sendable (any JournalStore, Int, JournalStoreBench) -> Void
  ) async -> Int {
    await environment.driver.perform { [self] in
      let here = ThreadIdentity.current
      let number = state.withLock { state in
        state.calls += 1
        state.callers.append(here)
        return state.calls
      }
      body(store, number, self)
      state.withLock { state in
        if let index = state.callers.lastIndex(of: here) { state.callers.remove(at: index) }
      }
      return number
    }
  }

  private func answered(_ number: Int, _ answer: Answer) {
    let here = ThreadIdentity.current
    state.withLock { state in
      if state.callers.contains(here) { state.answersInsideCalls += 1 }
      state.order.append(number)
      if state.answers[number] == nil { state.answers[number] = answer }
    }
  }

  private func answer(to number: Int) async throws -> Answer {
    let came = await environment.driver.wait { [self] in state.withLock { $0.answers[number] != nil } }
    guard came, let answer = state.withLock({ $0.answers[number] }) else {
      throw ContractEnd.failed("call \(number) was not answered")
    }
    return answer
  }

  // MARK: Answers

  func claimed(_ number: Int) async throws -> Claimed {
    guard case .claimed(let result) = try await answer(to: number) else {
      throw ContractEnd.failed("call \(number) got the answer of another")
    }
    return result
  }

  func appended(_ number: Int) async throws -> Appended {
    guard case .appended(let result) = try await answer(to: number) else {
      throw ContractEnd.failed("call \(number) got the answer of another")
    }
    return result
  }

  func claim(_ device: DeviceID? = nil, epoch: UInt64? = nil) async throws -> ClaimedJournal {
    switch try await claimed(beginClaim(device ?? self.device, epoch: epoch)) {
    case .success(let journal): return journal
    case .failure(let error): throw ContractEnd.failed("a claim failed: \(error)")
    }
  }

  @discardableResult
  func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync = .normal
  ) async throws -> [JournalRow] {
    switch try await appended(beginAppend(records, to: claim, sync: sync)) {
    case .success(let rows): return rows
    case .failure(let error): throw ContractEnd.failed("\(records) were not committed: \(error)")
    }
  }

  /// The error of a call that has to fail and to say that it is certain.
  func refusal(of records: [JournalRecord], to claim: JournalClaim) async throws -> JournalStoreError {
    switch try await appended(beginAppend(records, to: claim)) {
    case .success: throw ContractEnd.failed("\(records) were committed")
    case .failure(let error):
      try require(error.isCertain, "it is said to be uncertain whether \(records) were committed")
      return error
    }
  }

  // MARK: The end

  /// Ends the process and opens what it left.
  func reopen() async throws {
    guard let next = try await environment.reopen(store) else {
      throw ContractEnd.skipped("the end of a process cannot be tried")
    }
    current.withLock { $0 = next }
  }

  /// Waits for whatever still comes, and looks at what came.
  func finish() async throws {
    let waits = await environment.driver.wait { [self] in state.withLock { $0.answers.count == $0.calls } }
    await environment.driver.settle()
    await environment.discard(store)
    let (order, inside) = state.withLock { ($0.order, $0.answersInsideCalls) }
    try require(waits, "a call was not answered")
    try require(inside == 0, "an answer came inside the call")
    try require(Set(order).count == order.count, "a call was answered twice: \(order)")
    try require(order == order.sorted(), "answers came in another order than calls: \(order)")
  }
}
