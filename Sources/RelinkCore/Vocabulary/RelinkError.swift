/// The error of every throwing call.
///
/// `==` compares the code alone. An error of an operation carries the operation's outcome, which says whether it may
/// be repeated.
public struct RelinkError: Error, Sendable, CustomStringConvertible {
  /// What kind of error it is; more kinds may be added.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Kind: String, Hashable {
      case notSent, indeterminate, rejected, cancelled, deadlineExceeded, disconnected, ended
      case adapterUnavailable, attemptsExhausted, sessionExists, characteristicNotFound, invalidArgument
      case linkLost, system, userActionNeeded
    }

    private let kind: Kind
    private init(_ kind: Kind) { self.kind = kind }

    /// The operation was never sent: safe to repeat.
    public static let notSent = Code(.notSent)
    /// The operation may have been applied, once; nobody can tell any more.
    public static let indeterminate = Code(.indeterminate)
    /// The device answered with an error.
    public static let rejected = Code(.rejected)
    /// The calling task was cancelled.
    public static let cancelled = Code(.cancelled)
    /// The deadline passed.
    public static let deadlineExceeded = Code(.deadlineExceeded)
    /// `disconnect()` was called.
    public static let disconnected = Code(.disconnected)
    /// The session has ended.
    public static let ended = Code(.ended)
    /// The adapter is off, missing or not permitted.
    public static let adapterUnavailable = Code(.adapterUnavailable)
    /// The user has to do something first; the error's `disconnect` says what.
    public static let userActionNeeded = Code(.userActionNeeded)
    /// All the attempts that the policy allows have failed.
    public static let attemptsExhausted = Code(.attemptsExhausted)
    /// There is a session for the device already.
    public static let sessionExists = Code(.sessionExists)
    /// The device has no such characteristic.
    public static let characteristicNotFound = Code(.characteristicNotFound)
    /// An argument is outside its range.
    public static let invalidArgument = Code(.invalidArgument)
    /// The link to which the request belonged is gone.
    public static let linkLost = Code(.linkLost)
    /// The operating system refused something.
    public static let system = Code(.system)

    /// The name of the code.
    public var description: String { kind.rawValue }
  }

  /// What kind of error it is.
  public var code: Code
  /// What happened and what to do, in a sentence or two.
  public var message: String
  /// The outcome of the operation, for errors of operations: never `succeeded`.
  public var outcome: Outcome<[UInt8]>?
  /// The operation, for errors of operations.
  public var operation: OperationID?
  /// What ended the latest link or attempt, where that is the cause.
  public var disconnect: DisconnectInfo?
  /// The error beneath.
  public var cause: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, outcome: Outcome<[UInt8]>? = nil, operation: OperationID? = nil,
    disconnect: DisconnectInfo? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.outcome = outcome
    self.operation = operation
    self.disconnect = disconnect
    self.cause = cause
  }

  /// The code and the message on one line.
  public var description: String { "\(code): \(message)" }
}

extension RelinkError: Equatable {
  /// Whether both have the same code; nothing else is compared.
  public static func == (left: RelinkError, right: RelinkError) -> Bool { left.code == right.code }
}
