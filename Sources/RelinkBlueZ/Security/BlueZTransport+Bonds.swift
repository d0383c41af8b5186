public import Relink

extension BlueZTransport: BondingTransport {
  /// What is known here of a bond with the device, from memory; to be called on the loop.
  ///
  /// Where bluetoothd runs, whether it keeps one, as far as this process may see that (root). It is looked for when
  /// security is asked for; until then it is unknown, and so it is before the store was read.
  ///
  /// - Parameter device: The device, by its identity address.
  /// - Returns: What is known.
  public func bond(with device: DeviceID) -> BondKnowledge { host.bond(with: device) }

  /// Removes the bond with the device from the kernel, which ends a link to it, and from the store.
  ///
  /// It takes as long as the link takes to end, at most 5 s. Where bluetoothd runs it is refused: it keeps the bonds
  /// there.
  ///
  /// - Parameters:
  ///   - device: The device, by its identity address.
  ///   - done: Called once, on the loop; nil when no bond is left.
  public func removeBond(with device: DeviceID, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    host.security.removeBond(with: device, done)
  }

  /// The bonds that are kept here, in the order in which they were made; those of bluetoothd are not among them.
  ///
  /// May be called on any thread. Empty until the store was read, milliseconds after the transport was made.
  ///
  /// - Returns: What may be told of each.
  public func bonds() -> [BondRecord] { host.security.records }
}
