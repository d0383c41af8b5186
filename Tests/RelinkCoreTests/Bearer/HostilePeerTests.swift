import BluetoothWire
import RelinkCore
import Testing

/// One PDU of each kind that the protocol has, and of the kinds that it has not.
private let oneOfEach: [ATTPDU] = [
  .errorResponse(request: .readRequest, handle: 1, code: .invalidHandle),
  .exchangeMTURequest(mtu: 23), .exchangeMTUResponse(mtu: 23),
  .findInformationRequest(start: 1, end: 2),
  .findInformationResponse([ATTHandleUUID(handle: 1, uuid: .serviceChanged)]),
  .findByTypeValueRequest(start: 1, end: 2, type: 0x2800, value: [1]),
  .findByTypeValueResponse([ATTHandleRange(start: 1, end: 2)]),
  .readByTypeRequest(start: 1, end: 2, type: .characteristic),
  .readByTypeResponse([ATTHandleValue(handle: 1, value: [1])]),
  .readRequest(handle: 1), .readResponse(value: [1]),
  .readBlobRequest(handle: 1, offset: 1), .readBlobResponse(value: [1]),
  .readMultipleRequest(handles: [1, 2]), .readMultipleResponse(value: [1]),
  .readByGroupTypeRequest(start: 1, end: 2, type: .primaryService),
  .readByGroupTypeResponse([ATTGroupValue(start: 1, end: 2, value: [0, 0x18])]),
  .readMultipleVariableRequest(handles: [1, 2]), .readMultipleVariableResponse([[1], [2]]),
  .writeRequest(handle: 1, value: [1]), .writeResponse, .writeCommand(handle: 1, value: [1]),
  .prepareWriteRequest(handle: 1, offset: 0, value: [1]),
  .prepareWriteResponse(handle: 1, offset: 0, value: [1]),
  .executeWriteRequest(commit: true), .executeWriteResponse,
  .handleValueNotification(handle: 1, value: [1]), .handleValueIndication(handle: 1, value: [1]),
  .multipleHandleValueNotification([
    ATTHandleValue(handle: 1, value: [1]), ATTHandleValue(handle: 2, value: [2]),
  ]),
  .handleValueConfirmation,
  .unknown(opcode: ATTOpcode(rawValue: 0x2A), parameters: [1]),
  .unknown(opcode: ATTOpcode(rawValue: 0x6A), parameters: [1]),
]

private let requests: [ATTOpcode] = [
  .exchangeMTURequest, .findInformationRequest, .readByTypeRequest, .readRequest, .readBlobRequest,
  .readByGroupTypeRequest, .writeRequest, .prepareWriteRequest, .executeWriteRequest,
]

@Suite struct HostilePeerTests {
  /// What any bearer that is open does with a PDU, by its documentation; nil for responses.
  private func besideRequests(_ pdu: ATTPDU) -> BearerStateMachine.ReceivedAction? {
    switch pdu {
    case .handleValueNotification(let handle, let value): return .notified(handle: handle, value: value)
    case .handleValueIndication(let handle, let value): return .indicated(handle: handle, value: value)
    case .multipleHandleValueNotification(let values): return .notifiedSeveral(values)
    default:
      switch pdu.opcode.kind {
      case .response: return nil
      case .request, .unknown:
        return .reply(.errorResponse(request: pdu.opcode, handle: 0, code: .requestNotSupported))
      default: return BearerStateMachine.ReceivedAction.none
      }
    }
  }

  @Test(arguments: oneOfEach) func unsolicitedOnAFreeBearer(_ pdu: ATTPDU) {
    var bearer = BearerStateMachine()
    let expected = besideRequests(pdu) ?? .end(.protocolViolation(.surplusResponse(pdu.opcode)))
    #expect(bearer.received(pdu) == expected)
    #expect((bearer.end == nil) == (besideRequests(pdu) != nil))
  }

  @Test(arguments: oneOfEach) func unsolicitedBesideEachRequest(_ pdu: ATTPDU) {
    for request in requests {
      for isAbandoned in [false, true] {
        var bearer = BearerStateMachine()
        _ = bearer.requestSent(request, now: .zero)
        if isAbandoned { bearer.requestAbandoned() }
        let isAnswer: Bool
        if case .errorResponse(let named, _, _) = pdu {
          isAnswer = named == request
        } else {
          isAnswer = request.responseOpcode == pdu.opcode
        }
        let expected =
          besideRequests(pdu)
          ?? (isAnswer
            ? .answered(pdu, wasAbandoned: isAbandoned)
            : .end(.protocolViolation(.mismatchedResponse(pdu.opcode, outstanding: request))))
        #expect(bearer.received(pdu) == expected)
        #expect((bearer.end == nil) == (besideRequests(pdu) != nil || isAnswer))
      }
    }
  }

  @Test(arguments: oneOfEach) func unsolicitedWhileARequestWaitsForTheChannel(_ pdu: ATTPDU) {
    var bearer = BearerStateMachine()
    _ = bearer.channelFilled(now: .zero)
    _ = bearer.requestContinued(.readRequest(handle: 1), now: .zero)
    let expected = besideRequests(pdu) ?? .end(.protocolViolation(.surplusResponse(pdu.opcode)))
    #expect(bearer.received(pdu) == expected)
  }

  @Test(arguments: oneOfEach) func everythingAfterTheEndIsSwallowed(_ pdu: ATTPDU) {
    var timedOut = BearerStateMachine()
    _ = timedOut.requestSent(.readRequest, now: .zero)
    _ = timedOut.timerFired(now: MonotonicInstant.zero.advanced(by: .seconds(30)))
    var violated = BearerStateMachine()
    _ = violated.received(.writeResponse)
    var closed = BearerStateMachine()
    closed.closed()
    for var bearer in [timedOut, violated, closed] {
      let end = bearer.end
      #expect(bearer.received(pdu) == .none)
      #expect(bearer.counters.swallowed == 1)
      #expect(bearer.end == end)
    }
  }

  /// Each PDU cut at each length, in each state: what can be read is treated as such, the rest as documented.
  @Test(arguments: oneOfEach) func truncatedAtEachLength(_ pdu: ATTPDU) {
    let bytes = pdu.encoded()
    for length in 0..<bytes.count {
      for request in [nil] + requests.map(Optional.some) {
        var bearer = BearerStateMachine()
        if let request { _ = bearer.requestSent(request, now: .zero) }
        do throws(ATTDecodingError) {
          _ = bearer.received(try ATTPDU(decoding: Array(bytes[..<length])))
        } catch {
          let action = bearer.receivedMalformed(error)
          #expect(action == malformed(error.opcode, outstanding: request))
          #expect(bearer.counters.malformed == 1)
        }
      }
    }
  }

  private func malformed(
    _ opcode: ATTOpcode?, outstanding: ATTOpcode?
  ) -> BearerStateMachine.ReceivedAction {
    guard let opcode else { return .none }
    switch opcode.kind {
    case .request, .unknown: return .reply(.errorResponse(request: opcode, handle: 0, code: .invalidPDU))
    case .indication: return .reply(.handleValueConfirmation)
    case .response:
      guard let outstanding else { return .end(.protocolViolation(.surplusResponse(opcode))) }
      return opcode == .errorResponse || opcode == outstanding.responseOpcode
        ? .malformedAnswer(.protocolViolation(.malformedResponse(opcode)))
        : .end(.protocolViolation(.mismatchedResponse(opcode, outstanding: outstanding)))
    default: return .none
    }
  }

  /// Ten thousand bearers, each fed random PDUs and inputs until it ends: no trap, no answer without a request, nothing
  /// after the end.
  @Test func randomSequences() {
    for seed in 0..<10_000 {
      var random = SeededGenerator(seed: UInt64(seed))
      var bearer = BearerStateMachine()
      var outstanding: ATTOpcode?
      var isFull = false
      var now = MonotonicInstant.zero
      for _ in 0..<40 {
        now = now.advanced(by: .milliseconds(Int.random(in: 0...2000, using: &random)))
        let hadEnded = bearer.end != nil
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
          if bearer.requestAdmission == .now {
            let request = requests[Int.random(in: 0..<requests.count, using: &random)]
            _ = bearer.requestSent(request, now: now)
            outstanding = request
          }
        case 1:
          isFull.toggle()
          if isFull { _ = bearer.channelFilled(now: now) } else { bearer.channelBecameWritable() }
        case 2:
          bearer.requestAbandoned()
        case 3:
          if case .end(let end) = bearer.timerFired(now: now), end != .channelBlocked {
            #expect(outstanding != nil, "seed \(seed)")
          }
        default:
          let action = receive(&bearer, &random)
          if hadEnded { #expect(action == .none, "seed \(seed)") }
          switch action {
          case .answered, .malformedAnswer:
            #expect(outstanding != nil, "seed \(seed)")
            outstanding = nil
          case .reply(let pdu): if isFull { _ = bearer.controlDeferred(pdu) }
          case .indicated: if isFull { _ = bearer.controlDeferred(.handleValueConfirmation) }
          case .none, .notified, .notifiedSeveral, .end: break
          }
        }
        while bearer.waiting != nil { _ = bearer.waitingSent(now: now) }
        if bearer.end != nil { #expect(bearer.requestAdmission == .ended, "seed \(seed)") }
      }
    }
  }

  private func receive(
    _ bearer: inout BearerStateMachine, _ random: inout SeededGenerator
  ) -> BearerStateMachine.ReceivedAction {
    var bytes = oneOfEach[Int.random(in: 0..<oneOfEach.count, using: &random)].encoded()
    for _ in 0..<Int.random(in: 0...2, using: &random) {
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
    }
    do throws(ATTDecodingError) {
      return bearer.received(try ATTPDU(decoding: bytes))
    } catch {
      return bearer.receivedMalformed(error)
    }
  }
}

/// A generator that gives the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
