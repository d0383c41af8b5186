package import BluetoothWire

/// Writes a value through the prepare queue (Core Specification Vol 3 Part G 4.9.4), every part of it verified.
///
/// ```
///   preparing ──(all parts came back unchanged)──▶ executing ──▶ done, or rejected
///       │
///       └─(error, other bytes, called off)──▶ cancelling ──▶ the failure
/// ```
///
/// Until Execute Write is handed over nothing takes effect, and a link that dies takes the queue with it. A queue that
/// is called off while the link lives is cleared, or the next long write would execute it too; where the device
/// refuses that, the link ends.
package struct LongWriteProcedure: Hashable, Sendable {
  private enum State: Hashable {
    /// The part that begins at `offset` is being queued. Leaves for itself, executing, cancelling.
    case preparing(offset: Int)
    /// Execute Write is under way.
    case executing
    /// The queue is being cleared; this is what is said afterwards.
    case cancelling(GATTFailure)
  }

  private let handle: UInt16
  private let value: [UInt8]
  private let partLength: Int
  private var state = State.preparing(offset: 0)
  private var isCalledOff = false
  private var hasQueued = false

  /// Makes the procedure for a value of at most 512 bytes.
  package init(handle: UInt16, value: [UInt8], mtu: Int) {
    self.handle = handle
    self.value = value
    partLength = max(1, ATTLimits.maximumPrepareLength(mtu: mtu))
  }

  /// The request to begin with.
  package var first: ATTPDU { prepareRequest(at: 0) }

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
    case (.preparing(let offset), .prepareWriteResponse(let theirHandle, let theirOffset, let theirs)):
      hasQueued = true
      let part = part(at: offset)
      guard theirHandle == handle, Int(theirOffset) == offset, theirs[...] == part else {
        return .request(cancelling(.refused(.prepareMismatch)))
      }
      if isCalledOff { return .request(cancelling(.refused(.calledOff))) }
      guard part.endIndex < value.count else {
        state = .executing
        return .request(.executeWriteRequest(commit: true))
      }
      state = .preparing(offset: part.endIndex)
      return .request(prepareRequest(at: part.endIndex))
    case (.preparing, .errorResponse(_, _, let code)):
      return .request(cancelling(.rejected(code)))
    case (.executing, .executeWriteResponse):
      return .finished(.success(.done))
    case (.executing, .errorResponse(_, _, let code)):
      return .finished(.failure(.executionRejected(code)))
    case (.cancelling(let failure), .executeWriteResponse):
      return .finished(.failure(failure))
    case (.cancelling(let failure), .errorResponse):
      return hasQueued ? .failed(failure, .queueNotCleared(handle: handle)) : .finished(.failure(failure))
    case (.preparing, _), (.executing, _), (.cancelling, _):
      return .failed(.malformedAnswer, .malformedResponse(pdu.opcode))
    }
  }

  private func part(at offset: Int) -> ArraySlice<UInt8> {
    value[offset..<min(offset + partLength, value.count)]
  }

  private func prepareRequest(at offset: Int) -> ATTPDU {
    .prepareWriteRequest(handle: handle, offset: UInt16(offset), value: Array(part(at: offset)))
  }

  private mutating func cancelling(_ failure: GATTFailure) -> ATTPDU {
    state = .cancelling(failure)
    return .executeWriteRequest(commit: false)
  }
}
