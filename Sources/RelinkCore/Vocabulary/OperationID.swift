/// The name of an operation.
///
/// A caller may give one, for instance that of the message that asks for the command: a second call with the same ID is
/// not a second command. It joins the operation that is still open, or returns the outcome that was kept. Where the
/// caller gives none the session does: a number for what lives in memory, a random name for what is durable.
public struct OperationID: Hashable, Sendable, CustomStringConvertible {
  private enum Form: Hashable {
    case number(Int64)
    case text(String)
  }

  private var form: Form

  /// The longest name, in bytes of UTF-8.
  public static let maximumLength = 128

  /// Takes a name of 1 to 128 bytes of UTF-8 that does not begin with a number sign; nil for any other text.
  ///
  /// Names are compared byte by byte, so they should be what machines give out: a UUID, a message ID.
  public init?(_ text: String) {
    guard (1...Self.maximumLength).contains(text.utf8.count), text.utf8.first != UInt8(ascii: "#") else {
      return nil
    }
    form = .text(text)
  }

  /// The name of an operation that was given none: its place in its session's order of calls.
  package init(_ number: OperationNumber) {
    form = .number(number.rawValue)
  }

  /// Whether the name was given, by the caller or for a durable operation, and means the same after a restart.
  package var isLasting: Bool {
    if case .text = form { true } else { false }
  }

  /// Whether both are the same name.
  public static func == (left: OperationID, right: OperationID) -> Bool {
    switch (left.form, right.form) {
    case (.number(let left), .number(let right)): left == right
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.number, .text), (.text, .number): false
    }
  }

  /// Feeds what `==` compares.
  public func hash(into hasher: inout Hasher) {
    switch form {
    case .number(let number): hasher.combine(number)
    case .text(let text): for byte in text.utf8 { hasher.combine(byte) }
    }
  }

  /// The name as text; a number has a leading number sign.
  public var description: String {
    switch form {
    case .number(let number): "#\(number)"
    case .text(let text): text
    }
  }
}

/// The place of an operation in its session's order of calls; what was taken over from an earlier process has negative
/// ones.
package struct OperationNumber: RawRepresentable, Hashable, Comparable, Sendable {
  /// The number.
  package var rawValue: Int64

  /// Makes a place from its number.
  @inlinable
  package init(rawValue: Int64) { self.rawValue = rawValue }

  /// Whether the left operation was called earlier.
  @inlinable
  package static func < (left: OperationNumber, right: OperationNumber) -> Bool {
    left.rawValue < right.rawValue
  }
}
