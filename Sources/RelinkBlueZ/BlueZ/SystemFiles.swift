internal import Glibc

/// The switches of this machine that forbid radios (rfkill), as `/sys/class/rfkill` shows them; read in memory, without
/// waiting.
struct AdapterSwitches: Sendable {
  static let system = AdapterSwitches(root: "/sys/class/rfkill")

  let root: String

  /// Whether the adapter of this number is blocked, by its own switch or, where it has none, by one for all Bluetooth.
  func isBlocked(_ adapter: UInt16) -> Bool {
    let switches = bluetooth
    let own = switches.filter { $0.name == "hci\(adapter)" }
    return (own.isEmpty ? switches : own).contains(where: \.isBlocked)
  }

  private var bluetooth: [(name: String, isBlocked: Bool)] {
    entries(of: root).compactMap { entry in
      let folder = "\(root)/\(entry)"
      guard firstLine(of: "\(folder)/type") == "bluetooth" else { return nil }
      let isBlocked = ["soft", "hard"].contains { firstLine(of: "\(folder)/\($0)") == "1" }
      return (firstLine(of: "\(folder)/name") ?? "", isBlocked)
    }
  }
}

/// The processes of the system, as `/proc` shows them.
struct SystemProcesses: Sendable {
  static let system = SystemProcesses(root: "/proc")

  let root: String

  /// The number of bluetoothd's process, or that there is none; nil where nobody can tell.
  ///
  /// It looks at every process: not for the loop.
  func findDaemon() -> DaemonSight? {
    let numbers = entries(of: root).compactMap { Int32($0) }
    let daemon = numbers.first { firstLine(of: "\(root)/\($0)/comm") == "bluetoothd" }
    if let daemon { return .running(daemon) }
    return showsWholeHost ? .absent : nil
  }

  /// Whether no process of the host is hidden: by a namespace of our own, or by the way `/proc` is mounted.
  ///
  /// The namespace that the host begins with has a number of its own (PROC_PID_INIT_INO in the kernel's
  /// include/linux/proc_ns.h).
  private var showsWholeHost: Bool {
    target(of: "\(root)/self/ns/pid") == "pid:[4026531836]" && firstLine(of: "\(root)/1/comm") != nil
  }

  /// What bluetoothd's process does.
  ///
  /// Nil once the process is bluetoothd's no more. One read in memory.
  func effort(ofDaemon process: Int32) -> DaemonEffort? {
    // proc(5): number, name in parentheses, state, and from the 14th on the time in user and in kernel mode.
    guard let line = firstLine(of: "\(root)/\(process)/stat"), let end = line.lastIndex(of: ")"),
      line[..<end].hasSuffix("(bluetoothd")
    else { return nil }
    let fields = line[end...].split(separator: " ")
    guard fields.count > 13, !["Z", "X"].contains(fields[1]), let user = UInt64(fields[12]),
      let kernel = UInt64(fields[13])
    else { return nil }
    return DaemonEffort(ticks: user &+ kernel, isAsleep: fields[1] == "S")
  }
}

/// What bluetoothd's process does at one moment.
struct DaemonEffort: Equatable, Sendable {
  /// How long it has computed, in clock ticks of the system.
  var ticks: UInt64
  /// Whether it waits for something, and not for a processor or a disk.
  var isAsleep: Bool
}

/// What a look at the processes shows of bluetoothd.
enum DaemonSight: Equatable, Sendable {
  case running(Int32)
  case absent
}

/// The names in a folder, without those that begin with a dot; none where it cannot be read.
private func entries(of folder: String) -> [String] {
  guard let stream = opendir(folder) else { return [] }
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if !name.hasPrefix(".") { names.append(name) }
  }
  return names
}

/// What a symbolic link says.
private func target(of path: String) -> String? {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
    guard let start = buffer.baseAddress else { return nil }
    let length = readlink(path, start, buffer.count)
    guard length >= 0 else { return nil }
    return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The first line of a small file, at most 512 bytes of it.
private func firstLine(of path: String) -> String? {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
  guard descriptor >= 0 else { return nil }
  defer { close(descriptor) }
  var bytes = [UInt8](repeating: 0, count: 512)
  let count = read(descriptor, &bytes, bytes.count)
  guard count > 0 else { return nil }
  return String(decoding: bytes.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self)
}
