/// The number of a cause.
private enum DoubtKind: UInt8 {
  case linkLost = 1
  case deadline
  case cancelled
  case disconnected
  case ended
  case attemptsExhausted
  case notReconnecting
  case malformedAnswer
  case expired
  case superseded
  case adapterUnavailable
  case continuityBroken
  case securityTooLow
  case poisonous
  case probeInconclusive
  case probeInterrupted
  case processEnded
  case storeFailed
  case userActionNeeded
}

extension ByteWriter {
  mutating func put(_ doubt: Doubt) {
    put(doubt.cause)
    put(doubt.generation.rawValue)
    put(doubt.offeredAt)
    put(wide: doubt.offers)
    put(doubt.lastPossibleEffect) { $0.put($1.nanoseconds) }
  }

  mutating func put(_ moment: Timestamp) {
    put(moment.monotonic.nanoseconds)
    put(moment.bootTime)
    put(moment.wall)
  }

  private mutating func put(_ cause: Doubt.Cause) {
    switch cause {
    case .linkLost(let reason):
      put(case: DoubtKind.linkLost)
      put(name: reason)
    case .deadline: put(case: DoubtKind.deadline)
    case .cancelled: put(case: DoubtKind.cancelled)
    case .disconnected: put(case: DoubtKind.disconnected)
    case .ended: put(case: DoubtKind.ended)
    case .attemptsExhausted: put(case: DoubtKind.attemptsExhausted)
    case .notReconnecting: put(case: DoubtKind.notReconnecting)
    case .malformedAnswer: put(case: DoubtKind.malformedAnswer)
    case .expired: put(case: DoubtKind.expired)
    case .superseded(let id):
      put(case: DoubtKind.superseded)
      put(id)
    case .adapterUnavailable(let state):
      put(case: DoubtKind.adapterUnavailable)
      put(name: state)
    case .continuityBroken: put(case: DoubtKind.continuityBroken)
    case .securityTooLow(let level):
      put(case: DoubtKind.securityTooLow)
      put(case: level)
    case .poisonous: put(case: DoubtKind.poisonous)
    case .probeInconclusive: put(case: DoubtKind.probeInconclusive)
    case .probeInterrupted: put(case: DoubtKind.probeInterrupted)
    case .processEnded: put(case: DoubtKind.processEnded)
    case .storeFailed(let error):
      put(case: DoubtKind.storeFailed)
      put(error)
    case .userActionNeeded: put(case: DoubtKind.userActionNeeded)
    }
  }
}

extension ByteReader {
  mutating func doubt() throws(JournalCodingError) -> Doubt {
    Doubt(
      cause: try cause(), generation: Generation(rawValue: try integer()), offeredAt: try timestamp(),
      offers: try wideInteger(),
      lastPossibleEffect: try optional { reader throws(JournalCodingError) in
        MonotonicInstant(nanoseconds: try reader.integer())
      })
  }

  mutating func timestamp() throws(JournalCodingError) -> Timestamp {
    let monotonic = MonotonicInstant(nanoseconds: try integer())
    return Timestamp(monotonic: monotonic, bootTime: try integer(), wall: try integer())
  }

  private mutating func cause() throws(JournalCodingError) -> Doubt.Cause {
    switch try enumeration(DoubtKind.self) {
    case .linkLost: .linkLost(try named())
    case .deadline: .deadline
    case .cancelled: .cancelled
    case .disconnected: .disconnected
    case .ended: .ended
    case .attemptsExhausted: .attemptsExhausted
    case .notReconnecting: .notReconnecting
    case .malformedAnswer: .malformedAnswer
    case .expired: .expired
    case .superseded: .superseded(by: try operationID())
    case .adapterUnavailable: .adapterUnavailable(try named())
    case .continuityBroken: .continuityBroken
    case .securityTooLow: .securityTooLow(try enumeration())
    case .poisonous: .poisonous
    case .probeInconclusive: .probeInconclusive
    case .probeInterrupted: .probeInterrupted
    case .processEnded: .processEnded
    case .storeFailed: .storeFailed(try storeError())
    case .userActionNeeded: .userActionNeeded
    }
  }
}
