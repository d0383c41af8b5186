import BluetoothWire
import RelinkCore
import Testing

@Suite struct ReadProcedureTests {
  private static let part = [UInt8](repeating: 7, count: 22)

  @Test(arguments: [0, 1, 21]) func valueThatDoesNotFillItsPDUIsWhole(_ count: Int) {
    var procedure = ReadProcedure(handle: 0x10)
    #expect(procedure.first == .readRequest(handle: 0x10))
    let value = [UInt8](repeating: 7, count: count)
    #expect(procedure.received(.readResponse(value: value), mtu: 23) == .finished(.success(.value(value))))
  }

  @Test(arguments: [0, 1, 21]) func valueThatFillsItsPDUGoesOn(_ rest: Int) {
    var procedure = ReadProcedure(handle: 0x10)
    #expect(
      procedure.received(.readResponse(value: Self.part), mtu: 23)
        == .request(.readBlobRequest(handle: 0x10, offset: 22)))
    #expect(
      procedure.received(.readBlobResponse(value: Self.part), mtu: 23)
        == .request(.readBlobRequest(handle: 0x10, offset: 44)))
    let last = [UInt8](repeating: 8, count: rest)
    #expect(
      procedure.received(.readBlobResponse(value: last), mtu: 23)
        == .finished(.success(.value(Self.part + Self.part + last))))
  }

  @Test(arguments: [ATTErrorCode.invalidOffset, .attributeNotLong, .requestNotSupported])
  func errorsThatSayThatThereIsNoMoreEndTheValue(_ code: ATTErrorCode) {
    var procedure = ReadProcedure(handle: 0x10)
    _ = procedure.received(.readResponse(value: Self.part), mtu: 23)
    #expect(
      procedure.received(.errorResponse(request: .readBlobRequest, handle: 0x10, code: code), mtu: 23)
        == .finished(.success(.value(Self.part))))
  }

  @Test func requestNotSupportedAfterASecondPartIsAnError() {
    var procedure = ReadProcedure(handle: 0x10)
    _ = procedure.received(.readResponse(value: Self.part), mtu: 23)
    _ = procedure.received(.readBlobResponse(value: Self.part), mtu: 23)
    #expect(
      procedure.received(
        .errorResponse(request: .readBlobRequest, handle: 0x10, code: .requestNotSupported), mtu: 23)
        == .finished(.failure(.rejected(.requestNotSupported))))
  }

  @Test(arguments: [ATTOpcode.readRequest, .readBlobRequest])
  func otherErrorsAreTheDevicesAnswer(_ request: ATTOpcode) {
    var procedure = ReadProcedure(handle: 0x10)
    if request == .readBlobRequest { _ = procedure.received(.readResponse(value: Self.part), mtu: 23) }
    #expect(
      procedure.received(.errorResponse(request: request, handle: 0x10, code: .unlikelyError), mtu: 23)
        == .finished(.failure(.rejected(.unlikelyError))))
  }

  @Test func noMoreThan512BytesAreAskedFor() {
    var procedure = ReadProcedure(handle: 0x10)
    let part = [UInt8](repeating: 1, count: 256)
    #expect(
      procedure.received(.readResponse(value: part), mtu: 257)
        == .request(.readBlobRequest(handle: 0x10, offset: 256)))
    #expect(
      procedure.received(.readBlobResponse(value: part), mtu: 257)
        == .finished(.success(.value(part + part))))
  }

  @Test func deviceThatNeverStopsIsAViolation() {
    var procedure = ReadProcedure(handle: 0x10)
    var action = procedure.received(.readResponse(value: Self.part), mtu: 23)
    var requests = 1
    while case .request = action {
      requests += 1
      action = procedure.received(.readBlobResponse(value: Self.part), mtu: 23)
    }
    #expect(action == .failed(.malformedAnswer, .valueTooLong(limit: 512)))
    #expect(requests == 24)
  }
}

@Suite struct GATTProcedureTests {
  @Test(arguments: [
    (517, 203, 203), (203, 517, 203), (517, 23, 23), (517, 22, 23), (517, 0, 23), (517, 0xFFFF, 517),
  ])
  func agreedMTUIsTheLesserOneAndAtLeast23(_ offered: Int, _ theirs: UInt16, _ agreed: Int) {
    var procedure = GATTProcedure.exchangeMTU(offered: offered)
    #expect(
      procedure.received(.exchangeMTUResponse(mtu: theirs), mtu: 23) == .finished(.success(.mtu(agreed))))
  }

  @Test func refusedExchangeLeaves23() {
    var procedure = GATTProcedure.exchangeMTU(offered: 517)
    #expect(
      procedure.received(
        .errorResponse(request: .exchangeMTURequest, handle: 0, code: .requestNotSupported), mtu: 23)
        == .finished(.success(.mtu(23))))
  }

  @Test(arguments: [
    ATTPDU.readResponse(value: [1]), .executeWriteResponse, .handleValueConfirmation,
    .unknown(opcode: ATTOpcode(rawValue: 0x30), parameters: []),
  ])
  func whatIsNoAnswerToItIsNoSuccess(_ pdu: ATTPDU) {
    let malformed = ProcedureAction.failed(.malformedAnswer, .malformedResponse(pdu.opcode))
    var write = GATTProcedure.write
    #expect(write.received(pdu, mtu: 23) == malformed)
    var exchange = GATTProcedure.exchangeMTU(offered: 517)
    #expect(exchange.received(pdu, mtu: 23) == malformed)
    var discovery = GATTProcedure.discovery(DiscoveryProcedure(known: nil))
    #expect(discovery.received(pdu, mtu: 23) == malformed)
  }

  @Test func writeIsDoneOrRejected() {
    var procedure = GATTProcedure.write
    #expect(procedure.received(.writeResponse, mtu: 23) == .finished(.success(.done)))
    #expect(
      procedure.received(
        .errorResponse(request: .writeRequest, handle: 1, code: .writeNotPermitted), mtu: 23)
        == .finished(.failure(.rejected(.writeNotPermitted))))
  }
}

@Suite struct QueuedWriteProcedureTests {
  private static let value = (0..<40).map { UInt8($0) }
  private var procedure = QueuedWriteProcedure(handle: 0x10, value: value, mtu: 23)
  private static let first = ATTPDU.prepareWriteResponse(handle: 0x10, offset: 0, value: Array(value[..<18]))
  private static let second = ATTPDU.prepareWriteResponse(
    handle: 0x10, offset: 18, value: Array(value[18..<36]))
  private static let third = ATTPDU.prepareWriteResponse(handle: 0x10, offset: 36, value: Array(value[36...]))
  private static let clear = ProcedureAction.request(.executeWriteRequest(commit: false))

  @Test mutating func valueIsQueuedInPartsAndExecuted() {
    #expect(
      procedure.first == .prepareWriteRequest(handle: 0x10, offset: 0, value: Array(Self.value[..<18])))
    #expect(
      procedure.received(Self.first)
        == .request(.prepareWriteRequest(handle: 0x10, offset: 18, value: Array(Self.value[18..<36]))))
    #expect(
      procedure.received(Self.second)
        == .request(.prepareWriteRequest(handle: 0x10, offset: 36, value: Array(Self.value[36...]))))
    #expect(!procedure.isExecuting)
    #expect(procedure.received(Self.third) == .request(.executeWriteRequest(commit: true)))
    #expect(procedure.isExecuting)
    #expect(procedure.received(.executeWriteResponse) == .finished(.success(.done)))
  }

  @Test func emptyValueIsOneEmptyPart() {
    var procedure = QueuedWriteProcedure(handle: 0x10, value: [], mtu: 23)
    #expect(procedure.first == .prepareWriteRequest(handle: 0x10, offset: 0, value: []))
    #expect(
      procedure.received(.prepareWriteResponse(handle: 0x10, offset: 0, value: []))
        == .request(.executeWriteRequest(commit: true)))
  }

  @Test(
    arguments: [
      .prepareWriteResponse(handle: 0x11, offset: 0, value: Array(value[..<18])),
      .prepareWriteResponse(handle: 0x10, offset: 1, value: Array(value[..<18])),
      .prepareWriteResponse(handle: 0x10, offset: 0, value: Array(value[..<17])),
      .prepareWriteResponse(handle: 0x10, offset: 0, value: Array(value[..<17]) + [0xFF]),
    ] as [ATTPDU])
  mutating func partThatComesBackChangedClearsTheQueue(_ echo: ATTPDU) {
    #expect(procedure.received(echo) == Self.clear)
    #expect(!procedure.isExecuting)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.refused(.prepareMismatch))))
  }

  @Test mutating func errorForAPartClearsTheQueueAndIsTheAnswer() {
    _ = procedure.received(Self.first)
    #expect(
      procedure.received(.errorResponse(request: .prepareWriteRequest, handle: 0x10, code: .prepareQueueFull))
        == Self.clear)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.rejected(.prepareQueueFull))))
  }

  @Test mutating func errorForExecuteIsTheAnswer() {
    for part in [Self.first, Self.second, Self.third] { _ = procedure.received(part) }
    #expect(
      procedure.received(.errorResponse(request: .executeWriteRequest, handle: 0x10, code: .invalidOffset))
        == .finished(.failure(.executionRejected(.invalidOffset))))
  }

  @Test mutating func calledOffBeforeExecuteClearsTheQueue() {
    _ = procedure.received(Self.first)
    _ = procedure.received(Self.second)
    procedure.calledOff()
    #expect(procedure.received(Self.third) == Self.clear)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.refused(.calledOff))))
  }

  @Test mutating func calledOffWhileExecutingChangesNothing() {
    for part in [Self.first, Self.second, Self.third] { _ = procedure.received(part) }
    procedure.calledOff()
    #expect(procedure.received(.executeWriteResponse) == .finished(.success(.done)))
  }

  @Test mutating func executeThatHasNotLeftIsReplaced() {
    for part in [Self.first, Self.second, Self.third] { _ = procedure.received(part) }
    #expect(procedure.executionCalledOff() == .executeWriteRequest(commit: false))
    #expect(!procedure.isExecuting)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.refused(.calledOff))))
  }

  @Test mutating func queueThatCannotBeClearedEndsTheBearer() {
    _ = procedure.received(Self.first)
    procedure.calledOff()
    _ = procedure.received(Self.second)
    #expect(
      procedure.received(.errorResponse(request: .executeWriteRequest, handle: 0, code: .unlikelyError))
        == .failed(.refused(.calledOff), .queueNotCleared(handle: 0x10)))
  }

  @Test mutating func serverWithoutAQueueHasNoneToClear() {
    #expect(
      procedure.received(.errorResponse(request: .prepareWriteRequest, handle: 0, code: .requestNotSupported))
        == Self.clear)
    #expect(
      procedure.received(.errorResponse(request: .executeWriteRequest, handle: 0, code: .requestNotSupported))
        == .finished(.failure(.rejected(.requestNotSupported))))
  }

  @Test(arguments: [23, 24, 64, 517, 5, 0]) func everyMTUMakesProgress(_ mtu: Int) {
    var procedure = QueuedWriteProcedure(
      handle: 1, value: [UInt8](repeating: 3, count: 512), mtu: mtu)
    var pdu = procedure.first
    var written: [UInt8] = []
    while case .prepareWriteRequest(let handle, let offset, let value) = pdu {
      #expect(Int(offset) == written.count)
      written += value
      guard
        case .request(let next) = procedure.received(
          .prepareWriteResponse(handle: handle, offset: offset, value: value))
      else { break }
      pdu = next
    }
    #expect(pdu == .executeWriteRequest(commit: true))
    #expect(written.count == 512)
  }
}
