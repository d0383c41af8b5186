internal import BluetoothWire
internal import Relink
internal import RelinkTesting

/// A day of outages with a lock that counts, played in simulated time against the embedded virtual peripheral.
struct DemoCommand {
  private var isJSON = false

  init(_ arguments: Arguments) throws(UsageError) {
    var arguments = arguments
    while let word = arguments.next() {
      guard word == "--json" else { throw UsageError(message: "demo has no option \(word)") }
      isJSON = true
    }
  }

  func run() throws -> Int32 {
    let day = try DemoDay(isJSON: isJSON)
    try day.play()
    return day.conclude() ? 0 : 1
  }
}

/// The stage: an executor with simulated clocks, a radio, a lock, a session.
final class DemoDay: Sendable {
  private let executor = ManualExecutor(wall: 28_800_000_000_000)
  private let radio: VirtualRadio
  private let lock = VirtualPeripheral.lock()
  private let device: DeviceID
  private let session: DeviceSession
  private let ledger = Locked(DemoLedger())
  private let history = EventRecorder()
  private let isJSON: Bool

  private let command = Characteristic(.lockCommand)
  private let movements = Characteristic(.lockMovements)

  init(isJSON: Bool) throws {
    self.isJSON = isJSON
    guard let device = DeviceID("C0:DE:00:00:00:01/random") else {
      throw UsageError(message: "the demonstration has no device")
    }
    self.device = device
    var air = VirtualRadio.Configuration()
    air.latency = .milliseconds(15)
    air.connectLatency = .milliseconds(60)
    radio = VirtualRadio(on: executor, configuration: air)
    radio.add(lock, as: device)
    session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(dialLimit: .seconds(180), seed: 1))
  }

  // MARK: The day

  /// Plays the day from morning to night.
  func play() throws {
    executor.spawn("timeline") { [self] in
      for await event in session.events(buffering: .newest(4096)) {
        history.record(event)
        if case .phase = event, !isJSON { continue }
        show(EventLine(event), mark: " ")
      }
    }
    scene("Morning: the first link. Any operation asks for it.")
    try open("open the door")
    try count()

    scene("The link is lost after the lock obeyed and before it answered.")
    lock.react(to: .write(command), with: .applyAndDrop(.connectionTimeout), times: 1)
    try open("open the gate")
    try count()

    scene("The link is lost before the lock obeyed. To the caller it looks the same.")
    lock.react(to: .write(command), with: .drop(.connectionTimeout), times: 1)
    try open("open the garage")
    try count()

    scene("The link is lost under a read. A read may be repeated, so nobody notices.")
    lock.react(to: .read(movements), with: .drop(.remoteUserTerminatedConnection), times: 1)
    try count()

    scene("The lock refuses a command.")
    lock.react(to: .write(command), with: .refuse(.writeNotPermitted), times: 1)
    try open("open the safe")

    scene("The lock jams: it moves and reports an error all the same. An error proves little.")
    lock.react(to: .write(command), with: .applyAndFail(.unlikelyError), times: 1)
    try open("open the hatch")

    scene("Three connections in a row fail to be established; the fourth works.")
    radio.scriptDials(Array(repeating: .failToEstablish(after: .milliseconds(300)), count: 3), to: device)
    radio.lose(device, .connectionTimeout)
    try open("open the shed")

    scene("Noon: the lock is carried away for ten minutes. A command that cannot be sent says so in time.")
    radio.carryAway(device, for: .seconds(600))
    radio.lose(device, .connectionTimeout)
    try open("open the cellar")
    executor.advance(by: .seconds(600))
    try open("open the cellar again")

    scene("The adapter is switched off and on. Who waits gets his turn.")
    radio.setAdapter(.off)
    executor.advance(by: .seconds(5))
    let waiting = executor.spawn("wait for the adapter") { [self] in try await write("open the attic") }
    executor.advance(by: .seconds(5))
    radio.setAdapter(.on)
    try executor.complete(waiting).get()
    tell()

    scene("Night: disconnect() wins over everything.")
    try executor.drive { [self] in await session.disconnect() }
    try open("open the door at night")
    try executor.drive { [self] in await session.close() }
    executor.advance(by: .seconds(5))
  }

  /// Compares what was told with what was counted; false where the two disagree.
  func conclude() -> Bool {
    let comparisons = ledger.withLock { $0 }.compare(with: lock.counters)
    if !isJSON { print("\nWhat the callers were told, beside what the lock counted:\n") }
    for one in comparisons {
      let verdict = one.agrees ? "agrees" : "DISAGREES"
      show(
        EventLine(
          name: verdict,
          text: Self.column(one.what, 26) + Self.column(one.told, 38) + "counted \(one.counted)",
          fields: [
            ("command", .text(one.what)), ("told", .text(one.told)), ("counted", .number(one.counted)),
          ]), mark: " ")
    }
    var problems: [String] = []
    if comparisons.contains(where: { !$0.agrees }) {
      problems.append("a caller was told what did not happen")
    }
    if comparisons.contains(where: { $0.counted > 1 }) { problems.append("a command was carried out twice") }
    if let violation = history.violationOfComplete {
      problems.append("the history is not legal: \(violation)")
    }
    if !executor.waitingTasks.isEmpty { problems.append("still waiting: \(executor.waitingTasks)") }
    for problem in problems { print("FAILED: \(problem)") }
    if problems.isEmpty && !isJSON {
      let links = history.readiness.count
      print(
        "\n\(comparisons.count) commands over \(links) links: each told the truth, none carried out twice.")
    }
    return problems.isEmpty
  }

  // MARK: Calls

  /// Asks for a command that must never be carried out twice, and takes down what the caller was told.
  private func write(_ what: String) async throws {
    let number = ledger.withLock { UInt64($0.entries.count + 1) }
    show(EventLine(name: "call", text: what, fields: [("command", .text(what))]), mark: ">")
    let outcome: Outcome<[UInt8]>
    do throws(RelinkError) {
      let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
      try await session.write(bytes, to: command, idempotency: .nonIdempotent)
      outcome = .succeeded([])
    } catch {
      guard let told = error.outcome else { throw error }
      outcome = told
    }
    ledger.withLock { $0.add(number, what, outcome) }
  }

  private func tell() {
    // Whatever happened at the same moment is shown first.
    executor.run()
    guard let last = ledger.withLock({ $0.entries.last }) else { return }
    show(
      EventLine(
        name: "told", text: "\(last.what): \(last.outcome.told)",
        fields: [("command", .text(last.what)), ("outcome", .text(last.outcome.told))]), mark: "<")
  }

  private func open(_ what: String) throws {
    try executor.drive(what) { [self] in try await write(what) }
    tell()
    executor.advance(by: .seconds(30))
  }

  private func count() throws {
    let value = try executor.drive("count") { [self] in try await session.read(movements) }
    executor.run()
    let count = value.reversed().reduce(0) { $0 << 8 | Int($1) }
    show(
      EventLine(
        name: "told", text: "movements counted by the lock: \(count)", fields: [("movements", .number(count))]
      ),
      mark: "<")
    executor.advance(by: .seconds(30))
  }

  // MARK: The timeline

  private func scene(_ title: String) {
    executor.advance(by: .seconds(1740))
    if isJSON {
      show(EventLine(name: "scene", text: title, fields: [("title", .text(title))]), mark: " ")
    } else {
      print("\n\(title)")
    }
  }

  private func show(_ line: EventLine, mark: String) {
    let seconds = executor.timestamp().wall / 1_000_000
    let time = [seconds / 3_600_000, seconds / 60_000 % 60, seconds / 1000 % 60].map(Self.twoDigits)
    let clock = time.joined(separator: ":")
    print(isJSON ? line.json(time: clock) : "  \(clock) \(mark) \(Self.column(line.name, 14))\(line.text)")
  }

  private static func twoDigits(_ number: Int64) -> String {
    number < 10 ? "0\(number)" : "\(number)"
  }

  private static func column(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(width - text.count, 1))
  }
}
