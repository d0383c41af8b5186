public import RelinkCore

/// One link to one device, from up to gone, as a session uses it: it speaks GATT requests.
///
/// Everything is called on the executor, and nothing waits. What follows from a call is posted to the handler that is
/// registered for the device; the last of it, once, is `closed`.
public protocol Link: AnyObject, Sendable {
  /// The name of the link.
  var id: LinkID { get }

  /// What the link does by itself, and how much it takes at once.
  var capabilities: LinkCapabilities { get }

  /// How many requests the device has been asked over this link so far: its round trips.
  var roundTrips: Int { get }

  /// Hands a request over.
  ///
  /// After `accepted`, exactly one of an answer and an end of the link follows. A link that cannot be sure that nothing
  /// left for the device says `accepted`.
  func perform(_ request: GATTRequest, id: RequestID) -> LinkAcceptance

  /// Nobody waits for the request any more.
  ///
  /// It keeps its place: the answer still comes, or the link ends.
  ///
  /// A long or reliable write that was not executed yet is called off at the device, and then answered as refused.
  /// - Returns: whether it is certain that the request takes no effect.
  @discardableResult
  func abandon(_ id: RequestID) -> Bool

  /// Ends the link from here. `closed` follows once it is seen gone, which may take seconds; nothing else does.
  func close()
}

/// What a link does by itself, and how much it takes at once.
public struct LinkCapabilities: Hashable, Sendable {
  /// How many requests may be outstanding together; 1 for an ATT bearer.
  public var maximumOutstanding: Int
  /// Whether the session has to ask for the ATT_MTU; otherwise `mtu` is what the platform agreed.
  public var needsMTUExchange: Bool
  /// The ATT_MTU at the moment, in bytes.
  public var mtu: Int
  /// Whether the session has to write Client Characteristic Configuration descriptors on each link.
  public var needsSubscriptionRestore: Bool
  /// How far the link is secured at the moment, and never more than is known; it may rise while the link is up.
  public var security: SecurityLevel

  /// Describes a link.
  public init(
    maximumOutstanding: Int = 1, needsMTUExchange: Bool = true, mtu: Int = 23,
    needsSubscriptionRestore: Bool = true, security: SecurityLevel = .none
  ) {
    self.maximumOutstanding = maximumOutstanding
    self.needsMTUExchange = needsMTUExchange
    self.mtu = mtu
    self.needsSubscriptionRestore = needsSubscriptionRestore
    self.security = security
  }
}

/// Whether a link took a request.
@nonexhaustive
public enum LinkAcceptance: Hashable, Sendable {
  /// It may be on its way: offered.
  case accepted
  /// Not now: nothing left. `linkWritable` or the next answer says when to ask again.
  case later
  /// Nothing left, for this reason.
  case refused(GATTRefusal)
}
