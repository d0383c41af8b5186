internal import Glibc
internal import Relink

/// A system call that failed.
struct SystemError: Error, Hashable, Sendable {
  /// The error number, positive.
  var number: Int32

  /// What the system calls it.
  var text: String { String(cString: strerror(number)) }
}

extension RelinkError {
  static func system(_ call: StaticString, _ number: Int32) -> RelinkError {
    RelinkError(.system, "\(call) failed: \(SystemError(number: number).text) (error \(number)).")
  }
}
