package import BluetoothWire

/// What a procedure wants after an answer.
package enum ProcedureAction: Equatable, Sendable {
  /// Send this request next.
  case request(ATTPDU)
  /// It is over.
  case finished(Result<GATTAnswer, GATTFailure>)
  /// It is over, and this is the table of the device.
  case table(AttributeTable)
  /// It is over, and the bearer ends with it.
  case failed(GATTFailure, BearerViolation)

  /// It is over, because no server answers its request like that.
  static func malformed(_ pdu: ATTPDU) -> ProcedureAction {
    .failed(.malformedAnswer, .malformedResponse(pdu.opcode))
  }
}

/// A GATT procedure that holds the bearer: which request comes next, and what its answers amount to
/// (Core Specification Vol 3 Part G 4).
///
/// The two large ones are indirect, so that the small ones, which are what a session does all day, stay small.
package enum GATTProcedure: Sendable {
  /// Exchange MTU (4.3.1), offering so many bytes.
  case exchangeMTU(offered: Int)
  /// Discovery or validation of the table (4.4, 4.6, 4.7 and 7.3).
  indirect case discovery(DiscoveryProcedure)
  /// Reading a value (4.8.1, 4.8.3).
  case read(ReadProcedure)
  /// Writing a value or a descriptor in one request (4.9.3, 4.12.3).
  case write
  /// Writing one value or several through the prepare queue (4.9.4, 4.9.5).
  indirect case writeQueued(QueuedWriteProcedure)

  /// The outstanding request was answered; `mtu` is the one in force.
  package mutating func received(_ pdu: ATTPDU, mtu: Int) -> ProcedureAction {
    switch self {
    case .read(var procedure):
      // Only the first answer of most reads is looked at, so the payload is put back only if there is more to come.
      let action = procedure.received(pdu, mtu: mtu)
      if case .request = action { self = .read(procedure) }
      return action
    case .write:
      if case .errorResponse(_, _, let code) = pdu { return .finished(.failure(.rejected(code))) }
      // The bearer lets nothing else through; that a write is done must not hang on it.
      guard case .writeResponse = pdu else { return .malformed(pdu) }
      return .finished(.success(.done))
    case .exchangeMTU(let offered):
      if case .errorResponse = pdu { return .finished(.success(.mtu(ATTLimits.defaultMTU))) }
      guard case .exchangeMTUResponse(let theirs) = pdu else { return .malformed(pdu) }
      // A peer that offers less than the least there is gets the least there is.
      let agreed = max(ATTLimits.defaultMTU, min(offered, Int(theirs)))
      return .finished(.success(.mtu(agreed)))
    case .writeQueued(var procedure):
      self = .write
      let action = procedure.received(pdu)
      self = .writeQueued(procedure)
      return action
    case .discovery(var procedure):
      // Moved out and back, so that the lists it collects are not copied with each answer.
      self = .write
      let action = procedure.received(pdu)
      self = .discovery(procedure)
      return action
    }
  }
}
