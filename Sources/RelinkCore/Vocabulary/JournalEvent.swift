/// An operation as the journal shows it to people and programs that look at it from outside.
public struct JournaledOperation: Hashable, Sendable {
  /// How far an operation has come.
  @nonexhaustive
  public enum State: String, Hashable, Sendable {
    /// Its record is being committed.
    case recording
    /// It waits for a link and for its turn.
    case queued
    /// It was handed over; the answer is awaited.
    case offered
    /// It was handed over on a link that is lost, and waits for the next one to be looked at or offered again.
    case inDoubt
    /// The probe is looking at the device.
    case probing
    /// The app is to find out what became of it, and to resolve it.
    case unresolved
    /// It has its outcome, which is being committed.
    case settling
    /// It has its outcome.
    case settled
  }

  /// One time that an operation was handed over.
  public struct Offer: Hashable, Sendable {
    /// The link, in the numbering of the process that made the offer.
    public var generation: Generation
    /// When.
    public var at: Timestamp
    /// Until when it could still take effect: set once its link is known to be gone, or is ended from here.
    public var lastPossibleEffect: MonotonicInstant?
    /// What its link was lost to, once it is.
    public var lostTo: DisconnectReason?
    /// What speaks for that reason: codes and observations, each with its source; empty for an earlier process's link.
    public var evidence: [Evidence]

    /// Describes an offer.
    public init(
      generation: Generation, at: Timestamp, lastPossibleEffect: MonotonicInstant? = nil,
      lostTo: DisconnectReason? = nil, evidence: [Evidence] = []
    ) {
      self.generation = generation
      self.at = at
      self.lastPossibleEffect = lastPossibleEffect
      self.lostTo = lostTo
      self.evidence = evidence
    }
  }

  /// Its name.
  public var id: OperationID
  /// What is asked of the device; without its bytes where they are sensitive.
  public var request: GATTRequest
  /// Whether it may be repeated.
  public var idempotency: Idempotency
  /// How far it has come.
  public var state: State
  /// How often it was handed over; more than once, the latest was a repetition.
  public var offers: Int
  /// The latest offer that may have reached the device.
  public var lastOffer: Offer?
  /// When the caller's wait ends; nil for never.
  public var deadline: MonotonicInstant?
  /// When it stops being offered, in nanoseconds since 1970 on the system clock; nil for never.
  public var offerBefore: Int64?
  /// What it keeps its order in, beside its attribute.
  public var lane: Lane?
  /// Which goes first.
  public var priority: OperationPriority
  /// What it makes superfluous.
  public var supersedes: SupersedingKey?
  /// Where it is recorded.
  public var durability: Durability
  /// Whether its bytes are shown to nobody.
  public var isSensitive: Bool
  /// Whether it comes from an earlier process.
  public var isRecovered: Bool

  /// Describes an operation.
  public init(
    id: OperationID, request: GATTRequest, idempotency: Idempotency, state: State, offers: Int = 0,
    lastOffer: Offer? = nil, deadline: MonotonicInstant? = nil, offerBefore: Int64? = nil, lane: Lane? = nil,
    priority: OperationPriority = .normal, supersedes: SupersedingKey? = nil,
    durability: Durability = .inMemory,
    isSensitive: Bool = false, isRecovered: Bool = false
  ) {
    self.id = id
    self.request = request
    self.idempotency = idempotency
    self.state = state
    self.offers = offers
    self.lastOffer = lastOffer
    self.deadline = deadline
    self.offerBefore = offerBefore
    self.lane = lane
    self.priority = priority
    self.supersedes = supersedes
    self.durability = durability
    self.isSensitive = isSensitive
    self.isRecovered = isRecovered
  }
}

/// One transition of one operation in the journal.
public struct JournalEvent: Hashable, Sendable {
  /// What happened.
  @nonexhaustive
  public enum Change: Hashable, Sendable {
    /// The call was recorded; for a durable operation: the record is committed.
    case recorded
    /// It was found in the store: an earlier process left it.
    case recovered
    /// One more caller waits for it, under its ID.
    case joined
    /// The mark that it is about to be offered is committed.
    case marked
    /// It was handed over on this link, for the nth time. More than the first is a repetition.
    case offered(Generation, number: Int)
    /// The link took nothing, or called the request off before it could take effect: the offer did not take place.
    case notTaken
    /// A younger operation with its superseding key is there, while this one is being recorded, out or in doubt: it is not
    /// offered again.
    case superseded(by: OperationID)
    /// Its link was lost before an answer.
    case inDoubt(DisconnectReason)
    /// The probe begins to look at the device, on this link.
    case probing(Generation)
    /// The probe or somebody else has said what became of it. `by` is `probe`, or who resolved it.
    case judged(Verdict, by: String)
    /// It has its one final outcome.
    case settled(Outcome<Confirmation>)
    /// The outcome was told to a caller, or to the stream of recovered operations.
    case delivered
    /// The store refused a record, and is asked again; nothing durable is offered meanwhile.
    case storeFailed(JournalStoreError)
  }

  /// What happened.
  public var change: Change
  /// The operation after it.
  public var operation: JournaledOperation
  /// When.
  public var at: Timestamp

  /// Describes a transition.
  public init(_ change: Change, of operation: JournaledOperation, at: Timestamp) {
    self.change = change
    self.operation = operation
    self.at = at
  }
}

/// An element of the stream of a journal's transitions.
@nonexhaustive
public enum JournalUpdate: Hashable, Sendable {
  /// A transition.
  case event(JournalEvent)
  /// The subscriber fell behind and lost so many transitions.
  case missed(Int)
}
