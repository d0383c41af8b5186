internal import Foundation
internal import Relink
internal import RelinkSQLite

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

      relink audit verify FILE [--head HASH] [--records N]
          Checks the chain of an audit log: prints how many records there are and the hash of the last one, its head, or
          the first line that does not hold and why, and exits with 1 then. A log whose end was cut off, or that was
          written anew as a whole, holds: only a head that was kept elsewhere shows that.

          --head     the hash of a record, kept elsewhere, that must still be there
          --records  how many records there were then; there must be as many, and with --head that one has the hash

      relink audit show FILE [--device DEVICE] [--operation ID]
          Prints the records of an audit log, a line each, without verifying them.

      relink reasons [hci|encryption|mgmt|pairing|att|connect|socket] [--json|--markdown]
          What each code of a source means by itself, of every source without one: the reason, the next step, how sure
          that is, and a note; a line for each moment (dialling, preparing, ready) where that matters. hci: reasons of
          the controller; encryption: its word on switching encryption on; mgmt: the kernel's reasons of a
          disconnection; pairing: its status of a pairing; att: answers of the device; connect, socket: error numbers
          of Linux from a connect, and from a socket that was connected.

          --json      one JSON object a line, for each code and moment
          --markdown  a table for documentation

      relink reasons actions [--json|--markdown]
          Every reason, the next step, and what the session does by itself, for the first loss and the fifth in a row,
          with a bond and without; where losses in a row make it another reason, what it is told as.

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
    } catch let error as AuditLogError {
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
    case "audit":
      return try AuditCommand(Arguments(arguments.dropFirst())).run()
    case "reasons":
      return try ReasonsCommand(Arguments(arguments.dropFirst())).run()
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
