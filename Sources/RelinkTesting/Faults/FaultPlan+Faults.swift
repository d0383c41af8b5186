public import BluetoothWire

extension FaultPlan {
  /// What a PDU is, seen from the client.
  public enum Traffic: String, Hashable, Sendable, CaseIterable {
    /// Towards the device: requests, commands and confirmations.
    case request
    /// From the device, the end of a request: responses and errors.
    case answer
    /// From the device, unasked: notifications, indications and everything else.
    case value

    /// Sorts a PDU by its first octet.
    ///
    /// - Parameters:
    ///   - pdu: The bytes.
    ///   - towardsPeer: Whether it goes to the device.
    public init(of pdu: [UInt8], towardsPeer: Bool) {
      if towardsPeer {
        self = .request
      } else if let first = pdu.first, ATTOpcode(rawValue: first).kind == .response {
        self = .answer
      } else {
        self = .value
      }
    }
  }

  /// What happens to a PDU at the moment at which it would arrive.
  @nonexhaustive
  public enum PDUFault: Hashable, Sendable {
    /// It arrives.
    case none
    /// The link is lost, for this reason, and the PDU with it: a request is not carried out, an answer is not read.
    case loseLinkBefore(HCIErrorCode)
    /// It arrives, and then the link is lost for this reason: a request is carried out and its answer is not read.
    case loseLinkAfter(HCIErrorCode)
    /// It vanishes, and the link stays up: no answer ever comes.
    case vanish
    /// It arrives so much later, and what is behind it too.
    case late(Duration)
    /// It arrives twice, the copy right behind the first, with nothing between them.
    case twice
    /// The adapter is switched off for so long before it arrives.
    case adapterOff(Duration)
    /// The device is out of range for so long before it arrives.
    case absence(Duration)
  }

  /// What becomes of a PDU that the client hands over.
  @nonexhaustive
  public enum SendFault: Hashable, Sendable {
    /// It is taken.
    case none
    /// The channel is full for so long.
    case later(Duration)
    /// The system refuses it with this error number.
    case failed(Int32)
  }

  /// A rate for each fault of one kind of traffic: the share of PDUs that it strikes, from 0 to 1.
  public struct PDURates: Hashable, Sendable {
    /// Links lost before delivery.
    public var loseLinkBefore: Double
    /// Links lost after delivery.
    public var loseLinkAfter: Double
    /// PDUs that vanish while the link stays up.
    public var vanish: Double
    /// PDUs that are late.
    public var late: Double
    /// PDUs that arrive twice.
    public var twice: Double

    /// Makes rates; what is not given does not happen.
    ///
    /// - Parameters:
    ///   - loseLinkBefore: Links lost before delivery.
    ///   - loseLinkAfter: Links lost after delivery.
    ///   - vanish: PDUs that vanish while the link stays up.
    ///   - late: PDUs that are late.
    ///   - twice: PDUs that arrive twice. A request that arrives twice is carried out twice, and a value that arrives
    ///     twice is two values: only for answers can a client tell.
    public init(
      loseLinkBefore: Double = 0, loseLinkAfter: Double = 0, vanish: Double = 0, late: Double = 0,
      twice: Double = 0
    ) {
      self.loseLinkBefore = loseLinkBefore
      self.loseLinkAfter = loseLinkAfter
      self.vanish = vanish
      self.late = late
      self.twice = twice
    }
  }

  /// A rate for each fault of dials: the share of dials that it strikes, from 0 to 1.
  public struct DialRates: Hashable, Sendable {
    /// Dials that fail as a lost link does.
    public var fail: Double
    /// Dials that never end by themselves.
    public var hang: Double
    /// Links that come up and die with 0x3E.
    public var failToEstablish: Double
    /// Dials that are refused.
    public var refuse: Double
    /// Dials that find the radio busy.
    public var busy: Double

    /// Makes rates; what is not given does not happen.
    ///
    /// - Parameters:
    ///   - fail: Dials that fail as a lost link does.
    ///   - hang: Dials that never end by themselves.
    ///   - failToEstablish: Links that come up and die with 0x3E.
    ///   - refuse: Dials that are refused.
    ///   - busy: Dials that find the radio busy.
    public init(
      fail: Double = 0, hang: Double = 0, failToEstablish: Double = 0, refuse: Double = 0, busy: Double = 0
    ) {
      self.fail = fail
      self.hang = hang
      self.failToEstablish = failToEstablish
      self.refuse = refuse
      self.busy = busy
    }
  }

  /// How often each fault strikes, and how.
  public struct Rates: Hashable, Sendable {
    /// Faults of what goes to the device.
    public var requests = PDURates()
    /// Faults of answers.
    public var answers = PDURates()
    /// Faults of notifications, indications and the rest.
    public var values = PDURates()
    /// Faults of dials.
    public var dials = DialRates()
    /// Sends that find the channel full, from 0 to 1.
    public var sendLater = 0.0
    /// Sends that the system refuses, from 0 to 1.
    public var sendFailed = 0.0
    /// Deliveries before which the adapter is switched off for a while, from 0 to 1.
    public var adapterOff = 0.0
    /// Deliveries before which the device is out of range for a while, from 0 to 1.
    public var absence = 0.0
    /// The reasons that lost links are given, each as likely as the others.
    public var reasons: [HCIErrorCode] = [0x08, 0x13, 0x15, 0x22, 0x3D, 0x3E].map(
      HCIErrorCode.init(rawValue:))
    /// How late a late PDU is.
    public var lateness: ClosedRange<Duration> = .milliseconds(1)...(.seconds(2))
    /// How long the adapter is off, the device out of range, the channel full.
    public var outage: ClosedRange<Duration> = .milliseconds(1)...(.seconds(20))
    /// How long a dial takes to fail.
    public var dialDelay: ClosedRange<Duration> = .zero...(.seconds(5))

    /// Makes rates with which nothing goes wrong; set what shall.
    public init() {}

    /// Rates with which everything that a client must stand goes wrong now and then.
    ///
    /// - Parameter share: The rate of each fault, from 0 to 1. Nothing arrives twice but answers.
    /// - Returns: The rates.
    public static func mixed(_ share: Double) -> Rates {
      var rates = Rates()
      rates.requests = PDURates(loseLinkBefore: share, loseLinkAfter: share, late: share)
      rates.answers = PDURates(
        loseLinkBefore: share, loseLinkAfter: share, vanish: share / 4, late: share, twice: share)
      rates.values = PDURates(loseLinkBefore: share, loseLinkAfter: share, vanish: share, late: share)
      rates.dials = DialRates(
        fail: share * 2, hang: share, failToEstablish: share * 2, refuse: share, busy: share)
      rates.sendLater = share
      rates.sendFailed = share
      rates.adapterOff = share / 4
      rates.absence = share / 4
      return rates
    }
  }
}
