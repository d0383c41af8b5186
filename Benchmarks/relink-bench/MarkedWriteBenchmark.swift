internal import CBenchmark
internal import Relink
internal import RelinkBlueZ
internal import RelinkSQLite

/// A non-idempotent write through a session whose record, mark and outcome are on disk, beside the same write without a
/// store, over a pair of sockets; and beside what the disk itself takes, in alternating batches.
///
/// The record and the mark are committed before the bytes leave, the outcome before the caller is told: one after the
/// other, each with a sync of its own.
struct MarkedWriteBenchmark {
  var batches = 40
  /// Writes in one batch.
  var size = 50
  /// How often a write that is alone waits for the disk.
  private let commits = 3

  func run() async throws -> [Figure] {
    guard let device = DeviceID("bench") else { return [] }
    let path = "/tmp/relink-bench-\(bench_now())"
    defer { remove(path) }
    let store = try SQLiteJournalStore(at: path + ".sqlite")
    defer { store.close() }
    let disk = try BenchDisk(at: path)
    defer { disk.close() }
    let loop = try RadioLoop()
    let transport = BenchTransport.overSockets(on: loop)
    let session = try DeviceSession(
      with: device, over: transport, configuration: Configuration(store: store))
    let (durable, plain, bare) = try await onLoop(loop) { [batches, size] in
      _ = bench_pin(0)
      try await session.connect()
      var durable: [[Int64]] = []
      var plain: [[Int64]] = []
      var bare: [[Int64]] = []
      for batch in 0...batches {
        let first = try await times(size) { try await write(to: session, .durable) }
        let second = try await times(size) { try await write(to: session, .inMemory) }
        let third = try await times(size) { try disk.writePage() }
        // The first one makes the log as long as it gets.
        guard batch > 0 else { continue }
        durable.append(first)
        plain.append(second)
        bare.append(third)
      }
      return (durable, plain, bare)
    }
    await session.close()
    return figures(durable, plain, bare)
  }

  private func write(to session: DeviceSession, _ durability: Durability) async throws {
    try await session.write(
      [1], to: Characteristic(.heartRateMeasurement), idempotency: .nonIdempotent,
      options: WriteOptions(durability: durability))
  }

  private func times(_ count: Int, _ body: () async throws -> Void) async throws -> [Int64] {
    var times: [Int64] = []
    times.reserveCapacity(count)
    for _ in 0..<count {
      let start = bench_now()
      try await body()
      times.append(bench_now() - start)
    }
    return times
  }

  private func figures(_ durable: [[Int64]], _ plain: [[Int64]], _ bare: [[Int64]]) -> [Figure] {
    func medians(_ batches: [[Int64]], times factor: Int64 = 1) -> [Int64] {
      batches.map { Sample($0).median * factor }
    }
    let all = Sample(durable.flatMap { $0 })
    let syncs = medians(bare, times: Int64(commits))
    return [
      figure("write, not durable, p50", Double(Sample(plain.flatMap { $0 }).median) / 1e3, "us"),
      figure("write, durable, p50", Double(all.median) / 1e3, "us"),
      figure("write, durable, p90", Double(all.percentile(0.9)) / 1e3, "us"),
      figure("durable to not durable", Ratio(medians(durable), to: medians(plain)).point, "x"),
      figure(
        "the disk alone, 4 KiB and fdatasync, p50", Double(Sample(bare.flatMap { $0 }).median) / 1e3, "us"),
      figure("durable to \(commits) times the disk alone", Ratio(medians(durable), to: syncs).point, "x"),
    ]
  }

  private func figure(_ name: String, _ value: Double, _ unit: String) -> Figure {
    Figure(goal: "G14", name: name, value: value, unit: unit)
  }

  private func remove(_ path: String) {
    bench_remove(path)
    for end in ["", "-wal", "-shm", "-lock"] { bench_remove(path + ".sqlite" + end) }
  }
}

/// A file as long as a store's log gets, which is written round and round.
private final class BenchDisk: Sendable {
  private static let length = 1024
  private let descriptor: Int32
  private let page = Locked<Int64>(0)

  init(at path: String) throws {
    descriptor = bench_disk_open(path, Self.length * 4096)
    if descriptor < 0 { try check(descriptor, "a file at \(path)") }
  }

  /// Waits until one page is on disk.
  func writePage() throws {
    let page = page.withLock { page in
      page = (page + 1) % Int64(Self.length)
      return page
    }
    try check(bench_disk_write(descriptor, page * 4096, 4096), "fdatasync")
  }

  func close() {
    bench_disk_close(descriptor)
  }
}
