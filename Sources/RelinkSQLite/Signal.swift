#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Wakes a thread that sleeps, without polling: a connected pair of sockets, one end to write and one to read.
final class Signal: Sendable {
  private let reader: Int32
  private let writer: Int32

  /// Nil when the process has no descriptors left.
  init?() {
    var ends: [Int32] = [-1, -1]
    #if canImport(Darwin)
      guard socketpair(AF_UNIX, SOCK_STREAM, 0, &ends) == 0 else { return nil }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    #else
      let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
    #endif
    reader = ends[0]
    writer = ends[1]
  }

  deinit {
    _ = close(reader)
    _ = close(writer)
  }

  /// Ends one ``wait()``, now or later.
  func send() {
    var byte: UInt8 = 1
    while write(writer, &byte, 1) < 0 && errno == EINTR {}
  }

  /// Sleeps until there was a ``send()`` for it.
  func wait() {
    var byte: UInt8 = 0
    while read(reader, &byte, 1) < 0 && errno == EINTR {}
  }

  /// Ends every ``wait()``, now and later.
  func open() {
    _ = shutdown(writer, Int32(SHUT_WR))
  }
}
