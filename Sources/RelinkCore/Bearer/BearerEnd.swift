package import BluetoothWire

/// Why a bearer carries nothing more.
package enum BearerEnd: Hashable, Sendable {
  /// It was closed from here, or its link is gone.
  case closed
  /// The request with this opcode was not answered within 30 s (Core Specification Vol 3 Part F 3.3.3).
  case transactionTimeout(ATTOpcode)
  /// The channel took no PDU for 30 s, the span that a transaction may last.
  case channelBlocked
  /// The peer sent what the protocol does not allow, and nothing it says later can be trusted to belong anywhere.
  case protocolViolation(BearerViolation)

  /// The end as a link reports it; nil where the channel knows better.
  package var loss: LinkLoss? {
    switch self {
    case .closed: nil
    case .transactionTimeout(let opcode):
      LinkLoss(
        .transactionTimeout, evidence: [.observation("request \(opcode) was not answered within 30 s")])
    case .channelBlocked:
      LinkLoss(.transactionTimeout, evidence: [.observation("the channel took nothing for 30 s")])
    case .protocolViolation(let violation):
      LinkLoss(.protocolViolation, evidence: [.observation(violation.description)])
    }
  }
}

/// What a peer did that ends the bearer.
package enum BearerViolation: Hashable, Sendable, CustomStringConvertible {
  /// It answered although no request was outstanding.
  case surplusResponse(ATTOpcode)
  /// It answered another request than the outstanding one.
  case mismatchedResponse(ATTOpcode, outstanding: ATTOpcode)
  /// It answered the outstanding request with bytes that are no such answer.
  case malformedResponse(ATTOpcode)
  /// It kept asking while the channel took none of our answers.
  case controlFlood(limit: Int)
  /// A handle in a response was outside the range that was asked for, or not above the one before.
  case handleOutOfOrder(UInt16, in: ATTOpcode)
  /// A declaration does not have the length or the contents of one.
  case malformedDeclaration(handle: UInt16)
  /// The table has more attributes than are kept.
  case tableTooLarge(limit: Int)
  /// The table changed again and again while it was being learnt.
  case tableNeverSettled
  /// A value is longer than any attribute may be.
  case valueTooLong(limit: Int)
  /// The device refused to drop a prepare queue that was called off.
  case queueNotCleared(handle: UInt16)

  /// What happened, in words.
  package var description: String {
    switch self {
    case .surplusResponse(let opcode): "response \(opcode) without a request"
    case .mismatchedResponse(let opcode, let outstanding): "response \(opcode) to request \(outstanding)"
    case .malformedResponse(let opcode): "malformed response \(opcode)"
    case .controlFlood(let limit): "more than \(limit) answers owed on a full channel"
    case .handleOutOfOrder(let handle, let opcode): "handle \(handle) out of order in response \(opcode)"
    case .malformedDeclaration(let handle): "malformed declaration at handle \(handle)"
    case .tableTooLarge(let limit): "attribute table of more than \(limit) attributes"
    case .tableNeverSettled: "attribute table kept changing while it was discovered"
    case .valueTooLong(let limit): "attribute value of more than \(limit) bytes"
    case .queueNotCleared(let handle): "prepare queue of handle \(handle) was not cleared"
    }
  }
}

/// What a bearer let pass or threw away, counted.
package struct BearerCounters: Hashable, Sendable {
  /// Responses without a request, and confirmations, which nobody here ever owes an indication for.
  package var surplus = 0
  /// Responses to another request than the outstanding one.
  package var mismatched = 0
  /// PDUs that could not be read, or were longer than the MTU.
  package var malformed = 0
  /// Answers to abandoned requests, commands to a server that is none, and everything after the end.
  package var swallowed = 0

  package init() {}
}
