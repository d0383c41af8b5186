/// Whether bluetoothd runs on the host, as a ``BlueZTransport`` is to believe.
///
/// Beside bluetoothd the transport leaves pairing and the kernel's list of keys to it: to hand keys over replaces all
/// those that it has handed over.
@nonexhaustive
public enum BluetoothdPresence: Hashable, Sendable {
  /// Looked up among the processes of the host. Where they cannot all be seen, from a container with a process namespace
  /// of its own for instance, it counts as running: nothing of it is disturbed then, and nothing pairs.
  case detected
  /// It runs.
  case running
  /// It does not run.
  case absent
}
