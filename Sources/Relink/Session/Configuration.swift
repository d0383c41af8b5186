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

  /// How far links are secured, and whether that may pair.
  public var security: SecurityPolicy

  /// Asks the user while a device is being paired, and shows what the user has to type on the device.
  ///
  /// It runs in a task that is cancelled when the link is lost or the policy's ``SecurityPolicy/limit`` has passed; an
  /// answer that comes later changes nothing. Nil accepts a pairing that has nothing to ask ("just works"), where the
  /// policy pairs at all, and refuses every other.
  public var pairing: (@Sendable (PairingQuestion) async -> PairingAnswer)?

  /// What codes mean, where a device or a controller uses them in a way of its own.
  public var diagnosis: DiagnosisTable

  /// Decides whether a device that was seen under another name is the session's own: after a firmware update into a
  /// bootloader, for instance, or by its identity address.
  ///
  /// It runs on the session's executor and must return at once. With true, later attempts dial the new name, and a dial
  /// under way begins anew; the link in use stays. Nil, or false: the session stays with the name it has, and says so
  /// with ``ConnectionEvent/seen(as:isFollowed:_:)``. At most eight names are followed.
  public var identity: (@Sendable (DeviceID, [Evidence]) -> Bool)?

  /// How long calls wait that do not say it themselves.
  public var deadlines: Deadlines

  /// The bounds of the operation journal.
  public var journal: JournalPolicy

  /// Where durable operations are recorded; nil where there are none.
  public var store: (any JournalStore)?

  /// Who uses the device: a name for people, in the store and in the audit log.
  public var owner: String

  /// The number of the claim on the device's durable journal, where several hosts share a store and somebody decides
  /// between them; nil lets the store count.
  public var epoch: UInt64?

  /// Where every transition of the journal is put down.
  public var audit: (any AuditSink)?

  /// Probes that durable operations refer to by name.
  public var probes: [String: Probe.Look]

  /// How long one dial listens for an absent device before it is renewed; nil leaves it to the transport.
  public var dialLimit: Duration?

  /// Decides the random part of delays; nil draws it from the system.
  public var seed: UInt64?

  /// Makes a configuration; everything has a default.
  public init(
    setup: Setup? = nil, reconnection: ReconnectionPolicy = .standard,
    security: SecurityPolicy = .asRequired,
    pairing: (@Sendable (PairingQuestion) async -> PairingAnswer)? = nil,
    diagnosis: DiagnosisTable = .standard, identity: (@Sendable (DeviceID, [Evidence]) -> Bool)? = nil,
    deadlines: Deadlines = .standard,
    journal: JournalPolicy = .standard, store: (any JournalStore)? = nil, owner: String = "",
    epoch: UInt64? = nil, audit: (any AuditSink)? = nil, probes: [String: Probe.Look] = [:],
    dialLimit: Duration? = nil, seed: UInt64? = nil
  ) {
    self.setup = setup
    self.reconnection = reconnection
    self.security = security
    self.pairing = pairing
    self.diagnosis = diagnosis
    self.identity = identity
    self.deadlines = deadlines
    self.journal = journal
    self.store = store
    self.owner = owner
    self.epoch = epoch
    self.audit = audit
    self.probes = probes
    self.dialLimit = dialLimit
    self.seed = seed
  }
}
