internal import CBlueZ
internal import Glibc
internal import Relink

/// The loop's side of a ``SeqPacketChannel``.
final class SeqPacketPort: DescriptorHandler, SecurableSocket {
  private enum Phase {
    /// The descriptor is in use, or will be with `open`.
    case alive
    /// Closed from here, and the link is not yet seen gone.
    case closing
    case closed
  }

  /// How many PDUs are taken in one turn of the loop, so that a talkative device does not keep the others waiting.
  private static let mostPerTurn = 16
  /// How long a channel is left alone that the system had no memory for.
  private static let retryDelay = Duration.milliseconds(20)

  let loop: RadioLoop
  /// Whether its link may still be there.
  var isClosed: Bool { phase == .closed }
  private let ending: (any LinkEnding)?
  private let securing: (any LinkSecuring)?
  private var phase = Phase.alive
  private var unregistered: OwnedDescriptor?
  private var registration: DescriptorRegistration?
  private weak var handler: (any PDUChannelHandler)?
  private var waitsForRoom = false
  private var waitsForSecurity = false
  /// What was asked for before anything had been received.
  private var securityToAsk: (level: SecurityLevel, keys: SecurityPolicy.KeySource)?
  private var waitsForMemory = false
  private var hasSent = false
  private var hasReceived = false
  /// The error of a `send` takes the socket's pending error with it; the receive that follows sees only the end.
  private var sendError: Int32?

  init(
    _ descriptor: consuming OwnedDescriptor, on loop: RadioLoop, ending: (any LinkEnding)?,
    securing: (any LinkSecuring)?
  ) {
    self.loop = loop
    self.ending = ending
    self.securing = securing
    unregistered = consume descriptor
  }

  var security: SecurityLevel {
    loop.checkIsolated()
    guard phase == .alive, let registration else { return .none }
    var (level, keySize): (UInt8, UInt8) = (0, 0)
    guard relink_l2cap_security(registration.descriptor, &level, &keySize) == 0 else { return .none }
    return SecurityLevel(kernelLevel: level, keySize: keySize)
  }

  func open(_ handler: any PDUChannelHandler) {
    loop.checkIsolated()
    self.handler = handler
    register()
  }

  func send(_ pdu: [UInt8]) -> PDUSendResult {
    loop.checkIsolated()
    guard phase == .alive, let registration else { return .failed(EBADF) }
    let result = pdu.withUnsafeBytes { bytes in
      relink_send(registration.descriptor, bytes.baseAddress, bytes.count)
    }
    if result >= 0 {
      hasSent = true
      return .sent
    }
    return refused(Int32(-result), by: registration)
  }

  /// The system did not take a PDU; nothing left.
  private func refused(_ error: Int32, by registration: DescriptorRegistration) -> PDUSendResult {
    switch error {
    case EAGAIN, ENOTCONN:
      if !waitsForRoom {
        waitsForRoom = true
        loop.watch(registration, for: [.readable, .peerHangup, .writable])
      }
      return .later
    case ENOMEM, ENOBUFS:
      // The socket may count as writable all the while, so it is asked again after a moment.
      if !waitsForMemory {
        waitsForMemory = true
        loop.setTimer(retry, at: loop.now.advanced(by: Self.retryDelay)) { self.retryDue() }
      }
      return .later
    case EMSGSIZE:
      return .failed(error)
    default:
      sendError = error
      return .failed(error)
    }
  }

  private var retry: TimerID { TimerID(owner: self, number: 0) }

  private func retryDue() {
    waitsForMemory = false
    // A socket that is full as well says itself when it has room.
    guard phase == .alive, !waitsForRoom else { return }
    handler?.channelWritable()
  }

  /// Answers a send as if the system had refused it with this error, for tests; to be called on the loop.
  func simulateRefusal(_ error: Int32) -> PDUSendResult {
    loop.checkIsolated()
    guard phase == .alive, let registration else { return .failed(EBADF) }
    return refused(error, by: registration)
  }

  func close() {
    loop.checkIsolated()
    guard phase == .alive else { return }
    register()
    guard phase == .alive, let registration else { return }
    end(registration, nil)
  }

  /// Ends the link from here; it is told with this loss, or as it went.
  private func end(_ registration: DescriptorRegistration, _ loss: LinkLoss?) {
    phase = .closing
    loop.cancelTimer(retry)
    securing?.socketClosed()
    if let ending {
      ending.end(registration, hasSent: hasSent, hasReceived: hasReceived) { self.finish(loss ?? $0) }
    } else {
      loop.close(registration)
      loop.post { self.finish(loss ?? LinkLoss(.requested)) }
    }
  }

  private func register() {
    guard let descriptor = unregistered.take() else { return }
    switch loop.register(descriptor, for: [.readable, .peerHangup], self) {
    case .success(let registration):
      self.registration = registration
    case .failure(let error):
      phase = .closing
      loop.post { self.finish(LinkLoss(.unknown, evidence: [.system(error.number, call: .receive)])) }
    }
  }

  private func finish(_ loss: LinkLoss) {
    guard phase != .closed else { return }
    phase = .closed
    handler?.channelClosed(loss)
    handler = nil
  }

  // MARK: Security

  func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource) {
    loop.checkIsolated()
    guard phase == .alive else { return }
    guard let securing else {
      let seen = Evidence.observation("this kind of link cannot be secured")
      return notSecured(LinkLoss(.notPermitted, evidence: [seen]))
    }
    if hasReceived {
      securing.secure(self, to: level, keys: keys)
    } else {
      securityToAsk = (level, keys)
    }
  }

  func raise(to level: SecurityLevel) -> Int32 {
    guard phase == .alive, let registration else { return EBADF }
    let result = relink_l2cap_raise(registration.descriptor, level.rawValue)
    guard result == 0 else { return -result }
    waitsForSecurity = true
    loop.watch(registration, for: [.readable, .peerHangup, .writable])
    return 0
  }

  func secured(_ level: SecurityLevel) { tell { $0.channelSecured(level) } }

  func notSecured(_ loss: LinkLoss) { tell { $0.channelNotSecured(loss) } }

  func asks(_ question: PairingQuestion, _ responder: PairingResponder) {
    tell { $0.channelAsks(question, responder) }
  }

  func end(_ loss: LinkLoss) {
    guard phase == .alive, let registration else { return }
    end(registration, loss)
  }

  /// In a job of its own, and nothing once the link is on its way out.
  private func tell(_ delivery: @escaping @Sendable (any PDUChannelHandler) -> Void) {
    loop.post { [self] in
      if phase == .alive, let handler { delivery(handler) }
    }
  }

  // MARK: What the descriptor says

  func descriptorReady(_ events: DescriptorEvents) {
    guard phase == .alive, let registration else { return }
    let isEnded = waitsForSecurity && !events.isDisjoint(with: Self.endings)
    if events.contains(.writable), !isEnded, waitsForRoom || waitsForSecurity { becameWritable(registration) }
    guard phase == .alive, events != .writable else { return }
    receive(registration, events)
    receiveMore(registration)
  }

  private func becameWritable(_ registration: DescriptorRegistration) {
    loop.watch(registration, for: [.readable, .peerHangup])
    let (waitedForRoom, waitedForSecurity) = (waitsForRoom, waitsForSecurity)
    (waitsForRoom, waitsForSecurity) = (false, false)
    if waitedForSecurity { securing?.socketBecameWritable() }
    if waitedForRoom { handler?.channelWritable() }
  }

  /// What a socket says whose link has ended; it counts as writable then.
  private static let endings: DescriptorEvents = [.error, .hangup, .peerHangup]

  /// Takes what lies behind the first PDU, before any work that it brought.
  ///
  /// An answer that came twice must be seen as one too many before the next request is out, or it would be credited to
  /// that. It costs each answer a system call that finds nothing.
  private func receiveMore(_ registration: DescriptorRegistration) {
    for _ in 1..<Self.mostPerTurn {
      guard phase == .alive else { return }
      let length = read(registration)
      switch length {
      // The end says so again in the next turn; an empty PDU is none.
      case 0, -Int64(EAGAIN): return
      case ..<0: return lost(registration, LinkLoss.socket(Int32(-length), call: .receive))
      default: deliver(length)
      }
    }
  }

  private func receive(_ registration: DescriptorRegistration, _ events: DescriptorEvents) {
    let isEnding = !events.isDisjoint(with: [.hangup, .peerHangup])
    let length = read(registration)
    if length > 0 || (length == 0 && !isEnding) {
      deliver(length)
    } else if length == 0 {
      lost(registration, LinkLoss.endOfFile)
    } else if length != -Int64(EAGAIN) {
      lost(registration, LinkLoss.socket(Int32(-length), call: .receive))
    } else if events.contains(.error) {
      let error = relink_socket_error(registration.descriptor)
      lost(registration, error > 0 ? LinkLoss.socket(error, call: .pendingError) : LinkLoss.endOfFile)
    } else if isEnding {
      lost(registration, LinkLoss.endOfFile)
    }
  }

  private func read(_ registration: DescriptorRegistration) -> Int64 {
    relink_receive(registration.descriptor, loop.receiveBuffer.baseAddress, loop.receiveBuffer.count)
  }

  private func deliver(_ length: Int64) {
    hasReceived = true
    guard let handler else { return close() }
    let buffer = loop.receiveBuffer
    let pdu = UnsafeRawBufferPointer(start: buffer.baseAddress, count: min(Int(length), buffer.count))
    handler.channelReceived(pdu.bytes)
    if let asked = securityToAsk.take(), phase == .alive {
      securing?.secure(self, to: asked.level, keys: asked.keys)
    }
  }

  private func lost(_ registration: DescriptorRegistration, _ loss: LinkLoss) {
    // The error overtakes what arrived before it: an answer among that settles a request that were in doubt without.
    while phase == .alive {
      let length = read(registration)
      guard length > 0 else { break }
      deliver(length)
    }
    guard phase == .alive else { return }
    phase = .closing
    loop.cancelTimer(retry)
    securing?.socketClosed()
    loop.close(registration)
    var loss = loss
    if let sendError { loss = LinkLoss.socket(sendError, call: .send).adding(loss.evidence) }
    let wasRaised = waitsForSecurity
    if let ending {
      ending.explain(loss, hasReceived: hasReceived) { self.finish(wasRaised ? $0.whileEncrypting : $0) }
    } else {
      finish(loss)
    }
  }
}

// Everything that is not `let` is touched on the loop alone; each way in checks it.
extension SeqPacketPort: @unchecked Sendable {}
