import BluetoothWire
import Testing

@Suite struct HCIEventTests {
  private static let peer = BluetoothAddress("F0:F0:F0:F0:F0:02")!
  private static let other = BluetoothAddress("7F:EE:DD:CC:BB:AA")!

  private static let connection = HCIEvent.connectionComplete(
    HCIConnection(
      status: .success, handle: 1, isCentral: true, peerAddressType: .randomDevice, peerAddress: peer,
      interval: 24, latency: 0, supervisionTimeout: 42))

  private static let resolved = HCIEvent.connectionComplete(
    HCIConnection(
      status: .success, handle: 0x40, isCentral: false, peerAddressType: .randomIdentity, peerAddress: peer,
      peerPrivateAddress: other, interval: 6, latency: 4, supervisionTimeout: 500))

  /// Packets in octets: what a raw socket gave, and the tables of Core Specification Vol 4 Part E 7.7.
  static let layouts: [(String, HCIEvent)] = [
    ("04 05 04 00 0100 08", .disconnectionComplete(status: .success, handle: 1, reason: .connectionTimeout)),
    (
      "04 05 04 02 FF0E 00",
      .disconnectionComplete(status: .unknownConnectionIdentifier, handle: 0xEFF, reason: .success)
    ),
    // The four bits above a handle are reserved.
    (
      "04 05 04 00 01F0 3D",
      .disconnectionComplete(status: .success, handle: 1, reason: .connectionTerminatedMICFailure)
    ),
    (
      "04 08 04 06 4000 00",
      .encryptionChange(status: .pinOrKeyMissing, handle: 0x40, isOn: false, keySize: nil)
    ),
    ("04 08 04 00 0100 01", .encryptionChange(status: .success, handle: 1, isOn: true, keySize: nil)),
    ("04 59 05 00 0100 01 10", .encryptionChange(status: .success, handle: 1, isOn: true, keySize: 16)),
    ("04 30 03 05 0100", .encryptionKeyRefreshComplete(status: .authenticationFailure, handle: 1)),
    ("04 0E 04 01 030C 00", .commandComplete(opcode: .reset, status: .success, returnParameters: [0])),
    (
      "04 0E 06 01 1A20 02 4000",
      .commandComplete(
        opcode: .longTermKeyRequestReply, status: .unknownConnectionIdentifier,
        returnParameters: [2, 0x40, 0])
    ),
    ("04 0E 03 01 0000", .commandComplete(opcode: .none, status: nil, returnParameters: [])),
    ("04 0F 04 0C 01 0D20", .commandStatus(opcode: .createConnection, status: .commandDisallowed)),
    ("04 10 01 20", .hardwareError(code: 0x20)),
    ("04 3E 13 01 00 0100 00 01 02F0F0F0F0F0 1800 0000 2A00 00", connection),
    (
      "04 3E 1F 0A 00 4000 01 03 02F0F0F0F0F0 000000000000 AABBCCDDEE7F 0600 0400 F401 05",
      resolved
    ),
    (
      "04 3E 22 29 00 4000 01 03 02F0F0F0F0F0 000000000000 AABBCCDDEE7F 0600 0400 F401 05 FF FFFF",
      resolved
    ),
    (
      "04 3E 0A 03 3B 0100 0600 0000 6400",
      .connectionUpdateComplete(
        status: .unacceptableConnectionParameters, handle: 1, interval: 6, latency: 0, supervisionTimeout: 100
      )
    ),
    (
      "04 3E 0D 05 0100 EFCDAB8967452301 3412",
      .longTermKeyRequest(handle: 1, randomNumber: 0x0123_4567_89AB_CDEF, encryptedDiversifier: 0x1234)
    ),
    (
      "04 3E 21 02 01 00 01 02F0F0F0F0F0 15 020106 0709 52656C696E6B 05030D180F18 03190003 C4",
      .advertisingReports([
        HCIAdvertisingReport(
          eventType: 0, addressType: .randomDevice, address: peer,
          advertisingData: hex("020106 0709 52656C696E6B 05030D180F18 03190003"), rssi: -60)
      ])
    ),
    (
      "04 3E 1B 02 02 00 01 02F0F0F0F0F0 03 020106 C4 04 00 AABBCCDDEE7F 02 01FF 7F",
      .advertisingReports([
        HCIAdvertisingReport(
          eventType: 0, addressType: .randomDevice, address: peer, advertisingData: [2, 1, 6], rssi: -60),
        HCIAdvertisingReport(
          eventType: 4, addressType: .publicDevice, address: other, advertisingData: [1, 0xFF], rssi: nil),
      ])
    ),
    (
      "04 3E 35 0D 02 1300 01 02F0F0F0F0F0 01 00 FF 7F C4 0000 00 000000000000 03 020106"
        + "2100 FF 000000000000 01 02 03 08 B0 5000 00 000000000000 00",
      .extendedAdvertisingReports([
        HCIExtendedAdvertisingReport(
          eventType: 0x13, addressType: .randomDevice, address: peer, transmitPower: nil, rssi: -60,
          advertisingData: [2, 1, 6]),
        HCIExtendedAdvertisingReport(
          eventType: 0x21, addressType: .anonymous, address: BluetoothAddress(0), transmitPower: 8, rssi: -80,
          advertisingData: []),
      ])
    ),
    ("04 13 05 01 0100 0200", .unknown(code: HCIEventCode(rawValue: 0x13), parameters: [1, 1, 0, 2, 0])),
    ("04 3E 02 FF 01", .unknown(code: .lowEnergyMeta, parameters: [0xFF, 1])),
    // A list that says that it is empty, and one that holds less than it says.
    ("04 3E 02 02 00", .unknown(code: .lowEnergyMeta, parameters: [2, 0])),
    ("04 3E 02 0D 00", .unknown(code: .lowEnergyMeta, parameters: [0x0D, 0])),
    (
      "04 3E 0C 02 02 00 01 02F0F0F0F0F0 00 C4",
      .unknown(code: .lowEnergyMeta, parameters: hex("02 02 00 01 02F0F0F0F0F0 00 C4"))
    ),
  ]

  @Test func everyLayout() throws {
    for (octets, expected) in Self.layouts {
      #expect(try HCIEvent(decoding: hex(octets)) == expected, "\(octets)")
    }
  }

  @Test func aCutPacketIsNoEvent() {
    for (octets, _) in Self.layouts {
      let packet = hex(octets)
      for count in 0..<packet.count {
        #expect(
          throws: count < 3
            ? HCIDecodingError.truncatedHeader : .badLength(stated: packet.count - 3, actual: count - 3)
        ) {
          try HCIEvent(decoding: Array(packet.prefix(count)))
        }
      }
    }
  }

  @Test func onlyAnEventWhoseLengthIsTrueIsRead() {
    #expect(throws: HCIDecodingError.badLength(stated: 1, actual: 2)) {
      try HCIEvent(decoding: [0x04, 0x10, 1, 0, 0])
    }
    for type in UInt8.min...UInt8.max where type != HCIEvent.packetType {
      #expect(throws: HCIDecodingError.notAnEvent(packetType: type)) {
        try HCIEvent(decoding: [type, 0x10, 1, 0])
      }
    }
  }

  /// As with mgmt: parameters that are too few are kept as they are, and those that are too many are ignored.
  @Test func aShorterEventIsUnknownAndALongerOneStaysWhatItWas() {
    for (octets, expected) in Self.layouts {
      let packet = hex(octets)
      let code = HCIEventCode(rawValue: packet[1])
      let parameters = Array(packet.dropFirst(3))
      if case .unknown = expected { continue }
      for count in parameters.indices {
        let cut = Array(parameters.prefix(count))
        let event = HCIEvent(code: code, parameters: cut.span.bytes)
        if case .commandComplete(_, let status, let rest) = event {
          #expect(rest == Array(cut.dropFirst(3)))
          #expect(status?.rawValue == rest.first)
        } else {
          #expect(event == .unknown(code: code, parameters: cut), "\(octets)")
        }
      }
      if case .commandComplete = expected { continue }
      let longer = parameters + [0xEE]
      #expect(HCIEvent(code: code, parameters: longer.span.bytes) == expected, "\(octets)")
    }
  }

  /// A controller may invent reasons; each arrives as it was said.
  @Test func everyReasonIsKept() throws {
    for reason in UInt8.min...UInt8.max {
      #expect(
        try HCIEvent(decoding: [0x04, 0x05, 4, 0, 1, 0, reason])
          == .disconnectionComplete(status: .success, handle: 1, reason: HCIErrorCode(rawValue: reason)))
    }
  }

  @Test func anyParametersAreAnswered() {
    var random = SeededGenerator(seed: 8)
    var known = 0
    for code in UInt8.min...UInt8.max {
      for _ in 0..<400 {
        var parameters = random.bytes(0...255)
        if code == HCIEventCode.lowEnergyMeta.rawValue, !parameters.isEmpty { parameters[0] %= 0x2B }
        let event = HCIEvent(code: HCIEventCode(rawValue: code), parameters: parameters.span.bytes)
        if case .unknown(let seen, let rest) = event {
          #expect(seen.rawValue == code)
          #expect(rest == parameters)
        } else {
          known += 1
        }
      }
    }
    #expect(known > 2_000)
  }

  @Test func theDeviceAtTheOtherEndAsTheKernelNamesIt() {
    var connection = HCIConnection(
      status: .success, handle: 1, isCentral: true, peerAddressType: .randomDevice, peerAddress: Self.peer,
      interval: 24, latency: 0, supervisionTimeout: 42)
    let types: [(UInt8, ManagementAddressType?)] = [
      (0, .lePublic), (1, .leRandom), (2, .lePublic), (3, .leRandom), (4, nil), (0xFE, nil), (0xFF, nil),
    ]
    for (octet, type) in types {
      connection.peerAddressType = HCIAddressType(rawValue: octet)
      #expect(connection.peer == type.map { ManagementAddress(Self.peer, $0) })
    }
  }

  @Test func whatMayBeConnectedTo() {
    for type in UInt8(0)...4 {
      let report = HCIAdvertisingReport(
        eventType: type, addressType: .randomDevice, address: Self.peer, advertisingData: [], rssi: nil)
      #expect(report.isConnectable == (type < 2))
    }
    for type in [UInt16(0x13), 0x12, 0x1A, 0x15] {
      let report = HCIExtendedAdvertisingReport(
        eventType: type, addressType: .randomDevice, address: Self.peer, transmitPower: nil, rssi: nil,
        advertisingData: [])
      #expect(report.isConnectable == (type == 0x13 || type == 0x15))
    }
  }

  @Test func theDescriptionsOfTheNumbers() {
    #expect(HCIEventCode.lowEnergyMeta.description == "0x3E")
    #expect(HCISubeventCode.enhancedConnectionComplete.description == "0x0A")
    #expect(HCIOpcode.createConnection.description == "0x200D")
  }
}
