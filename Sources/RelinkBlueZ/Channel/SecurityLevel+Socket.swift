internal import Relink

extension SecurityLevel {
  /// What the `BT_SECURITY` option of a connected ATT socket says about its link.
  ///
  /// The kernel answers with the level of the link, not with that of the socket (`l2cap_sock_getsockopt`). It sets it
  /// when encryption is on, to the level that was asked for and that the key fulfils (`hci_encrypt_change_evt`,
  /// `smp_conn_security`, `smp_ltk_sec_level`), so a better key may count for less.
  ///
  /// The link mode in the list of connections cannot tell the levels apart: its authentication bit is set by any
  /// encryption, and its secure and FIPS bits belong to BR/EDR. On Linux 6.1, a link with a key from unauthenticated
  /// pairing had level 2 with a key of 16 bytes here, and both the encryption and the authentication bit there.
  ///
  /// - Parameters:
  ///   - kernelLevel: The level: 1 low, 2 medium, 3 high, 4 FIPS; others are taken for none.
  ///   - keySize: The size of the key in bytes; level 4 needs 16 (Core Specification Vol 3 Part C 10.2.1).
  init(kernelLevel: UInt8, keySize: UInt8) {
    switch kernelLevel {
    case 2: self = .encrypted
    case 3: self = .authenticated
    case 4: self = keySize >= 16 ? .secureConnections : .authenticated
    default: self = .none
    }
  }
}
