// Lengths are those of Core Specification Vol 4 Part E 7.7; those of LE Meta events (7.7.65) count the subevent code.

extension HCIEvent {
  static func known(_ code: HCIEventCode, _ bytes: borrowing RawSpan) -> HCIEvent? {
    let count = bytes.byteCount
    switch code {
    case .disconnectionComplete:
      guard count >= 4 else { return nil }
      return .disconnectionComplete(
        status: bytes.errorCode(at: 0), handle: bytes.handle(at: 1), reason: bytes.errorCode(at: 3))
    case .encryptionChange: return count >= 4 ? encryptionChange(bytes, keySize: nil) : nil
    case .encryptionChangeV2:
      return count >= 5 ? encryptionChange(bytes, keySize: bytes.octet(at: 4)) : nil
    case .encryptionKeyRefreshComplete:
      guard count >= 3 else { return nil }
      return .encryptionKeyRefreshComplete(status: bytes.errorCode(at: 0), handle: bytes.handle(at: 1))
    case .commandComplete:
      guard count >= 3 else { return nil }
      return .commandComplete(
        opcode: HCIOpcode(rawValue: bytes.uint16(at: 1)), status: count > 3 ? bytes.errorCode(at: 3) : nil,
        returnParameters: bytes.array(from: 3))
    case .commandStatus:
      guard count >= 4 else { return nil }
      return .commandStatus(
        opcode: HCIOpcode(rawValue: bytes.uint16(at: 2)), status: bytes.errorCode(at: 0))
    case .hardwareError: return count >= 1 ? .hardwareError(code: bytes.octet(at: 0)) : nil
    case .lowEnergyMeta:
      return count >= 1 ? lowEnergy(HCISubeventCode(rawValue: bytes.octet(at: 0)), bytes) : nil
    default: return nil
    }
  }

  private static func encryptionChange(_ bytes: borrowing RawSpan, keySize: UInt8?) -> HCIEvent {
    .encryptionChange(
      status: bytes.errorCode(at: 0), handle: bytes.handle(at: 1), isOn: bytes.octet(at: 3) != 0,
      keySize: keySize)
  }

  private static func lowEnergy(_ subevent: HCISubeventCode, _ bytes: borrowing RawSpan) -> HCIEvent? {
    let count = bytes.byteCount
    switch subevent {
    case .connectionComplete where count >= 19:
      return .connectionComplete(HCIConnection(bytes, privateAddressesAt: nil, parametersAt: 12))
    case .enhancedConnectionComplete where count >= 31, .enhancedConnectionCompleteV2 where count >= 34:
      return .connectionComplete(HCIConnection(bytes, privateAddressesAt: 12, parametersAt: 24))
    case .connectionUpdateComplete where count >= 10:
      return .connectionUpdateComplete(
        status: bytes.errorCode(at: 1), handle: bytes.handle(at: 2), interval: bytes.uint16(at: 4),
        latency: bytes.uint16(at: 6), supervisionTimeout: bytes.uint16(at: 8))
    case .longTermKeyRequest where count >= 13:
      return .longTermKeyRequest(
        handle: bytes.handle(at: 1), randomNumber: bytes.uint64(at: 3),
        encryptedDiversifier: bytes.uint16(at: 11))
    case .advertisingReport: return HCIAdvertisingReport.list(bytes).map { .advertisingReports($0) }
    case .extendedAdvertisingReport:
      return HCIExtendedAdvertisingReport.list(bytes).map { .extendedAdvertisingReports($0) }
    default: return nil
    }
  }
}

extension RawSpan {
  fileprivate func errorCode(at offset: Int) -> HCIErrorCode { HCIErrorCode(rawValue: octet(at: offset)) }

  /// The 12 bits of a connection handle; the four above them are reserved.
  fileprivate func handle(at offset: Int) -> UInt16 { uint16(at: offset) & 0x0FFF }

  /// A signal strength or power in dBm; 127 stands for one that the controller does not know.
  fileprivate func decibels(at offset: Int) -> Int8? {
    octet(at: offset) == 127 ? nil : Int8(bitPattern: octet(at: offset))
  }
}

extension HCIConnection {
  fileprivate init(_ bytes: borrowing RawSpan, privateAddressesAt addresses: Int?, parametersAt offset: Int) {
    self.init(
      status: bytes.errorCode(at: 1), handle: bytes.handle(at: 2), isCentral: bytes.octet(at: 4) == 0,
      peerAddressType: HCIAddressType(rawValue: bytes.octet(at: 5)),
      peerAddress: BluetoothAddress(bytes, at: 6),
      interval: bytes.uint16(at: offset), latency: bytes.uint16(at: offset + 2),
      supervisionTimeout: bytes.uint16(at: offset + 4))
    if let addresses {
      localPrivateAddress = Self.used(BluetoothAddress(bytes, at: addresses))
      peerPrivateAddress = Self.used(BluetoothAddress(bytes, at: addresses + 6))
    }
  }

  /// All zero stands for no address.
  private static func used(_ address: BluetoothAddress) -> BluetoothAddress? {
    address.value == 0 ? nil : address
  }
}

// Each report brings its own length, so they are read one after the other. The length of an event bounds their number.
extension HCIAdvertisingReport {
  fileprivate static func list(_ bytes: borrowing RawSpan) -> [HCIAdvertisingReport]? {
    guard bytes.byteCount >= 2, bytes.octet(at: 1) > 0 else { return nil }
    var reports: [HCIAdvertisingReport] = []
    var offset = 2
    for _ in 0..<bytes.octet(at: 1) {
      guard bytes.byteCount - offset >= 10 else { return nil }
      let length = Int(bytes.octet(at: offset + 8))
      guard bytes.byteCount - offset - 10 >= length else { return nil }
      reports.append(
        HCIAdvertisingReport(
          eventType: bytes.octet(at: offset),
          addressType: HCIAddressType(rawValue: bytes.octet(at: offset + 1)),
          address: BluetoothAddress(bytes, at: offset + 2),
          advertisingData: bytes.array(from: offset + 9, count: length),
          rssi: bytes.decibels(at: offset + 9 + length)))
      offset += 10 + length
    }
    return reports
  }
}

extension HCIExtendedAdvertisingReport {
  fileprivate static func list(_ bytes: borrowing RawSpan) -> [HCIExtendedAdvertisingReport]? {
    guard bytes.byteCount >= 2, bytes.octet(at: 1) > 0 else { return nil }
    var reports: [HCIExtendedAdvertisingReport] = []
    var offset = 2
    for _ in 0..<bytes.octet(at: 1) {
      guard bytes.byteCount - offset >= 24 else { return nil }
      let length = Int(bytes.octet(at: offset + 23))
      guard bytes.byteCount - offset - 24 >= length else { return nil }
      reports.append(
        HCIExtendedAdvertisingReport(
          eventType: bytes.uint16(at: offset),
          addressType: HCIAddressType(rawValue: bytes.octet(at: offset + 2)),
          address: BluetoothAddress(bytes, at: offset + 3), transmitPower: bytes.decibels(at: offset + 12),
          rssi: bytes.decibels(at: offset + 13),
          advertisingData: bytes.array(from: offset + 24, count: length)))
      offset += 24 + length
    }
    return reports
  }
}
