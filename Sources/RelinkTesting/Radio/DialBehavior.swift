public import BluetoothWire
public import Relink

/// How a dial on a virtual radio goes.
@nonexhaustive
public enum DialBehavior: Hashable, Sendable {
  /// As the device is: up behind its next advertisement, or not found at the limit of the dial.
  case normal
  /// It never ends by itself, not even at its limit.
  case hang
  /// It ends without a link, after a while, with this reason from the controller.
  case fail(HCIErrorCode, after: Duration)
  /// It ends without a link, after a while, with exactly this loss.
  case failExactly(LinkLoss, after: Duration)
  /// The link comes up at once and dies with 0x3E after a while; the device never hears of it, nor of what was sent.
  case failToEstablish(after: Duration)
  /// The connection is refused after a while.
  case refuse(after: Duration)
  /// Another dial or socket holds the radio.
  case busy
}
