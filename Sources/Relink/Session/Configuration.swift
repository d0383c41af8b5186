public import RelinkCore

/// What an app decides about a session, once, when it makes it.
public struct Configuration: Sendable {
  /// Something that runs on each link before any journalled operation is offered: a login, an unlock, a clock.
  ///
  /// It gets the link it belongs to, and says whether the device has kept its state. Its requests are never journalled
  /// and never repeated by themselves. When it throws, or when the link is lost under it, the attempt has failed. It
  /// has ``ReconnectionPolicy/preparationLimit`` in all; its task is cancelled when the link is lost.
  public typealias Setup = @Sendable (LinkScope) async throws -> Continuity

  /// What runs on each link before it is ready.
  public var setup: Setup?

  /// When and how often the session tries again.
  public var reconnection: ReconnectionPolicy

  /// How long calls wait that do not say it themselves.
  public var deadlines: Deadlines

  /// The bounds of the operation journal.
  public var journal: JournalPolicy

  /// How long one dial listens for an absent device before it is renewed; nil leaves it to the transport.
  public var dialLimit: Duration?

  /// Decides the random part of delays; nil draws it from the system.
  public var seed: UInt64?

  /// Makes a configuration; everything has a default.
  public init(
    setup: Setup? = nil, reconnection: ReconnectionPolicy = .standard, deadlines: Deadlines = .standard,
    journal: JournalPolicy = .standard, dialLimit: Duration? = nil, seed: UInt64? = nil
  ) {
    self.setup = setup
    self.reconnection = reconnection
    self.deadlines = deadlines
    self.journal = journal
    self.dialLimit = dialLimit
    self.seed = seed
  }
}

/// What an app decides about one write.
public struct WriteOptions: Hashable, Sendable {
  /// When the call ends at the latest.
  public var deadline: Deadline

  /// Whether a value that does not fit into one PDU may go through the device's prepare queue, in several.
  ///
  /// Without it such a value is refused before anything is sent.
  public var allowsLong: Bool

  /// Makes options.
  public init(within deadline: Deadline = .default, allowsLong: Bool = false) {
    self.deadline = deadline
    self.allowsLong = allowsLong
  }
}
