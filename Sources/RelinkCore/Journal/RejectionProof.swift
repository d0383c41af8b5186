package import BluetoothWire

/// Which ATT errors prove that the device did not act on a request.
package enum RejectionProof {
  /// Whether an error in place of a response proves that the request changed nothing.
  ///
  /// Core Specification Vol 3 Part F 3.4.1.1. Unlikely Error (0x0E) and Insufficient Resources (0x11) may come half
  /// way through, and the application (0x80-0x9F) and profile (0xE0-0xFF) ranges mean what their author meant: none of
  /// them proves anything.
  package static func provesNotApplied(_ code: ATTErrorCode) -> Bool {
    switch code.rawValue {
    case 0x01...0x0D, 0x0F, 0x10, 0x12, 0x13: return true
    default: return false
    }
  }

  /// Whether an error in answer to Execute Write proves that nothing of the queue was written.
  ///
  /// Only the two with which the specification says so: Invalid Offset and Invalid Attribute Value Length (Vol 3 Part F
  /// 3.4.6.3). Any other may come after a part was written.
  package static func provesNotExecuted(_ code: ATTErrorCode) -> Bool {
    code.rawValue == 0x07 || code.rawValue == 0x0D
  }
}
