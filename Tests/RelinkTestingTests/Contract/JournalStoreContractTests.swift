import Relink
import RelinkTesting
import Testing

/// The contract of stores over the virtual one, and every rule of it seen to fail.
@Suite struct JournalStoreContractTests {
  @Test(arguments: [Duration.zero, .milliseconds(5)])
  func theVirtualStoreKeepsTheContract(latency: Duration) async {
    let environment = VirtualStoreEnvironment(latency: latency)
    let report = await JournalStoreContract.check(environment)
    #expect(report.failures == [])
    #expect(report.skipped == [])
    #expect(report.checks.count == JournalStoreContract.names.count)
    #expect(environment.executor.problems == [])
  }

  @Test func aStoreThatAnswersOnAThreadKeepsTheContract() async {
    let report = await JournalStoreContract.check(ThreadedStoreEnvironment())
    #expect(report.failures == [])
    #expect(report.skipped == ["keepsWhatIsCommittedOverTheEndOfTheProcess"])
  }

  static let flaws: [(StoreFlaw, String)] = [
    (.ignoresEpochs, "givesEachClaimAHigherEpoch"),
    (.grantsLowClaims, "refusesAClaimThatIsNotHigher"),
    (.reversesRows, "handsBackWhatIsOpenInTheOrderOfPlaces"),
    (.forgetsEmptyParts, "keepsEveryPartOfARow"),
    (.forgetsPlaces, "knowsTheHighestPlaceThatWasGiven"),
    (.tearsBatches, "commitsABatchWholeOrNotAtAll"),
    (.hidesErrors, "refusesRecordsOfUnknownOperations"),
    (.hidesTakenIDs, "handsBackTheRowOfATakenID"),
    (.comparesText, "tellsNamesApartByTheirBytes"),
    (.keepsFirstMark, "letsTheLatestMarkStand"),
    (.hidesErrors, "letsTheFirstOutcomeStand"),
    (.erasesNothing, "replacesTheRequestThatIsToBeErased"),
    (.prunesNoAge, "prunesWhatWasSettledBefore"),
    (.prunesNoCount, "prunesAllButTheNewest"),
    (.servesOldClaims, "commitsNothingForASupersededClaim"),
    (.servesAnybody, "commitsNothingForADeviceThatNobodyClaimed"),
    (.mixesDevices, "keepsDevicesApart"),
    (.answersTwice, "answersManyCallsOnceAndInOrder"),
    (.answersInsideTheCall, "answersManyCallsOnceAndInOrder"),
    (.swapsAnswers, "answersManyCallsOnceAndInOrder"),
    (.ignoresEmptyBatches, "answersAnEmptyBatch"),
    (.forgetsEverything, "keepsWhatIsCommittedOverTheEndOfTheProcess"),
  ]

  @Test(arguments: flaws) func aFlawOfAStoreIsFound(_ flaw: StoreFlaw, _ rule: String) async {
    var environment = VirtualStoreEnvironment(latency: .zero)
    environment.flaw = flaw
    let report = await JournalStoreContract.check(environment, only: [rule])
    #expect(report.failures.count == 1, "\(report)")
  }

  @Test func noRuleIsMissingHere() {
    #expect(Set(Self.flaws.map(\.1)) == Set(JournalStoreContract.names))
  }
}

/// Virtual stores whose process ends with the power of its machine.
private struct VirtualStoreEnvironment: JournalStoreContractEnvironment {
  let executor: ManualExecutor
  let driver: any ContractDriver
  let latency: Duration
  var flaw: StoreFlaw?

  init(latency: Duration) {
    executor = ManualExecutor()
    driver = ManualContractDriver(executor)
    self.latency = latency
  }

  func makeStore() async throws -> any JournalStore {
    let store = VirtualJournalStore(on: executor, configuration: .init(latency: latency))
    return flaw.map { FlawedStore(store, $0) } ?? store
  }

  func reopen(_ store: any JournalStore) async throws -> (any JournalStore)? {
    if flaw == .forgetsEverything { return try await makeStore() }
    if let store = store as? VirtualJournalStore {
      _ = await driver.perform { store.crash(losingPower: true, keeping: 0) }
    }
    return store
  }
}

/// Stores that answer on the thread of a queue, whatever thread asks.
private struct ThreadedStoreEnvironment: JournalStoreContractEnvironment {
  let driver: any ContractDriver = LoopContractDriver(QueueExecutor(), quiet: .milliseconds(5))

  func makeStore() async throws -> any JournalStore {
    VirtualJournalStore(on: QueueExecutor(), configuration: .init(latency: .zero))
  }
}
