internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkCrash

/// Real crashes on a real disk: a process with a durable journal, a peripheral in another one, and SIGKILL.
@main
enum Main {
  private static let usage = """
    usage: relink-crash kills FOLDER [KILLS] [SEED]    kill and judge; files are left in FOLDER
           relink-crash peripheral FOLDER              serve the peripheral until it is ended
           relink-crash traced FOLDER [NUMBER]         use it in the ways whose system calls are looked at
    """

  static func main() async {
    let words = Array(CommandLine.arguments.dropFirst())
    do {
      exit(try await run(words))
    } catch {
      say("relink-crash \(words.joined(separator: " ")): \(error)")
      exit(1)
    }
  }

  private static func run(_ words: [String]) async throws -> Int32 {
    guard words.count >= 2 else {
      say(usage)
      return 2
    }
    let folder = words[1]
    switch words[0] {
    case "kills":
      let kills = words.count > 2 ? Int(words[2]) ?? 1000 : 1000
      let seed = words.count > 3 ? UInt64(words[3]) : nil
      let driver = Driver(folder: folder, kills: kills, seed: seed ?? UInt64.random(in: 1...99_999))
      let verdicts = try driver.run()
      say("\(verdicts.passed) passed, \(verdicts.failed) failed")
      return verdicts.failed == 0 ? 0 : 1
    case "victim" where words.count > 2:
      // What the driver starts and kills.
      let victim = try CrashVictim(.unix, store: folder, ledger: folder + "/ledger")
      let isLast = words.count > 3
      try await victim.run(isLast: isLast, window: isLast ? 64 : 8, seed: UInt64(words[2]) ?? 1) {
        try session(folder, $0)
      }
      return 0
    case "peripheral":
      let peripheral = try CrashPeripheral(at: folder + "/device")
      try peripheral.listen()
      say("listening at \(peripheral.path)")
      while true { pause() }
    case "traced":
      try await Traced(folder: folder, first: words.count > 2 ? Int(words[2]) ?? 1 : 1).run()
      return 0
    default:
      say(usage)
      return 2
    }
  }

  static func session(_ folder: String, _ configuration: Configuration) throws -> DeviceSession {
    guard let device = UnixTransport.device(at: folder + "/device") else {
      throw CrashFailure("\(folder) is no folder")
    }
    return try DeviceSession(with: device, over: UnixTransport(), configuration: configuration)
  }
}
