internal import Glibc
internal import Relink
internal import RelinkCrash

/// A process that may be killed from any thread until its end was taken notice of.
final class CrashProcess: Sendable {
  /// How a process ended.
  enum End: Equatable, Sendable {
    case exit(Int32)
    case signal(Int32)
  }

  let pid: pid_t
  private let isThere = Locked(true)

  /// Starts a program; its standard output goes to `output` where one is given.
  init(_ path: String, _ arguments: [String], output: String? = nil) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let output {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
      posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
    }
    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    var pid: pid_t = 0
    let result = posix_spawn(&pid, path, &actions, nil, &words, environ)
    guard result == 0 else { throw CrashFailure("\(path) cannot be started: error \(result)") }
    self.pid = pid
  }

  /// SIGKILL, unless it has ended.
  func kill() {
    // Inside the lock, or the number could be another process's by the time the signal is sent.
    isThere.withLock { if $0 { Glibc.kill(pid, SIGKILL) } }
  }

  /// Blocks until it has ended.
  func wait() -> End {
    var information = siginfo_t()
    // Its number stays taken until nobody can send it a signal any more.
    while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    isThere.withLock { $0 = false }
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    let signal = status & 0x7F
    return signal == 0 ? .exit(status >> 8 & 0xFF) : .signal(signal)
  }
}
