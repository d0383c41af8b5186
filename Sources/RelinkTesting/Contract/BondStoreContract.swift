public import Relink

/// What ``BondStoreContract`` needs to try a store of bonds.
public protocol BondStoreContractEnvironment: Sendable {
  /// Lets the suite wait. For a store with a thread of its own, a ``LoopContractDriver`` on any executor that runs by
  /// itself does.
  var driver: any ContractDriver { get }

  /// Makes an empty store.
  ///
  /// - Returns: The store; nobody else uses it.
  /// - Throws: Anything, where it cannot be made; the check fails with it.
  func makeStore() async throws -> any BondStore

  /// Ends the process that uses a store, as far as that can be done here, and opens what it left.
  ///
  /// - Parameter store: The store, which is not used any more.
  /// - Returns: A store with what was kept; nil where that cannot be done, and the rule is skipped.
  /// - Throws: Anything, where it cannot be opened again; the check fails with it.
  func reopen(_ store: any BondStore) async throws -> (any BondStore)?
}

/// The rules that every `BondStore` keeps, whatever it writes to.
///
/// In each check every call has to be answered once, in the order of the calls, and not inside the call.
public enum BondStoreContract {
  fileprivate typealias Check = @Sendable (Bench) async throws -> Void

  /// Tries the rules, each on a store of its own.
  ///
  /// - Parameters:
  ///   - environment: The implementation.
  ///   - names: The rules to try; nil for all.
  /// - Returns: What came out.
  public static func check(
    _ environment: any BondStoreContractEnvironment, only names: Set<String>? = nil
  ) async -> ContractReport {
    await runChecks("BondStore", names, checks) { body in
      let bench = Bench(environment, try await environment.makeStore())
      try await body(bench)
      try bench.finish()
    }
  }

  /// The names of the rules.
  public static var names: [String] { checks.map(\.name) }

  private static let checks: [(name: String, body: Check)] = [
    ("hasNothingAtFirst", empty),
    ("handsBackEveryPartOfABond", whole),
    ("keepsOneBondForADeviceAndAdapter", replaced),
    ("removesOneBondAlone", removed),
    ("neverForgetsAHigherNumber", numbers),
    ("answersInTheOrderOfTheCalls", order),
    ("keepsBondsOverTheEndOfTheProcess", restart),
  ]

  private static func empty(_ bench: Bench) async throws {
    let kept = try await bench.load()
    try require(kept == KeptBonds(), "an empty store has \(kept)")
    try await bench.remove("C0:DE:00:00:00:01/random", of: 1)
  }

  private static func whole(_ bench: Bench) async throws {
    let bonds = [
      try bond("C0:DE:00:00:00:01/random", of: 1, id: 1),
      try bond("00:1A:7D:00:00:02/public", of: 1, id: 2, legacy: true),
      try bond("C0:DE:00:00:00:01/random", of: 0xFFFF_FFFF_FFFF, id: UInt64(Int64.max)),
    ]
    for bond in bonds { try await bench.keep(bond) }
    let kept = try await bench.load()
    try require(kept.bonds == bonds, "\(bonds) came back as \(kept.bonds)")
    try require(kept.lastID == UInt64(Int64.max), "the last number is \(kept.lastID)")
  }

  private static func replaced(_ bench: Bench) async throws {
    try await bench.keep(try bond("C0:DE:00:00:00:01/random", of: 1, id: 1))
    let newer = try bond("C0:DE:00:00:00:01/random", of: 1, id: 2, legacy: true)
    try await bench.keep(newer)
    let kept = try await bench.load().bonds
    try require(kept == [newer], "a second pairing left \(kept)")
  }

  private static func removed(_ bench: Bench) async throws {
    let other = try bond("C0:DE:00:00:00:01/random", of: 2, id: 2)
    try await bench.keep(try bond("C0:DE:00:00:00:01/random", of: 1, id: 1))
    try await bench.keep(other)
    try await bench.remove("C0:DE:00:00:00:01/public", of: 1)
    try await bench.remove("C0:DE:00:00:00:01/random", of: 1)
    let kept = try await bench.load().bonds
    try require(kept == [other], "a removal left \(kept)")
  }

  private static func numbers(_ bench: Bench) async throws {
    try await bench.keep(try bond("C0:DE:00:00:00:01/random", of: 1, id: 9))
    try await bench.remove("C0:DE:00:00:00:01/random", of: 1)
    try await bench.keep(try bond("C0:DE:00:00:00:02/random", of: 1, id: 4))
    let last = try await bench.load().lastID
    try require(last == 9, "the last number is \(last), and 9 was given")
  }

  private static func order(_ bench: Bench) async throws {
    for number in UInt64(1)...50 {
      try bench.begin { store, done in
        store.keep(try bond("C0:DE:00:00:00:01/random", of: 1, id: number)) { done($0.map { .failure($0) }) }
      }
    }
    let kept = try await bench.load().bonds
    try require(kept.map(\.id) == [50], "after fifty pairings there is \(kept)")
  }

  private static func restart(_ bench: Bench) async throws {
    let bond = try bond("C0:DE:00:00:00:01/random", of: 1, id: 1)
    try await bench.keep(bond)
    try await bench.keep(try Self.bond("C0:DE:00:00:00:02/random", of: 1, id: 2))
    try await bench.remove("C0:DE:00:00:00:02/random", of: 1)
    try await bench.reopen()
    let kept = try await bench.load()
    try require(kept == KeptBonds([bond], lastID: 2), "after a restart there is \(kept)")
  }

  private static func bond(
    _ device: String, of adapter: UInt64, id: UInt64, legacy: Bool = false
  ) throws -> Bond {
    let octets = { (first: UInt64) in SecurityKey((0..<16).map { UInt8(truncatingIfNeeded: first + $0) }) }
    guard let device = DeviceID(device), let value = octets(id), let other = octets(id + 100) else {
      throw ContractEnd.failed("no bond for \(device)")
    }
    let key = Bond.LongTermKey(value, isAuthenticated: true, isSecureConnections: true)
    let old = [
      Bond.LongTermKey(
        value, isAuthenticated: false, isSecureConnections: false, isCentral: true, size: 7,
        diversifier: 0xABCD,
        randomNumber: 0x0123_4567_89AB_CDEF),
      Bond.LongTermKey(other, isAuthenticated: false, isSecureConnections: false, isCentral: false),
    ]
    return Bond(
      with: device, of: BluetoothAddress(adapter), id: id, longTermKeys: legacy ? old : [key],
      identityKey: legacy ? nil : other)
  }
}

/// Calls with numbers, and a record of their answers.
private final class Bench: Sendable {
  typealias Answer = Result<KeptBonds, RelinkError>

  private struct State {
    var calls = 0
    var order: [Int] = []
    var answers: [Int: Answer] = [:]
    var fault: String?
  }

  private let environment: any BondStoreContractEnvironment
  private let store: Locked<any BondStore>
  private let state = Locked(State())

  init(_ environment: any BondStoreContractEnvironment, _ store: any BondStore) {
    self.environment = environment
    self.store = Locked(store)
  }

  /// Makes a call, and gives its number.
  ///
  /// The call's own answer is nil for a success without a value.
  @discardableResult
  func begin(
    _ body: (any BondStore, @escaping @Sendable (Answer?) -> Void) throws -> Void
  ) rethrows -> Int {
    let number = state.withLock { state in
      state.calls += 1
      return state.calls
    }
    let inside = Locked<ThreadIdentity?>(.current)
    try body(store.withLock { $0 }) { [self] answer in
      let isInside = inside.withLock { $0 == .current }
      state.withLock { state in
        if isInside { state.fault = "call \(number) was answered inside itself" }
        state.order.append(number)
        state.answers[number] = answer ?? .success(KeptBonds())
      }
    }
    inside.withLock { $0 = nil }
    return number
  }

  private func value(of number: Int) async throws -> KeptBonds {
    let came = await environment.driver.wait { [self] in state.withLock { $0.answers[number] != nil } }
    guard came, let answer = state.withLock({ $0.answers[number] }) else {
      throw ContractEnd.failed("call \(number) was not answered")
    }
    switch answer {
    case .success(let kept): return kept
    case .failure(let error): throw ContractEnd.failed("call \(number) failed: \(error)")
    }
  }

  func load() async throws -> KeptBonds {
    try await value(of: begin { store, done in store.load { done($0) } })
  }

  func keep(_ bond: Bond) async throws {
    _ = try await value(of: begin { store, done in store.keep(bond) { done($0.map { .failure($0) }) } })
  }

  func remove(_ device: String, of adapter: UInt64) async throws {
    guard let device = DeviceID(device) else { throw ContractEnd.failed("\(device) is no device") }
    _ = try await value(
      of: begin { store, done in
        store.remove(device, of: BluetoothAddress(adapter)) { done($0.map { .failure($0) }) }
      })
  }

  func reopen() async throws {
    guard let next = try await environment.reopen(store.withLock { $0 }) else {
      throw ContractEnd.skipped("this store cannot be opened again")
    }
    store.withLock { $0 = next }
  }

  /// Every call was answered once and in its order.
  func finish() throws(ContractEnd) {
    let (calls, order, fault) = state.withLock { ($0.calls, $0.order, $0.fault) }
    if let fault { throw .failed(fault) }
    try require(order == Array(1...calls), "\(calls) calls were answered in the order \(order)")
  }
}
