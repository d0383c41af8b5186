/// How far a session secures its links, and whether it may pair for that.
///
/// A link is secured with the keys of a bond, or by pairing, which makes them. Nothing pairs unless the policy says so,
/// not even where the user would not be asked ("just works").
public struct SecurityPolicy: Hashable, Sendable {
  /// What a link must offer before the session is ready; with ``SecurityLevel/none``, whatever the device asks for in
  /// its answers (ATT errors 0x05 and 0x0F) and operations ask for in their options.
  public var level: SecurityLevel

  /// Where the keys may come from.
  public var keys: KeySource

  /// How long one try to secure a link may take, the user's answers included.
  ///
  /// Pairing itself ends after 30 s without a word of the device (Core Specification Vol 3 Part H 3.4).
  public var limit: Duration

  /// Makes a policy.
  public init(level: SecurityLevel = .none, keys: KeySource = .bond, limit: Duration = .seconds(40)) {
    self.level = level
    self.keys = keys
    self.limit = limit
  }

  /// Secures a link when the device asks for it, with the bond that there is; never pairs.
  public static let asRequired = SecurityPolicy()

  /// Secures each link with the bond that there is, before anything else is asked of the device; never pairs.
  ///
  /// Where no bond is known here, the attempt fails with ``DisconnectReason/bondMissing``, and the session waits for the
  /// user.
  public static let requireExistingBond = SecurityPolicy(level: .encrypted)

  /// Secures each link, and pairs where there is no bond.
  ///
  /// - Parameters:
  ///   - level: What a link must offer at least.
  ///   - abilities: What the user can be shown and asked; it decides the method of pairing.
  /// - Returns: The policy, with the usual limit.
  public static func pairing(
    to level: SecurityLevel = .encrypted, with abilities: PairingAbilities = .none
  ) -> SecurityPolicy {
    SecurityPolicy(level: level, keys: .bondOrPairing(abilities))
  }

  /// Where the keys of a link may come from.
  @nonexhaustive
  public enum KeySource: Hashable, Sendable {
    /// From a bond that exists; nothing pairs.
    case bond
    /// From a bond, or from pairing where there is none.
    case bondOrPairing(PairingAbilities)
  }
}

/// What the user of this host can be shown and asked while pairing: the IO capability.
///
/// The raw values are those of the Core Specification (Vol 3 Part H 2.3.2).
@nonexhaustive
public enum PairingAbilities: UInt8, Hashable, Sendable {
  /// Six digits can be shown.
  case display = 0x00
  /// Six digits can be shown, and yes or no be answered.
  case displayYesNo = 0x01
  /// Six digits can be typed.
  case keyboard = 0x02
  /// Nothing: pairing "just works" and protects against no one in the middle.
  case none = 0x03
  /// Six digits can be shown and typed.
  case keyboardDisplay = 0x04
}

/// What has to be asked, or shown to, the user while a device is being paired.
@nonexhaustive
public enum PairingQuestion: Hashable, Sendable {
  /// May the device be paired? Nothing can be compared.
  case consent
  /// Does the device show the same six digits (0 to 999,999)?
  case comparison(UInt32)
  /// Which six digits does the device show? The answer is a ``PairingAnswer/passkey(_:)``.
  case passkeyEntry
  /// These six digits (0 to 999,999) are to be typed on the device; any answer but a refusal means that they are shown.
  case passkeyDisplay(UInt32)
}

/// The user's answer.
@nonexhaustive
public enum PairingAnswer: Hashable, Sendable {
  /// Yes.
  case accept
  /// The six digits that the device shows, 0 to 999,999.
  case passkey(UInt32)
  /// No; pairing fails.
  case refuse
}

/// What is known of a bond between this host and a device; never its keys.
public struct BondRecord: Hashable, Sendable {
  /// The device, by its identity address.
  public var device: DeviceID
  /// Which of the bonds that the device ever had here: a new pairing gets a new number.
  public var id: UInt64
  /// The level that a link secured with it has.
  public var level: SecurityLevel
  /// The size of the key in bytes, 7 to 16.
  public var keySize: Int

  /// Describes a bond.
  public init(device: DeviceID, id: UInt64, level: SecurityLevel, keySize: Int) {
    self.device = device
    self.id = id
    self.level = level
    self.keySize = keySize
  }
}

/// What a host can say about its bond with a device.
@nonexhaustive
public enum BondKnowledge: Hashable, Sendable {
  /// There is one.
  case bonded(BondRecord)
  /// There is one, and nothing more is known of it.
  case bondedElsewhere
  /// There is none.
  case none
  /// It cannot be told from here.
  case unknown
}
