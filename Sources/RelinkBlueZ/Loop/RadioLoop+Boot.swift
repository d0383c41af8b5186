internal import CBlueZ
internal import Glibc

extension RadioLoop {
  /// The name that the kernel gave this start of the system, from `/proc/sys/kernel/random/boot_id`; nil where that cannot
  /// be read.
  public var bootID: String? { Self.systemBootID }

  /// Whether the kernel counts the system clock as synchronised: `adjtimex(2)` without `STA_UNSYNC`, which a time service
  /// clears and the kernel sets again when the error has grown beyond 16 s.
  public var isWallClockRight: Bool { relink_clock_is_synchronised() != 0 }

  /// Read once: it does not change while a process lives.
  private static let systemBootID: String? = {
    let descriptor = Glibc.open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { Glibc.close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let name = String(decoding: bytes.prefix(count).prefix { $0 > 0x20 }, as: UTF8.self)
    return name.isEmpty ? nil : name
  }()
}
