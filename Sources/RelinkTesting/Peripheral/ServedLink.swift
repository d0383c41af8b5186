package import BluetoothWire
package import Relink

/// The peripheral's end of one link, whoever carries it: a virtual radio or the platform of a managed transport.
package protocol ServedLink: AnyObject, Sendable {
  /// The number of the link.
  var number: Int { get }
  /// The name of the central.
  var client: String { get }
  /// The longest PDU that the link carries, in bytes.
  var mtuLimit: Int { get }
  /// The present.
  var now: MonotonicInstant { get }

  /// Sends a response to the bearer on which the request came.
  func respond(_ pdu: [UInt8], bearer: Int)

  /// Sends a notification or an indication.
  func push(_ pdu: [UInt8])

  /// Ends the link from the peripheral's side.
  func terminate(_ reason: HCIErrorCode)

  /// Runs `work` on the executor of the link after a delay, even when the link is gone by then.
  func later(_ delay: Duration, _ work: @escaping @Sendable () -> Void)
}
