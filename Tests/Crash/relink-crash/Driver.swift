internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkCrash
internal import RelinkSQLite
internal import RelinkTesting

/// Kills a process with a durable journal again and again, and counts at the device what became of its commands.
struct Driver: Sendable {
  let folder: String
  let kills: Int
  let seed: UInt64

  private var ledger: String { folder + "/ledger" }

  /// How long a process may live whose end depends on a write, before it counts as stuck.
  private static let patience = Duration.seconds(20)

  func run() throws -> Verdicts {
    var verdicts = Verdicts()
    let peripheral = try CrashPeripheral(at: folder + "/device")
    try peripheral.listen()
    peripheral.meet(WriteFates(seed: seed))
    var random = SeededGenerator(seed: seed)
    var faults: [String] = []
    let began = peripheral.loop.now
    for number in 0..<kills {
      if let fault = try life(number, &random, peripheral) { faults.append(fault) }
    }
    let spent = began.duration(to: peripheral.loop.now)
    verdicts.none("\(kills) processes were killed with SIGKILL, and none ended before", faults)
    // The last life finds a device that behaves, and asks for everything once more.
    peripheral.meet(nil)
    let end = try last(peripheral)
    verdicts.equal("the process after them came to its end", end, .exit(0))
    try judge(peripheral, &verdicts)
    let milliseconds = spent.clampedNanoseconds / 1_000_000 / Int64(max(kills, 1))
    say("        seed \(seed), \(peripheral.links) links, \(milliseconds) ms a kill")
    return verdicts
  }

  // MARK: Lives

  private func victim(_ words: String...) throws -> CrashProcess {
    try CrashProcess("/proc/self/exe", ["victim", folder] + words, output: folder + "/victim.log")
  }

  /// One life, ended at a random moment; what was wrong with it.
  private func life(_ number: Int, _ random: inout SeededGenerator, _ peripheral: CrashPeripheral) throws
    -> String?
  {
    let loop = peripheral.loop
    let process = try victim(String(random.next()))
    let stopwatch = Stopwatch()
    // Half of the time the clock decides, else something that reaches the device: most of what can go wrong happens
    // around that.
    let limit: Duration
    if random.next(below: 2) == 0 {
      limit = random.next(in: .zero ... .milliseconds(200))
    } else {
      limit = Driver.patience
      let wanted = 1 + random.next(below: 12)
      let delay = random.next(below: 3) == 0 ? .zero : random.next(in: .zero ... .milliseconds(4))
      peripheral.whenArrived { count in
        guard count == wanted else { return }
        guard delay > .zero else { return process.kill() }
        loop.setTimer(TimerID(owner: stopwatch, number: 1), at: loop.now.advanced(by: delay)) {
          process.kill()
        }
      }
    }
    let isLate = Locked(false)
    loop.post {
      loop.setTimer(TimerID(owner: stopwatch, number: 0), at: loop.now.advanced(by: limit)) {
        isLate.withLock { $0 = true }
        process.kill()
      }
    }
    let end = process.wait()
    peripheral.whenArrived(nil)
    loop.post {
      for number in 0...1 { loop.cancelTimer(TimerID(owner: stopwatch, number: number)) }
    }
    if end != .signal(SIGKILL) { return "process \(number) ended with \(end): \(output)" }
    if limit == Driver.patience, isLate.withLock({ $0 }) { return "process \(number) got stuck" }
    return nil
  }

  private func last(_ peripheral: CrashPeripheral) throws -> CrashProcess.End {
    let process = try victim("0", "last")
    let stopwatch = Stopwatch()
    let loop = peripheral.loop
    loop.post {
      let limit = loop.now.advanced(by: .seconds(120))
      loop.setTimer(TimerID(owner: stopwatch, number: 0), at: limit) { process.kill() }
    }
    let end = process.wait()
    loop.post { loop.cancelTimer(TimerID(owner: stopwatch, number: 0)) }
    return end
  }

  private var output: String {
    (try? CrashRecord.lines(of: folder + "/victim.log").suffix(5).joined(separator: " / ")) ?? ""
  }

  // MARK: Judgement

  private func judge(_ peripheral: CrashPeripheral, _ verdicts: inout Verdicts) throws {
    let record = try CrashRecord(at: ledger)
    let judge = CrashJudge(record, counts: peripheral.counts, on: .unix)
    for finding in judge.findings() { verdicts.none(finding.what, finding.faults) }
    let rows = try SQLiteJournalStore.read(at: CrashVictim.journal(in: folder)).values.flatMap { $0 }
    verdicts.none(
      "the journal has every command, and nothing that is unsettled or was told to nobody",
      rows.filter { $0.outcome == nil || !$0.isDelivered }.map(\.id)
        + record.issued.subtracting(
          rows.compactMap { row in OperationID(row.id).flatMap(CrashCommand.number) }
        )
        .filter { record.outcomes[$0]?.first?.outcome.word != .notSent }.map { "\($0) is missing" })
    try verifyAudit(&verdicts)
    for line in judge.summary() { say("        \(line)") }
  }

  /// With the tool, as a user would.
  private func verifyAudit(_ verdicts: inout Verdicts) throws {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    guard readlink("/proc/self/exe", &path, path.count - 1) > 0 else { throw CrashFailure("no /proc") }
    let own = String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let tool =
      own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
      + "/relink"
    let log = folder + "/audit.log"
    let end = try CrashProcess(tool, ["audit", "verify", CrashVictim.audit(in: folder)], output: log).wait()
    verdicts.equal("relink audit verify: \(try CrashRecord.lines(of: log).last ?? "nothing")", end, .exit(0))
  }
}

private final class Stopwatch: Sendable {}
