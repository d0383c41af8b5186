/// The connection parameters that the kernel keeps for a device (BlueZ `doc/mgmt-api.txt`, Load Connection Parameters).
public struct ManagementConnectionParameters: Hashable, Sendable {
  /// The device.
  public var device: ManagementAddress
  /// The shortest connection interval, in units of 1.25 ms.
  public var minimumInterval: UInt16
  /// The longest connection interval, in units of 1.25 ms.
  public var maximumInterval: UInt16
  /// How many connection events the peripheral may leave out.
  public var latency: UInt16
  /// The supervision timeout, in units of 10 ms.
  public var supervisionTimeout: UInt16

  /// Parameters for a device.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - minimumInterval: The shortest connection interval, in units of 1.25 ms.
  ///   - maximumInterval: The longest connection interval, in units of 1.25 ms.
  ///   - latency: How many connection events the peripheral may leave out.
  ///   - supervisionTimeout: The supervision timeout, in units of 10 ms.
  public init(
    device: ManagementAddress, minimumInterval: UInt16, maximumInterval: UInt16, latency: UInt16,
    supervisionTimeout: UInt16
  ) {
    self.device = device
    self.minimumInterval = minimumInterval
    self.maximumInterval = maximumInterval
    self.latency = latency
    self.supervisionTimeout = supervisionTimeout
  }

  static let length = 15

  func append(to bytes: inout [UInt8]) {
    device.append(to: &bytes)
    bytes.append(littleEndian: minimumInterval)
    bytes.append(littleEndian: maximumInterval)
    bytes.append(littleEndian: latency)
    bytes.append(littleEndian: supervisionTimeout)
  }
}
