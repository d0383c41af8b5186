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
  /// Any other event, or one that is too short.
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

  private static func known(_ event: ManagementEventCode, _ parameters: [UInt8]) -> ManagementEvent? {
    let bytes = parameters.span.bytes
    let count = bytes.byteCount
    switch event {
    case .commandComplete:
      guard count >= 3 else { return nil }
      let opcode = ManagementOpcode(rawValue: bytes.uint16(at: 0))
      let status = ManagementStatus(rawValue: bytes.octet(at: 2))
      let result = ManagementResult(opcode: opcode, status: status, bytes: bytes.array(from: 3))
      return .commandComplete(opcode: opcode, status: status, result: result)
    case .commandStatus:
      guard count >= 3 else { return nil }
      return .commandStatus(
        opcode: ManagementOpcode(rawValue: bytes.uint16(at: 0)),
        status: ManagementStatus(rawValue: bytes.octet(at: 2)))
    case .controllerError: return count >= 1 ? .controllerError(code: bytes.octet(at: 0)) : nil
    case .indexAdded: return .indexAdded
    case .indexRemoved: return .indexRemoved
    case .newSettings:
      return count >= 4 ? .newSettings(ManagementSettings(rawValue: bytes.uint32(at: 0))) : nil
    case .deviceConnected:
      guard count >= 13, count - 13 >= Int(bytes.uint16(at: 11)) else { return nil }
      return .deviceConnected(
        device: ManagementAddress(bytes, at: 0), flags: bytes.uint32(at: 7),
        advertisingData: bytes.array(from: 13, count: Int(bytes.uint16(at: 11))))
    case .deviceDisconnected:
      guard count >= 8 else { return nil }
      return .deviceDisconnected(
        device: ManagementAddress(bytes, at: 0),
        reason: ManagementDisconnectReason(rawValue: bytes.octet(at: 7)))
    case .connectFailed:
      guard count >= 8 else { return nil }
      return .connectFailed(
        device: ManagementAddress(bytes, at: 0), status: ManagementStatus(rawValue: bytes.octet(at: 7)))
    case .authenticationFailed:
      guard count >= 8 else { return nil }
      return .authenticationFailed(
        device: ManagementAddress(bytes, at: 0), status: ManagementStatus(rawValue: bytes.octet(at: 7)))
    case .deviceFound:
      guard count >= 14, count - 14 >= Int(bytes.uint16(at: 12)) else { return nil }
      return .deviceFound(
        device: ManagementAddress(bytes, at: 0), rssi: Int8(bitPattern: bytes.octet(at: 7)),
        flags: bytes.uint32(at: 8), advertisingData: bytes.array(from: 14, count: Int(bytes.uint16(at: 12))))
    case .discovering:
      return count >= 2 ? .discovering(types: bytes.octet(at: 0), isOn: bytes.octet(at: 1) != 0) : nil
    case .deviceUnpaired:
      return count >= ManagementAddress.length
        ? .deviceUnpaired(device: ManagementAddress(bytes, at: 0)) : nil
    case .newConnectionParameter:
      guard count >= 16 else { return nil }
      return .newConnectionParameters(
        shouldStore: bytes.octet(at: 7) != 0,
        parameters: ManagementConnectionParameters(
          device: ManagementAddress(bytes, at: 0), minimumInterval: bytes.uint16(at: 8),
          maximumInterval: bytes.uint16(at: 10), latency: bytes.uint16(at: 12),
          supervisionTimeout: bytes.uint16(at: 14)))
    case .controllerSuspend: return count >= 1 ? .controllerSuspend(state: bytes.octet(at: 0)) : nil
    case .controllerResume:
      guard count >= 8 else { return nil }
      return .controllerResume(wakeReason: bytes.octet(at: 7), device: ManagementAddress(bytes, at: 0))
    default: return nil
    }
  }
}

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
