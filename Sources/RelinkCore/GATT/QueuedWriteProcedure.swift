package import BluetoothWire

/// Writes through the prepare queue, every part of it verified: one long value (Core Specification Vol 3 Part G 4.9.4),
/// or several values that are to take effect together (4.9.5).
///
/// ```
///   preparing ──(all parts came back unchanged)──▶ executing ──▶ done, or rejected
///       │
///       └─(error, other bytes, called off)──▶ cancelling ──▶ the failure
/// ```
///
/// Until Execute Write is handed over nothing takes effect, and a link that dies takes the queue with it. A queue that
/// is called off while the link lives is cleared, or the next queued write would execute it too; where the device
/// refuses that, the link ends.
package struct QueuedWriteProcedure: Hashable, Sendable {
  /// A value and the attribute that is to take it.
  package struct Write: Hashable, Sendable {
    /// The handle of the attribute.
    package var handle: UInt16
    /// The value, at most 512 bytes.
    package var value: [UInt8]

    /// Makes a write.
    package init(handle: UInt16, value: [UInt8]) {
      self.handle = handle
      self.value = value
    }
  }

  private enum State: Hashable {
    /// A part is being queued. Leaves for itself, executing, cancelling.
    case preparing(Part)
    /// Execute Write is under way.
    case executing
    /// The queue is being cleared; this is what is said afterwards.
    case cancelling(GATTFailure)
  }

  /// Where a part stands: in which write, and from which byte of its value on.
  private struct Part: Hashable {
    var write = 0
    var offset = 0
  }

  private let writes: [Write]
  private let partLength: Int
  private var state = State.preparing(Part())
  private var isCalledOff = false
  private var hasQueued = false

  /// Makes the procedure for one write or more, to be queued in this order.
  package init(_ writes: [Write], mtu: Int) {
    precondition(!writes.isEmpty, "there is nothing to write")
    self.writes = writes
    partLength = max(1, ATTLimits.maximumPrepareLength(mtu: mtu))
  }

  /// Makes the procedure for one value of at most 512 bytes.
  package init(handle: UInt16, value: [UInt8], mtu: Int) {
    self.init([Write(handle: handle, value: value)], mtu: mtu)
  }

  /// The request to begin with.
  package var first: ATTPDU { request(for: Part()) }

  /// Whether the request under way is the one that takes effect.
  package var isExecuting: Bool { state == .executing }

  /// Nobody waits any more, or the handle is not to be trusted any more: goes no further than it has.
  package mutating func calledOff() {
    if case .preparing = state { isCalledOff = true }
  }

  /// Execute Write did not leave yet: what is to be sent in its place.
  package mutating func executionCalledOff() -> ATTPDU {
    cancelling(.refused(.calledOff))
  }

  package mutating func received(_ pdu: ATTPDU) -> ProcedureAction {
    switch (state, pdu) {
    case (.preparing(let part), .prepareWriteResponse):
      hasQueued = true
      guard isEcho(pdu, of: part) else { return .request(cancelling(.refused(.prepareMismatch))) }
      if isCalledOff { return .request(cancelling(.refused(.calledOff))) }
      guard let next = following(part) else {
        state = .executing
        return .request(.executeWriteRequest(commit: true))
      }
      state = .preparing(next)
      return .request(request(for: next))
    case (.preparing, .errorResponse(_, _, let code)):
      return .request(cancelling(.rejected(code)))
    case (.executing, .executeWriteResponse):
      return .finished(.success(.done))
    case (.executing, .errorResponse(_, _, let code)):
      return .finished(.failure(.executionRejected(code)))
    case (.cancelling(let failure), .executeWriteResponse):
      return .finished(.failure(failure))
    case (.cancelling(let failure), .errorResponse):
      return hasQueued
        ? .failed(failure, .queueNotCleared(handle: writes[0].handle)) : .finished(.failure(failure))
    case (.preparing, _), (.executing, _), (.cancelling, _):
      return .failed(.malformedAnswer, .malformedResponse(pdu.opcode))
    }
  }

  private func bytes(of part: Part) -> ArraySlice<UInt8> {
    let value = writes[part.write].value
    return value[part.offset..<min(part.offset + partLength, value.count)]
  }

  /// Whether the device says that it queued what was sent.
  private func isEcho(_ pdu: ATTPDU, of part: Part) -> Bool {
    guard case .prepareWriteResponse(let handle, let offset, let value) = pdu else { return false }
    return handle == writes[part.write].handle && Int(offset) == part.offset && value[...] == bytes(of: part)
  }

  /// The part behind this one; nil where it is the last.
  private func following(_ part: Part) -> Part? {
    let end = bytes(of: part).endIndex
    if end < writes[part.write].value.count { return Part(write: part.write, offset: end) }
    return part.write + 1 < writes.count ? Part(write: part.write + 1) : nil
  }

  private func request(for part: Part) -> ATTPDU {
    .prepareWriteRequest(
      handle: writes[part.write].handle, offset: UInt16(part.offset), value: Array(bytes(of: part)))
  }

  private mutating func cancelling(_ failure: GATTFailure) -> ATTPDU {
    state = .cancelling(failure)
    return .executeWriteRequest(commit: false)
  }
}
