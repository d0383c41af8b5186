/// The number of a reason.
private enum NotSentKind: UInt8 {
  case disconnected = 1
  case ended
  case deadline
  case cancelled
  case notReconnecting
  case attemptsExhausted
  case refused
  case journalFull
  case linkLost
  case expired
  case superseded
  case adapterUnavailable
  case continuityBroken
  case securityTooLow
  case storeFailed
  case mixedDurability
  case conflictingID
  case userActionNeeded
}

/// The number of a refusal.
private enum RefusalKind: UInt8 {
  case characteristicNotFound = 1
  case cannotNotify
  case valueTooLong
  case calledOff
  case prepareMismatch
  case linkClosed
  case system
  case noValues
  case notSupported
}

extension ByteWriter {
  mutating func put(_ reason: NotSentReason) {
    switch reason {
    case .disconnected: put(case: NotSentKind.disconnected)
    case .ended: put(case: NotSentKind.ended)
    case .deadline: put(case: NotSentKind.deadline)
    case .cancelled: put(case: NotSentKind.cancelled)
    case .notReconnecting: put(case: NotSentKind.notReconnecting)
    case .attemptsExhausted: put(case: NotSentKind.attemptsExhausted)
    case .refused(let refusal):
      put(case: NotSentKind.refused)
      put(refusal)
    case .journalFull(let limit):
      put(case: NotSentKind.journalFull)
      put(wide: limit)
    case .linkLost: put(case: NotSentKind.linkLost)
    case .expired: put(case: NotSentKind.expired)
    case .superseded(let id):
      put(case: NotSentKind.superseded)
      put(id)
    case .adapterUnavailable(let state):
      put(case: NotSentKind.adapterUnavailable)
      put(name: state)
    case .continuityBroken: put(case: NotSentKind.continuityBroken)
    case .securityTooLow(let level):
      put(case: NotSentKind.securityTooLow)
      put(case: level)
    case .storeFailed(let error):
      put(case: NotSentKind.storeFailed)
      put(error)
    case .mixedDurability: put(case: NotSentKind.mixedDurability)
    case .conflictingID: put(case: NotSentKind.conflictingID)
    case .userActionNeeded: put(case: NotSentKind.userActionNeeded)
    }
  }

  private mutating func put(_ refusal: GATTRefusal) {
    switch refusal {
    case .characteristicNotFound: put(case: RefusalKind.characteristicNotFound)
    case .cannotNotify: put(case: RefusalKind.cannotNotify)
    case .valueTooLong(let limit):
      put(case: RefusalKind.valueTooLong)
      put(wide: limit)
    case .calledOff: put(case: RefusalKind.calledOff)
    case .prepareMismatch: put(case: RefusalKind.prepareMismatch)
    case .linkClosed: put(case: RefusalKind.linkClosed)
    case .system(let number):
      put(case: RefusalKind.system)
      put(number)
    case .noValues: put(case: RefusalKind.noValues)
    case .notSupported: put(case: RefusalKind.notSupported)
    }
  }

  mutating func put(_ id: OperationID) { put(text: id.description) }

  mutating func put(_ error: JournalStoreError) {
    put(remark: error.code.rawValue)
    put(remark: error.message)
    put(error.isCertain)
  }
}

extension ByteReader {
  mutating func notSentReason() throws(JournalCodingError) -> NotSentReason {
    switch try enumeration(NotSentKind.self) {
    case .disconnected: .disconnected
    case .ended: .ended
    case .deadline: .deadline
    case .cancelled: .cancelled
    case .notReconnecting: .notReconnecting
    case .attemptsExhausted: .attemptsExhausted
    case .refused: .refused(try refusal())
    case .journalFull: .journalFull(limit: try wideInteger())
    case .linkLost: .linkLost
    case .expired: .expired
    case .superseded: .superseded(by: try operationID())
    case .adapterUnavailable: .adapterUnavailable(try named())
    case .continuityBroken: .continuityBroken
    case .securityTooLow: .securityTooLow(try enumeration())
    case .storeFailed: .storeFailed(try storeError())
    case .mixedDurability: .mixedDurability
    case .conflictingID: .conflictingID
    case .userActionNeeded: .userActionNeeded
    }
  }

  private mutating func refusal() throws(JournalCodingError) -> GATTRefusal {
    switch try enumeration(RefusalKind.self) {
    case .characteristicNotFound: .characteristicNotFound
    case .cannotNotify: .cannotNotify
    case .valueTooLong: .valueTooLong(limit: try wideInteger())
    case .calledOff: .calledOff
    case .prepareMismatch: .prepareMismatch
    case .linkClosed: .linkClosed
    case .system: .system(try integer())
    case .noValues: .noValues
    case .notSupported: .notSupported
    }
  }

  mutating func operationID() throws(JournalCodingError) -> OperationID {
    let text = try text()
    if let id = OperationID(text) { return id }
    if let number = Int64(text.dropFirst()) {
      let id = OperationID(OperationNumber(rawValue: number))
      // A plus sign or a leading zero would be a second spelling.
      if id.description == text { return id }
    }
    throw .malformed("\(String(reflecting: String(text.prefix(40)))), which names no operation")
  }

  mutating func storeError() throws(JournalCodingError) -> JournalStoreError {
    let code = JournalStoreError.Code(rawValue: try text())
    return JournalStoreError(code, try text(), isCertain: try bool())
  }
}
