/// Why the kernel says that a link is gone (BlueZ `doc/mgmt-api.txt`, Device Disconnected Event).
///
/// Open: any octet is a value. The kernel folds the reasons of the controller into these few; on some of its paths it
/// passes the controller's own number on.
public struct ManagementDisconnectReason: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The reason with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// None of the others.
  public static let unspecified = ManagementDisconnectReason(rawValue: 0)
  /// The supervision timeout passed.
  public static let connectionTimeout = ManagementDisconnectReason(rawValue: 1)
  /// This host ended it.
  public static let localHost = ManagementDisconnectReason(rawValue: 2)
  /// The device ended it.
  public static let remote = ManagementDisconnectReason(rawValue: 3)
  /// Authentication failed.
  public static let authenticationFailure = ManagementDisconnectReason(rawValue: 4)
  /// This host ended it because it goes to sleep.
  public static let localHostSuspend = ManagementDisconnectReason(rawValue: 5)

  /// The reason of the controller that the kernel passed on as it was.
  ///
  /// Nil for the numbers that mgmt defines, 0 to 5, and for those that the Core Specification does not define either.
  public var controllerReason: HCIErrorCode? {
    let reason = HCIErrorCode(rawValue: rawValue)
    return name == nil && reason.isDefined ? reason : nil
  }
}

extension ManagementDisconnectReason: CustomStringConvertible {
  /// The name in words and the octet, such as `connection timeout (0x01)`.
  public var description: String {
    if let controllerReason { return controllerReason.description }
    return "\(name ?? "unknown reason") (0x\(hexadecimal(rawValue, digits: 2)))"
  }

  private var name: String? {
    switch self {
    case .unspecified: "unspecified"
    case .connectionTimeout: "connection timeout"
    case .localHost: "ended by local host"
    case .remote: "ended by remote device"
    case .authenticationFailure: "authentication failure"
    case .localHostSuspend: "ended by local host to sleep"
    default: nil
    }
  }
}
