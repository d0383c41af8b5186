internal import BluetoothWire
internal import CBlueZ
internal import Glibc
internal import Relink

/// The bonds that bluetoothd keeps, `/var/lib/bluetooth/ADAPTER/DEVICE/info`, which are readable by root alone.
enum DaemonBonds {
  static let folder = "/var/lib/bluetooth"
  /// No file of it is as long; the rest of one that is would not be read.
  private static let longest = 64 << 10

  /// Looks for the bond of a device with an adapter; it waits for the disk.
  static func read(_ device: BluetoothAddress, of adapter: BluetoothAddress, in folder: String) -> BondReading
  {
    let path = "\(folder)/\(adapter)/\(device)/info"
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      // A folder that may not be looked into says the same of a file that is not there.
      return errno == ENOENT ? .missing : .unreadable
    }
    defer { _ = Glibc.close(file) }
    var bytes = [UInt8](repeating: 0, count: longest)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { return .unreadable }
    return reading(of: String(decoding: bytes.prefix(count), as: UTF8.self))
  }

  /// What such a file says of links on which this host is the central.
  static func reading(of text: String) -> BondReading {
    var group = ""
    var values: [String: Substring] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let line = line.drop { $0 == " " || $0 == "\t" }
      if line.hasPrefix("["), let end = line.firstIndex(of: "]") {
        group = String(line[line.index(after: line.startIndex)..<end])
      } else if group == "LongTermKey", let sign = line.firstIndex(of: "=") {
        values[String(line[..<sign])] = line[line.index(after: sign)...]
      }
    }
    guard values["Key"] != nil else { return .missing }
    // 1 and 3 exclude somebody in the middle, 2 and 3 are of Secure Connections, as mgmt numbers them.
    let type = values["Authenticated"].flatMap { UInt8($0) } ?? 0
    let size = values["EncSize"].flatMap { Int($0) } ?? 16
    let level: SecurityLevel =
      switch type {
      case 1: .authenticated
      case 3: size >= 16 ? .secureConnections : .authenticated
      default: .encrypted
      }
    return .kept(level, isElsewhere: true)
  }
}

/// Work that waits for the disk, on a thread that ends with it.
enum BackgroundWork {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Runs `work`, then `done` on the loop with its result; on the loop both where the system has no thread left.
  static func run<Value: Sendable>(
    then loop: RadioLoop, _ work: @escaping @Sendable () -> Value, _ done: @escaping @Sendable (Value) -> Void
  ) {
    let body = Body {
      let value = work()
      loop.post { done(value) }
    }
    let context = Unmanaged.passRetained(body).toOpaque()
    let entry: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
      guard let context else { return }
      Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
    }
    var thread: UInt64 = 0
    if relink_thread_start(entry, context, &thread) == 0 {
      _ = relink_thread_detach(thread)
    } else {
      Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
    }
  }
}
