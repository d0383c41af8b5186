/// Why octets are no ATT PDU, and what is owed to the peer for them.
public struct ATTDecodingError: Error, Equatable, Sendable {
  /// The opcode, nil if there was not even that.
  public let opcode: ATTOpcode?
  /// What was wrong.
  public let problem: Problem

  /// An error with these facts.
  ///
  /// - Parameters:
  ///   - opcode: The first octet, nil if there was none.
  ///   - problem: What was wrong.
  public init(opcode: ATTOpcode?, problem: Problem) {
    self.opcode = opcode
    self.problem = problem
  }

  /// What can be wrong with a PDU.
  @nonexhaustive
  public enum Problem: Hashable, Sendable {
    /// There were no octets.
    case empty
    /// Fewer octets than the fields of this PDU need.
    case truncated
    /// More octets than this PDU can have, or a number between the lengths that it can have.
    case badLength
    /// A list without an item.
    case emptyList
    /// Items that do not fill the list, or that are shorter than their fixed fields.
    case inconsistentList
    /// A field has a value that the specification does not define.
    case invalidField
  }

  /// True if the PDU was a request: the server owes an answer even though it cannot read it.
  public var isRequest: Bool { opcode?.kind == .request }

  /// The answer a server owes, nil unless the PDU was a request.
  ///
  /// An Error Response with ``ATTErrorCode/invalidPDU`` and handle 0 (Core Specification Vol 3 Part F 3.4.1.1).
  public var answer: ATTPDU? {
    guard let opcode, isRequest else { return nil }
    return .errorResponse(request: opcode, handle: 0, code: .invalidPDU)
  }
}

extension ATTDecodingError: CustomStringConvertible {
  /// One line with the opcode and what was wrong.
  public var description: String {
    let subject = opcode.map { "ATT PDU with opcode \($0)" } ?? "ATT PDU"
    switch problem {
    case .empty: return "\(subject) is empty"
    case .truncated: return "\(subject) is truncated"
    case .badLength: return "\(subject) has a length that is not allowed"
    case .emptyList: return "\(subject) has a list without items"
    case .inconsistentList: return "\(subject) has a list whose items do not fit it"
    case .invalidField: return "\(subject) has a field with an undefined value"
    }
  }
}
