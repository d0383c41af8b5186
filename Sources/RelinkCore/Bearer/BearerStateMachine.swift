package import BluetoothWire

/// One ATT bearer, seen from the client: at most one request outstanding, everything else beside it.
///
/// ```
///            requestSent                     answer
///    free ───────────────▶ outstanding ─────────────────▶ free
///      │                          ▲
///      │ requestContinued         │ waitingSent
///      └─▶ held ───────▶ deferred ┘
///             requestReleased
///
///    any ── 30 s without the answer or on a full channel, or a violation ──▶ ended (nothing goes out, nothing comes in)
/// ```
///
/// What it does with what a peer sends (Core Specification Vol 3 Part F 3.3 and 3.4):
/// - an answer to the outstanding request is passed on. An answer when nothing is outstanding, to another request, or
///   one that cannot be read ends the bearer: ATT has no request numbers, so after it no answer can be credited;
/// - an abandoned request keeps its place until its answer came or its time is over;
/// - notifications are passed on. Indications are confirmed, each exactly once, and passed on; a second one that comes
///   before the first confirmation found room is tolerated. One that cannot be read is counted, and confirmed too, or
///   the peer would wait 30 s for it;
/// - requests are answered with an Error Response, since there is no server here: Request Not Supported, or Invalid PDU
///   if they cannot be read. Opcodes that nobody defined are requests, unless their command flag is set;
/// - commands are ignored, and so are confirmations: neither moves an answer;
/// - a PDU longer than the MTU counts as one that cannot be read.
///
/// The transaction timer is lazy: one that is armed is left alone when an answer comes, and looked at again when it
/// fires. So a request that is answered in time costs no timer.
package struct BearerStateMachine: Sendable {
  /// How long an answer may take (Core Specification Vol 3 Part F 3.3.3).
  package static let transactionTimeout = Duration.seconds(ATTLimits.transactionTimeout)
  /// How many confirmations and error responses may wait for a full channel; the protocol needs two.
  package static let controlLimit = 8

  private enum Slot: Sendable {
    case free
    case outstanding(ATTOpcode)
    /// The next request of a procedure waits until what has arrived by now is read.
    case held(ATTOpcode)
    /// The channel did not take the request yet.
    case deferred(ATTOpcode)
    /// An answered request is to be asked again when the link is secured; nothing else goes out before.
    case setAside
  }

  private var slot = Slot.free
  private var isFull = false
  /// The number of confirmations and error responses in the backlog.
  package private(set) var owed = 0
  private var deadline = MonotonicInstant.zero
  /// Until when the channel has to take something; nil where it took the latest PDU.
  private var blockedUntil: MonotonicInstant?
  private var isAbandoned = false
  private var isTimerArmed = false
  private var backlog = Backlog()

  /// PDUs that the channel did not take.
  private struct Backlog {
    var control: [ATTPDU] = []
    var request: ATTPDU?
  }

  /// Why the bearer ended; nil while it carries PDUs.
  package private(set) var end: BearerEnd?
  /// The ATT_MTU in force, in bytes.
  package var mtu = ATTLimits.defaultMTU
  /// How many requests have left.
  package private(set) var requests = 0
  /// What was let pass or thrown away.
  package private(set) var counters = BearerCounters()

  package init() {}
}

// MARK: - Sending

extension BearerStateMachine {
  /// Whether a request or command may be handed to the channel now.
  package enum Admission: Hashable, Sendable {
    /// It may.
    case now
    /// A request is outstanding: the answer to it says when.
    case busy
    /// The channel is full: its writability says when.
    case full
    /// Never again.
    case ended
  }

  /// Whether the caller has to arm the transaction timer.
  package enum TimerAction: Hashable, Sendable {
    case none
    case setTimer(at: MonotonicInstant)
  }

  /// Whether a request may go out now.
  package var requestAdmission: Admission {
    if end != nil { return .ended }
    guard case .free = slot else { return .busy }
    return isFull || owed > 0 ? .full : .now
  }

  /// Whether a command may go out now; an outstanding request is no obstacle.
  package var commandAdmission: Admission {
    if end != nil { return .ended }
    return isFull || owed > 0 ? .full : .now
  }

  /// Whether a request holds the bearer and has left.
  package var isOutstanding: Bool {
    if case .outstanding = slot { true } else { false }
  }

  /// The channel took a request.
  package mutating func requestSent(_ opcode: ATTOpcode, now: MonotonicInstant) -> TimerAction {
    guard end == nil else { return .none }
    slot = .outstanding(opcode)
    requests += 1
    blockedUntil = nil
    return beginTransaction(now)
  }

  /// A procedure has a next request: it holds the bearer and goes out before anything else, once it is released.
  ///
  /// Until then nothing is outstanding, so that a second answer that lies right behind the first one is not taken for
  /// the answer to this request. Its 30 s begin now: a channel that stays full for that long leads nowhere.
  package mutating func requestContinued(_ pdu: ATTPDU, now: MonotonicInstant) -> TimerAction {
    guard end == nil else { return .none }
    slot = .held(pdu.opcode)
    backlog.request = pdu
    return beginTransaction(now)
  }

  /// What had arrived when the procedure went on has been read.
  package mutating func requestReleased() {
    guard case .held(let opcode) = slot else { return }
    slot = .deferred(opcode)
  }

  /// A procedure wants to send something else instead of a request that has not left; false if it has left.
  package mutating func deferredRequestReplaced(by pdu: ATTPDU) -> Bool {
    switch slot {
    case .held: slot = .held(pdu.opcode)
    case .deferred: slot = .deferred(pdu.opcode)
    case .free, .outstanding, .setAside: return false
    }
    backlog.request = pdu
    return true
  }

  /// A request that was just answered keeps the bearer, until it is asked again or given up.
  package mutating func requestSetAside() {
    if end == nil { slot = .setAside }
  }

  /// The request that was set aside makes room, for itself or for others.
  package mutating func setAsideEnded() {
    if case .setAside = slot { slot = .free }
  }

  /// Nobody waits any more for the request that holds the bearer; it keeps its place.
  package mutating func requestAbandoned() {
    if case .free = slot { return }
    isAbandoned = true
  }

  /// What the caller does about a PDU that the channel did not take.
  package enum ControlAction: Hashable, Sendable {
    case none
    case end(BearerEnd)
  }

  /// The channel did not take a confirmation or an error response.
  package mutating func controlDeferred(_ pdu: ATTPDU) -> ControlAction {
    guard end == nil else { return .none }
    guard owed < Self.controlLimit else {
      return .end(ending(.protocolViolation(.controlFlood(limit: Self.controlLimit))))
    }
    backlog.control.append(pdu)
    owed += 1
    return .none
  }

  /// The channel did not take a PDU.
  ///
  /// One that takes nothing for 30 s leads nowhere, whatever it says of its room meanwhile: no other limit bounds what
  /// waits for it.
  package mutating func channelFilled(now: MonotonicInstant) -> TimerAction {
    guard end == nil else { return .none }
    isFull = true
    guard blockedUntil == nil else { return .none }
    blockedUntil = MonotonicInstant(nanoseconds: now.nanoseconds &+ Self.transactionNanoseconds)
    return timer(at: now)
  }

  /// The channel took a PDU that is no request.
  package mutating func channelTook() {
    blockedUntil = nil
  }

  /// The channel says that it takes PDUs again.
  package mutating func channelBecameWritable() {
    isFull = false
  }

  /// Whether something waits and the channel is not known to be full.
  package var hasWaiting: Bool {
    guard end == nil, !isFull else { return false }
    if owed > 0 { return true }
    if case .deferred = slot { return true }
    return false
  }

  /// The PDU that has waited longest for the channel, confirmations and error responses first.
  ///
  /// Nil while nothing waits and while the channel is full.
  package var waiting: ATTPDU? {
    guard hasWaiting else { return nil }
    return backlog.control.first ?? backlog.request
  }

  /// The channel took ``waiting``.
  package mutating func waitingSent(now: MonotonicInstant) -> TimerAction {
    guard end == nil else { return .none }
    if owed > 0 {
      blockedUntil = nil
      backlog.control.removeFirst()
      owed -= 1
      return .none
    }
    guard case .deferred(let opcode) = slot else { return .none }
    backlog.request = nil
    return requestSent(opcode, now: now)
  }

  private mutating func beginTransaction(_ now: MonotonicInstant) -> TimerAction {
    // In plain integers: the arithmetic of `Duration` is 128 bits wide, and this is done for each request.
    deadline = MonotonicInstant(nanoseconds: now.nanoseconds &+ Self.transactionNanoseconds)
    return timer(at: now)
  }

  /// The timer for what has 30 s from now.
  private mutating func timer(at now: MonotonicInstant) -> TimerAction {
    // An armed timer fires no later than that, because such limits only grow.
    if isTimerArmed { return .none }
    isTimerArmed = true
    return .setTimer(at: MonotonicInstant(nanoseconds: now.nanoseconds &+ Self.transactionNanoseconds))
  }

  private static let transactionNanoseconds = Int64(ATTLimits.transactionTimeout) * 1_000_000_000
}

// MARK: - Receiving

extension BearerStateMachine {
  /// What the caller does about a PDU from the peer.
  package enum ReceivedAction: Equatable, Sendable {
    /// Nothing: it was ignored or thrown away, and counted.
    case none
    /// The outstanding request has its answer, and the bearer is free.
    case answered(ATTPDU, wasAbandoned: Bool)
    /// Pass a value on.
    case notified(handle: UInt16, value: [UInt8])
    /// Pass several values on.
    case notifiedSeveral([ATTHandleValue])
    /// Send a Handle Value Confirmation, then pass a value on.
    case indicated(handle: UInt16, value: [UInt8])
    /// Send a confirmation or an error response.
    case reply(ATTPDU)
    /// The answer to the outstanding request cannot be read: say so to the caller, then end the link.
    case malformedAnswer(BearerEnd)
    /// End the link.
    case end(BearerEnd)
  }

  /// A PDU arrived.
  package mutating func received(_ pdu: ATTPDU) -> ReceivedAction {
    guard end == nil else {
      counters.swallowed += 1
      return .none
    }
    switch pdu {
    case .handleValueNotification(let handle, let value):
      return .notified(handle: handle, value: value)
    case .multipleHandleValueNotification(let values):
      return .notifiedSeveral(values)
    case .handleValueIndication(let handle, let value):
      return .indicated(handle: handle, value: value)
    case .errorResponse(let request, _, _):
      return answered(pdu, opcode: .errorResponse, to: request)
    case .exchangeMTURequest, .exchangeMTUResponse, .findInformationRequest, .findInformationResponse,
      .findByTypeValueRequest, .findByTypeValueResponse, .readByTypeRequest, .readByTypeResponse,
      .readRequest, .readResponse, .readBlobRequest, .readBlobResponse, .readMultipleRequest,
      .readMultipleResponse, .readByGroupTypeRequest, .readByGroupTypeResponse,
      .readMultipleVariableRequest, .readMultipleVariableResponse, .writeRequest, .writeResponse,
      .writeCommand, .signedWriteCommand, .prepareWriteRequest, .prepareWriteResponse,
      .executeWriteRequest, .executeWriteResponse, .handleValueConfirmation, .unknown:
      let opcode = pdu.opcode
      switch opcode.kind {
      case .response:
        return answered(pdu, opcode: opcode, to: ATTOpcode(rawValue: opcode.rawValue &- 1))
      case .request, .unknown:
        return .reply(.errorResponse(request: opcode, handle: 0, code: .requestNotSupported))
      case .confirmation:
        counters.surplus += 1
        return .none
      case .command, .notification, .indication:
        counters.swallowed += 1
        return .none
      }
    }
  }

  /// Bytes arrived that are no PDU, or more than the MTU allows.
  package mutating func receivedMalformed(_ error: ATTDecodingError) -> ReceivedAction {
    guard end == nil else {
      counters.swallowed += 1
      return .none
    }
    counters.malformed += 1
    guard let opcode = error.opcode else { return .none }
    switch opcode.kind {
    case .response:
      guard case .outstanding(let outstanding) = slot else {
        return .end(ending(.protocolViolation(.surplusResponse(opcode))))
      }
      guard opcode == .errorResponse || outstanding.responseOpcode == opcode else {
        return .end(
          ending(.protocolViolation(.mismatchedResponse(opcode, outstanding: outstanding))))
      }
      slot = .free
      return .malformedAnswer(ending(.protocolViolation(.malformedResponse(opcode))))
    case .request, .unknown:
      return .reply(.errorResponse(request: opcode, handle: 0, code: .invalidPDU))
    case .indication:
      return .reply(.handleValueConfirmation)
    case .command, .notification, .confirmation:
      return .none
    }
  }

  private mutating func answered(_ pdu: ATTPDU, opcode: ATTOpcode, to request: ATTOpcode) -> ReceivedAction {
    guard case .outstanding(let outstanding) = slot else {
      counters.surplus += 1
      return .end(ending(.protocolViolation(.surplusResponse(opcode))))
    }
    guard outstanding == request else {
      counters.mismatched += 1
      return .end(ending(.protocolViolation(.mismatchedResponse(opcode, outstanding: outstanding))))
    }
    slot = .free
    let wasAbandoned = isAbandoned
    isAbandoned = false
    if wasAbandoned { counters.swallowed += 1 }
    return .answered(pdu, wasAbandoned: wasAbandoned)
  }
}

// MARK: - Ending

extension BearerStateMachine {
  /// What the caller does when the transaction timer fired.
  package enum TimerFiredAction: Hashable, Sendable {
    /// Nothing is outstanding: no timer is armed now.
    case none
    /// The request that is outstanding now has until then.
    case setTimer(at: MonotonicInstant)
    /// End the link.
    case end(BearerEnd)
  }

  /// The transaction timer fired.
  ///
  /// `isSecuring`: the link is being secured, which may take the user's time, and the channel takes nothing meanwhile.
  package mutating func timerFired(now: MonotonicInstant, isSecuring: Bool = false) -> TimerFiredAction {
    isTimerArmed = false
    guard end == nil else { return .none }
    var next: MonotonicInstant?
    switch slot {
    case .free, .setAside: break
    case .outstanding(let opcode), .held(let opcode), .deferred(let opcode):
      guard deadline > now else { return .end(ending(.transactionTimeout(opcode))) }
      next = deadline
    }
    if !isFull {
      blockedUntil = nil
    } else if let limit = blockedUntil {
      var limit = limit
      if isSecuring {
        limit = MonotonicInstant(nanoseconds: now.nanoseconds &+ Self.transactionNanoseconds)
        blockedUntil = limit
      }
      guard limit > now else { return .end(ending(.channelBlocked)) }
      next = next.map { min($0, limit) } ?? limit
    }
    guard let next else { return .none }
    isTimerArmed = true
    return .setTimer(at: next)
  }

  /// An answer was well formed and yet not one that the procedure can have.
  package mutating func violated(_ violation: BearerViolation) -> BearerEnd {
    end ?? ending(.protocolViolation(violation))
  }

  /// The bearer was closed from here, or its link is gone.
  package mutating func closed() {
    if end == nil { _ = ending(.closed) }
  }

  private mutating func ending(_ reason: BearerEnd) -> BearerEnd {
    end = reason
    backlog = Backlog()
    owed = 0
    return reason
  }
}
