/// How far a link or an attempt had come when it ended.
@nonexhaustive
public enum LinkMoment: String, Hashable, Sendable, CaseIterable {
  /// There was no link yet.
  case dialling
  /// A link was up and not ready.
  case preparing
  /// The session was ready.
  case ready
}

/// What a session remembers of its links that decides what a code means.
public struct DiagnosisHistory: Hashable, Sendable {
  /// What this host knows of a bond with the device.
  public var bond: BondKnowledge
  /// The session was ready at least once.
  public var wasEverReady: Bool
  /// The link was asked to be encrypted, or was encrypted.
  public var wasEncryptionAsked: Bool
  /// For how long the link has been encrypted; nil where it never was.
  public var encryptedFor: Duration?
  /// How many links in a row, before this one, ended in a way that speaks against the keys.
  public var keyFailures: Int
  /// How many links in a row, before this one, the device closed straight after something that needs the bond.
  public var protectedCloses: Int
  /// For how long an operation that needs the bond, or encryption itself, has waited for its first answer; nil where
  /// none does.
  public var protectedFor: Duration?
  /// How many dials in a row, before this one, found the radio busy.
  public var busyDials: Int
  /// Why the app said that the device would go; nil where it did not, or too long ago.
  public var expectation: String?

  /// A session that knows nothing yet.
  public init(
    bond: BondKnowledge = .unknown, wasEverReady: Bool = false, wasEncryptionAsked: Bool = false,
    encryptedFor: Duration? = nil, keyFailures: Int = 0, protectedCloses: Int = 0,
    protectedFor: Duration? = nil, busyDials: Int = 0, expectation: String? = nil
  ) {
    self.bond = bond
    self.wasEverReady = wasEverReady
    self.wasEncryptionAsked = wasEncryptionAsked
    self.encryptedFor = encryptedFor
    self.keyFailures = keyFailures
    self.protectedCloses = protectedCloses
    self.protectedFor = protectedFor
    self.busyDials = busyDials
    self.expectation = expectation
  }

  /// Whether the device has a bond here, as far as anybody knows.
  public var isBonded: Bool {
    switch bond {
    case .bonded, .bondedElsewhere: true
    case .none, .unknown: false
    }
  }
}
