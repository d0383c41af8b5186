internal import CThreadSanitizer
internal import Synchronization

/// A value behind a mutex, for the few things that threads other than the executor's may look at.
///
/// The thread sanitizer does not know the mutex of the standard library on Linux (Swift 6.3), so it is told here what
/// the lock orders. Nothing inside `withLock` may resume a continuation, yield to a stream or make a system call.
package final class Locked<Value: ~Copyable>: Sendable {
  private let mutex: Mutex<Value>

  package init(_ value: consuming sending Value) {
    mutex = Mutex(value)
  }

  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try mutex.withLock { (value: inout sending Value) throws(Failure) -> sending Result in
      let address = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
      relink_tsan_acquire(address)
      defer { relink_tsan_release(address) }
      return try body(&value)
    }
  }
}
