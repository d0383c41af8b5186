internal import CBenchmark
internal import Relink

@main
enum Main {
  static let usage = """
    relink-bench: the cost of Relink itself, beside goals.

      relink-bench [NAME ...] [--quick] [--json]

    Names: roundtrip   a read through a session beside raw epoll in C
           reconnect   Relink's own time in a whole reconnection, on a link that costs nothing
           idle        10,000 idle sessions: memory and processor time
           storm       10,000 links lost at once
           journal-memory  an operation through the journal's machine, in memory
           journal-store   a durable journal beside the same rows with SQLite in C
           marked-write    a durable write through a session beside one that is not, and beside the disk alone
    Without a name all are run. --quick measures less. --json prints one object a line.
    Exit status: 0, or 2 for a wrong argument; a goal that is not reached is said in the output.
    """

  static func main() async {
    var names = Set(CommandLine.arguments.dropFirst())
    if names.contains("--help") { return print(usage) }
    let isJSON = names.remove("--json") != nil
    let isQuick = names.remove("--quick") != nil
    let known: Set = [
      "roundtrip", "reconnect", "idle", "storm", "journal-memory", "journal-store", "marked-write",
    ]
    guard names.isSubset(of: known) else {
      print(usage)
      bench_exit(2)
      return
    }
    if names.isEmpty { names = known }
    do {
      for (name, run) in benchmarks(isQuick: isQuick) where names.contains(name) {
        for figure in try await run() { print(isJSON ? figure.json : figure.line) }
      }
    } catch {
      print("relink-bench: \(error)")
      bench_exit(1)
    }
  }

  private static func benchmarks(
    isQuick: Bool
  ) -> [(String, @Sendable () async throws -> [Figure])] {
    [
      ("roundtrip", { try await RoundTripBenchmark(batches: isQuick ? 10 : 60).run() }),
      ("reconnect", { try await ReconnectBenchmark(count: isQuick ? 500 : 5000).run() }),
      ("idle", { try await IdleSessionsBenchmark(count: 10_000, seconds: isQuick ? 2 : 10).run() }),
      ("storm", { try await StormBenchmark(count: 10_000).run() }),
      ("journal-memory", { try await JournalMemoryBenchmark(batches: isQuick ? 50 : 200).run() }),
      ("journal-store", { try await JournalStoreBenchmark(batches: isQuick ? 20 : 100).run() }),
      ("marked-write", { try await MarkedWriteBenchmark(batches: isQuick ? 10 : 40).run() }),
    ]
  }
}
