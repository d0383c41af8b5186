import Relink
import RelinkTesting
import Testing

/// The contract of stores of bonds over the virtual one, and every rule of it seen to fail.
@Suite struct BondStoreContractTests {
  @Test func theVirtualStoreKeepsTheContract() async {
    let report = await BondStoreContract.check(VirtualBondsEnvironment())
    #expect(report.failures == [])
    #expect(report.skipped == [])
    #expect(report.checks.count == BondStoreContract.names.count)
  }

  static let flaws: [(BondFlaw, String)] = [
    (.inventsBonds, "hasNothingAtFirst"), (.losesIdentityKeys, "handsBackEveryPartOfABond"),
    (.keepsBoth, "keepsOneBondForADeviceAndAdapter"), (.removesAll, "removesOneBondAlone"),
    (.forgetsNumbers, "neverForgetsAHigherNumber"), (.answersInside, "answersInTheOrderOfTheCalls"),
    (.forgetsEverything, "keepsBondsOverTheEndOfTheProcess"),
  ]

  @Test(arguments: flaws) func aFlawOfAStoreIsFound(_ flaw: BondFlaw, _ rule: String) async {
    var environment = VirtualBondsEnvironment()
    environment.flaw = flaw
    let report = await BondStoreContract.check(environment, only: [rule])
    #expect(report.failures.count == 1, "\(report)")
  }
}

enum BondFlaw: Sendable {
  case inventsBonds
  case losesIdentityKeys
  case keepsBoth
  case removesAll
  case forgetsNumbers
  case answersInside
  case forgetsEverything
}

private struct VirtualBondsEnvironment: BondStoreContractEnvironment {
  let executor: ManualExecutor
  let driver: any ContractDriver
  var flaw: BondFlaw?

  init() {
    executor = ManualExecutor()
    driver = ManualContractDriver(executor)
  }

  func makeStore() async throws -> any BondStore {
    let store = VirtualBondStore(on: executor)
    return flaw.map { FlawedBondStore(store, $0, executor) } ?? store
  }

  func reopen(_ store: any BondStore) async throws -> (any BondStore)? {
    flaw == .forgetsEverything ? try await makeStore() : store
  }
}

/// A store that breaks one rule.
private final class FlawedBondStore: BondStore {
  private let store: VirtualBondStore
  private let flaw: BondFlaw
  private let executor: ManualExecutor

  init(_ store: VirtualBondStore, _ flaw: BondFlaw, _ executor: ManualExecutor) {
    self.store = store
    self.flaw = flaw
    self.executor = executor
  }

  func load(_ done: @escaping @Sendable (Result<KeptBonds, RelinkError>) -> Void) {
    store.load { [flaw] result in
      done(
        result.map { kept in
          switch flaw {
          case .inventsBonds: KeptBonds([], lastID: 1)
          case .losesIdentityKeys:
            KeptBonds(
              kept.bonds.map { bond in
                var bond = bond
                bond.identityKey = nil
                return bond
              }, lastID: kept.lastID)
          case .forgetsNumbers: KeptBonds(kept.bonds, lastID: kept.bonds.last?.id ?? 0)
          case .keepsBoth, .removesAll, .answersInside, .forgetsEverything: kept
          }
        })
    }
  }

  func keep(_ bond: Bond, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    var bond = bond
    if flaw == .keepsBoth { bond.adapter = BluetoothAddress(bond.id) }
    store.keep(bond) { [flaw] error in
      if flaw != .answersInside { done(error) }
    }
    if flaw == .answersInside { done(nil) }
  }

  func remove(
    _ device: DeviceID, of adapter: BluetoothAddress, _ done: @escaping @Sendable (RelinkError?) -> Void
  ) {
    if flaw == .removesAll {
      for bond in store.bonds { store.remove(bond.device, of: bond.adapter) { _ in } }
    }
    store.remove(device, of: adapter, done)
  }
}
