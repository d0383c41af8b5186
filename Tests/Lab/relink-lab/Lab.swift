internal import BluetoothWire
internal import Glibc
internal import Relink
internal import RelinkBlueZ

/// What every scenario starts with: the adapter, the peripheral, the radio.
struct Lab: Sendable {
  let loop: RadioLoop
  let transport: BlueZTransport
  let device: DeviceID
  let radio: RadioControl

  init() throws {
    guard let path = Lab.environment("RELINK_LAB_CONTROL"), let peer = Lab.environment("RELINK_LAB_PEER"),
      let device = DeviceID(peer + "/random")
    else { throw LabFailure("RELINK_LAB_CONTROL and RELINK_LAB_PEER are not set; see Tests/Lab/README.md") }
    self.device = device
    radio = try RadioControl(path: path)
    loop = try RadioLoop.shared()
    // What the kernel offers without any privilege, on a socket that was opened with all of them.
    if Lab.options.contains("--unprivileged"), setgid(65534) != 0 || setuid(65534) != 0 {
      throw LabFailure("the privileges could not be given up: error \(errno)")
    }
    let power = Lab.options.contains("--keep-on") ? AdapterPower.keepOn : .asFound
    transport = try BlueZTransport(adapter: .index(0), sources: Lab.sources, adapterPower: power, on: loop)
  }

  /// What is passed on to a child.
  static let options = CommandLine.arguments.filter { $0.hasPrefix("--") }

  /// Where the transport learns why a link ended: everywhere, or less by option.
  private static var sources: BlueZSources {
    var sources = BlueZSources.all
    if options.contains("--without-controller") { sources.remove(.controller) }
    if options.contains("--without-management") { sources.remove(.management) }
    return sources
  }

  static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// A session that loses no time with delays of its own: the lab measures the way back, not the policy.
  func session() throws -> DeviceSession {
    try DeviceSession(with: device, over: transport, configuration: Lab.configuration)
  }

  static let policy = ReconnectionPolicy(
    backoff: BackoffPolicy(base: .milliseconds(1), cap: .milliseconds(20)), stability: .zero)
  static let configuration = Configuration(
    reconnection: policy, deadlines: Deadlines(operation: .seconds(60), connect: .seconds(60)), seed: 1)

  /// Has the radio count from zero, once the link that an earlier program left behind is gone.
  func begin() async throws {
    _ = try await stats { $0.live.isEmpty }
    try await radio.tell("reset")
  }

  // MARK: Time

  /// Lets a span pass.
  func pause(_ span: Duration) async {
    let owner = Stopwatch()
    await withCheckedContinuation { continuation in
      loop.post {
        let end = loop.now.advanced(by: span)
        loop.setTimer(TimerID(owner: owner, number: 0), at: end) { continuation.resume() }
      }
    }
    withExtendedLifetime(owner) {}
  }

  /// Looks at a condition again and again; whether it came true in time.
  func wait(within span: Duration, until condition: @Sendable () -> Bool) async -> Bool {
    let end = loop.now.advanced(by: span)
    while !condition() {
      guard loop.now < end else { return false }
      await pause(.milliseconds(2))
    }
    return true
  }

  /// Asks the radio again and again; what it said when the condition held.
  func stats(within span: Duration = .seconds(30), until condition: (RadioStats) -> Bool) async throws
    -> RadioStats
  {
    let end = loop.now.advanced(by: span)
    while true {
      let stats = try await radio.ask("stats", for: RadioStats.self)
      if condition(stats) { return stats }
      guard loop.now < end else { throw LabFailure("the radio did not get there in \(span): \(stats)") }
      await pause(.milliseconds(5))
    }
  }
}

private final class Stopwatch: Sendable {}

extension Characteristic {
  /// A characteristic of the lab's peripheral by the number in its UUID.
  private static func lab(_ number: UInt64) -> Characteristic {
    let uuid = { (number: UInt64) in BluetoothUUID(number << 32 | 0x7A3C_4D0B, 0x9C41_5245_4C49_4E4B) }
    return Characteristic(uuid(number), in: uuid(1))
  }

  static let counter = lab(2)
  static let lock = lab(3)
  static let idempotent = lab(4)
  static let slow = lab(5)
  static let long = lab(6)
  static let stream = lab(7)
  static let value = lab(8)
  static let protected = lab(9)
}

/// Two little-endian numbers of 32 bits, as the peripheral's values are made of.
struct Pair: Equatable, Sendable {
  var first: Int
  var second: Int

  init(_ value: [UInt8]) throws {
    guard value.count == 8 else { throw LabFailure("a value of \(value.count) bytes, not 8") }
    let number = { (bytes: ArraySlice<UInt8>) in bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }
    first = number(value[0..<4])
    second = number(value[4..<8])
  }
}

extension UInt64 {
  /// The bytes, the least significant one first.
  var littleEndianBytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: self >> (8 * $0)) } }
}

/// Writes a line at once, whatever the output is: a run that is killed has said what it knew.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(STDOUT_FILENO, bytes, bytes.count)
}

/// Counts what holds and what does not, one line each, in the form that the scenarios count.
struct Verdicts {
  private(set) var failed = 0

  mutating func check(_ what: String, _ holds: Bool, _ detail: @autoclosure () -> String = "") {
    if holds {
      say("ok      \(what)")
    } else {
      failed += 1
      let detail = detail()
      say("FAILED  \(what)\(detail.isEmpty ? "" : ": \(detail)")")
    }
  }

  mutating func equal<Value: Equatable>(_ what: String, _ value: Value, _ wanted: Value) {
    check("\(what): \(value)", value == wanted, "wanted \(wanted)")
  }
}
