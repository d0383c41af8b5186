public import RelinkCore

/// A way to devices: the Bluetooth adapters of a host, a socket path, a simulated radio.
///
/// Nothing in it waits: what takes time is answered later by a call of the handler, which is **always posted**, never
/// made inside the call that caused it. Except where a member says otherwise it is used on the executor.
public protocol Transport: AnyObject, Sendable {
  /// Where everything of this transport, and each session over it, runs. May be read on any thread.
  var executor: any SessionExecutor { get }

  /// What the transport can prove and do. May be read on any thread.
  var capabilities: TransportCapabilities { get }

  /// The state of the adapter that would serve the device.
  func adapterState(for device: DeviceID) -> AdapterState

  /// The devices to which the host has links now, whoever brought them up.
  func existingLinks() -> [DeviceID]

  /// Makes `handler` the receiver of everything about `device`; held weakly. May be called on any thread.
  ///
  /// There is one per device and process: transports that share a kernel or another world share their registrations. A
  /// simulated radio is a world of its own, and its devices are none of another radio's. A handler that is gone without
  /// having been unregistered is in nobody's way.
  /// - Throws: `sessionExists` while another handler is registered for the device.
  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError)

  /// Takes the registration back. May be called on any thread.
  func unregister(_ device: DeviceID)

  /// Begins to bring a link to the device up, and keeps trying until it is up, has failed or is cancelled.
  ///
  /// Exactly one of `linkUp` and `attemptFailed` follows on the registered handler. A transport that finds a link it
  /// cannot trust (left by another socket, closed here a moment ago) waits until that is gone.
  func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt
}

/// One dial under way.
public protocol Attempt: AnyObject, Sendable {
  /// Gives up: `attemptFailed` with `requested` follows, once, and the session sees nothing more of the attempt.
  ///
  /// Nothing is left behind, except where a system cannot take a connect back safely. Linux is such a one: the pending
  /// connect stays in the kernel for at most about a minute. A device that appears in that time is connected and let go
  /// at once; the next dial of the device takes the connect over.
  ///
  /// When the link came up at the same moment, `linkUp` was posted before and the dial is no longer there to cancel;
  /// the session closes such a link. To be called on the executor, once.
  func cancel()
}

/// What a session asks of a dial.
public struct DialOptions: Hashable, Sendable {
  /// How long the device may be absent before the dial ends with `notFound`; nil leaves it to the transport.
  public var limit: Duration?

  /// Makes options.
  public init(limit: Duration? = nil) {
    self.limit = limit
  }
}

/// What a transport can prove and do.
public struct TransportCapabilities: Hashable, Sendable {
  /// Whether it learns the exact HCI reason of a loss.
  public var knowsExactReason: Bool
  /// Whether it can end a link at once, so that a closed link does not linger.
  public var endsLinks: Bool

  /// Describes what a transport can do.
  public init(knowsExactReason: Bool = false, endsLinks: Bool = false) {
    self.knowsExactReason = knowsExactReason
    self.endsLinks = endsLinks
  }
}

/// What receives everything that a transport and its links have to say about one device: a session.
///
/// Every call is made on the transport's executor, and never inside a call that the session makes.
public protocol LinkHandler: AnyObject, Sendable {
  /// A link is up, by the dial of this ID or, with nil, without one.
  func linkUp(_ link: any Link, attempt: AttemptID?)

  /// The dial has ended without a link.
  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss)

  /// The adapter that serves the device has changed its state.
  func adapterChanged(_ state: AdapterState)

  /// A request that was accepted has its answer. `late` answers to abandoned requests are delivered too.
  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>)

  /// The device notified or indicated a value.
  func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp)

  /// The device said that its attribute table changed; the link learns it anew with the next `discover`.
  func linkTableChanged(_ link: LinkID)

  /// A link that said `later` may be asked again.
  func linkWritable(_ link: LinkID)

  /// The device refused a request for want of security; the link keeps it until `secure(to:keys:)` has ended or
  /// `declineSecurity()`.
  func link(_ link: LinkID, needs level: SecurityLevel)

  /// The link is secured as asked, to this level.
  func link(_ link: LinkID, secured level: SecurityLevel)

  /// The link could not be secured: why. It may end right after.
  func link(_ link: LinkID, notSecured loss: LinkLoss)

  /// Pairing has to know something from the user, or to show something.
  func link(_ link: LinkID, asks question: PairingQuestion, _ responder: PairingResponder)

  /// The device was seen under another name than the one it is registered with; it is not dialled there by itself.
  func deviceSeen(as other: DeviceID, _ evidence: [Evidence])

  /// The last word of a link, once: it is gone, and nothing sent on it can take effect any more.
  ///
  /// `inDoubt` has the accepted requests that may have reached the device and were not answered. Accepted requests that
  /// are in neither are proven not to have been carried out.
  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID])
}
