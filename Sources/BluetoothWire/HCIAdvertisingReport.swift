/// An advertisement or scan response in legacy PDUs (Core Specification Vol 4 Part E 7.7.65.2).
public struct HCIAdvertisingReport: Hashable, Sendable {
  /// What was heard: 0 connectable and scannable, 1 connectable and directed, 2 scannable, 3 neither, 4 a scan response.
  public var eventType: UInt8
  /// What kind of address ``address`` is.
  public var addressType: HCIAddressType
  /// The address of the advertiser.
  public var address: BluetoothAddress
  /// What it advertised, a list of advertising data structures.
  public var advertisingData: [UInt8]
  /// The strength of the signal in dBm, nil if the controller does not know it.
  public var rssi: Int8?

  /// A report.
  ///
  /// - Parameters:
  ///   - eventType: What was heard, 0 to 4.
  ///   - addressType: What kind of address `address` is.
  ///   - address: The address of the advertiser.
  ///   - advertisingData: What it advertised.
  ///   - rssi: The strength of the signal in dBm, nil if not known.
  public init(
    eventType: UInt8, addressType: HCIAddressType, address: BluetoothAddress, advertisingData: [UInt8],
    rssi: Int8?
  ) {
    self.eventType = eventType
    self.addressType = addressType
    self.address = address
    self.advertisingData = advertisingData
    self.rssi = rssi
  }

  /// True if the device accepts a connection, perhaps from one central alone; a scan response does not say.
  public var isConnectable: Bool { eventType <= 1 }
}

/// An advertisement or scan response of any kind (Core Specification Vol 4 Part E 7.7.65.13).
///
/// PHYs, advertising set, periodic interval and the target of directed advertising are not kept.
public struct HCIExtendedAdvertisingReport: Hashable, Sendable {
  /// What was heard.
  ///
  /// Bits: 0 connectable, 1 scannable, 2 directed, 3 scan response, 4 legacy PDUs; 5 and 6 are 0 if the data are whole, 1
  /// if more will come, 2 if the rest is lost.
  public var eventType: UInt16
  /// What kind of address ``address`` is.
  public var addressType: HCIAddressType
  /// The address of the advertiser, without meaning if it is anonymous.
  public var address: BluetoothAddress
  /// The power with which it sends in dBm, nil if it does not tell.
  public var transmitPower: Int8?
  /// The strength of the signal in dBm, nil if the controller does not know it.
  public var rssi: Int8?
  /// What it advertised, a list of advertising data structures or a part of one.
  public var advertisingData: [UInt8]

  /// A report.
  ///
  /// - Parameters:
  ///   - eventType: What was heard, in bits.
  ///   - addressType: What kind of address `address` is.
  ///   - address: The address of the advertiser.
  ///   - transmitPower: The power with which it sends in dBm, nil if not told.
  ///   - rssi: The strength of the signal in dBm, nil if not known.
  ///   - advertisingData: What it advertised.
  public init(
    eventType: UInt16, addressType: HCIAddressType, address: BluetoothAddress, transmitPower: Int8?,
    rssi: Int8?,
    advertisingData: [UInt8]
  ) {
    self.eventType = eventType
    self.addressType = addressType
    self.address = address
    self.transmitPower = transmitPower
    self.rssi = rssi
    self.advertisingData = advertisingData
  }

  /// True if the device accepts a connection, perhaps from one central alone.
  public var isConnectable: Bool { eventType & 1 != 0 }
}
