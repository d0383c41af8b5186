import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// A row of the first table: what happened to a write while its process lived.
enum LinkCase: String, CaseIterable, CustomTestStringConvertible {
  case noLink = "no link came before its deadline"
  case cancelledBefore = "it was cancelled before a link took it"
  case disconnectedBefore = "`disconnect()` was called before a link took it"
  case linkCameLater = "a link came later than the call"
  case lostBeforeLeaving = "the link was lost before it had left"
  case lostBeforeApplied = "the link was lost before the device applied it"
  case lostAfterApplied = "the link was lost after the device applied it"
  case cannotTell = "the same, and neither a probe nor the app can tell"
  case noOtherLink = "the same, and no other link came before its deadline"
  case appliedAfterLoss = "the link was lost, and the device applied it only after that"
  case endedEachTime = "each time, the device ended the link and had not applied it"
  case cancelledBeforeApplied = "it was cancelled before the device applied it"
  case cancelledAfterApplied = "it was cancelled after the device applied it"
  case deadlineBeforeApplied = "its deadline passed before the device applied it"
  case deadlineAfterApplied = "its deadline passed after the device applied it"
  case disconnectedAfterApplied = "`disconnect()` was called after the device applied it"
  case provenRejection = "the device answered 0x03 and had not applied it"
  case unprovenRejection = "the device answered 0x0E and had not applied it"
  case rejectionAfterApplied = "the device answered 0x0E and had applied it"
  case withoutResponse = "without response: handed over and lost in the air"

  var testDescription: String { rawValue }

  /// The deadline of the write.
  private static let deadline = Deadline.seconds(5)

  /// How the device treats the first request for the write, where that is not what the specification asks.
  private var reaction: ServerReaction? {
    switch self {
    case .noLink, .cancelledBefore, .disconnectedBefore, .linkCameLater, .lostBeforeLeaving, .withoutResponse:
      nil
    case .lostBeforeApplied: .drop(.connectionTimeout)
    case .lostAfterApplied, .cannotTell, .noOtherLink: .applyAndDrop(.connectionTimeout)
    case .endedEachTime: .drop(.remoteUserTerminatedConnection)
    case .appliedAfterLoss, .deadlineBeforeApplied: .applyLate(.seconds(8))
    case .cancelledBeforeApplied: .swallow
    case .cancelledAfterApplied, .deadlineAfterApplied, .disconnectedAfterApplied: .applyAndSayNothing
    case .provenRejection: .refuse(.writeNotPermitted)
    case .unprovenRejection: .refuse(.unlikelyError)
    case .rejectionAfterApplied: .applyAndFail(.unlikelyError)
    }
  }

  private var beginsWithLink: Bool {
    switch self {
    case .noLink, .cancelledBefore, .disconnectedBefore, .linkCameLater: false
    default: true
    }
  }

  /// Plays it, and returns what the caller has been told.
  func play(_ tag: WriteTag) throws -> PlayedOutcome {
    let peripheral = VirtualPeripheral.twoValues()
    if let reaction {
      peripheral.react(to: .write(0x0010), with: reaction, times: self == .endedEachTime ? nil : 1)
    }
    var outcome: Outcome<[UInt8]>?
    try Scene.play(peripheral) { scene in
      if tag == .app, self != .noOtherLink {
        let seen = self == .cannotTell ? nil : peripheral
        _ = scene.spawn("app") { await $0.resolveAll(lookingAt: seen) }
      }
      if beginsWithLink { try scene.connect() }
      if !beginsWithLink || self == .noOtherLink { scene.radio.setAdvertising(false, of: scene.device) }
      if self == .lostBeforeLeaving { scene.radio.block(scene.device) }
      let write = self.write(tag, scene)
      scene.executor.advance(by: .seconds(1))
      try goOn(scene, write)
      scene.executor.advance(by: .seconds(60))
      outcome = write.outcome
    }
    return PlayedOutcome(try #require(outcome), applied: peripheral.wr(0x0010))
  }

  private func write(_ tag: WriteTag, _ scene: Scene) -> SpawnedTask<Void> {
    let idempotency = tag.idempotency(canTell: self != .cannotTell)
    let isCommand = self == .withoutResponse
    if isCommand {
      var faults = FaultPlan.none
      faults.strike(
        .loseLinkBefore(.connectionTimeout), of: .request, opcode: ATTOpcode.writeCommand.rawValue)
      scene.radio.setFaults(faults)
    }
    return scene.spawn("write") { session in
      let options = WriteOptions(within: Self.deadline)
      if isCommand {
        try await session.writeWithoutResponse(
          WriteTag.value, to: Scene.first, idempotency: idempotency, options: options)
      } else {
        try await session.write(WriteTag.value, to: Scene.first, idempotency: idempotency, options: options)
      }
    }
  }

  /// What happens a second after the call, beside what the device does by itself.
  private func goOn(_ scene: Scene, _ write: SpawnedTask<Void>) throws {
    switch self {
    case .linkCameLater: scene.radio.setAdvertising(true, of: scene.device)
    case .lostBeforeLeaving, .appliedAfterLoss: scene.radio.lose(scene.device, .connectionTimeout)
    case .cancelledBefore, .cancelledBeforeApplied, .cancelledAfterApplied: write.cancel()
    case .disconnectedBefore, .disconnectedAfterApplied:
      try scene.drive("disconnect") { await $0.disconnect() }
    case .noLink, .lostBeforeApplied, .lostAfterApplied, .cannotTell, .noOtherLink, .endedEachTime,
      .deadlineBeforeApplied, .deadlineAfterApplied, .provenRejection, .unprovenRejection,
      .rejectionAfterApplied, .withoutResponse:
      break
    }
  }
}
