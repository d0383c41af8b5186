/// Which event of the kernel's Bluetooth management interface (BlueZ `doc/mgmt-api.txt`).
///
/// Open: any number is a value; the numbers that a host of LE links may meet have names.
public struct ManagementEventCode: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16

  /// The code with this number.
  ///
  /// - Parameter rawValue: Any number.
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Command Complete.
  public static let commandComplete = ManagementEventCode(rawValue: 0x0001)
  /// Command Status.
  public static let commandStatus = ManagementEventCode(rawValue: 0x0002)
  /// Controller Error.
  public static let controllerError = ManagementEventCode(rawValue: 0x0003)
  /// Index Added.
  public static let indexAdded = ManagementEventCode(rawValue: 0x0004)
  /// Index Removed.
  public static let indexRemoved = ManagementEventCode(rawValue: 0x0005)
  /// New Settings.
  public static let newSettings = ManagementEventCode(rawValue: 0x0006)
  /// Class Of Device Changed.
  public static let classOfDeviceChanged = ManagementEventCode(rawValue: 0x0007)
  /// Local Name Changed.
  public static let localNameChanged = ManagementEventCode(rawValue: 0x0008)
  /// New Link Key.
  public static let newLinkKey = ManagementEventCode(rawValue: 0x0009)
  /// New Long Term Key.
  public static let newLongTermKey = ManagementEventCode(rawValue: 0x000A)
  /// Device Connected.
  public static let deviceConnected = ManagementEventCode(rawValue: 0x000B)
  /// Device Disconnected.
  public static let deviceDisconnected = ManagementEventCode(rawValue: 0x000C)
  /// Connect Failed.
  public static let connectFailed = ManagementEventCode(rawValue: 0x000D)
  /// PIN Code Request.
  public static let pinCodeRequest = ManagementEventCode(rawValue: 0x000E)
  /// User Confirmation Request.
  public static let userConfirmationRequest = ManagementEventCode(rawValue: 0x000F)
  /// User Passkey Request.
  public static let userPasskeyRequest = ManagementEventCode(rawValue: 0x0010)
  /// Authentication Failed.
  public static let authenticationFailed = ManagementEventCode(rawValue: 0x0011)
  /// Device Found.
  public static let deviceFound = ManagementEventCode(rawValue: 0x0012)
  /// Discovering.
  public static let discovering = ManagementEventCode(rawValue: 0x0013)
  /// Device Blocked.
  public static let deviceBlocked = ManagementEventCode(rawValue: 0x0014)
  /// Device Unblocked.
  public static let deviceUnblocked = ManagementEventCode(rawValue: 0x0015)
  /// Device Unpaired.
  public static let deviceUnpaired = ManagementEventCode(rawValue: 0x0016)
  /// Passkey Notify.
  public static let passkeyNotify = ManagementEventCode(rawValue: 0x0017)
  /// New Identity Resolving Key.
  public static let newIdentityResolvingKey = ManagementEventCode(rawValue: 0x0018)
  /// New Signature Resolving Key.
  public static let newSignatureResolvingKey = ManagementEventCode(rawValue: 0x0019)
  /// Device Added.
  public static let deviceAdded = ManagementEventCode(rawValue: 0x001A)
  /// Device Removed.
  public static let deviceRemoved = ManagementEventCode(rawValue: 0x001B)
  /// New Connection Parameter.
  public static let newConnectionParameter = ManagementEventCode(rawValue: 0x001C)
  /// Unconfigured Index Added.
  public static let unconfiguredIndexAdded = ManagementEventCode(rawValue: 0x001D)
  /// Unconfigured Index Removed.
  public static let unconfiguredIndexRemoved = ManagementEventCode(rawValue: 0x001E)
  /// New Configuration Options.
  public static let newConfigurationOptions = ManagementEventCode(rawValue: 0x001F)
  /// Extended Index Added.
  public static let extendedIndexAdded = ManagementEventCode(rawValue: 0x0020)
  /// Extended Index Removed.
  public static let extendedIndexRemoved = ManagementEventCode(rawValue: 0x0021)
  /// Advertising Added.
  public static let advertisingAdded = ManagementEventCode(rawValue: 0x0023)
  /// Advertising Removed.
  public static let advertisingRemoved = ManagementEventCode(rawValue: 0x0024)
  /// Extended Controller Information Changed.
  public static let extendedControllerInformationChanged = ManagementEventCode(rawValue: 0x0025)
  /// PHY Configuration Changed.
  public static let phyConfigurationChanged = ManagementEventCode(rawValue: 0x0026)
  /// Experimental Feature Changed.
  public static let experimentalFeatureChanged = ManagementEventCode(rawValue: 0x0027)
  /// Device Flags Changed.
  public static let deviceFlagsChanged = ManagementEventCode(rawValue: 0x002A)
  /// Controller Suspend.
  public static let controllerSuspend = ManagementEventCode(rawValue: 0x002D)
  /// Controller Resume.
  public static let controllerResume = ManagementEventCode(rawValue: 0x002E)
}

extension ManagementEventCode: CustomStringConvertible {
  /// The number in hexadecimal, such as `0x0014`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 4) }
}
