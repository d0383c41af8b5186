internal import Relink
internal import RelinkBlueZ

/// Sessions beside bluetoothd, which the scenario has started: while it is idle, while it discovers, while it has the
/// device's channel, and when it stops.
struct BesideDaemon: Sendable {
  private static let all = ["idle", "discovering", "owned", "stopped"]

  private let lab: Lab
  private let parts: [String]

  init(_ lab: Lab, parts: [String]) {
    self.lab = lab
    self.parts = parts.isEmpty ? BesideDaemon.all : parts
  }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    try await lab.begin()
    for part in parts {
      switch part {
      case "idle": try await traffic("idle", &verdicts)
      case "discovering":
        let scan = try Child("/usr/bin/bluetoothctl", ["--timeout", "25", "scan", "le"])
        await lab.pause(.seconds(4))
        try await traffic("discovering", &verdicts)
        scan.kill()
      case "owned": try await owned(&verdicts)
      case "stopped": try await stopped(&verdicts)
      default: throw LabFailure("no part \(part); there are \(BesideDaemon.all)")
      }
    }
    return verdicts.failed
  }

  /// Reads and writes, through a loss.
  private func traffic(_ state: String, _ verdicts: inout Verdicts) async throws {
    let session = try lab.session()
    let before = try await lab.radio.ask("stats", for: RadioStats.self).idempotent.applied
    var links: Set<Int> = []
    for number in UInt64(1)...20 {
      if number == 11 { try await lab.radio.tell("lose 08") }
      links.insert(try Pair(await session.read(.counter)).second)
      try await session.write(number.littleEndianBytes, to: .idempotent, idempotency: .idempotent)
    }
    let after = try await lab.radio.ask("stats", for: RadioStats.self).idempotent.applied
    let reason = session.snapshot().lastDisconnect?.reason
    await session.close()
    _ = try await lab.stats { $0.live.isEmpty }
    verdicts.check(
      "bluetoothd is \(state): 20 reads and \(after - before) writes over \(links.count) links, one lost by \(reason, default: "nothing")",
      after - before >= 20 && links.count == 2 && reason == .supervisionTimeout)
  }

  /// bluetoothd has connected to the device: its channel is bluetoothd's.
  private func owned(_ verdicts: inout Verdicts) async throws {
    let found = try Child("/usr/bin/bluetoothctl", ["--timeout", "6", "scan", "le"]).wait()
    guard let address = lab.device.address else { throw LabFailure("no address") }
    let taken = try Child("/usr/bin/bluetoothctl", ["--timeout", "20", "connect", "\(address)"]).wait()
    let live = try await lab.radio.ask("links", for: RadioLinks.self).live
    verdicts.check("bluetoothd has a link to the device: \(live)", live.count == 1, "\(found), \(taken)")
    try await SessionWatch.with(try lab.session(), lab) { watch in
      watch.beginToConnect()
      let loss = try await watch.next(after: 0, within: .seconds(30)) { $0.loss }
      verdicts.check(
        "a channel of bluetoothd's: \(loss.reason), \(loss.evidence)",
        loss.reason == .channelInUse && loss.evidence.description.contains("disconnect it there"))
      _ = try Child("/usr/bin/bluetoothctl", ["--timeout", "20", "disconnect", "\(address)"]).wait()
      _ = try await watch.next(after: 0, within: .seconds(60)) { event in
        if case .ready = event { true } else { nil }
      }
      verdicts.check("bluetoothd lets go of it: ready", true)
    }
    _ = try await lab.stats { $0.live.isEmpty }
  }

  /// bluetoothd stops, which switches the adapter off.
  private func stopped(_ verdicts: inout Verdicts) async throws {
    try await SessionWatch.with(try lab.session(), lab) { watch in
      try await watch.session.connect(within: .after(.seconds(60)))
      // The transport looks for bluetoothd when it starts, on a thread of its own.
      await lab.pause(.seconds(2))
      let mark = watch.count
      _ = try Child("/bin/sh", ["-c", "kill $(pidof bluetoothd)"]).wait()
      let loss = try await watch.next(after: mark, within: .seconds(30)) { $0.loss }
      verdicts.check(
        "bluetoothd stopped: \(loss.reason), \(loss.evidence)", loss.reason == .daemonStopped)
      if Lab.options.contains("--keep-on") {
        let began = lab.loop.now
        _ = try await watch.next(after: mark, within: .seconds(60)) { event in
          if case .ready = event { true } else { nil }
        }
        let took = Distribution.tenths(began.duration(to: lab.loop.now).milliseconds)
        verdicts.check("bluetoothd stopped, the adapter is kept on: ready again after \(took) ms", true)
      } else {
        _ = try await watch.next(after: mark, within: .seconds(20)) { event in
          if case .waiting(.adapterOff, _) = event { true } else { nil }
        }
        await lab.pause(.seconds(5))
        let isReady = watch.session.snapshot().isReady
        verdicts.check("bluetoothd stopped, the adapter is left as found: the session waits", !isReady)
        try await lab.radio.tell("power 1")
        _ = try await watch.next(after: mark, within: .seconds(60)) { event in
          if case .ready = event { true } else { nil }
        }
        verdicts.check("somebody switched the adapter on: ready again", true)
      }
    }
    _ = try await lab.stats { $0.live.isEmpty }
  }
}
