/// Where a ``BlueZTransport`` learns why a link ended, beside the error number of its socket.
///
/// What a source tells is used where it is to be had and missed nowhere: each can be left out.
public struct BlueZSources: OptionSet, Hashable, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// The sources with these bits.
  ///
  /// - Parameter rawValue: The bits; those without a name mean nothing.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The controller's own events, read from a raw HCI socket for each adapter; nothing is sent there.
  ///
  /// It needs no privilege, and is the only source that tells all reasons apart. With CAP_NET_RAW it also tells faults of
  /// the controller, and keys that could not be replaced.
  public static let controller = BlueZSources(rawValue: 1 << 0)
  /// The kernel's management interface.
  ///
  /// Without a privilege it tells of adapters alone. With CAP_NET_ADMIN it gives the kernel's reasons, and links are ended,
  /// adapters switched on and wrong address types found through it.
  public static let management = BlueZSources(rawValue: 1 << 1)
  /// All of them.
  public static let all: BlueZSources = [.controller, .management]
}

/// What a ``BlueZTransport`` does about an adapter that is off.
@nonexhaustive
public enum AdapterPower: Hashable, Sendable {
  /// Leaves it as it is and waits until somebody switches it on.
  case asFound
  /// Switches it on, whoever switched it off: half a second later, and again each 3 s.
  ///
  /// bluetoothd switches adapters off when it stops. It needs CAP_NET_ADMIN; without it the evidence of a loss says so. An
  /// adapter that is blocked (rfkill) is left alone.
  case keepOn
}
