// Lengths are the fixed parts of the events in BlueZ `doc/mgmt-api.txt`.

extension ManagementEvent {
  static func known(_ event: ManagementEventCode, _ parameters: [UInt8]) -> ManagementEvent? {
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
    case .newLongTermKey, .newIdentityResolvingKey, .newSignatureResolvingKey: return key(event, bytes)
    case .pinCodeRequest, .userConfirmationRequest, .userPasskeyRequest, .passkeyNotify:
      return pairing(event, bytes)
    case .deviceAdded, .deviceRemoved, .deviceFlagsChanged: return listed(event, bytes)
    case .unconfiguredIndexAdded: return .unconfiguredIndexAdded
    case .unconfiguredIndexRemoved: return .unconfiguredIndexRemoved
    case .extendedIndexAdded:
      return count >= 2 ? .extendedIndexAdded(type: bytes.octet(at: 0), bus: bytes.octet(at: 1)) : nil
    case .extendedIndexRemoved:
      return count >= 2 ? .extendedIndexRemoved(type: bytes.octet(at: 0), bus: bytes.octet(at: 1)) : nil
    default: return nil
    }
  }

  private static func key(_ event: ManagementEventCode, _ bytes: borrowing RawSpan) -> ManagementEvent? {
    let count = bytes.byteCount
    switch event {
    case .newLongTermKey where count >= 1 + ManagementLongTermKey.length:
      return .newLongTermKey(
        shouldStore: bytes.octet(at: 0) != 0, key: ManagementLongTermKey(bytes, at: 1))
    case .newIdentityResolvingKey where count >= 7 + ManagementIdentityResolvingKey.length:
      // All zero stands for an identity that was used from the start.
      let randomAddress = BluetoothAddress(bytes, at: 1)
      return .newIdentityResolvingKey(
        shouldStore: bytes.octet(at: 0) != 0, randomAddress: randomAddress.value == 0 ? nil : randomAddress,
        key: ManagementIdentityResolvingKey(bytes, at: 7))
    case .newSignatureResolvingKey where count >= 1 + ManagementSignatureResolvingKey.length:
      return .newSignatureResolvingKey(
        shouldStore: bytes.octet(at: 0) != 0, key: ManagementSignatureResolvingKey(bytes, at: 1))
    default: return nil
    }
  }

  private static func pairing(_ event: ManagementEventCode, _ bytes: borrowing RawSpan) -> ManagementEvent? {
    let count = bytes.byteCount
    guard count >= ManagementAddress.length else { return nil }
    let device = ManagementAddress(bytes, at: 0)
    switch event {
    case .pinCodeRequest where count >= 8:
      return .pinCodeRequest(device: device, isSecure: bytes.octet(at: 7) != 0)
    case .userConfirmationRequest where count >= 12:
      return .userConfirmationRequest(
        device: device, isYesNoOnly: bytes.octet(at: 7) != 0, value: bytes.uint32(at: 8))
    case .userPasskeyRequest: return .userPasskeyRequest(device: device)
    case .passkeyNotify where count >= 12:
      return .passkeyNotify(device: device, passkey: bytes.uint32(at: 7), entered: bytes.octet(at: 11))
    default: return nil
    }
  }

  private static func listed(_ event: ManagementEventCode, _ bytes: borrowing RawSpan) -> ManagementEvent? {
    let count = bytes.byteCount
    guard count >= ManagementAddress.length else { return nil }
    let device = ManagementAddress(bytes, at: 0)
    switch event {
    case .deviceAdded where count >= 8: return .deviceAdded(device: device, action: bytes.octet(at: 7))
    case .deviceRemoved: return .deviceRemoved(device: device)
    case .deviceFlagsChanged where count >= 15:
      return .deviceFlagsChanged(
        device: device, supported: bytes.uint32(at: 7), current: bytes.uint32(at: 11))
    default: return nil
    }
  }
}
