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
