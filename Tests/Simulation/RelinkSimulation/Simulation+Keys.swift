internal import Relink
internal import RelinkTesting

// A device that is bonded, and what becomes of its keys.
extension Simulation {
  /// Bonds the device where the scenario says so.
  func secure() {
    guard let security = scenario.security else { return }
    radio.bond(device)
    radio.setEncryptionTime(security.encryptionTime, of: device)
  }

  /// How sessions secure their links.
  var security: SecurityPolicy {
    switch scenario.security?.policy {
    case .requireExistingBond: .requireExistingBond
    case .pairing: .pairing()
    case .asRequired, nil: .asRequired
    }
  }

  func changeKeys(_ change: Scenario.KeyChange) {
    switch change {
    case .deviceForgets: radio.forgetBond(atPeripheral: device)
    case .hostForgets: radio.forgetBond(atHost: device)
    case .wrongKey: radio.giveWrongKey(to: device)
    case .deviceRefusesToPair: radio.setPairing(.refuses, of: device)
    case .userActs: pairAgain()
    }
  }

  /// The user removes the pairing and makes a new one, and the app says so: by the session where that pairs.
  private func pairAgain() {
    let life = current
    if scenario.security?.policy != .pairing || life == nil { radio.bond(device) }
    radio.setPairing(.justWorks, of: device)
    guard let life else { return }
    executor.spawn("user") { [self] in
      if scenario.security?.policy == .pairing {
        do { try await life.session.removeBond() } catch { note("the bond was not removed: \(error)") }
      }
      await life.session.pairingWasRemoved()
    }
  }

  /// Both sides have the same key, and every session knows that the user has acted.
  func healKeys() {
    guard scenario.security != nil else { return }
    radio.bond(device)
    radio.setPairing(.justWorks, of: device)
    guard let life = current else { return }
    executor.spawn("user") { await life.session.pairingWasRemoved() }
  }
}
