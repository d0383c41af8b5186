internal import Foundation
internal import Relink

@main
enum Main {
  static let usage = """
    relink: keep a session with a Bluetooth LE device usable although its link is not.

      relink demo [--json]
          A day of outages with a simulated door lock, in simulated time; no adapter is needed. Shows what the callers
          were told beside what the lock counted, and exits with 1 if the two disagree.

      relink watch DEVICE [--over bluez|unix:PATH] [--adapter ADAPTER] [--read UUID]... [--every TIME]
                   [--notify UUID]... [--json]
          Holds a session with a device until it is interrupted, and prints every event. DEVICE is an address with
          its type, C0:DE:00:00:00:01/random or .../public, or unix:PATH for a peripheral behind a Unix socket.

          --over     bluez (default) or unix:PATH, which also stands for DEVICE
          --adapter  hci0, the address of an adapter, or any (default)
          --read     read this characteristic again and again; may be given more than once
          --every    how often: 500ms, 1s, 2m; default 1s
          --notify   subscribe to this characteristic; may be given more than once
          --json     one JSON object a line

      relink --help

    A UUID has 4 or 32 hexadecimal digits, SERVICE/UUID where it occurs in more than one service.
    Times are in UTC. Exit status: 0, 1 for a failure, 2 for a wrong argument.
    """

  static func main() async {
    do {
      exit(try await run(Array(CommandLine.arguments.dropFirst())))
    } catch let error as UsageError {
      complain(error.message + "; see relink --help")
      exit(2)
    } catch let error as RelinkError {
      complain(error.message)
      exit(1)
    } catch {
      complain("\(error)")
      exit(1)
    }
  }

  private static func run(_ arguments: [String]) async throws -> Int32 {
    switch arguments.first {
    case "demo":
      return try DemoCommand(Arguments(arguments.dropFirst())).run()
    case "watch":
      return try await WatchCommand(Arguments(arguments.dropFirst())).run()
    case "--help", "-h", "help":
      print(usage)
      return 0
    case nil:
      print(usage)
      return 2
    case let other?:
      throw UsageError(message: "there is no command \(other)")
    }
  }

  private static func complain(_ message: String) {
    FileHandle.standardError.write(Data("relink: \(message)\n".utf8))
  }
}
