public import Relink

extension SeqPacketChannel: SecurableChannel {
  /// Secures the link of an L2CAP socket; other descriptors have none that could be secured.
  ///
  /// Nothing is done before something was received on the socket: some kernels (6.1.192) do not survive the loss of a
  /// link that was raised before.
  ///
  /// - Parameters:
  ///   - level: What the link is to offer at least.
  ///   - keys: Where the keys may come from.
  public func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource) {
    port.secure(to: level, keys: keys)
  }
}
