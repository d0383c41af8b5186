import BluetoothWire
import RelinkCore
import Testing

/// A point in time, in seconds.
private func second(_ seconds: Int64) -> MonotonicInstant {
  MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
}

@Suite struct BearerStateMachineTests {
  private var bearer = BearerStateMachine()

  // MARK: One request outstanding

  @Test mutating func requestHoldsTheBearerUntilItsAnswer() {
    #expect(bearer.requestAdmission == .now)
    #expect(bearer.requestSent(.readRequest, now: second(0)) == .setTimer(at: second(30)))
    #expect(bearer.requestAdmission == .busy)
    #expect(bearer.isOutstanding)
    #expect(
      bearer.received(.readResponse(value: [1])) == .answered(.readResponse(value: [1]), wasAbandoned: false))
    #expect(bearer.requestAdmission == .now)
    #expect(!bearer.isOutstanding)
    #expect(bearer.counters == BearerCounters())
  }

  @Test mutating func errorResponseEndsTheRequestThatItNames() {
    _ = bearer.requestSent(.writeRequest, now: second(0))
    let error = ATTPDU.errorResponse(request: .writeRequest, handle: 0x10, code: .writeNotPermitted)
    #expect(bearer.received(error) == .answered(error, wasAbandoned: false))
    #expect(bearer.requestAdmission == .now)
  }

  @Test mutating func commandsFlowBesideARequest() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    #expect(bearer.commandAdmission == .now)
    _ = bearer.channelFilled(now: second(0))
    #expect(bearer.commandAdmission == .full)
    #expect(bearer.requestAdmission == .busy)
    bearer.channelBecameWritable()
    #expect(bearer.commandAdmission == .now)
  }

  @Test mutating func fullChannelAdmitsNothing() {
    _ = bearer.channelFilled(now: second(0))
    #expect(bearer.requestAdmission == .full)
    bearer.channelBecameWritable()
    #expect(bearer.requestAdmission == .now)
  }

  // MARK: The transaction timer

  @Test mutating func timerIsArmedOnceForManyRequests() {
    #expect(bearer.requestSent(.readRequest, now: second(0)) == .setTimer(at: second(30)))
    for now in 1...20 {
      _ = bearer.received(.readResponse(value: []))
      #expect(bearer.requestSent(.readRequest, now: second(Int64(now))) == .none)
    }
    #expect(bearer.timerFired(now: second(30)) == .setTimer(at: second(50)))
    _ = bearer.received(.readResponse(value: []))
    #expect(bearer.timerFired(now: second(50)) == .none)
    #expect(bearer.requestSent(.readRequest, now: second(60)) == .setTimer(at: second(90)))
  }

  @Test mutating func requestWithoutAnAnswerFor30SecondsEndsTheBearer() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    #expect(bearer.timerFired(now: second(30)) == .end(.transactionTimeout(.readRequest)))
    #expect(bearer.end == .transactionTimeout(.readRequest))
    #expect(bearer.end?.loss?.reason == .transactionTimeout)
    #expect(bearer.requestAdmission == .ended)
    #expect(bearer.commandAdmission == .ended)
  }

  @Test mutating func timerThatFiresEarlyIsArmedAgain() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    #expect(bearer.timerFired(now: second(29)) == .setTimer(at: second(30)))
  }

  @Test mutating func answerAfterTheTimeoutIsSwallowed() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    _ = bearer.timerFired(now: second(30))
    #expect(bearer.received(.readResponse(value: [0xAA])) == .none)
    #expect(bearer.counters.swallowed == 1)
    #expect(bearer.requestSent(.readRequest, now: second(31)) == .none)
    #expect(bearer.received(.readResponse(value: [0xAA])) == .none)
    #expect(bearer.timerFired(now: second(99)) == .none)
  }

  // MARK: Abandoned requests

  @Test mutating func abandonedRequestKeepsItsPlaceUntilItsAnswer() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    bearer.requestAbandoned()
    #expect(bearer.requestAdmission == .busy)
    #expect(
      bearer.received(.readResponse(value: [9])) == .answered(.readResponse(value: [9]), wasAbandoned: true))
    #expect(bearer.counters.swallowed == 1)
    #expect(bearer.requestAdmission == .now)
    _ = bearer.requestSent(.readRequest, now: second(1))
    #expect(
      bearer.received(.readResponse(value: [8])) == .answered(.readResponse(value: [8]), wasAbandoned: false))
  }

  @Test mutating func abandonedRequestEndsTheBearerWhenItsTimeIsOver() {
    _ = bearer.requestSent(.writeRequest, now: second(0))
    bearer.requestAbandoned()
    #expect(bearer.timerFired(now: second(30)) == .end(.transactionTimeout(.writeRequest)))
  }

  @Test mutating func abandoningNothingMarksNothing() {
    bearer.requestAbandoned()
    _ = bearer.requestSent(.writeRequest, now: second(0))
    #expect(bearer.received(.writeResponse) == .answered(.writeResponse, wasAbandoned: false))
  }

  // MARK: Answers that cannot be credited

  @Test mutating func answerWithoutARequestEndsTheBearer() {
    let end = BearerEnd.protocolViolation(.surplusResponse(.readResponse))
    #expect(bearer.received(.readResponse(value: [1])) == .end(end))
    #expect(bearer.end == end)
    #expect(bearer.counters.surplus == 1)
    #expect(end.loss?.reason == .protocolViolation)
    #expect(end.loss?.evidence == [.observation("response 0x0B without a request")])
  }

  @Test mutating func secondAnswerToOneRequestEndsTheBearer() {
    _ = bearer.requestSent(.writeRequest, now: second(0))
    _ = bearer.received(.writeResponse)
    #expect(
      bearer.received(.writeResponse) == .end(.protocolViolation(.surplusResponse(.writeResponse))))
  }

  @Test mutating func answerToAnotherRequestEndsTheBearer() {
    _ = bearer.requestSent(.writeRequest, now: second(0))
    #expect(
      bearer.received(.readResponse(value: [1]))
        == .end(.protocolViolation(.mismatchedResponse(.readResponse, outstanding: .writeRequest))))
    #expect(bearer.counters.mismatched == 1)
  }

  @Test mutating func errorForAnotherRequestEndsTheBearer() {
    _ = bearer.requestSent(.writeRequest, now: second(0))
    #expect(
      bearer.received(.errorResponse(request: .readRequest, handle: 1, code: .invalidHandle))
        == .end(.protocolViolation(.mismatchedResponse(.errorResponse, outstanding: .writeRequest))))
  }

  @Test mutating func answerToARequestThatHasNotLeftEndsTheBearer() {
    _ = bearer.requestContinued(.readBlobRequest(handle: 1, offset: 22), now: second(0))
    #expect(
      bearer.received(.readBlobResponse(value: []))
        == .end(.protocolViolation(.surplusResponse(.readBlobResponse))))
  }

  @Test mutating func unreadableAnswerToTheRequestIsSaidAndEndsTheBearer() {
    _ = bearer.requestSent(.exchangeMTURequest, now: second(0))
    let error = ATTDecodingError(opcode: .exchangeMTUResponse, problem: .truncated)
    #expect(
      bearer.receivedMalformed(error)
        == .malformedAnswer(.protocolViolation(.malformedResponse(.exchangeMTUResponse))))
    #expect(bearer.counters.malformed == 1)
    #expect(bearer.requestAdmission == .ended)
  }

  // MARK: Values

  @Test mutating func valuesArePassedOnBesideARequest() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    #expect(
      bearer.received(.handleValueNotification(handle: 0x10, value: [0x41]))
        == .notified(handle: 0x10, value: [0x41]))
    let several = [ATTHandleValue(handle: 1, value: [1]), ATTHandleValue(handle: 2, value: [])]
    #expect(bearer.received(.multipleHandleValueNotification(several)) == .notifiedSeveral(several))
    #expect(
      bearer.received(.handleValueIndication(handle: 0x10, value: [0x42]))
        == .indicated(handle: 0x10, value: [0x42]))
    #expect(bearer.requestAdmission == .busy)
    #expect(bearer.counters == BearerCounters())
  }

  @Test mutating func unreadableNotificationIsCountedAndUnreadableIndicationConfirmed() {
    #expect(
      bearer.receivedMalformed(ATTDecodingError(opcode: .handleValueNotification, problem: .truncated))
        == .none)
    #expect(
      bearer.receivedMalformed(ATTDecodingError(opcode: .handleValueIndication, problem: .truncated))
        == .reply(.handleValueConfirmation))
    #expect(bearer.counters.malformed == 2)
    #expect(bearer.end == nil)
  }

  // MARK: The peer as a client

  @Test mutating func requestsAreAnsweredWithAnError() {
    #expect(
      bearer.received(.readRequest(handle: 3))
        == .reply(.errorResponse(request: .readRequest, handle: 0, code: .requestNotSupported)))
    #expect(
      bearer.received(.unknown(opcode: ATTOpcode(rawValue: 0x3F), parameters: []))
        == .reply(
          .errorResponse(request: ATTOpcode(rawValue: 0x3F), handle: 0, code: .requestNotSupported)))
    #expect(
      bearer.receivedMalformed(ATTDecodingError(opcode: .readRequest, problem: .truncated))
        == .reply(.errorResponse(request: .readRequest, handle: 0, code: .invalidPDU)))
  }

  @Test mutating func commandsAndConfirmationsAreIgnored() {
    #expect(bearer.received(.writeCommand(handle: 1, value: [1])) == .none)
    #expect(bearer.received(.unknown(opcode: ATTOpcode(rawValue: 0x7F), parameters: [1])) == .none)
    #expect(bearer.counters.swallowed == 2)
    #expect(bearer.received(.handleValueConfirmation) == .none)
    #expect(bearer.counters.surplus == 1)
    #expect(bearer.receivedMalformed(ATTDecodingError(opcode: nil, problem: .empty)) == .none)
    #expect(bearer.counters.malformed == 1)
    #expect(bearer.end == nil)
  }

  // MARK: What waits for a full channel

  @Test mutating func controlGoesOutBeforeTheRequestThatWaits() {
    _ = bearer.channelFilled(now: second(0))
    let request = ATTPDU.readBlobRequest(handle: 1, offset: 22)
    #expect(bearer.requestContinued(request, now: second(0)) == .none)
    bearer.requestReleased()
    #expect(bearer.controlDeferred(.handleValueConfirmation) == .none)
    #expect(bearer.waiting == nil)
    bearer.channelBecameWritable()
    #expect(bearer.waiting == .handleValueConfirmation)
    #expect(bearer.commandAdmission == .full)
    #expect(bearer.waitingSent(now: second(5)) == .none)
    #expect(bearer.waiting == request)
    #expect(!bearer.isOutstanding)
    #expect(bearer.waitingSent(now: second(5)) == .none)
    #expect(bearer.waiting == nil)
    #expect(bearer.isOutstanding)
    #expect(bearer.timerFired(now: second(30)) == .setTimer(at: second(35)))
  }

  @Test mutating func nextRequestOfAProcedureWaitsForItsRelease() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    _ = bearer.received(.readResponse(value: [1]))
    let next = ATTPDU.readBlobRequest(handle: 1, offset: 1)
    #expect(bearer.requestContinued(next, now: second(1)) == .none)
    #expect(bearer.requestAdmission == .busy)
    #expect(bearer.waiting == nil)
    // What has nothing to do with requests goes out meanwhile.
    #expect(bearer.controlDeferred(.handleValueConfirmation) == .none)
    #expect(bearer.waiting == .handleValueConfirmation)
    _ = bearer.waitingSent(now: second(1))
    bearer.requestReleased()
    #expect(bearer.waiting == next)
    #expect(bearer.waitingSent(now: second(1)) == .none)
    #expect(bearer.isOutstanding)
    bearer.requestReleased()
    #expect(bearer.isOutstanding)
  }

  @Test mutating func requestThatIsNeverReleasedEndsTheBearerAfter30Seconds() {
    _ = bearer.requestContinued(.readBlobRequest(handle: 1, offset: 22), now: second(0))
    #expect(bearer.timerFired(now: second(30)) == .end(.transactionTimeout(.readBlobRequest)))
  }

  @Test mutating func requestThatFindsNoRoomFor30SecondsEndsTheBearer() {
    _ = bearer.channelFilled(now: second(0))
    _ = bearer.requestContinued(.readBlobRequest(handle: 1, offset: 22), now: second(0))
    #expect(bearer.timerFired(now: second(30)) == .end(.transactionTimeout(.readBlobRequest)))
  }

  @Test mutating func requestThatHasNotLeftCanBeReplaced() {
    #expect(bearer.deferredRequestReplaced(by: .executeWriteRequest(commit: false)) == false)
    _ = bearer.requestContinued(.executeWriteRequest(commit: true), now: second(0))
    #expect(bearer.deferredRequestReplaced(by: .executeWriteRequest(commit: false)) == true)
    #expect(bearer.waiting == nil)
    bearer.requestReleased()
    #expect(bearer.waiting == .executeWriteRequest(commit: false))
    #expect(bearer.deferredRequestReplaced(by: .executeWriteRequest(commit: true)) == true)
    #expect(bearer.waiting == .executeWriteRequest(commit: true))
    _ = bearer.waitingSent(now: second(1))
    #expect(bearer.deferredRequestReplaced(by: .executeWriteRequest(commit: true)) == false)
  }

  @Test mutating func peerThatKeepsAskingWhileTheChannelIsFullEndsTheBearer() {
    _ = bearer.channelFilled(now: second(0))
    let answer = ATTPDU.errorResponse(request: .readRequest, handle: 0, code: .requestNotSupported)
    for _ in 0..<BearerStateMachine.controlLimit {
      #expect(bearer.controlDeferred(answer) == .none)
    }
    let end = BearerEnd.protocolViolation(.controlFlood(limit: BearerStateMachine.controlLimit))
    #expect(bearer.controlDeferred(answer) == .end(end))
    bearer.channelBecameWritable()
    #expect(bearer.waiting == nil)
    #expect(bearer.owed == 0)
  }

  // MARK: A channel that takes nothing

  @Test mutating func channelThatTakesNothingFor30SecondsEndsTheBearer() {
    #expect(bearer.channelFilled(now: second(0)) == .setTimer(at: second(30)))
    bearer.channelBecameWritable()
    #expect(bearer.channelFilled(now: second(20)) == .none)
    #expect(bearer.timerFired(now: second(30)) == .end(.channelBlocked))
    #expect(bearer.requestAdmission == .ended)
  }

  @Test mutating func whateverTheChannelTakesBeginsItsTimeAnew() {
    #expect(bearer.channelFilled(now: second(0)) == .setTimer(at: second(30)))
    bearer.channelBecameWritable()
    bearer.channelTook()
    #expect(bearer.channelFilled(now: second(10)) == .none)
    #expect(bearer.timerFired(now: second(30)) == .setTimer(at: second(40)))
    bearer.channelBecameWritable()
    #expect(bearer.requestSent(.readRequest, now: second(35)) == .none)
    #expect(bearer.channelFilled(now: second(38)) == .none)
    #expect(bearer.timerFired(now: second(40)) == .setTimer(at: second(65)))
    _ = bearer.received(.readResponse(value: []))
    #expect(bearer.timerFired(now: second(65)) == .setTimer(at: second(68)))
    bearer.channelBecameWritable()
    #expect(bearer.timerFired(now: second(68)) == .none)
    #expect(bearer.end == nil)
  }

  // MARK: Ends

  @Test mutating func theFirstEndStays() {
    _ = bearer.received(.writeResponse)
    bearer.closed()
    #expect(bearer.end == .protocolViolation(.surplusResponse(.writeResponse)))
    #expect(
      bearer.violated(.tableNeverSettled) == .protocolViolation(.surplusResponse(.writeResponse)))
  }

  @Test mutating func closedBearerSaysNothing() {
    _ = bearer.requestSent(.readRequest, now: second(0))
    bearer.closed()
    #expect(bearer.end == .closed)
    #expect(BearerEnd.closed.loss == nil)
    #expect(bearer.received(.readResponse(value: [1])) == .none)
    #expect(bearer.receivedMalformed(ATTDecodingError(opcode: .readResponse, problem: .badLength)) == .none)
    #expect(bearer.timerFired(now: second(30)) == .none)
    #expect(bearer.requestContinued(.readRequest(handle: 1), now: second(0)) == .none)
    #expect(bearer.controlDeferred(.handleValueConfirmation) == .none)
    #expect(bearer.waitingSent(now: second(0)) == .none)
    #expect(bearer.waiting == nil)
  }
}
