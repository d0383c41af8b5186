internal import BluetoothWire
internal import Glibc
internal import Relink

extension LinkLoss {
  /// The same loss of a link that was being encrypted, with the keys of a bond or new ones.
  ///
  /// The kernel ends a link whose encryption fails by itself, so without the controller's word it looks like an end from
  /// here (ECONNABORTED); a controller that cannot decrypt ends it with a reason that has no error number (0x3D, ENOSYS).
  /// What the controller says stands.
  var whileEncrypting: LinkLoss {
    var errors: [Int32] = []
    for item in evidence {
      switch item {
      case .encryption(let status) where status != .success: return self
      case .hci(let reason) where reason != .connectionTerminatedByLocalHost: return self
      case .system(let error, _): errors.append(error)
      default: break
      }
    }
    guard [.unknown, .localHostTerminated, .linkLayerFault].contains(reason) else { return self }
    let reason: DisconnectReason? =
      if errors.contains(where: [ECONNABORTED, EACCES].contains) {
        .authenticationFailure
      } else if errors.contains(ENOSYS) {
        .micFailure
      } else {
        nil
      }
    guard let reason else { return self }
    return LinkLoss(
      reason, evidence: evidence + [.observation("the link ended while it was being encrypted")])
  }
}
