public import Relink

/// What ``SecurityContract`` needs beside what the other suites need.
public protocol SecurityContractEnvironment: ContractEnvironment {
  /// What can be done to the keys of the device and of this host.
  var keys: any SecurityContractPeer { get }
}

/// The device at the far end, and its bond with this host.
///
/// What cannot be done says so, and the rules that need it are reported as skipped.
public protocol SecurityContractPeer: Sendable {
  /// A characteristic that can be read and written on an encrypted link, and on no other.
  var protectedCharacteristic: Characteristic { get }

  /// Gives the device and this host a new bond, or takes it away from either.
  ///
  /// - Parameters:
  ///   - atDevice: Whether the device has its half; with both halves they fit.
  ///   - here: Whether this host has its half.
  /// - Returns: Whether that could be done.
  func setBond(atDevice: Bool, here: Bool) async -> Bool
  /// Lets the device agree to be paired with, without anything to compare, or refuse.
  ///
  /// - Parameter agrees: Whether it agrees.
  /// - Returns: Whether that could be done.
  func setPairing(_ agrees: Bool) async -> Bool
  /// How often the device was asked to pair since the start; nil where it does not count.
  ///
  /// - Returns: The number.
  func pairingRequests() async -> Int?
  /// The values that were written to ``protectedCharacteristic`` since the start, in order.
  ///
  /// - Returns: The values.
  func protectedWrites() async -> [[UInt8]]
}
