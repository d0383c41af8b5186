import Glibc
import Relink
import Synchronization
import Testing

@testable import RelinkBlueZ

/// Makes a loop, runs the test, and ends the loop.
func withLoop<Result>(_ body: (RadioLoop) async throws -> Result) async throws -> Result {
  let loop = try RadioLoop()
  defer { loop.stop() }
  return try await body(loop)
}

extension RadioLoop {
  /// Runs `work` on the loop and gives its result back.
  func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      post { continuation.resume(with: Swift.Result { try work() }) }
    }
  }
}

/// Facts that arrive on any thread, and a wait for the moment when there are enough of them.
final class Facts<Fact: Sendable & Equatable>: Sendable {
  private struct State {
    var facts: [Fact] = []
    var waiters: [(enough: @Sendable ([Fact]) -> Bool, resume: CheckedContinuation<[Fact], Never>)] = []
  }

  private let state = Mutex(State())

  var all: [Fact] { state.withLock { $0.facts } }

  func add(_ fact: Fact) {
    let (facts, ready) = state.withLock { state in
      state.facts.append(fact)
      let facts = state.facts
      let ready = state.waiters.filter { $0.enough(facts) }.map(\.resume)
      state.waiters.removeAll { $0.enough(facts) }
      return (facts, ready)
    }
    for waiter in ready { waiter.resume(returning: facts) }
  }

  /// The facts, as soon as there are `count` of them.
  func first(_ count: Int) async -> [Fact] {
    await when { $0.count >= count }
  }

  func when(_ enough: @escaping @Sendable ([Fact]) -> Bool) async -> [Fact] {
    await withCheckedContinuation { continuation in
      let facts: [Fact]? = state.withLock { state in
        if enough(state.facts) { return state.facts }
        state.waiters.append((enough, continuation))
        return nil
      }
      if let facts { continuation.resume(returning: facts) }
    }
  }
}

/// Two connected sockets: the near one is for the code under test, which closes it, the far one for the test.
final class SocketPair: Sendable {
  let near: Int32
  private let open: Mutex<Int32>

  init() throws {
    var descriptors: [Int32] = [-1, -1]
    let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let result = socketpair(AF_UNIX, type, 0, &descriptors)
    try #require(result == 0)
    near = descriptors[0]
    open = Mutex(descriptors[1])
  }

  deinit { closeFar() }

  func sendFromFar(_ bytes: [UInt8]) {
    let sent = open.withLock { send($0, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    #expect(sent == bytes.count)
  }

  /// The next datagram at the far end; empty at the end of file.
  func receiveAtFar() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    return open.withLock { far in
      var events = pollfd(fd: far, events: Int16(POLLIN), revents: 0)
      #expect(poll(&events, 1, 10_000) == 1)
      let length = recv(far, &buffer, buffer.count, 0)
      return Array(buffer.prefix(max(length, 0)))
    }
  }

  func closeFar() {
    open.withLock { far in
      if far >= 0 { close(far) }
      far = -1
    }
  }
}
