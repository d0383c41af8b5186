import BluetoothWire
import RelinkCore
import Testing

/// The queued write of several values: 20 bytes in two parts for one handle, 2 bytes for another, none for a third.
@Suite struct ReliableWriteTests {
  private static let long = (0..<20).map { UInt8($0) }
  private static let parts: [(handle: UInt16, offset: UInt16, value: [UInt8])] = [
    (0x10, 0, Array(long[..<18])), (0x10, 18, Array(long[18...])), (0x20, 0, [7, 8]), (0x30, 0, []),
  ]
  private static let requests = parts.map {
    ProcedureAction.request(.prepareWriteRequest(handle: $0.handle, offset: $0.offset, value: $0.value))
  }
  private static let echoes = parts.map {
    ATTPDU.prepareWriteResponse(handle: $0.handle, offset: $0.offset, value: $0.value)
  }
  private static let clear = ProcedureAction.request(.executeWriteRequest(commit: false))

  private var procedure = QueuedWriteProcedure(
    [
      QueuedWriteProcedure.Write(handle: 0x10, value: long),
      QueuedWriteProcedure.Write(handle: 0x20, value: [7, 8]),
      QueuedWriteProcedure.Write(handle: 0x30, value: []),
    ], mtu: 23)

  @Test mutating func allPartsAreQueuedInOrderAndExecutedOnce() {
    #expect(ProcedureAction.request(procedure.first) == Self.requests[0])
    for index in 0..<3 { #expect(procedure.received(Self.echoes[index]) == Self.requests[index + 1]) }
    #expect(!procedure.isExecuting)
    #expect(procedure.received(Self.echoes[3]) == .request(.executeWriteRequest(commit: true)))
    #expect(procedure.isExecuting)
    #expect(procedure.received(.executeWriteResponse) == .finished(.success(.done)))
  }

  /// What a device may say for each part in place of its echo: another handle, offset, length or byte, or the echo of
  /// the part before.
  @Test(arguments: 0..<4, 0..<5) mutating func aPartThatComesBackChangedClearsTheQueue(
    _ part: Int, _ way: Int
  ) {
    for echo in Self.echoes[..<part] { _ = procedure.received(echo) }
    let (handle, offset, value) = Self.parts[part]
    let echo: ATTPDU =
      switch way {
      case 0: .prepareWriteResponse(handle: handle + 1, offset: offset, value: value)
      case 1: .prepareWriteResponse(handle: handle, offset: offset + 1, value: value)
      case 2: .prepareWriteResponse(handle: handle, offset: offset, value: value + [0])
      case 3: .prepareWriteResponse(handle: handle, offset: offset, value: [0xFF] + value.dropFirst())
      default: part > 0 ? Self.echoes[part - 1] : Self.echoes[1]
      }
    #expect(procedure.received(echo) == Self.clear)
    #expect(!procedure.isExecuting)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.refused(.prepareMismatch))))
  }

  @Test(arguments: 0..<4) mutating func anErrorForAPartClearsTheQueueAndIsTheAnswer(_ part: Int) {
    for echo in Self.echoes[..<part] { _ = procedure.received(echo) }
    let full = ATTPDU.errorResponse(request: .prepareWriteRequest, handle: 0x20, code: .prepareQueueFull)
    #expect(procedure.received(full) == Self.clear)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.rejected(.prepareQueueFull))))
  }

  @Test(arguments: 0..<4) mutating func calledOffBehindAnyPartClearsTheQueue(_ part: Int) {
    for echo in Self.echoes[..<part] { _ = procedure.received(echo) }
    procedure.calledOff()
    #expect(procedure.received(Self.echoes[part]) == Self.clear)
    #expect(procedure.received(.executeWriteResponse) == .finished(.failure(.refused(.calledOff))))
  }

  @Test mutating func anErrorForExecuteIsTheAnswer() {
    for echo in Self.echoes { _ = procedure.received(echo) }
    #expect(
      procedure.received(.errorResponse(request: .executeWriteRequest, handle: 0x20, code: .invalidOffset))
        == .finished(.failure(.executionRejected(.invalidOffset))))
  }

  @Test mutating func calledOffWhileExecutingChangesNothing() {
    for echo in Self.echoes { _ = procedure.received(echo) }
    procedure.calledOff()
    #expect(procedure.received(.executeWriteResponse) == .finished(.success(.done)))
  }

  @Test mutating func aQueueThatCannotBeClearedEndsTheBearer() {
    for echo in Self.echoes[..<3] { _ = procedure.received(echo) }
    procedure.calledOff()
    _ = procedure.received(Self.echoes[3])
    #expect(
      procedure.received(.errorResponse(request: .executeWriteRequest, handle: 0, code: .unlikelyError))
        == .failed(.refused(.calledOff), .queueNotCleared(handle: 0x10)))
  }

  @Test func aRequestNamesEachOfItsCharacteristicsOnce() {
    let (one, other) = (Characteristic(.batteryLevel), Characteristic(.heartRateMeasurement))
    let request = GATTRequest.writeReliably([
      ReliableWrite(other, [1]), ReliableWrite(one, [2]), ReliableWrite(other, [3]),
    ])
    #expect(request.characteristics == [other, one])
    #expect(request.characteristic == nil)
    #expect(GATTRequest.writeLong(one, []).characteristics == [one])
    #expect(GATTRequest.discover.characteristics == [])
  }
}
