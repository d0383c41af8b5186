/// How the kernel answered a management command (BlueZ `doc/mgmt-api.txt`, "Error codes").
///
/// Open: any octet is a value.
public struct ManagementStatus: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The status with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Success.
  public static let success = ManagementStatus(rawValue: 0x00)
  /// Unknown command.
  public static let unknownCommand = ManagementStatus(rawValue: 0x01)
  /// Not connected.
  public static let notConnected = ManagementStatus(rawValue: 0x02)
  /// Failed.
  public static let failed = ManagementStatus(rawValue: 0x03)
  /// Connect failed.
  public static let connectFailed = ManagementStatus(rawValue: 0x04)
  /// Authentication failed.
  public static let authenticationFailed = ManagementStatus(rawValue: 0x05)
  /// Not paired.
  public static let notPaired = ManagementStatus(rawValue: 0x06)
  /// No resources.
  public static let noResources = ManagementStatus(rawValue: 0x07)
  /// Timeout.
  public static let timeout = ManagementStatus(rawValue: 0x08)
  /// Already connected.
  public static let alreadyConnected = ManagementStatus(rawValue: 0x09)
  /// Busy.
  public static let busy = ManagementStatus(rawValue: 0x0A)
  /// Rejected.
  public static let rejected = ManagementStatus(rawValue: 0x0B)
  /// Not supported.
  public static let notSupported = ManagementStatus(rawValue: 0x0C)
  /// Invalid parameters.
  public static let invalidParameters = ManagementStatus(rawValue: 0x0D)
  /// Disconnected.
  public static let disconnected = ManagementStatus(rawValue: 0x0E)
  /// Not powered.
  public static let notPowered = ManagementStatus(rawValue: 0x0F)
  /// Cancelled.
  public static let cancelled = ManagementStatus(rawValue: 0x10)
  /// Invalid index.
  public static let invalidIndex = ManagementStatus(rawValue: 0x11)
  /// Blocked by rfkill.
  public static let blockedByRFKill = ManagementStatus(rawValue: 0x12)
  /// Already paired.
  public static let alreadyPaired = ManagementStatus(rawValue: 0x13)
  /// Permission denied.
  public static let permissionDenied = ManagementStatus(rawValue: 0x14)
}

extension ManagementStatus: CustomStringConvertible {
  /// The name in words and the octet, such as `permission denied (0x14)`.
  public var description: String { "\(name) (0x\(hexadecimal(rawValue, digits: 2)))" }

  private var name: String {
    switch self {
    case .success: "success"
    case .unknownCommand: "unknown command"
    case .notConnected: "not connected"
    case .failed: "failed"
    case .connectFailed: "connect failed"
    case .authenticationFailed: "authentication failed"
    case .notPaired: "not paired"
    case .noResources: "no resources"
    case .timeout: "timeout"
    case .alreadyConnected: "already connected"
    case .busy: "busy"
    case .rejected: "rejected"
    case .notSupported: "not supported"
    case .invalidParameters: "invalid parameters"
    case .disconnected: "disconnected"
    case .notPowered: "not powered"
    case .cancelled: "cancelled"
    case .invalidIndex: "invalid index"
    case .blockedByRFKill: "blocked by rfkill"
    case .alreadyPaired: "already paired"
    case .permissionDenied: "permission denied"
    default: "unknown status"
    }
  }
}
