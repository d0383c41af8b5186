import BluetoothWire
import Testing

@Suite struct ManagementPacketTests {
  @Test func onlyALengthThatIsTrueIsAPacket() throws {
    let packet = ManagementPacket(code: 0x0102, index: 0x0304, parameters: [5, 6])
    #expect(packet.encoded() == hex("0201 0403 0200 0506"))
    #expect(try ManagementPacket(decoding: packet.encoded()) == packet)
    #expect(throws: ManagementDecodingError.truncatedHeader) {
      try ManagementPacket(decoding: [1, 2, 3, 4, 5])
    }
    #expect(throws: ManagementDecodingError.truncatedHeader) { try ManagementPacket(decoding: [UInt8]()) }
    #expect(throws: ManagementDecodingError.badLength(stated: 2, actual: 1)) {
      try ManagementPacket(decoding: hex("0201 0403 0200 05"))
    }
    #expect(throws: ManagementDecodingError.badLength(stated: 0, actual: 1)) {
      try ManagementPacket(decoding: hex("0201 0403 0000 05"))
    }
  }

  @Test func moreParametersThanTheLengthCanSayAreCut() throws {
    let octets = ManagementPacket(code: 1, index: 0, parameters: [UInt8](repeating: 1, count: 70_000))
      .encoded()
    #expect(try ManagementPacket(decoding: octets).parameters.count == 65_535)
  }
}

@Suite struct ManagementEventTests {
  private func event(_ octets: String) throws -> ManagementEvent {
    let parameters = hex(octets)
    let code = UInt16(parameters[0])
    return ManagementEvent(ManagementPacket(code: code, index: 0, parameters: Array(parameters.dropFirst())))
  }

  private static let layouts: [(String, ManagementEvent)] = [
    ("02 1400 14", .commandStatus(opcode: .disconnect, status: .permissionDenied)),
    ("03 10", .controllerError(code: 0x10)),
    ("04", .indexAdded),
    ("05", .indexRemoved),
    ("06 01020000", .newSettings([.powered, .lowEnergy])),
    (
      "0B 01000000DEC0 02 08000000 0300 020106",
      .deviceConnected(device: device, flags: 8, advertisingData: [2, 1, 6])
    ),
    ("0C 01000000DEC0 02 03", .deviceDisconnected(device: device, reason: .remote)),
    (
      "0C 01000000DEC0 02 63",
      .deviceDisconnected(device: device, reason: ManagementDisconnectReason(rawValue: 0x63))
    ),
    ("0D 01000000DEC0 02 04", .connectFailed(device: device, status: .connectFailed)),
    ("11 01000000DEC0 02 05", .authenticationFailed(device: device, status: .authenticationFailed)),
    (
      "12 01000000DEC0 02 C4 20000000 0100 AA",
      .deviceFound(device: device, rssi: -60, flags: 0x20, advertisingData: [0xAA])
    ),
    ("13 06 01", .discovering(types: 6, isOn: true)),
    ("13 06 00", .discovering(types: 6, isOn: false)),
    ("16 01000000DEC0 02", .deviceUnpaired(device: device)),
    (
      "1C 01000000DEC0 02 01 0600 0C00 0100 2001",
      .newConnectionParameters(
        shouldStore: true,
        parameters: ManagementConnectionParameters(
          device: device, minimumInterval: 6, maximumInterval: 12, latency: 1, supervisionTimeout: 0x0120))
    ),
    (
      "0A 01 01000000DEC0 02 03 01 10 3412 EFCDAB8967452301 \(secretOctets)",
      .newLongTermKey(shouldStore: true, key: longTermKey)
    ),
    (
      "18 00 AABBCCDDEE7F 01000000DEC0 02 \(secretOctets)",
      .newIdentityResolvingKey(
        shouldStore: false, randomAddress: BluetoothAddress(0x7FEE_DDCC_BBAA),
        key: ManagementIdentityResolvingKey(device: device, value: secret))
    ),
    (
      "18 01 000000000000 01000000DEC0 02 \(secretOctets)",
      .newIdentityResolvingKey(
        shouldStore: true, randomAddress: nil,
        key: ManagementIdentityResolvingKey(device: device, value: secret))
    ),
    (
      "19 01 01000000DEC0 02 03 \(secretOctets)",
      .newSignatureResolvingKey(
        shouldStore: true, key: ManagementSignatureResolvingKey(device: device, type: 3, value: secret))
    ),
    ("0E 01000000DEC0 00 01", .pinCodeRequest(device: classic, isSecure: true)),
    (
      "0F 01000000DEC0 02 00 3F420F00",
      .userConfirmationRequest(device: device, isYesNoOnly: false, value: 999_999)
    ),
    (
      "0F 01000000DEC0 02 01 00000000",
      .userConfirmationRequest(device: device, isYesNoOnly: true, value: 0)
    ),
    ("10 01000000DEC0 02", .userPasskeyRequest(device: device)),
    ("17 01000000DEC0 02 40E20100 03", .passkeyNotify(device: device, passkey: 123_456, entered: 3)),
    ("1A 01000000DEC0 02 02", .deviceAdded(device: device, action: 2)),
    ("1B 01000000DEC0 02", .deviceRemoved(device: device)),
    (
      "2A 01000000DEC0 02 03000000 02000000",
      .deviceFlagsChanged(device: device, supported: 3, current: 2)
    ),
    ("1D", .unconfiguredIndexAdded),
    ("1E", .unconfiguredIndexRemoved),
    ("20 00 01", .extendedIndexAdded(type: 0, bus: 1)),
    ("21 01 03", .extendedIndexRemoved(type: 1, bus: 3)),
    ("2D 01", .controllerSuspend(state: 1)),
    ("2E 01000000DEC0 02 02", .controllerResume(wakeReason: 2, device: device)),
    (
      "01 0100 00 01 1600",
      .commandComplete(
        opcode: .readVersion, status: .success, result: .version(1, revision: 22))
    ),
    (
      "01 0300 00 0200 0000 0100",
      .commandComplete(
        opcode: .readControllerIndexList, status: .success, result: .controllerIndexList([0, 1]))
    ),
    (
      "01 0300 00 0000",
      .commandComplete(
        opcode: .readControllerIndexList, status: .success, result: .controllerIndexList([]))
    ),
    (
      "01 0500 00 01020000",
      .commandComplete(
        opcode: .setPowered, status: .success, result: .settings([.powered, .lowEnergy]))
    ),
    (
      "01 1500 00 0100 01000000DEC0 02",
      .commandComplete(
        opcode: .getConnections, status: .success, result: .connections([device]))
    ),
    (
      "01 1500 00 0000", .commandComplete(opcode: .getConnections, status: .success, result: .connections([]))
    ),
    (
      "01 1400 00 01000000DEC0 02",
      .commandComplete(
        opcode: .disconnect, status: .success, result: .device(device))
    ),
    (
      "01 1400 02 01000000DEC0 02",
      .commandComplete(
        opcode: .disconnect, status: .notConnected, result: .device(device))
    ),
    (
      "01 1C00 02 01000000DEC0 02",
      .commandComplete(opcode: .userConfirmationReply, status: .notConnected, result: .device(device))
    ),
    (
      "01 1D00 00 01000000DEC0 02",
      .commandComplete(opcode: .userConfirmationNegativeReply, status: .success, result: .device(device))
    ),
    (
      "01 1E00 00 01000000DEC0 02",
      .commandComplete(opcode: .userPasskeyReply, status: .success, result: .device(device))
    ),
    (
      "01 1F00 00 01000000DEC0 02",
      .commandComplete(opcode: .userPasskeyNegativeReply, status: .success, result: .device(device))
    ),
    (
      "01 4F00 00 01000000DEC0 02 03000000 01000000",
      .commandComplete(
        opcode: .getDeviceFlags, status: .success,
        result: .deviceFlags(device: device, supported: 3, current: 1))
    ),
    (
      "01 2F00 00 01220000",
      .commandComplete(
        opcode: .setPrivacy, status: .success, result: .settings([.powered, .lowEnergy, .privacy]))
    ),
    (
      "01 3100 02 01000000DEC0 02 7F 7F 7F",
      .commandComplete(
        opcode: .getConnectionInformation, status: .notConnected, result: .device(device))
    ),
    (
      "01 0400 11",
      .commandComplete(
        opcode: .readControllerInformation, status: .invalidIndex, result: .other([]))
    ),
    ("01 1800 00", .commandComplete(opcode: .setIOCapability, status: .success, result: .other([]))),
  ]

  @Test func everyLayout() throws {
    for (octets, expected) in Self.layouts { #expect(try event(octets) == expected, "\(octets)") }
  }

  @Test func decodingStartsAtTheHeader() throws {
    #expect(
      try ManagementEvent(decoding: hex("0C00 0000 0800 01000000DEC0 02 01"))
        == .deviceDisconnected(device: device, reason: .connectionTimeout))
    #expect(throws: ManagementDecodingError.truncatedHeader) { try ManagementEvent(decoding: [0x0C]) }
  }

  /// The kernel passes on reasons that its own interface does not define.
  @Test func everyReasonIsKept() throws {
    for reason in UInt8.min...UInt8.max {
      let octets = hex("0C00 0000 0800 01000000DEC0 02") + [reason]
      #expect(
        try ManagementEvent(decoding: octets)
          == .deviceDisconnected(device: device, reason: ManagementDisconnectReason(rawValue: reason)))
    }
  }

  @Test func theSignalOfALink() throws {
    let complete = try event("01 3100 00 01000000DEC0 02 C4 08 7F")
    guard case .commandComplete(_, .success, .connectionInformation(let signal)) = complete else {
      Issue.record("read as \(complete)")
      return
    }
    #expect(signal.device == device)
    #expect(signal.rssi == -60)
    #expect(signal.transmitPower == 8)
    #expect(signal.maximumTransmitPower == nil)
  }

  @Test func whatAControllerIs() throws {
    let name = Array("relink".utf8) + [UInt8](repeating: 0, count: 243)
    let shortName = Array("re".utf8) + [UInt8](repeating: 0, count: 9)
    let parameters =
      hex("0400 00 01000000DEC0 09 5D00 FFFE0100 01020000 0C0104") + name + shortName
    let complete = ManagementEvent(ManagementPacket(code: 1, index: 0, parameters: parameters))
    guard case .commandComplete(_, .success, .controllerInformation(let information)) = complete else {
      Issue.record("read as \(complete)")
      return
    }
    #expect(information.address == device.address)
    #expect(information.version == 9)
    #expect(information.manufacturer == 0x5D)
    #expect(information.supportedSettings.rawValue == 0x0001_FEFF)
    #expect(information.currentSettings == [.powered, .lowEnergy])
    #expect(information.classOfDevice == 0x04010C)
    #expect(information.name == "relink")
    #expect(information.shortName == "re")
  }

  @Test func aShorterEventIsUnknownAndALongerOneStaysWhatItWas() throws {
    for (octets, expected) in Self.layouts {
      let parameters = Array(hex(octets).dropFirst())
      let code = hex(octets)[0]
      for count in 0..<parameters.count {
        let cut = Array(parameters.prefix(count))
        let event = ManagementEvent(ManagementPacket(code: UInt16(code), index: 0, parameters: cut))
        if case .commandComplete(_, _, .other(let rest)) = event {
          #expect(rest == Array(cut.dropFirst(3)))
        } else if case .commandComplete(_, _, .device(device)) = event {
          // A refused command for the signal of a link says the device before what it does not know.
          #expect(cut.count >= 10)
        } else {
          #expect(
            event == .unknown(event: ManagementEventCode(rawValue: UInt16(code)), parameters: cut),
            "\(octets)")
        }
      }
      if case .commandComplete(_, _, .other) = expected { continue }
      let longer = ManagementEvent(
        ManagementPacket(code: UInt16(code), index: 0, parameters: parameters + [0xEE]))
      #expect(longer == expected, "\(octets)")
    }
  }

  @Test func anyPacketIsAnswered() {
    var random = SeededGenerator(seed: 5)
    var known = 0
    for _ in 0..<50_000 {
      let packet = ManagementPacket(
        code: UInt16(random.next() % 0x34), index: random.handle(), parameters: random.bytes(0...40))
      if case .unknown(let code, let parameters) = ManagementEvent(packet) {
        #expect(code.rawValue == packet.code)
        #expect(parameters == packet.parameters)
      } else {
        known += 1
      }
    }
    #expect(known > 5_000)
  }

  @Test func anyResultIsAnswered() {
    var random = SeededGenerator(seed: 6)
    for opcode in UInt8(0)...0x5B {
      for _ in 0..<200 {
        let octets = [opcode, 0, random.octet() % 2] + random.bytes(0...300)
        let event = ManagementEvent(ManagementPacket(code: 1, index: 0, parameters: octets))
        guard case .commandComplete(let seen, let status, let result) = event else {
          Issue.record("read as \(event)")
          return
        }
        #expect(seen.rawValue == UInt16(opcode))
        #expect(status.rawValue == octets[2])
        if case .other(let rest) = result { #expect(rest == Array(octets.dropFirst(3))) }
      }
    }
  }
}
