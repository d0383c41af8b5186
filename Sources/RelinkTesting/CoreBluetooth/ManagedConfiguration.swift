/// How the platform behind a ``ManagedRadio`` behaves.
public struct ManagedConfiguration: Hashable, Sendable {
  /// The ATT_MTU that the platform agrees on by itself, in bytes, at least 23.
  public var mtu: Int
  /// How many requests it takes at once.
  public var maximumOutstanding: Int
  /// Whether it writes the Client Characteristic Configurations again on each link by itself.
  public var restoresSubscriptions: Bool
  /// How many writes without response it buffers; the next one is answered with `later`.
  public var commandBuffer: Int
  /// How long a PDU takes, each way.
  public var latency: Duration
  /// How long it takes to connect to a device that is reachable.
  public var connectDelay: Duration
  /// How long after it was asked for the end of a link is confirmed.
  public var closingDelay: Duration
  /// How long it takes to encrypt a link, or to pair.
  public var encryptionTime: Duration
  /// The name by which peripherals know this central.
  public var client: String

  /// Describes a platform; the defaults are near to what telephones show.
  public init(
    mtu: Int = 185, maximumOutstanding: Int = 8, restoresSubscriptions: Bool = false, commandBuffer: Int = 4,
    latency: Duration = .milliseconds(15), connectDelay: Duration = .milliseconds(50),
    closingDelay: Duration = .milliseconds(120), encryptionTime: Duration = .milliseconds(60),
    client: String = "platform"
  ) {
    self.mtu = max(mtu, 23)
    self.maximumOutstanding = max(maximumOutstanding, 1)
    self.restoresSubscriptions = restoresSubscriptions
    self.commandBuffer = max(commandBuffer, 1)
    self.latency = max(latency, .zero)
    self.connectDelay = max(connectDelay, .zero)
    self.closingDelay = max(closingDelay, .zero)
    self.encryptionTime = max(encryptionTime, .zero)
    self.client = client
  }
}
