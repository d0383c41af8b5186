import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct DiagnosisTableTests {
  @Test func everyCodeOfEverySourceHasARowInEveryMoment() {
    for octet in UInt8.min...UInt8.max {
      let keys: [DiagnosisTable.Key] = [
        .hci(HCIErrorCode(rawValue: octet)), .encryption(HCIErrorCode(rawValue: octet)),
        .management(octet), .pairing(octet), .att(ATTErrorCode(rawValue: octet)), .dial(Int32(octet)),
        .socket(Int32(octet)), .endOfFile,
      ]
      for key in keys {
        for moment in LinkMoment.allCases {
          let row = DiagnosisTable.standard.row(for: key, at: moment)
          // Nothing but a history can say that a pairing is of no use any more.
          #expect(row.recovery != .removePairingAndPairAgain)
          #expect(row.reason != .requested)
          if row.reason == .unknown { #expect(row.confidence == .low) }
        }
      }
    }
    for number in [Int32.min, -1, 134, .max] {
      #expect(DiagnosisTable.standard.row(for: .socket(number), at: .ready).reason == .unknown)
      #expect(DiagnosisTable.standard.row(for: .dial(number), at: .dialling).reason == .unknown)
    }
  }

  @Test(arguments: [
    (UInt8(0x05), DisconnectReason.authenticationFailure), (0x06, .keyMissing), (0x08, .supervisionTimeout),
    (0x09, .outOfSlots), (0x13, .remoteUserTerminated), (0x14, .remoteLowResources), (0x15, .remotePowerOff),
    (0x16, .localHostTerminated), (0x1A, .linkLayerFault), (0x1F, .linkLayerFault), (0x22, .linkLayerFault),
    (0x28, .linkLayerFault), (0x29, .pairingFailed), (0x2F, .authenticationFailure),
    (0x3B, .connectionParameters), (0x3D, .micFailure), (0x3E, .failedToEstablish), (0x3F, .linkLayerFault),
    (0x44, .failedToEstablish), (0x18, .pairingFailed), (0x00, .unknown), (0x46, .unknown), (0xFF, .unknown),
  ])
  func aReasonOfTheControllerIsReadAs(_ code: UInt8, _ reason: DisconnectReason) {
    let row = DiagnosisTable.standard.row(for: .hci(HCIErrorCode(rawValue: code)), at: .ready)
    #expect(row.reason == reason)
    #expect(row.recovery == (reason == .pairingFailed ? .retryPairing : .retryConnection))
  }

  @Test func aReasonOfTheKernelBeyondItsRangeIsTheControllersOwn() {
    let table = DiagnosisTable.standard
    let meant: [DisconnectReason] = [
      .unknown, .supervisionTimeout, .localHostTerminated, .remoteUserTerminated, .authenticationFailure,
      .suspended,
    ]
    for (reason, expected) in meant.enumerated() {
      #expect(table.row(for: .management(UInt8(reason)), at: .ready).reason == expected)
    }
    for reason in UInt8(6)...UInt8.max {
      let own = table.row(for: .hci(HCIErrorCode(rawValue: reason)), at: .ready)
      let row = table.row(for: .management(reason), at: .ready)
      #expect(row.reason == own.reason && row.recovery == own.recovery)
      #expect(row.confidence == min(own.confidence, .medium))
    }
    #expect(table.row(for: .management(0x15), at: .ready).reason == .remotePowerOff)
  }

  /// What the kernel makes of a reason, measured: the socket's number leads to the same reason or to a wider one.
  @Test(arguments: [
    (Int32(104), DisconnectReason.remoteUserTerminated), (110, .supervisionTimeout),
    (103, .localHostTerminated),
    (13, .authenticationFailure), (52, .keyMissing), (93, .linkLayerFault), (95, .linkLayerFault),
    (38, .linkLayerFault), (100, .adapterOff), (113, .adapterOff), (19, .adapterMissing), (1, .notPermitted),
  ])
  func anErrorOfASocketIsReadAs(_ number: Int32, _ reason: DisconnectReason) {
    #expect(DiagnosisTable.standard.row(for: .socket(number), at: .ready).reason == reason)
  }

  @Test(arguments: [
    (Int32(111), DisconnectReason.refused), (110, .notFound), (112, .notFound), (38, .failedToEstablish),
    (107, .failedToEstablish), (16, .busy), (114, .busy), (31, .outOfSlots), (113, .adapterOff),
    (101, .adapterOff), (19, .adapterMissing), (97, .adapterMissing), (93, .adapterMissing),
    (1, .notPermitted),
    (132, .adapterBlocked), (104, .remoteUserTerminated), (13, .authenticationFailure),
  ])
  func anErrorOfAConnectIsReadAs(_ number: Int32, _ reason: DisconnectReason) {
    #expect(DiagnosisTable.standard.row(for: .dial(number), at: .dialling).reason == reason)
  }
}
