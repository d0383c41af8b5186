internal import Relink

/// What was found of a bond with one device.
enum BondReading: Equatable, Sendable {
  /// There is one, which gives links this level; bluetoothd's where it is kept elsewhere.
  case kept(SecurityLevel, isElsewhere: Bool)
  case missing
  /// It cannot be seen from here.
  case unreadable
}

/// What people are told about security that cannot be had.
enum Words {
  static func noBond(_ device: String, _ level: SecurityLevel, _ facts: SecuringStateMachine.Facts) -> String
  {
    switch facts.bond {
    case .kept(let bondLevel, _):
      "the bond with \(device) makes links \(bondLevel), and \(level) is asked for: pair again, with a policy that pairs"
    case .missing where facts.isDaemonRunning:
      "bluetoothd, which runs here, keeps no bond with \(device): pair there (bluetoothctl pair ADDRESS)"
    case .missing:
      "no bond with \(device) is kept here: pair, with a policy that pairs"
    case .unreadable where facts.isDaemonRunning:
      "this process cannot see whether bluetoothd keeps a bond with \(device) (/var/lib/bluetooth is for root), and "
        + "asking for encryption might pair silently"
    case .unreadable:
      "this process cannot see whether there is a bond with \(device), and asking for encryption might pair silently: "
        + "give the transport a store of bonds"
    }
  }

  static func mayNotLoad(_ device: String) -> String {
    "this process may not hand the keys of the bond with \(device) to the kernel (it lacks CAP_NET_ADMIN), and without "
      + "them asking for encryption might pair silently"
  }

  static func daemonPairs(_ address: String) -> String {
    "bluetoothd answers pairings on this host: pair there (bluetoothctl pair \(address)), or stop it and power the "
      + "adapter on again"
  }

  static func abilitiesMissing(_ level: SecurityLevel) -> String {
    "a link that is \(level) needs a user who is shown or asked something while pairing, and the policy has none"
  }

  static let mayNotPair =
    "answering the questions of a pairing needs CAP_NET_ADMIN, which this process lacks"
  static let managementGone = "the kernel's management interface is gone"
}
