public import Relink

extension VirtualRadio {
  /// What a virtual radio is like.
  public struct Configuration: Hashable, Sendable {
    /// How the peripherals know this central.
    public var clientName = "central"
    /// How long a PDU takes, either way.
    public var latency: Duration = .zero
    /// Deliveries happen only at multiples of this span since the link came up, and never at once; nil for no such rule.
    public var connectionInterval: Duration?
    /// How long a link takes to come up behind the advertisement that the dial catches.
    public var connectLatency: Duration = .zero
    /// How long a dial waits for an absent device if it says nothing; 40 s, as a Linux socket does.
    public var dialLimit: Duration = .seconds(40)
    /// How long an ACL link outlives the channel that was closed here; 2 s, as on Linux (`HCI_DISCONN_TIMEOUT`).
    public var lingerAfterClose: Duration = .seconds(2)
    /// Whether closing a channel ends the ACL link at once instead.
    public var endsLinks = false
    /// Whether a dial that finds an ACL link waits until that is gone, and ends it for that, as a transport must;
    /// otherwise it gets the old link, as a socket on Linux does.
    public var waitsForOldLinks = false
    /// Whether losses carry the controller's reason; otherwise they carry what the error number of a socket tells.
    public var knowsExactReason = true
    /// How long a link to a device out of range seems alive.
    public var supervisionTimeout: Duration = .zero
    /// The longest PDU that links carry, in bytes.
    public var maximumPDULength = 517
    /// How far links are secured from their start, without keys, to devices of which
    /// ``VirtualRadio/setSecurity(of:to:)`` says nothing.
    public var security = SecurityLevel.none
    /// How long it takes to encrypt a link, with the keys of a bond or behind the last answer of a pairing.
    public var encryptionTime: Duration = .zero
    /// How many dials may be under way; one more finds the radio busy.
    ///
    /// Nil for no limit.
    public var dialsAtOnce: Int?
    /// How many lines of ``VirtualRadio/trace`` are kept, the newest; 0 writes none.
    public var traceLimit = 0

    /// Makes a radio that takes no time and keeps no trace.
    public init() {}
  }

  /// What a radio counted about one device.
  public struct Statistics: Hashable, Sendable {
    /// Dials that were asked for.
    public var dials = 0
    /// Dials that were called off.
    public var cancels = 0
    /// Dials that were asked for while another one to the device was under way; there should be none.
    public var overlappingDials = 0
    /// Dials that ended without a link, called off or not.
    public var failedDials = 0
    /// ACL links that came up.
    public var links = 0
    /// Dials that got an old ACL link instead of a new one; a session that waits for `closed` causes none.
    public var adoptions = 0
    /// Channels that were closed from here.
    public var closes = 0
    /// Links that were to be secured before anything was received on them, which crashes Linux 6.1.192; there should be
    /// none.
    public var earlySecuring = 0

    /// Starts at zero.
    public init() {}
  }
}
