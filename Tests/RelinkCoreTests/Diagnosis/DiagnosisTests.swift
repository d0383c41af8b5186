import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct DiagnosisTests {
  private static let every: [DisconnectReason] = [
    .requested, .notFound, .failedToEstablish, .supervisionTimeout, .remoteUserTerminated,
    .remoteLowResources, .remotePowerOff, .localHostTerminated, .linkLayerFault, .authenticationFailure,
    .keyMissing, .micFailure, .adapterOff, .adapterMissing, .notPermitted, .busy, .transactionTimeout,
    .protocolViolation, .setupFailed, .preparationTimeout, .refused, .unknown,
  ]

  @Test func everyReasonHasItsNextStep() {
    for reason in Self.every {
      let expected: RecoveryAction =
        switch reason {
        case .requested: .none
        case .setupFailed: .retryOperation
        case .adapterOff, .adapterMissing, .notPermitted: .waitForAdapter
        default: .retryConnection
        }
      #expect(diagnose(reason).recovery == expected, "\(reason)")
    }
  }

  @Test func nothingButTheAppsOwnRequestIsSureWithoutEvidence() {
    for reason in Self.every {
      let expected: Confidence =
        switch reason {
        case .requested: .high
        case .unknown, .authenticationFailure, .keyMissing, .micFailure: .low
        default: .medium
        }
      #expect(diagnose(reason).confidence == expected, "\(reason)")
    }
  }

  @Test(arguments: [
    (Evidence.hci(HCIErrorCode(rawValue: 0x08)), Confidence.high), (.observation("seen"), .high),
    (.att(ATTErrorCode(rawValue: 0x0E)), .high), (.management(1), .medium),
    (.system(110, call: .receive), .medium), (.endOfFile, .medium),
  ])
  func onlyASourceThatStatesTheReasonMakesSure(_ evidence: Evidence, _ confidence: Confidence) {
    #expect(diagnose(.supervisionTimeout, evidence).confidence == confidence)
    #expect(diagnose(.supervisionTimeout, .endOfFile, evidence).confidence == confidence)
    // What the code itself leaves open no source can settle.
    #expect(diagnose(.keyMissing, evidence).confidence == .low)
  }

  @Test func everythingThatWasSaidIsPassedOn() {
    let evidence: [Evidence] = [.management(3), .hci(HCIErrorCode(rawValue: 0x13))]
    let info = Diagnosis.diagnose(
      LinkLoss(.remoteUserTerminated, evidence: evidence), generation: Generation(rawValue: 4),
      willReconnect: true, inDoubt: 3)
    #expect(
      info
        == DisconnectInfo(
          reason: .remoteUserTerminated, evidence: evidence, confidence: .high, recovery: .retryConnection,
          willReconnect: true, generation: Generation(rawValue: 4), inDoubt: 3))
  }

  @Test func nothingAdvisesToRemoveAPairing() {
    for reason in Self.every {
      for evidence in [Evidence.hci(HCIErrorCode(rawValue: 0x06)), .management(4)] {
        #expect(diagnose(reason, evidence).recovery != .removePairingAndPairAgain)
      }
    }
  }

  private func diagnose(_ reason: DisconnectReason, _ evidence: Evidence...) -> DisconnectInfo {
    Diagnosis.diagnose(
      LinkLoss(reason, evidence: evidence), generation: nil, willReconnect: true, inDoubt: 0)
  }
}
