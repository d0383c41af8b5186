public import Relink

// Bonds, pairing, and devices that change their names.
extension VirtualRadio {
  // MARK: - BondingTransport

  /// What this host knows of a bond with the device.
  ///
  /// May be called on any thread.
  ///
  /// - Parameter device: The device.
  /// - Returns: The bond, or that there is none; never that it is unknown.
  public func bond(with device: DeviceID) -> BondKnowledge { state.withLock { $0.knowledge(of: device) } }

  /// Removes this host's half of the bond, and ends the link that it secures.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - done: Called once, in a job of its own, without an error.
  public func removeBond(with device: DeviceID, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    act { $0.removeBond(device, now: $1) }
    executor.post { done(nil) }
  }

  func secure(_ channel: VirtualChannel, to level: SecurityLevel, _ keys: SecurityPolicy.KeySource) {
    act { $0.secure(channel, to: level, keys, now: $1) }
  }

  func responder(on link: Int, _ number: Int) -> PairingResponder {
    PairingResponder { [weak self, executor] answer in
      executor.post { [weak self] in self?.act { $0.securing(link, number, .answered(answer), now: $1) } }
    }
  }

  // MARK: - The world

  /// Bonds this host with a device, as a pairing in an earlier process does: both have the same key.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - level: What links are worth that the key encrypts.
  public func bond(_ device: DeviceID, level: SecurityLevel = .encrypted) {
    act { state, _ in state.makeBond(device, level) }
  }

  /// Lets the device forget its half of a bond; the next encryption fails, with Encryption Change status 0x06 and the end
  /// of the link.
  ///
  /// - Parameter device: The device.
  public func forgetBond(atPeripheral device: DeviceID) {
    act { state, _ in state.forgetAtPeripheral(device) }
  }

  /// Lets this host forget its half of a bond; a link that is up stays as it is.
  ///
  /// - Parameter device: The device.
  public func forgetBond(atHost device: DeviceID) {
    state.withLock { $0.devices[device]?.bond.atHost = nil }
  }

  /// Gives this host a key that is not the device's: encryption begins, and the link dies of a failed message integrity
  /// check (0x3D) a moment later.
  ///
  /// - Parameter device: The device.
  public func giveWrongKey(to device: DeviceID) {
    state.withLock { $0.spoilKey(device) }
  }

  /// Says how a device takes it to be paired with, from now on.
  ///
  /// - Parameters:
  ///   - behavior: How.
  ///   - device: The device.
  public func setPairing(_ behavior: PairingBehavior, of device: DeviceID) {
    state.withLock { $0.devices[device, default: RadioState.Device()].pairing = behavior }
  }

  /// Says how long it takes to encrypt links to a device, in place of ``Configuration/encryptionTime``.
  ///
  /// - Parameters:
  ///   - span: How long.
  ///   - device: The device.
  public func setEncryptionTime(_ span: Duration, of device: DeviceID) {
    state.withLock { $0.devices[device, default: RadioState.Device()].encryptionTime = span }
  }

  /// Lets a device be heard under another name, as after a jump into its bootloader; a link that is up is lost.
  ///
  /// Whoever is registered for the old name is told, and finds nobody there any more.
  ///
  /// - Parameters:
  ///   - device: The name so far.
  ///   - other: The name from now on.
  ///   - evidence: How the host knows that it is the same device.
  public func renameDevice(
    _ device: DeviceID, to other: DeviceID,
    evidence: [Evidence] = [.observation("it advertises the same name")]
  ) {
    act { $0.rename(device, to: other, evidence, now: $1) }
  }
}
