internal import Glibc
internal import Relink

/// A process of its own that leaves something outstanding and waits to be killed.
struct Victim: Sendable {
  private let lab: Lab
  private let outstanding: Outstanding?
  private let seed: Int

  /// Without something to leave outstanding it only holds the link.
  init(_ lab: Lab, leaving outstanding: Outstanding?, seed: Int) {
    self.lab = lab
    self.outstanding = outstanding
    self.seed = seed
  }

  /// Says which link it got and what was wrong on it, and then waits for its end.
  func run() async throws {
    let session = try lab.session()
    try await session.connect()
    let link = try Pair(await session.read(.counter)).second
    guard let outstanding else {
      say("link \(link)")
      // Until it is killed.
      for await _ in session.events() {}
      return
    }
    if let fault = try await outstanding.repeatSoundly(on: session, link: link, seed: seed, lab.radio) {
      say("fault \(fault)")
    }
    _ = try await outstanding.hold(lab.radio)
    say("link \(link)")
    let fate = await outstanding.begin(on: session, seed: seed)
    say("fault it ended: \(fate)")
  }
}

/// A child process, whose lines can be read.
final class Child {
  private let process: pid_t
  private let output: Int32
  private var received: [UInt8] = []

  /// This program once more.
  convenience init(_ arguments: [String]) throws {
    try self.init("/proc/self/exe", arguments)
  }

  init(_ path: String, _ arguments: [String]) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw LabFailure("no pipe: error \(errno)") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    var process: pid_t = 0
    let result = posix_spawn(&process, path, &actions, nil, &words, environ)
    Glibc.close(ends[1])
    output = ends[0]
    self.process = process
    guard result == 0 else { throw LabFailure("no child process: error \(result)") }
  }

  /// The next line; it blocks, and a child that ends without one is an error.
  func line() throws -> String {
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        defer { received.removeFirst(end + 1) }
        return String(decoding: received[..<end], as: UTF8.self)
      }
      var look = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      guard poll(&look, 1, 120_000) == 1 else { throw LabFailure("a child said nothing for 120 s") }
      let count = read(output, &chunk, chunk.count)
      guard count > 0 else {
        throw LabFailure("a child ended early, after \(String(decoding: received, as: UTF8.self))")
      }
      received.append(contentsOf: chunk[..<count])
    }
  }

  /// Waits for the child's own end; its exit status, as `waitpid` gives it.
  func wait() -> Int32 {
    var status: Int32 = 0
    waitpid(process, &status, 0)
    Glibc.close(output)
    return status
  }

  /// SIGKILL: no code of the child runs any more.
  func kill() {
    Glibc.kill(process, SIGKILL)
    _ = wait()
  }
}

/// Processes that are killed with something outstanding, each followed by the next at once: nothing crosses.
struct Killing: Sendable {
  private let lab: Lab
  private let count: Int

  init(_ lab: Lab, count: Int) {
    self.lab = lab
    self.count = count
  }

  /// Runs it; how many checks failed.
  func run() async throws -> Int {
    var verdicts = Verdicts()
    for outstanding in Outstanding.allCases {
      try await lab.begin()
      try await lab.radio.tell("mtu 64")
      let before = try await lab.radio.ask("links", for: RadioLinks.self).links
      var faults: [String] = []
      var times: [Double] = []
      for round in 0..<count {
        let held = try await lab.radio.ask("stats", for: RadioStats.self).discarded
        let began = lab.loop.now
        let child = try Child(["victim", outstanding.rawValue, String(round)] + Lab.options)
        defer { child.kill() }
        let link = try await Killing.link(of: child, &faults)
        times.append(began.duration(to: lab.loop.now).milliseconds)
        if link != before + round + 1 { faults.append("link \(link) is the \(round + 1)th after \(before)") }
        _ = try await lab.stats { outstanding.isOutstanding($0, on: link, since: held) }
      }
      let stats = try await lab.stats { $0.live.isEmpty && $0.slow.waiting == 0 }
      verdicts.equal("\(outstanding), killed: what crossed to a later link in \(count) rounds", faults, [])
      verdicts.equal("\(outstanding), killed: links", stats.links - before, count)
      verdicts.check(outstanding, stats, rounds: count)
      say(
        "\(outstanding), killed: start of the process to answers on its link: \(Distribution(times).summary)")
    }
    return verdicts.failed
  }

  static func link(of child: Child, _ faults: inout [String]) async throws -> Int {
    while true {
      let line = try child.line()
      if line.hasPrefix("link "), let link = Int(line.dropFirst(5)) { return link }
      faults.append(line)
    }
  }
}
