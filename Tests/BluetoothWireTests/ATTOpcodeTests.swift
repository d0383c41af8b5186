import BluetoothWire
import Testing

@Suite struct ATTOpcodeTests {
  @Test func theFlagsAreTheTopBits() {
    for opcode in ATTOpcode.every {
      #expect(opcode.isCommand == (opcode.rawValue >> 6 & 1 == 1))
      #expect(opcode.isAuthenticated == (opcode.rawValue >> 7 == 1))
    }
    #expect(ATTOpcode.writeCommand.isCommand)
    #expect(!ATTOpcode.writeCommand.isAuthenticated)
    #expect(ATTOpcode.signedWriteCommand.isCommand)
    #expect(ATTOpcode.signedWriteCommand.isAuthenticated)
  }

  @Test func everyRequestHasTheResponseThatFollowsIt() {
    let requests: [ATTOpcode: ATTOpcode] = [
      .exchangeMTURequest: .exchangeMTUResponse, .findInformationRequest: .findInformationResponse,
      .findByTypeValueRequest: .findByTypeValueResponse, .readByTypeRequest: .readByTypeResponse,
      .readRequest: .readResponse, .readBlobRequest: .readBlobResponse,
      .readMultipleRequest: .readMultipleResponse, .readByGroupTypeRequest: .readByGroupTypeResponse,
      .writeRequest: .writeResponse, .prepareWriteRequest: .prepareWriteResponse,
      .executeWriteRequest: .executeWriteResponse,
      .readMultipleVariableRequest: .readMultipleVariableResponse,
    ]
    for opcode in ATTOpcode.every {
      #expect(opcode.responseOpcode == requests[opcode], "\(opcode)")
      #expect((opcode.kind == .request) == (requests[opcode] != nil), "\(opcode)")
    }
    let responses = Set(requests.values).union([.errorResponse])
    for opcode in ATTOpcode.every {
      #expect((opcode.kind == .response) == responses.contains(opcode), "\(opcode)")
    }
  }

  @Test func theOtherKinds() {
    #expect(ATTOpcode.handleValueNotification.kind == .notification)
    #expect(ATTOpcode.multipleHandleValueNotification.kind == .notification)
    #expect(ATTOpcode.handleValueIndication.kind == .indication)
    #expect(ATTOpcode.handleValueConfirmation.kind == .confirmation)
    for opcode in ATTOpcode.every where opcode.isCommand { #expect(opcode.kind == .command) }
    for number in [0x00, 0x14, 0x15, 0x1A, 0x1C, 0x1F, 0x22, 0x24, 0x3F, 0x80, 0x8A] as [UInt8] {
      #expect(ATTOpcode(rawValue: number).kind == .unknown)
      #expect(!ATTOpcode(rawValue: number).isKnown)
    }
    #expect(!ATTOpcode(rawValue: 0x40).isKnown)
    #expect(ATTOpcode.readRequest.description == "0x0A")
  }
}

@Suite struct ATTErrorCodeTests {
  @Test func theRangesOfTheCodes() {
    for code in UInt8.min...UInt8.max {
      let error = ATTErrorCode(rawValue: code)
      #expect(error.isApplicationError == (code >= 0x80 && code < 0xA0))
      #expect(error.isCommonProfileError == (code >= 0xE0))
    }
  }

  @Test(
    arguments: [
      (0x01, "invalid handle (0x01)"), (0x05, "insufficient authentication (0x05)"),
      (0x0A, "attribute not found (0x0A)"), (0x12, "database out of sync (0x12)"),
      (0x13, "value not allowed (0x13)"), (0x14, "reserved error (0x14)"), (0x80, "application error (0x80)"),
      (0x9F, "application error (0x9F)"), (0xA0, "reserved error (0xA0)"),
      (0xE0, "common profile error (0xE0)"),
      (0xFC, "write request rejected (0xFC)"), (0xFF, "out of range (0xFF)"),
    ] as [(UInt8, String)])
  func theDescriptionIsNameAndNumber(code: UInt8, text: String) {
    #expect(ATTErrorCode(rawValue: code).description == text)
  }

  @Test func everyDefinedCodeHasItsOwnName() {
    let defined = [UInt8](0x01...0x13) + [UInt8](0xFC...0xFF)
    let names = defined.map { ATTErrorCode(rawValue: $0).description.prefix { $0 != "(" } }
    #expect(Set(names).count == defined.count)
    #expect(!names.contains { $0.hasPrefix("reserved") || $0.hasPrefix("common") })
  }
}

@Suite struct HCIErrorCodeTests {
  @Test(
    arguments: [
      (0x00, "success (0x00)"), (0x05, "authentication failure (0x05)"), (0x06, "PIN or key missing (0x06)"),
      (0x08, "connection timeout (0x08)"), (0x13, "remote user terminated connection (0x13)"),
      (0x15, "remote device terminated connection due to power off (0x15)"),
      (0x16, "connection terminated by local host (0x16)"), (0x22, "LMP or LL response timeout (0x22)"),
      (0x28, "instant passed (0x28)"), (0x3B, "unacceptable connection parameters (0x3B)"),
      (0x3D, "connection terminated due to MIC failure (0x3D)"),
      (0x3E, "connection failed to be established (0x3E)"), (0x2B, "reserved error (0x2B)"),
      (0x45, "packet too long (0x45)"), (0xFF, "reserved error (0xFF)"),
    ] as [(UInt8, String)])
  func theDescriptionIsNameAndNumber(code: UInt8, text: String) {
    #expect(HCIErrorCode(rawValue: code).description == text)
  }

  @Test func everyDefinedCodeHasItsOwnName() {
    // 0x2B, 0x31 and 0x33 are reserved.
    let defined = [UInt8](0x00...0x48).filter { ![0x2B, 0x31, 0x33].contains($0) }
    let names = Set(defined.map { HCIErrorCode(rawValue: $0).description.prefix { $0 != "(" } })
    #expect(names.count == defined.count)
    #expect(!names.contains("reserved error "))
  }

  @Test func theReasonsThatEndLinks() {
    #expect(HCIErrorCode.connectionTimeout.rawValue == 0x08)
    #expect(HCIErrorCode.remoteUserTerminatedConnection.rawValue == 0x13)
    #expect(HCIErrorCode.remoteDeviceTerminatedPowerOff.rawValue == 0x15)
    #expect(HCIErrorCode.connectionTerminatedByLocalHost.rawValue == 0x16)
    #expect(HCIErrorCode.lmpOrLLResponseTimeout.rawValue == 0x22)
    #expect(HCIErrorCode.connectionTerminatedMICFailure.rawValue == 0x3D)
    #expect(HCIErrorCode.connectionFailedToBeEstablished.rawValue == 0x3E)
    #expect(HCIErrorCode.pinOrKeyMissing.rawValue == 0x06)
  }
}
