/// An event of the kernel's Bluetooth management interface (BlueZ `doc/mgmt-api.txt`).
///
/// Which controller it belongs to is in the packet. A known event with fewer octets than it needs is
/// ``unknown(event:parameters:)``; octets beyond the known ones are ignored, so that an event that a newer kernel made
/// longer still means what it meant.
@nonexhaustive
public enum ManagementEvent: Hashable, Sendable {
  /// A command was carried out, or refused with parameters.
  case commandComplete(opcode: ManagementOpcode, status: ManagementStatus, result: ManagementResult)
  /// A command was refused, or was taken and will report later.
  case commandStatus(opcode: ManagementOpcode, status: ManagementStatus)
  /// The controller reported a fault.
  case controllerError(code: UInt8)
  /// A controller appeared.
  case indexAdded
  /// A controller went away.
  case indexRemoved
  /// The settings of a controller changed to these.
  case newSettings(ManagementSettings)
  /// A link to a device came up; `advertisingData` is what the device last advertised, `flags` are those of
  /// ``deviceFound(device:rssi:flags:advertisingData:)``.
  case deviceConnected(device: ManagementAddress, flags: UInt32, advertisingData: [UInt8])
  /// A link to a device is gone.
  case deviceDisconnected(device: ManagementAddress, reason: ManagementDisconnectReason)
  /// An attempt to connect to a device failed.
  case connectFailed(device: ManagementAddress, status: ManagementStatus)
  /// Pairing or encryption with a device failed.
  case authenticationFailed(device: ManagementAddress, status: ManagementStatus)
  /// A device advertised. `rssi` in dBm, 127 if not known. Bits of `flags`: 2 not connectable, 3 a connection that this
  /// host initiated, 5 scan response.
  case deviceFound(device: ManagementAddress, rssi: Int8, flags: UInt32, advertisingData: [UInt8])
  /// Discovery of these address types started or stopped.
  case discovering(types: UInt8, isOn: Bool)
  /// The keys of a device were removed.
  case deviceUnpaired(device: ManagementAddress)
  /// A peripheral asked for these connection parameters.
  case newConnectionParameters(shouldStore: Bool, parameters: ManagementConnectionParameters)
  /// The host is about to sleep: 0 stays on, 1 disconnected and not scanning, 2 scanning for wake-up.
  case controllerSuspend(state: UInt8)
  /// The host woke up, perhaps because of this device: 0 not Bluetooth, 1 unexpected event, 2 remote wake.
  case controllerResume(wakeReason: UInt8, device: ManagementAddress)
  /// Pairing made a long term key, which is the end of a pairing procedure.
  ///
  /// `shouldStore` is false if the device did not bond, or if its identity is not known.
  case newLongTermKey(shouldStore: Bool, key: ManagementLongTermKey)
  /// A device told its identity; from now on events and commands name it by that.
  ///
  /// `randomAddress` is the private address that it used until now, nil if it used its identity.
  case newIdentityResolvingKey(
    shouldStore: Bool, randomAddress: BluetoothAddress?, key: ManagementIdentityResolvingKey)
  /// Pairing made a key for Signed Write Commands.
  case newSignatureResolvingKey(shouldStore: Bool, key: ManagementSignatureResolvingKey)
  /// A device pairs and asks for a PIN code; BR/EDR only. `isSecure` asks for 16 digits.
  case pinCodeRequest(device: ManagementAddress, isSecure: Bool)
  /// A device pairs and waits for yes or no.
  ///
  /// `value` is to be compared with what the device shows, unless `isYesNoOnly`: then there is nothing to compare, only
  /// consent to give.
  case userConfirmationRequest(device: ManagementAddress, isYesNoOnly: Bool, value: UInt32)
  /// A device pairs and shows a passkey that is to be entered here.
  case userPasskeyRequest(device: ManagementAddress)
  /// A device pairs, and this passkey is to be entered on it; `entered` digits already were.
  case passkeyNotify(device: ManagementAddress, passkey: UInt32, entered: UInt8)
  /// Another program added a device to the kernel's list; `action` is that of
  /// ``ManagementCommand/addDevice(address:type:action:)``.
  case deviceAdded(device: ManagementAddress, action: UInt8)
  /// Another program removed a device from the kernel's list.
  case deviceRemoved(device: ManagementAddress)
  /// The flags of a device on the kernel's list changed. Bits: 0 may wake the host, 1 uses device privacy mode.
  case deviceFlagsChanged(device: ManagementAddress, supported: UInt32, current: UInt32)
  /// A controller appeared that has to be configured before it can be used.
  case unconfiguredIndexAdded
  /// A controller that had to be configured went away, or is configured now.
  case unconfiguredIndexRemoved
  /// A controller of any type appeared; told instead of ``indexAdded`` to a socket that asked for the extended index list.
  ///
  /// `type` is 0 configured, 1 unconfigured, 2 alternate MAC and PHY; `bus` is numbered as in the kernel's `hci.h`: 0
  /// virtual, 1 USB.
  case extendedIndexAdded(type: UInt8, bus: UInt8)
  /// A controller of any type went away; the numbers are those of ``extendedIndexAdded(type:bus:)``.
  case extendedIndexRemoved(type: UInt8, bus: UInt8)
  /// Any other event, or one that is too short.
  ///
  /// The octets of New Link Key hold a secret: they are not for logs.
  case unknown(event: ManagementEventCode, parameters: [UInt8])

  /// Reads the event in a packet; any packet is answered, none traps.
  ///
  /// - Parameter packet: A packet from the kernel.
  public init(_ packet: ManagementPacket) {
    let event = ManagementEventCode(rawValue: packet.code)
    self = Self.known(event, packet.parameters) ?? .unknown(event: event, parameters: packet.parameters)
  }

  /// Decodes a packet and reads the event in it; any octets are answered, none trap.
  ///
  /// - Parameter bytes: All octets of one packet.
  /// - Throws: ``ManagementDecodingError`` if the octets are no packet.
  public init(decoding bytes: [UInt8]) throws(ManagementDecodingError) {
    self.init(try ManagementPacket(decoding: bytes))
  }
}
