/// Why the kernel says that a link is gone (BlueZ `doc/mgmt-api.txt`, Device Disconnected Event).
///
/// Open: any octet is a value. The kernel folds the reasons of the controller into these few.
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
}
