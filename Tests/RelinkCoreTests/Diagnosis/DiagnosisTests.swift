import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct DiagnosisTests {
  private static let every: [DisconnectReason] = [
    .requested, .notFound, .failedToEstablish, .supervisionTimeout, .remoteUserTerminated,
    .remoteLowResources, .remotePowerOff, .localHostTerminated, .linkLayerFault, .authenticationFailure,
    .keyMissing, .micFailure, .connectionParameters, .bondMissing, .pairingFailed, .securityTimeout,
    .adapterOff, .adapterBlocked, .daemonStopped, .suspended, .adapterMissing, .notPermitted, .busy,
    .channelInUse, .outOfSlots, .adapterStuck, .phantomLink, .wrongAddressType, .transactionTimeout,
    .protocolViolation, .setupFailed, .preparationTimeout, .refused, .operationExpired,
  ]

  private static let bonded = DiagnosisHistory(bond: .bondedElsewhere)

  // MARK: What the transport knows

  @Test func whatTheTransportKnowsStandsAndHasItsNextStep() {
    for reason in Self.every {
      let expected: RecoveryAction =
        switch reason {
        case .requested, .operationExpired: .none
        case .setupFailed: .retryOperation
        case .pairingFailed: .retryPairing
        case .bondMissing: .removePairingAndPairAgain
        case .adapterOff, .adapterBlocked, .daemonStopped, .suspended, .adapterMissing, .notPermitted:
          .waitForAdapter
        default: .retryConnection
        }
      for moment in LinkMoment.allCases {
        let finding = Diagnosis.diagnose(LinkLoss(reason, evidence: [.management(0)]), at: moment)
        #expect(finding.reason == reason)
        #expect(finding.recovery == expected, "\(reason)")
      }
    }
  }

  @Test func onlyASourceThatStatesTheReasonMakesSure() {
    let told: [(Evidence, Confidence)] = [
      (.hci(.connectionTimeout), .high), (.observation("seen"), .high), (.att(.unlikelyError), .high),
      (.management(1), .medium), (.system(110, call: .receive), .medium), (.endOfFile, .medium),
    ]
    for (evidence, confidence) in told {
      let loss = LinkLoss(.supervisionTimeout, evidence: [evidence])
      #expect(Diagnosis.diagnose(loss, at: .ready).confidence == confidence)
    }
  }

  // MARK: Which source is believed

  @Test func theControllerIsBelievedBeforeTheKernel() {
    let evidence: [Evidence] = [.system(38, call: .receive), .management(0), .hci(.init(rawValue: 0x3B))]
    #expect(diagnose(evidence).reason == .connectionParameters)
    #expect(diagnose(evidence.reversed()).reason == .connectionParameters)
    #expect(diagnose(evidence).confidence == .high)
  }

  @Test func whatEncryptionSaidIsBelievedBeforeTheEndOfTheLink() {
    let evidence: [Evidence] = [.hci(.authenticationFailure), .encryption(.pinOrKeyMissing), .management(4)]
    #expect(diagnose(evidence, Self.bonded).reason == .keyMissing)
    // Encryption that went well says nothing of the end.
    #expect(diagnose([.encryption(.success), .hci(.connectionTimeout)]).reason == .supervisionTimeout)
  }

  @Test func aNumberIntoWhichReasonsAreFoldedExplainsNoneThatCannotBeRead() {
    let unread = Evidence.hci(HCIErrorCode(rawValue: 0xEE))
    let evidence: [Evidence] = [unread, .management(0), .system(38, call: .receive)]
    let finding = Diagnosis.diagnose(LinkLoss(.unknown, evidence: evidence), at: .ready)
    #expect(finding.reason == .unknown)
    #expect(finding.recovery == .retryConnection)
    #expect(finding.confidence == .low)
  }

  @Test func aNumberThatFoldsManyReasonsGivesWayToOneThatFoldsFew() {
    #expect(diagnose([.management(1), .system(38, call: .receive)]).reason == .supervisionTimeout)
    #expect(diagnose([.management(0), .system(110, call: .receive)]).reason == .supervisionTimeout)
    #expect(diagnose([.endOfFile, .management(2)]).reason == .localHostTerminated)
    #expect(diagnose([.endOfFile]).reason == .remoteUserTerminated)
    #expect(diagnose([]).reason == .unknown)
    #expect(diagnose([.observation("odd")]).reason == .unknown)
  }

  @Test func anErrorNumberMeansSomethingOnlyWithItsCallAndMoment() {
    func reason(_ number: Int32, _ call: Evidence.SystemCall, _ moment: LinkMoment) -> DisconnectReason {
      Diagnosis.diagnose(LinkLoss(.unknown, evidence: [.system(number, call: call)]), at: moment).reason
    }
    #expect(reason(38, .pendingError, .dialling) == .failedToEstablish)
    #expect(reason(38, .receive, .ready) == .linkLayerFault)
    #expect(reason(110, .connect, .dialling) == .notFound)
    #expect(reason(110, .pendingError, .ready) == .supervisionTimeout)
    #expect(reason(111, .connect, .dialling) == .refused)
    #expect(reason(16, .connect, .dialling) == .busy)
  }

  // MARK: Keys

  @Test(arguments: [HCIErrorCode.authenticationFailure, .pinOrKeyMissing, .init(rawValue: 0x3D)])
  func aCodeAboutKeysSaysNothingWithoutABond(_ code: HCIErrorCode) {
    for failures in 0..<5 {
      let finding = diagnose([.hci(code)], DiagnosisHistory(bond: .none, keyFailures: failures))
      #expect(finding.recovery == .retryConnection)
      #expect(finding.confidence == .low)
      #expect(!finding.needsUser && !finding.speaksAgainstKeys)
    }
  }

  @Test(arguments: [HCIErrorCode.authenticationFailure, .pinOrKeyMissing, .init(rawValue: 0x3D)])
  func theSecondFailureOfTheKeysInARowNeedsTheUser(_ code: HCIErrorCode) {
    for history in [Self.bonded, DiagnosisHistory(wasEncryptionAsked: true)] {
      var history = history
      let first = diagnose([.hci(code)], history)
      #expect(first.recovery == .retryConnection)
      #expect(first.speaksAgainstKeys && !first.needsUser)
      history.keyFailures = 1
      let second = diagnose([.hci(code)], history)
      #expect(second.recovery == .removePairingAndPairAgain)
      #expect(second.needsUser && second.confidence >= .medium)
    }
  }

  @Test func aTimeoutNeverProvesThatThePairingIsGone() {
    let history = DiagnosisHistory(bond: .bondedElsewhere, wasEncryptionAsked: true, keyFailures: 9)
    for code: UInt8 in [0x08, 0x22, 0x3E] {
      #expect(diagnose([.hci(HCIErrorCode(rawValue: code))], history).recovery == .retryConnection)
    }
  }

  @Test func anIntegrityFailureLongAfterEncryptionIsNoise() {
    var history = Self.bonded
    history.keyFailures = 4
    history.encryptedFor = .seconds(600)
    let late = diagnose([.hci(.init(rawValue: 0x3D))], history)
    #expect(late.recovery == .retryConnection && !late.needsUser && !late.speaksAgainstKeys)
    history.encryptedFor = .milliseconds(900)
    #expect(diagnose([.hci(.init(rawValue: 0x3D))], history).needsUser)
  }

  @Test func closesStraightAfterSomethingProtectedMakeALostBondLikely() {
    var history = Self.bonded
    history.protectedFor = .milliseconds(300)
    let close: [Evidence] = [.hci(.remoteUserTerminatedConnection)]
    for closes in 0..<2 {
      history.protectedCloses = closes
      let finding = diagnose(close, history)
      #expect(finding.reason == .remoteUserTerminated && finding.isProtectedClose && !finding.needsUser)
    }
    history.protectedCloses = 2
    let third = diagnose(close, history)
    #expect(third.reason == .keyMissing && third.recovery == .removePairingAndPairAgain && third.needsUser)
    history.protectedFor = .seconds(3)
    #expect(!diagnose(close, history).isProtectedClose)
    history.protectedFor = nil
    #expect(diagnose(close, history).recovery == .retryConnection)
    history.protectedFor = .zero
    history.bond = .none
    #expect(!diagnose(close, history).isProtectedClose)
  }

  @Test func aDeviceThatWantsABondNeedsTheUser() {
    for code: UInt8 in [0x05, 0x0F] {
      let finding = diagnose([.att(ATTErrorCode(rawValue: code))], at: .preparing)
      #expect(finding.reason == .authenticationFailure && finding.recovery == .retryPairing)
      #expect(finding.needsUser)
    }
    #expect(diagnose([.att(.unlikelyError)], at: .preparing).reason == .protocolViolation)
  }

  // MARK: The rest

  @Test func aRadioThatIsAlwaysBusyIsStuck() {
    let busy: [Evidence] = [.system(16, call: .connect)]
    for dials in 0..<4 {
      #expect(diagnose(busy, DiagnosisHistory(busyDials: dials), at: .dialling).reason == .busy)
    }
    #expect(diagnose(busy, DiagnosisHistory(busyDials: 4), at: .dialling).reason == .adapterStuck)
  }

  @Test func whatWasAnnouncedIsNoFault() {
    let history = DiagnosisHistory(expectation: "firmware update")
    let finding = diagnose([.hci(.remoteUserTerminatedConnection)], history)
    #expect(finding.recovery == .none && finding.expectation == "firmware update")
    // An adapter that is off is a fault all the same.
    let off = Diagnosis.diagnose(LinkLoss(.adapterOff), at: .ready, history: history)
    #expect(off.recovery == .waitForAdapter && off.expectation == nil)
  }

  @Test func aRowThatTheAppSetStandsAboveEverything() {
    var table = DiagnosisTable.standard
    let row = DiagnosisTable.Row(.remotePowerOff, .retryConnection, .medium, "battery")
    table.setRow(row, for: .hci(.remoteUserTerminatedConnection), at: .ready)
    let evidence: [Evidence] = [.hci(.remoteUserTerminatedConnection)]
    for loss in [LinkLoss(.unknown, evidence: evidence), LinkLoss(.supervisionTimeout, evidence: evidence)] {
      #expect(Diagnosis.diagnose(loss, at: .ready, table: table).reason == .remotePowerOff)
    }
    #expect(
      Diagnosis.diagnose(LinkLoss(.unknown, evidence: evidence), at: .preparing, table: table).reason
        == .remoteUserTerminated)
    table.setRow(row, for: .hci(.remoteUserTerminatedConnection))
    #expect(table.row(for: .hci(.remoteUserTerminatedConnection), at: .dialling) == row)
    // Who asked for the end is told so, whatever the codes say.
    let requested = LinkLoss(.requested, evidence: evidence)
    #expect(Diagnosis.diagnose(requested, at: .dialling).reason == .requested)
  }

  private func diagnose(
    _ evidence: [Evidence], _ history: DiagnosisHistory = DiagnosisHistory(), at moment: LinkMoment = .ready
  ) -> Diagnosis.Finding {
    Diagnosis.diagnose(LinkLoss(.unknown, evidence: evidence), at: moment, history: history)
  }
}
