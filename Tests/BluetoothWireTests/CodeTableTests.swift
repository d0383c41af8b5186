import BluetoothWire
import Testing

/// One name a line behind its number, for every number that is defined.
private func table(_ text: String) -> [UInt8: String] {
  Dictionary(
    uniqueKeysWithValues: text.split(separator: "\n").map { line in
      (UInt8(line.prefix(2), radix: 16)!, String(line.dropFirst(3)))
    })
}

/// Core Specification Vol 1 Part F 1.3.
private let controllerCodes = table(
  """
  00 success
  01 unknown HCI command
  02 unknown connection identifier
  03 hardware failure
  04 page timeout
  05 authentication failure
  06 PIN or key missing
  07 memory capacity exceeded
  08 connection timeout
  09 connection limit exceeded
  0A synchronous connection limit to a device exceeded
  0B connection already exists
  0C command disallowed
  0D connection rejected due to limited resources
  0E connection rejected due to security reasons
  0F connection rejected due to unacceptable address
  10 connection accept timeout exceeded
  11 unsupported feature or parameter value
  12 invalid HCI command parameters
  13 remote user terminated connection
  14 remote device terminated connection due to low resources
  15 remote device terminated connection due to power off
  16 connection terminated by local host
  17 repeated attempts
  18 pairing not allowed
  19 unknown LMP PDU
  1A unsupported remote feature
  1B SCO offset rejected
  1C SCO interval rejected
  1D SCO air mode rejected
  1E invalid LMP or LL parameters
  1F unspecified error
  20 unsupported LMP or LL parameter value
  21 role change not allowed
  22 LMP or LL response timeout
  23 LMP error transaction collision or LL procedure collision
  24 LMP PDU not allowed
  25 encryption mode not acceptable
  26 link key cannot be changed
  27 requested QoS not supported
  28 instant passed
  29 pairing with unit key not supported
  2A different transaction collision
  2C QoS unacceptable parameter
  2D QoS rejected
  2E channel classification not supported
  2F insufficient security
  30 parameter out of mandatory range
  32 role switch pending
  34 reserved slot violation
  35 role switch failed
  36 extended inquiry response too large
  37 secure simple pairing not supported by host
  38 host busy pairing
  39 connection rejected due to no suitable channel found
  3A controller busy
  3B unacceptable connection parameters
  3C advertising timeout
  3D connection terminated due to MIC failure
  3E connection failed to be established
  3F MAC connection failed
  40 coarse clock adjustment rejected but will try to adjust using clock dragging
  41 type 0 submap not defined
  42 unknown advertising identifier
  43 limit reached
  44 operation cancelled by host
  45 packet too long
  46 too late
  47 too early
  48 insufficient channels
  """)

/// Core Specification Vol 3 Part F 3.4.1.1, and Core Specification Supplement Part B 1.2.
private let attributeCodes = table(
  """
  01 invalid handle
  02 read not permitted
  03 write not permitted
  04 invalid PDU
  05 insufficient authentication
  06 request not supported
  07 invalid offset
  08 insufficient authorization
  09 prepare queue full
  0A attribute not found
  0B attribute not long
  0C encryption key size too short
  0D invalid attribute value length
  0E unlikely error
  0F insufficient encryption
  10 unsupported group type
  11 insufficient resources
  12 database out of sync
  13 value not allowed
  FC write request rejected
  FD client characteristic configuration improperly configured
  FE procedure already in progress
  FF out of range
  """)

/// BlueZ `doc/mgmt-api.txt`, "Error codes".
private let managementStatuses = table(
  """
  00 success
  01 unknown command
  02 not connected
  03 failed
  04 connect failed
  05 authentication failed
  06 not paired
  07 no resources
  08 timeout
  09 already connected
  0A busy
  0B rejected
  0C not supported
  0D invalid parameters
  0E disconnected
  0F not powered
  10 cancelled
  11 invalid index
  12 blocked by rfkill
  13 already paired
  14 permission denied
  """)

/// BlueZ `doc/mgmt-api.txt`, Device Disconnected Event.
private let disconnectReasons = table(
  """
  00 unspecified
  01 connection timeout
  02 ended by local host
  03 ended by remote device
  04 authentication failure
  05 ended by local host to sleep
  """)

private func numbered(_ name: String, _ code: UInt8) -> String {
  let digits = String(code, radix: 16, uppercase: true)
  return "\(name) (0x\(code < 16 ? "0" : "")\(digits))"
}

/// Every octet that a peer, a controller or the kernel may say has its name, and no two meanings share one.
@Suite struct CodeTableTests {
  @Test func everyCodeOfAController() {
    #expect(Set(controllerCodes.keys) == Set(0x00...0x48).subtracting([0x2B, 0x31, 0x33]))
    #expect(Set(controllerCodes.values).count == controllerCodes.count)
    for code in UInt8.min...UInt8.max {
      let error = HCIErrorCode(rawValue: code)
      #expect(error.description == numbered(controllerCodes[code] ?? "reserved error", code))
      #expect(error.isDefined == (controllerCodes[code] != nil))
    }
  }

  @Test func everyCodeOfAServer() {
    #expect(Set(attributeCodes.keys) == Set(0x01...0x13).union(0xFC...0xFF))
    #expect(Set(attributeCodes.values).count == attributeCodes.count)
    for code in UInt8.min...UInt8.max {
      let error = ATTErrorCode(rawValue: code)
      let other =
        switch code {
        case 0x80...0x9F: "application error"
        case 0xE0...0xFF: "common profile error"
        default: "reserved error"
        }
      #expect(error.description == numbered(attributeCodes[code] ?? other, code))
      #expect(error.isApplicationError == (code >= 0x80 && code < 0xA0))
      #expect(error.isCommonProfileError == (code >= 0xE0))
    }
  }

  @Test func everyStatusOfTheKernel() {
    #expect(Set(managementStatuses.keys) == Set(0x00...0x14))
    #expect(Set(managementStatuses.values).count == managementStatuses.count)
    for code in UInt8.min...UInt8.max {
      let status = ManagementStatus(rawValue: code)
      #expect(status.description == numbered(managementStatuses[code] ?? "unknown status", code))
    }
  }

  /// Beyond its own reasons the kernel passes on those of the controller.
  @Test func everyReasonOfADisconnection() {
    for code in UInt8.min...UInt8.max {
      let reason = ManagementDisconnectReason(rawValue: code)
      let passedOn = code > 5 ? controllerCodes[code] : nil
      #expect(reason.controllerReason == passedOn.map { _ in HCIErrorCode(rawValue: code) })
      #expect(
        reason.description == numbered(disconnectReasons[code] ?? passedOn ?? "unknown reason", code))
    }
  }

  @Test func theNumbersThatNameThemselves() {
    #expect(ManagementOpcode.disconnect.description == "0x0014")
    #expect(ManagementEventCode.deviceDisconnected.description == "0x000C")
  }
}
