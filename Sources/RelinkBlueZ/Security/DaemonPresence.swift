internal import Glibc

/// Whether bluetoothd runs on this host.
enum DaemonPresence {
  /// Looks through the processes, which takes milliseconds; a process that hides is not seen.
  static func isRunning(in folder: String = "/proc") -> Bool {
    guard let processes = opendir(folder) else { return false }
    defer { closedir(processes) }
    while let entry = readdir(processes) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.first?.isNumber == true, command("\(folder)/\(name)/comm") == "bluetoothd" { return true }
    }
    return false
  }

  private static func command(_ path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { _ = close(file) }
    // The kernel keeps 15 characters (TASK_COMM_LEN) and ends them with a new line.
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = read(file, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(count, 0)).prefix { $0 != 0x0A }, as: UTF8.self)
  }
}
