internal import CBenchmark
internal import Relink
internal import RelinkBlueZ

/// Memory and processor time of sessions that are ready and do nothing, each with one consumer of its events.
struct IdleSessionsBenchmark {
  var count = 10_000
  var seconds = 10

  func run() async throws -> [Figure] {
    let loop = try RadioLoop()
    let transport = BenchTransport(on: loop) { _ in ZeroCostChannel(on: loop) }
    // What the process itself and the first use of everything take is not a session's.
    let first = try await SessionCrowd(transport, count: 100, prefix: "warm")
    let before = bench_resident_bytes()
    let crowd = try await SessionCrowd(transport, count: count, prefix: "idle")
    let grown = Double(bench_resident_bytes() - before)
    let cpu = bench_cpu_time()
    let start = bench_now()
    try await Pause(on: loop).wait(.seconds(seconds))
    let used = Double(bench_cpu_time() - cpu) / Double(bench_now() - start)
    await crowd.close()
    await first.close()
    return [
      Figure(goal: "G10", name: "\(count) idle sessions, memory", value: grown / 1e6, unit: "MB", limit: 40),
      Figure(goal: "G10", name: "memory per session", value: grown / Double(count) / 1024, unit: "KiB"),
      Figure(goal: "G10", name: "processor time", value: used * 100, unit: "%", limit: 0.1),
    ]
  }
}

/// A number of sessions over one transport, all ready, each with one consumer of its events.
final class SessionCrowd: Sendable {
  let sessions: [DeviceSession]
  private let consumers: [Task<Void, Never>]
  let ready: Locked<Int>
  /// When a consumer got its first event since this was set to nil.
  let firstEvent: Locked<Int64?>

  init(_ transport: BenchTransport, count: Int, prefix: String) async throws {
    let ready = Locked(0)
    let firstEvent = Locked<Int64?>(nil)
    var configuration = Configuration()
    configuration.reconnection.stability = .zero
    var sessions: [DeviceSession] = []
    for number in 0..<count {
      guard let device = DeviceID("\(prefix)-\(number)") else { continue }
      sessions.append(try DeviceSession(with: device, over: transport, configuration: configuration))
    }
    // Unstructured on purpose: a consumer lives as long as its session, beyond this call.
    consumers = sessions.map { session in
      let events = session.events()
      return Task(executorPreference: transport.loop) {
        for await event in events {
          firstEvent.withLock { if $0 == nil { $0 = bench_now() } }
          if case .ready = event { ready.withLock { $0 += 1 } }
        }
      }
    }
    for session in sessions { try await session.connect() }
    self.sessions = sessions
    self.ready = ready
    self.firstEvent = firstEvent
  }

  func close() async {
    for session in sessions { await session.close() }
    for consumer in consumers { await consumer.value }
  }
}

/// A wait on the loop's own timer.
struct Pause {
  let loop: RadioLoop

  init(on loop: RadioLoop) {
    self.loop = loop
  }

  func wait(_ span: Duration) async throws {
    let owner = PauseOwner()
    await withCheckedContinuation { continuation in
      loop.post { [loop] in
        loop.setTimer(TimerID(owner: owner, number: 0), at: loop.now.advanced(by: span)) {
          continuation.resume()
        }
      }
    }
  }
}

private final class PauseOwner: Sendable {}
