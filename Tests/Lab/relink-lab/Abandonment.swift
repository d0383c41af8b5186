internal import Relink
internal import RelinkBlueZ

/// Dials that are given up at the moment when the device is heard: the next one has to work.
struct Abandonment: Sendable {
  /// What a dial takes at most where nothing is wrong, and where the kernel has to end something first.
  private static let sound = Duration.milliseconds(2500)
  private static let patience = Duration.seconds(30)

  private let lab: Lab
  private let count: Int

  init(_ lab: Lab, count: Int) {
    self.lab = lab
    self.count = count
  }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    try await lab.begin()
    var (sound, stalled, wedged, connected) = (0, 0, 0, 0)
    var times: [Double] = []
    for dial in 0..<count {
      let session = try lab.session()
      if try await giveUp(session, after: .milliseconds(dial % 15 * 4), cancels: dial % 2 == 0) {
        connected += 1
      }
      let began = lab.loop.now
      do {
        try await session.connect(within: .after(Abandonment.patience))
        _ = try await session.read(.counter, within: .after(Abandonment.patience))
        let took = began.duration(to: lab.loop.now)
        times.append(took.milliseconds)
        if took < Abandonment.sound { sound += 1 } else { stalled += 1 }
      } catch {
        wedged += 1
        say("dial \(dial): \(error)")
      }
      await session.close()
      _ = try await lab.stats { $0.live.isEmpty }
    }
    var verdicts = Verdicts()
    say(
      "dials given up: \(count), of which too late \(connected); next dial sound \(sound), slow \(stalled), dead \(wedged)"
    )
    say("given up to the first answer after the next dial: \(Distribution(times).summary)")
    verdicts.equal("dials that left the device unreachable", wedged, 0)
    verdicts.check("dials were given up in time", connected < count, "every one was up before")
    return verdicts.failed
  }

  /// Begins to connect and thinks better of it; whether the session was ready before that.
  private func giveUp(_ session: DeviceSession, after span: Duration, cancels: Bool) async throws -> Bool {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        do {
          try await session.connect()
          return true
        } catch {
          return false
        }
      }
      await lab.pause(span)
      if cancels { group.cancelAll() } else { await session.disconnect() }
      return try await group.next() ?? false
    }
  }
}
