public import BluetoothWire
public import Relink

/// How a virtual peripheral treats a request, where that is not what the specification asks.
///
/// The parts are played in the order in which they stand here.
public struct ServerReaction: Hashable, Sendable {
  /// What the client gets to hear.
  @nonexhaustive
  public enum Answer: Hashable, Sendable {
    /// The answer that belongs to the request; a success where the request is not applied.
    case proper
    /// An error with this code, whatever was done.
    case error(ATTErrorCode)
    /// Nothing.
    case nothing
    /// The proper answer, two times.
    case twice
    /// These octets, whatever they are.
    case octets([UInt8])
  }

  /// Values of the characteristic that are notified before anything else happens, subscribed or not.
  public var notifiesFirst: [[UInt8]]
  /// How long it takes until the request is applied, also when the link is gone by then.
  public var applicationDelay: Duration
  /// Whether the request takes effect.
  public var applies: Bool
  /// How long the answer takes after that; an answer whose link is gone by then is dropped.
  public var answerDelay: Duration
  /// What the client gets to hear.
  public var answer: Answer
  /// With which reason the peripheral ends the link, right behind the answer; nil if it does not.
  public var termination: HCIErrorCode?

  /// Describes a reaction; without arguments it is the ordinary one.
  public init(
    notifiesFirst: [[UInt8]] = [], applicationDelay: Duration = .zero, applies: Bool = true,
    answerDelay: Duration = .zero, answer: Answer = .proper, termination: HCIErrorCode? = nil
  ) {
    self.notifiesFirst = notifiesFirst
    self.applicationDelay = applicationDelay
    self.applies = applies
    self.answerDelay = answerDelay
    self.answer = answer
    self.termination = termination
  }

  /// What the specification asks.
  public static let proper = ServerReaction()
  /// Nothing happens at all.
  public static let swallow = ServerReaction(applies: false, answer: .nothing)
  /// It is done, and nothing is said.
  public static let applyAndSayNothing = ServerReaction(answer: .nothing)
  /// It is done, and answered two times.
  public static let answerTwice = ServerReaction(answer: .twice)

  /// It is answered with an error and not done.
  public static func refuse(_ code: ATTErrorCode) -> ServerReaction {
    ServerReaction(applies: false, answer: .error(code))
  }

  /// It is done and answered with an error all the same.
  public static func applyAndFail(_ code: ATTErrorCode) -> ServerReaction {
    ServerReaction(answer: .error(code))
  }

  /// It is done at once and answered late.
  public static func answerLate(_ delay: Duration) -> ServerReaction {
    ServerReaction(answerDelay: delay)
  }

  /// It is done late, also when the link is gone by then, and answered right after that.
  public static func applyLate(_ delay: Duration) -> ServerReaction {
    ServerReaction(applicationDelay: delay)
  }

  /// It is done, and the link ends without an answer.
  public static func applyAndDrop(_ reason: HCIErrorCode = .remoteUserTerminatedConnection) -> ServerReaction
  {
    ServerReaction(answer: .nothing, termination: reason)
  }

  /// The link ends before it is done.
  public static func drop(_ reason: HCIErrorCode = .remoteUserTerminatedConnection) -> ServerReaction {
    ServerReaction(applies: false, answer: .nothing, termination: reason)
  }

  /// It is done and answered, and the link ends right behind the answer.
  public static func answerAndDrop(_ reason: HCIErrorCode = .remoteUserTerminatedConnection) -> ServerReaction
  {
    ServerReaction(termination: reason)
  }
}

/// Which requests a reaction is meant for.
public struct RequestPattern: Hashable, Sendable {
  /// The attribute that a request may name.
  enum Target: Hashable, Sendable {
    case any
    case handle(UInt16)
    case value(Characteristic)
    case configuration(Characteristic)
  }

  var target: Target
  /// Nil matches every opcode.
  var opcodes: Set<ATTOpcode>?

  private static let writes: Set<ATTOpcode> = [.writeRequest, .writeCommand, .executeWriteRequest]
  private static let reads: Set<ATTOpcode> = [.readRequest, .readBlobRequest]

  /// Every PDU with this opcode, such as the Exchange MTU Request.
  public static func opcode(_ opcode: ATTOpcode) -> RequestPattern {
    RequestPattern(target: .any, opcodes: [opcode])
  }

  /// Every PDU of a client.
  public static let anything = RequestPattern(target: .any, opcodes: nil)

  /// Every PDU that names this handle; with an opcode, only those with it.
  ///
  /// An Execute Write Request names the handles of its queue.
  public static func handle(_ handle: UInt16, opcode: ATTOpcode? = nil) -> RequestPattern {
    RequestPattern(target: .handle(handle), opcodes: opcode.map { [$0] })
  }

  /// Writes of a value: requests, commands and the execution of prepared writes.
  public static func write(_ handle: UInt16) -> RequestPattern {
    RequestPattern(target: .handle(handle), opcodes: writes)
  }

  /// Writes of a value: requests, commands and the execution of prepared writes.
  public static func write(_ name: Characteristic) -> RequestPattern {
    RequestPattern(target: .value(name), opcodes: writes)
  }

  /// Reads of a value, long ones included.
  public static func read(_ handle: UInt16) -> RequestPattern {
    RequestPattern(target: .handle(handle), opcodes: reads)
  }

  /// Reads of a value, long ones included.
  public static func read(_ name: Characteristic) -> RequestPattern {
    RequestPattern(target: .value(name), opcodes: reads)
  }

  /// Writes of the Client Characteristic Configuration descriptor.
  public static func subscription(_ name: Characteristic) -> RequestPattern {
    RequestPattern(target: .configuration(name), opcodes: writes)
  }

  /// Everything that a client does to learn the attribute table.
  public static let discovery = RequestPattern(
    target: .any,
    opcodes: [
      .readByGroupTypeRequest, .readByTypeRequest, .findInformationRequest, .findByTypeValueRequest,
    ])

  /// The Exchange MTU Request.
  public static let exchangeMTU = RequestPattern.opcode(.exchangeMTURequest)
}
