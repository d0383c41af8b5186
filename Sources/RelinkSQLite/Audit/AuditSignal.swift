#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Wakes a thread that waits, for a bounded time, without polling.
final class AuditSignal: Sendable {
  private let reader: Int32
  private let writer: Int32

  /// Fails with the system's error number when the process has no descriptors left.
  init() throws(SystemNumber) {
    var ends: [Int32] = [-1, -1]
    #if canImport(Darwin)
      guard socketpair(AF_UNIX, SOCK_STREAM, 0, &ends) == 0 else { throw SystemNumber(errno) }
      for end in ends {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
      }
    #else
      let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
      guard socketpair(AF_UNIX, Int32(kind), 0, &ends) == 0 else { throw SystemNumber(errno) }
    #endif
    reader = ends[0]
    writer = ends[1]
  }

  deinit {
    _ = close(reader)
    _ = close(writer)
  }

  /// Ends a wait, now or the next one; several are as one where nobody has waited between them.
  func raise() {
    var byte: UInt8 = 1
    while write(writer, &byte, 1) < 0 && errno == EINTR {}
  }

  /// Waits until the signal is raised, or for so many milliseconds; without a bound where that is negative.
  func wait(milliseconds: Int32) {
    var end = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
    while poll(&end, 1, milliseconds) < 0 && errno == EINTR {}
    var bytes = [UInt8](repeating: 0, count: 64)
    while read(reader, &bytes, bytes.count) == bytes.count {}
  }
}

/// An error number of the system.
struct SystemNumber: Error, Hashable, Sendable {
  var rawValue: Int32

  init(_ rawValue: Int32) {
    self.rawValue = rawValue
  }
}
