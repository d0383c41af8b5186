internal import CThreadSanitizer

/// The thread that this code runs on, as a number that no other living thread has.
///
/// For executors that have to say whether a call came from where it should. A thread that ended gives its number up.
package struct ThreadIdentity: Hashable, Sendable {
  private let number: UInt

  /// The thread of the caller.
  package static var current: ThreadIdentity { ThreadIdentity(number: UInt(relink_thread_identity())) }
}
