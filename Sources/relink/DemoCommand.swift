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

/// The stage: an executor with simulated clocks, a lock, a disk, and the processes of a gateway.
final class DemoDay: Sendable {
  private let executor = ManualExecutor(wall: 28_800_000_000_000)
  private let lock = VirtualPeripheral.lock()
  private let store: VirtualJournalStore
  private let device: DeviceID
  private let process: Locked<DemoProcess>
  private let histories = Locked<[EventRecorder]>([])
  private let ledger = Locked(DemoLedger())
  private let isJSON: Bool

  private let command = Characteristic(.lockCommand)
  private let movements = Characteristic(.lockMovements)

  init(isJSON: Bool) throws {
    self.isJSON = isJSON
    guard let device = DeviceID("C0:DE:00:00:00:01/random") else {
      throw UsageError(message: "the demonstration has no device")
    }
    self.device = device
    store = VirtualJournalStore(on: executor)
    process = Locked(try DemoProcess(device, lock, store: store, on: executor))
  }

  private var radio: VirtualRadio { process.withLock { $0.radio } }
  private var session: DeviceSession { process.withLock { $0.session } }

  // MARK: The day

  /// Plays the day from morning to night.
  func play() throws {
    follow()
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

    scene("Both again, verified: the lock's own counter is read before anything is repeated.")
    lock.react(to: .write(command), with: .applyAndDrop(.connectionTimeout), times: 1)
    try open("open the barn", isVerified: true)
    lock.react(to: .write(command), with: .drop(.connectionTimeout), times: 1)
    try open("open the stable", isVerified: true)
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

    scene(
      "Evening: the gateway is killed after the lock obeyed. The next process reads the counter, and knows.")
    try killGateway(during: "open the vault", isVerified: true)

    scene(
      "It is killed again. This command cannot be verified, so nobody repeats it and nobody claims to know.")
    try killGateway(during: "open the cage")

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
    let histories = histories.withLock { $0 }
    // The last process has ended properly; the others were killed.
    if let violation = histories.lazy.compactMap(\.violation).first ?? histories.last?.violationOfComplete {
      problems.append("the history is not legal: \(violation)")
    }
    if !executor.waitingTasks.isEmpty { problems.append("still waiting: \(executor.waitingTasks)") }
    for problem in problems { print("FAILED: \(problem)") }
    if problems.isEmpty && !isJSON {
      let links = histories.reduce(0) { $0 + $1.readiness.count }
      print(
        "\n\(comparisons.count) commands over \(links) links: each told the truth, none carried out twice.")
    }
    return problems.isEmpty
  }

  // MARK: Calls

  private var nextNumber: UInt64 { ledger.withLock { UInt64($0.entries.count + 1) } }

  private func called(_ what: String) {
    show(EventLine(name: "call", text: what, fields: [("command", .text(what))]), mark: ">")
  }

  /// Asks for a command that must never be carried out twice, and takes down what the caller was told.
  private func write(_ what: String, isVerified: Bool = false) async throws {
    let number = nextNumber
    called(what)
    let outcome: Outcome<[UInt8]>
    do throws(RelinkError) {
      try await session.write(
        number.bytes(8), to: command, idempotency: try await tag(isVerified, session))
      outcome = .succeeded([])
    } catch {
      guard let told = error.outcome else { throw error }
      outcome = told
    }
    ledger.withLock { $0.add(number, what, outcome) }
  }

  private func tell(_ name: String = "told") {
    // Whatever happened at the same moment is shown first.
    executor.run()
    guard let last = ledger.withLock({ $0.entries.last }) else { return }
    show(
      EventLine(
        name: name, text: "\(last.what): \(last.outcome.told)",
        fields: [("command", .text(last.what)), ("outcome", .text(last.outcome.told))]), mark: "<")
  }

  /// How a command is tagged: it was carried out if the lock counts one movement more than now.
  private func tag(_ isVerified: Bool, _ session: DeviceSession) async throws(RelinkError) -> Idempotency {
    guard isVerified else { return .nonIdempotent }
    let count = try await session.read(movements).number
    return .verified(by: .value(of: movements, is: (count + 1).bytes(4)))
  }

  private func open(_ what: String, isVerified: Bool = false) throws {
    try executor.drive(what) { [self] in try await write(what, isVerified: isVerified) }
    tell()
    executor.advance(by: .seconds(30))
  }

  private func count() throws {
    let value = try executor.drive("count") { [self] in try await session.read(movements) }
    executor.run()
    let count = Int(value.number)
    show(
      EventLine(
        name: "told", text: "movements counted by the lock: \(count)", fields: [("movements", .number(count))]
      ),
      mark: "<")
    executor.advance(by: .seconds(30))
  }

  // MARK: The end of a process

  /// Ends the gateway's process once the lock has obeyed, and takes down what the next one finds out.
  private func killGateway(during what: String, isVerified: Bool = false) throws {
    let number = nextNumber
    called(what)
    lock.react(to: .write(command), with: .applyAndSayNothing, times: 1)
    let dead = process.withLock { $0 }
    executor.spawn("the caller that is killed") { [self, session = dead.session] in
      _ = try await session.submit(
        WriteRequest(
          number.bytes(8), to: command, idempotency: try await tag(isVerified, session),
          id: OperationID("command \(number)"), options: WriteOptions(durability: .durable))
      ).outcome
    }
    executor.run(until: { lock.counters.applied(tag: number) > 0 })
    dead.kill(device, store: store)
    show(EventLine(name: "killed", text: "the process ends; the lock and the disk stay"), mark: "x")
    let next = try DemoProcess(device, lock, store: store, on: executor)
    process.withLock { $0 = next }
    follow()
    let recovered = try executor.drive("recovered") { [session = next.session] in
      await session.recoveredOperations().first { _ in true }
    }
    guard let recovered else { throw UsageError(message: "the next process has lost the command") }
    ledger.withLock { $0.add(number, what, recovered.outcome.withoutValue) }
    tell("recovered")
    executor.advance(by: .seconds(60))
  }

  // MARK: The timeline

  private func follow() {
    let process = process.withLock { $0 }
    histories.withLock { $0.append(process.history) }
    process.follow(on: executor) { [self] event in
      if case .phase = event, !isJSON { return }
      show(EventLine(event), mark: " ")
    }
  }

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

extension UInt64 {
  /// The lowest bytes, least significant first.
  fileprivate func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
  }
}

extension [UInt8] {
  /// The number of which these are the bytes, least significant first.
  fileprivate var number: UInt64 { reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}
