import BluetoothWire
import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

/// Losses of links that were being encrypted.
struct SecuringLossTests {
  private static func loss(_ reason: DisconnectReason, _ evidence: Evidence...) -> LinkLoss {
    LinkLoss(reason, evidence: evidence)
  }

  @Test func anEndFromHereIsTheEncryptionThatFailed() {
    let loss = Self.loss(.localHostTerminated, .system(ECONNABORTED, call: .receive), .management(4))
    #expect(loss.whileEncrypting.reason == .authenticationFailure)
    #expect(Array(loss.whileEncrypting.evidence.prefix(2)) == loss.evidence)
    #expect(loss.whileEncrypting.evidence.count == 3)
  }

  @Test func anEndWithoutANumberIsAKeyThatDoesNotFit() {
    let loss = Self.loss(.unknown, .system(ENOSYS, call: .receive), .management(0))
    #expect(loss.whileEncrypting.reason == .micFailure)
  }

  @Test func whatTheControllerSaysStands() {
    for evidence in [Evidence.encryption(.pinOrKeyMissing), .hci(.connectionTimeout)] {
      let loss = Self.loss(.unknown, evidence, .system(ECONNABORTED, call: .receive))
      #expect(loss.whileEncrypting == loss)
    }
    let local = Self.loss(
      .unknown, .hci(.connectionTerminatedByLocalHost), .system(ECONNABORTED, call: .receive))
    #expect(local.whileEncrypting.reason == .authenticationFailure)
  }

  @Test func whatSaysNothingOfKeysStands() {
    let losses = [
      Self.loss(.supervisionTimeout, .system(ETIMEDOUT, call: .receive)),
      Self.loss(.remoteUserTerminated, .system(ECONNRESET, call: .receive)),
      Self.loss(.adapterOff, .system(ECONNABORTED, call: .receive)), Self.loss(.requested),
    ]
    for loss in losses { #expect(loss.whileEncrypting == loss) }
  }
}
