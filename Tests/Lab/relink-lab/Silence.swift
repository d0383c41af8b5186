internal import Relink
internal import RelinkBlueZ

/// Links that have died in silence: nobody is told, and nothing passes. None of them is adopted again.
struct Silence: Sendable {
  private let lab: Lab
  private let count: Int

  init(_ lab: Lab, count: Int) {
    self.lab = lab
    self.count = count
  }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    try await lab.begin()
    try await unanswered(&verdicts)
    try await disconnected(&verdicts)
    try await killed(&verdicts)
    return verdicts.failed
  }

  /// The timeout of an ATT transaction ends the link, and the read is asked again on the next one.
  private func unanswered(_ verdicts: inout Verdicts) async throws {
    let session = try lab.session()
    let first = try Pair(await session.read(.counter)).second
    try await lab.radio.tell("silence link")
    let began = lab.loop.now
    let second = try Pair(await session.read(.counter)).second
    let seconds = Int(began.duration(to: lab.loop.now).components.seconds)
    verdicts.equal("unanswered: the read was answered by the next link", second, first + 1)
    verdicts.check(
      "unanswered: it took \(seconds) s, of which the ATT timeout 30", (30..<45).contains(seconds))
    let reason = session.snapshot().lastDisconnect?.reason
    verdicts.equal("unanswered: the reason", reason, .transactionTimeout)
    await session.close()
  }

  /// A local disconnect, and a dial at once.
  private func disconnected(_ verdicts: inout Verdicts) async throws {
    let session = try lab.session()
    var link = try Pair(await session.read(.counter)).second
    var faults: [String] = []
    var times: [Double] = []
    for _ in 0..<count {
      try await lab.radio.tell("silence link")
      let began = lab.loop.now
      await session.disconnect()
      try await session.connect()
      let next = try Pair(await session.read(.counter)).second
      times.append(began.duration(to: lab.loop.now).milliseconds)
      if next != link + 1 { faults.append("link \(next) follows link \(link)") }
      link = next
    }
    await session.close()
    verdicts.equal("disconnected: dead links adopted in \(count) rounds", faults, [])
    say("disconnected: disconnect() to first answer on the next link: \(Distribution(times).summary)")
  }

  /// A process that is killed while its link is dead, and the next process.
  private func killed(_ verdicts: inout Verdicts) async throws {
    var last = try await lab.stats { $0.live.isEmpty }.links
    var faults: [String] = []
    for _ in 0..<count {
      let child = try Child(["victim", "link"] + Lab.options)
      defer { child.kill() }
      let link = try await Killing.link(of: child, &faults)
      if link != last + 1 { faults.append("link \(link) follows link \(last)") }
      last = link
      try await lab.radio.tell("silence link")
    }
    verdicts.equal("killed: dead links adopted by \(count) processes", faults, [])
  }
}
