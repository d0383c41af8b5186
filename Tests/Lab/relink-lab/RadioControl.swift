internal import FoundationEssentials
internal import Glibc
internal import Relink
internal import RelinkBlueZ

/// What went wrong with the lab itself, in words.
struct LabFailure: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}

/// One connection to the radio's control socket: a command, its reply, the next command.
///
/// It blocks, on a thread of its own.
actor RadioControl {
  private nonisolated let thread: RadioLoop
  private nonisolated let descriptor: Int32
  private var received: [UInt8] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  init(path: String) throws {
    thread = try RadioLoop()
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw LabFailure("the path of the control socket is too long")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard descriptor >= 0, result == 0 else { throw LabFailure("no radio at \(path): error \(errno)") }
    // Longer than any command takes; without it a dead radio would stop the run for ever.
    var patience = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit {
    Glibc.close(descriptor)
    thread.stop()
  }

  /// Sends a command and reads its reply.
  func ask<Reply: Decodable & Sendable>(_ command: String, for reply: Reply.Type) throws -> Reply {
    let line = try exchange(command)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let verdict = try decoder.decode(Verdict.self, from: line)
    guard verdict.ok else {
      throw LabFailure("the radio said to \(command): \(verdict.error ?? "no, without a reason")")
    }
    return try decoder.decode(reply, from: line)
  }

  /// Sends a command whose reply says nothing of interest.
  func tell(_ command: String) throws {
    _ = try ask(command, for: Verdict.self)
  }

  /// Sends a command that the radio may refuse; whether it did not.
  func grants(_ command: String) throws -> Bool {
    try JSONDecoder().decode(Verdict.self, from: exchange(command)).ok
  }

  private struct Verdict: Decodable, Sendable {
    var ok: Bool
    var error: String?
  }

  private func exchange(_ command: String) throws -> Data {
    let bytes = Array((command + "\n").utf8)
    guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
      throw LabFailure("the radio has gone")
    }
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        defer { received.removeFirst(end + 1) }
        return Data(received[..<end])
      }
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count > 0 else { throw LabFailure("the radio gave no reply to \(command)") }
      received.append(contentsOf: chunk[..<count])
    }
  }
}

/// The links that the peripheral has seen.
struct RadioLinks: Decodable, Sendable {
  /// How many have come up altogether.
  var links: Int
  /// The numbers of those that live.
  var live: [Int]
}

/// The links on which each operation number was applied.
struct RadioCounts: Decodable, Sendable {
  var counts: [String: [Int]]

  /// The same by number.
  var byNumber: [UInt64: [Int]] {
    Dictionary(uniqueKeysWithValues: counts.compactMap { key, links in UInt64(key).map { ($0, links) } })
  }
}

/// Every counter of the radio that the scenarios look at.
struct RadioStats: Decodable, Sendable {
  struct Counter: Decodable, Sendable { var reads: Int }
  struct Applied: Decodable, Sendable { var applied, distinct, duplicates: Int }
  struct Slow: Decodable, Sendable { var asked, answered, discarded, waiting: Int }
  struct Stream: Decodable, Sendable { var sent: Int }
  struct Pairing: Decodable, Sendable { var requests, paired, failed, encrypted: Int }
  struct Protected: Decodable, Sendable { var asked, refused, answered, writes: Int }
  struct Execution: Decodable, Sendable {
    var link, bytes: Int
    var value: String
  }
  struct Long: Decodable, Sendable {
    var preparedBytes, executedBytes, cancelledBytes, diedBytes: Int
    var queuedBytes: [String: Int]
    var executions: [Execution]
  }

  var links: Int
  var live: [Int]
  var gone: [String: Int]
  var requests, cuts, late, discarded: Int
  var counter: Counter
  var lock, idempotent: Applied
  var slow: Slow
  var long: Long
  var stream: Stream
  var pairing: Pairing
  var protected: Protected
}
