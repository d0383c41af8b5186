internal import Glibc
internal import Relink
internal import RelinkBlueZ

/// What a process and its session keep at a quiet moment, when every caller has its outcome.
struct Sample: Sendable {
  let losses: Int
  let waiters: Int
  let unsettled: Int
  let timers: Int
  let jobs: Int
  let loopDescriptors: Int
  let openDescriptors: Int
  /// Resident memory in KiB.
  let memory: Int

  init(after losses: Int, of session: DeviceSession, on loop: RadioLoop) async throws {
    self.losses = losses
    (waiters, unsettled) = await session.openWork
    (timers, jobs, loopDescriptors) = await withCheckedContinuation { continuation in
      loop.post { continuation.resume(returning: (loop.timerCount, loop.jobCount, loop.descriptorCount)) }
    }
    openDescriptors = try Sample.countDescriptors()
    memory = try Sample.residentMemory()
  }

  var line: String {
    "after \(losses) losses: waiters \(waiters), unsettled \(unsettled), timers \(timers), jobs \(jobs), "
      + "descriptors \(openDescriptors) (loop \(loopDescriptors)), resident \(memory) KiB"
  }

  /// What has to be as it was, and whether it is.
  func comparison(with first: Sample) -> [(what: String, holds: Bool, detail: String)] {
    func same(_ what: String, _ value: KeyPath<Sample, Int>) -> (String, Bool, String) {
      let (before, now) = (first[keyPath: value], self[keyPath: value])
      return (
        "\(what) after \(first.losses) and \(losses) losses: \(before), \(now)", before == now, "not flat"
      )
    }
    let growth = memory - first.memory
    return [
      same("waiters", \.waiters), same("unsettled operations", \.unsettled), same("timers", \.timers),
      same("queued jobs", \.jobs), same("descriptors of the loop", \.loopDescriptors),
      same("open descriptors", \.openDescriptors),
      (
        "resident memory after \(first.losses) and \(losses) losses: \(first.memory), \(memory) KiB",
        growth <= Sample.tolerance, "grew by \(growth) KiB"
      ),
    ]
  }

  /// What the allocator and the program's own lists may take on the way, in KiB.
  private static let tolerance = 512

  private static func countDescriptors() throws -> Int {
    guard let directory = opendir("/proc/self/fd") else { throw LabFailure("/proc/self/fd: error \(errno)") }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // Itself, and the two dots.
    return count - 3
  }

  /// From the page tables: the counters of `statm` lag behind by up to 64 pages for each thread.
  private static func residentMemory() throws -> Int {
    guard let file = fopen("/proc/self/smaps_rollup", "r") else {
      throw LabFailure("/proc/self/smaps_rollup: error \(errno)")
    }
    defer { fclose(file) }
    var text = [CChar](repeating: 0, count: 256)
    while fgets(&text, Int32(text.count), file) != nil {
      let line = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      let fields = line.split(separator: " ")
      if fields.first == "Rss:", let size = fields.dropFirst().first.flatMap({ Int($0) }) { return size }
    }
    throw LabFailure("/proc/self/smaps_rollup has no size")
  }
}
