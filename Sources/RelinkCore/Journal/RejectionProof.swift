internal import BluetoothWire

/// Which ATT errors prove that the device did not act on a request.
enum RejectionProof {
  /// Whether the code proves that the request changed nothing.
  ///
  /// Core Specification Vol 3 Part F 3.4.1.1. Unlikely Error (0x0E) and Insufficient Resources (0x11) may come half
  /// way through, and the application (0x80-0x9F) and profile (0xE0-0xFF) ranges mean what their author meant: none of
  /// them proves anything. A write through the prepare queue may have been executed in part unless the error is one of
  /// the two with which nothing is written, Invalid Offset and Invalid Attribute Value Length (3.4.6.4).
  static func provesNotApplied(_ code: ATTErrorCode, to request: GATTRequest) -> Bool {
    if case .writeLong = request { return code.rawValue == 0x07 || code.rawValue == 0x0D }
    switch code.rawValue {
    case 0x01...0x0D, 0x0F, 0x10, 0x12, 0x13: return true
    default: return false
    }
  }
}
