public import BluetoothWire

/// Which ATT errors, in place of a response, prove that the device did not act on a request.
///
/// A profile says more than the specification does: a code of the application range that a device sends only before it
/// does anything proves that nothing was done, and one that it also sends afterwards proves nothing.
public struct RejectionRules: Hashable, Sendable {
  /// What a profile says of single codes; it goes before the table of the specification.
  ///
  /// It says nothing about Execute Write, of which a part may have been done whatever the code.
  public var overrides: [ATTErrorCode: Bool]

  /// Makes rules that differ from the specification's table in some codes.
  public init(overrides: [ATTErrorCode: Bool] = [:]) {
    self.overrides = overrides
  }

  /// The table of the specification.
  public static let standard = RejectionRules()

  /// Whether the error proves that a request other than Execute Write changed nothing.
  ///
  /// Core Specification Vol 3 Part F 3.4.1.1. Unlikely Error (0x0E) and Insufficient Resources (0x11) may come half way
  /// through, and the application (0x80-0x9F) and profile (0xE0-0xFF) ranges mean what their author meant: without an
  /// override none of them proves anything.
  public func provesNotApplied(_ code: ATTErrorCode) -> Bool {
    if let override = overrides[code] { return override }
    switch code.rawValue {
    case 0x01...0x0D, 0x0F, 0x10, 0x12, 0x13: return true
    default: return false
    }
  }

  /// Whether the error proves that nothing of the prepare queue was written when it answers Execute Write.
  ///
  /// Only the two with which the specification says so: Invalid Offset (0x07) and Invalid Attribute Value Length (0x0D)
  /// (Vol 3 Part F 3.4.6.3). Any other may come after a part was written.
  public func provesNotExecuted(_ code: ATTErrorCode) -> Bool {
    code.rawValue == 0x07 || code.rawValue == 0x0D
  }
}
