public import RelinkCore

/// A place where every transition of a session's journal is put down for good.
///
/// It is called on the session's executor, once for each transition, in their order, and must return at once: what takes
/// time belongs on a thread of its own.
public protocol AuditSink: AnyObject, Sendable {
  /// Puts a transition down. `owner` is the name of the session's owner from its configuration.
  func record(_ event: JournalEvent, of device: DeviceID, owner: String)
}
