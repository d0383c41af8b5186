import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B25: every number that a controller or a kernel can give ends a link in a typed reason, and the session goes on.
@Suite struct EveryReasonTests {
  /// Where the number comes from.
  enum Source: CaseIterable {
    case controller, kernel, dial

    func evidence(_ number: UInt8) -> Evidence {
      switch self {
      case .controller, .dial: .hci(HCIErrorCode(rawValue: number))
      case .kernel: .management(number)
      }
    }
  }

  /// What is known of some numbers; the others are tested for having a reason at all.
  static let known: [Source: [UInt8: (DisconnectReason, RecoveryAction)]] = [
    .controller: [
      0x05: (.authenticationFailure, .retryConnection), 0x06: (.keyMissing, .retryConnection),
      0x08: (.supervisionTimeout, .retryConnection), 0x13: (.remoteUserTerminated, .retryConnection),
      0x14: (.remoteLowResources, .retryConnection), 0x15: (.remotePowerOff, .retryConnection),
      0x16: (.localHostTerminated, .retryConnection), 0x22: (.linkLayerFault, .retryConnection),
      0x3B: (.connectionParameters, .retryConnection), 0x3D: (.micFailure, .retryConnection),
      0x3E: (.failedToEstablish, .retryConnection),
    ],
    .kernel: [
      0: (.unknown, .retryConnection), 1: (.supervisionTimeout, .retryConnection),
      2: (.localHostTerminated, .retryConnection), 3: (.remoteUserTerminated, .retryConnection),
      4: (.authenticationFailure, .retryConnection), 5: (.suspended, .waitForAdapter),
      // Out of range: two paths of the kernel pass the controller's number on.
      0x08: (.supervisionTimeout, .retryConnection), 0x13: (.remoteUserTerminated, .retryConnection),
      0x15: (.remotePowerOff, .retryConnection), 0x3E: (.failedToEstablish, .retryConnection),
    ],
    .dial: [
      0x02: (.failedToEstablish, .retryConnection), 0x08: (.supervisionTimeout, .retryConnection),
      0x3C: (.notFound, .retryConnection), 0x3E: (.failedToEstablish, .retryConnection),
    ],
  ]

  /// Numbers of which somebody says that the device has to be put into its pairing mode.
  private static let asksForPairing: Set<UInt8> = [0x17, 0x18, 0x29, 0x37, 0x38]

  @Test("B25: 0 to 255", arguments: Source.allCases, [true, false])
  func eachNumberHasAReasonAndIsSurvived(_ source: Source, _ isBonded: Bool) throws {
    for number in UInt8.min...UInt8.max {
      try Scene.play(VirtualPeripheral.twoValues()) { scene in
        if isBonded { scene.radio.bond(scene.device) }
        let info = try end(scene, source, number)
        #expect(info.evidence.contains(source.evidence(number)), "\(number)")
        let needsUser = Self.asksForPairing.contains(number)
        #expect(info.willReconnect == !needsUser, "\(number): \(info)")
        if let (reason, recovery) = Self.known[source]?[number] {
          #expect(info.reason == reason, "\(number)")
          #expect(info.recovery == recovery, "\(number)")
        }
        if info.reason == .authenticationFailure || info.reason == .keyMissing, !isBonded {
          #expect(info.confidence == .low, "\(number)")
        }
        if info.reason == .unknown { #expect(info.recovery == .retryConnection && info.confidence == .low) }
        if needsUser {
          #expect(scene.session.snapshot().userAction == .retryPairing, "\(number)")
          try scene.drive("acted") { await $0.pairingWasRemoved() }
        }
        scene.executor.advance(by: .seconds(30))
        #expect(scene.session.snapshot().isReady, "\(number)")
      }
    }
  }

  /// Ends a link, or an attempt, with this number.
  private func end(_ scene: Scene, _ source: Source, _ number: UInt8) throws -> DisconnectInfo {
    switch source {
    case .controller:
      try scene.connect()
      scene.radio.lose(scene.device, HCIErrorCode(rawValue: number))
    case .kernel:
      try scene.connect()
      scene.radio.lose(scene.device, exactly: LinkLoss(.unknown, evidence: [.management(number)]))
    case .dial:
      scene.radio.scriptDials([.fail(HCIErrorCode(rawValue: number), after: .seconds(1))], to: scene.device)
      _ = scene.spawn("connect") { try? await $0.connect(within: .never) }
    }
    #expect(scene.run { !(scene.recorder.disconnections + scene.recorder.failures).isEmpty }, "\(number)")
    return try #require((scene.recorder.disconnections + scene.recorder.failures).first)
  }

  @Test("B25: what speaks of keys, again and again", arguments: [UInt8(0x05), 0x06])
  func withABondTheSecondTimeIsForTheUser(_ number: UInt8) throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      scene.radio.bond(scene.device)
      try scene.connect()
      scene.radio.lose(scene.device, HCIErrorCode(rawValue: number))
      scene.executor.advance(by: .seconds(5))
      #expect(scene.session.snapshot().isReady)
      scene.radio.lose(scene.device, HCIErrorCode(rawValue: number))
      scene.executor.advance(by: .seconds(5))
      #expect(
        scene.recorder.disconnections.map(\.recovery) == [.retryConnection, .removePairingAndPairAgain])
      #expect(scene.session.snapshot().userAction == .removePairingAndPairAgain)
    }
  }

  @Test("B25: and without a bond", arguments: [UInt8(0x05), 0x06])
  func withoutABondItNeverIs(_ number: UInt8) throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      try scene.connect()
      for count in 1...6 {
        scene.radio.lose(scene.device, HCIErrorCode(rawValue: number))
        scene.executor.advance(by: .seconds(60))
        #expect(scene.session.snapshot().isReady)
        #expect(scene.recorder.disconnections.count == count)
      }
      #expect(
        scene.recorder.disconnections.allSatisfy { $0.recovery == .retryConnection && $0.confidence == .low })
    }
  }
}
