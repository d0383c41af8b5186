import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

/// Makes a loop, runs the test, and ends the loop.
@discardableResult
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

  private let state = Locked(State())

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

/// The test's end of a connection.
final class FarEnd: Sendable {
  private let open: Locked<Int32>

  init(_ descriptor: Int32) { open = Locked(descriptor) }

  deinit { close() }

  func send(_ bytes: [UInt8]) {
    let sent = open.withLock { Glibc.send($0, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    #expect(sent == bytes.count)
  }

  /// Sends where the other end is still there.
  func trySend(_ bytes: [UInt8]) {
    _ = open.withLock { Glibc.send($0, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
  }

  /// The next datagram, if one is there.
  func receiveIfThere() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let length = open.withLock { recv($0, &buffer, buffer.count, Int32(MSG_DONTWAIT)) }
    return length > 0 ? Array(buffer.prefix(length)) : nil
  }

  /// The next datagram, awaited for at most 10 s; empty at the end of file.
  func receive() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    return open.withLock { descriptor in
      var events = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      #expect(poll(&events, 1, 10_000) == 1)
      let length = recv(descriptor, &buffer, buffer.count, 0)
      return Array(buffer.prefix(max(length, 0)))
    }
  }

  /// Gives the descriptor away, open.
  func release() -> Int32 {
    open.withLock { descriptor in
      defer { descriptor = -1 }
      return descriptor
    }
  }

  func close() {
    open.withLock { descriptor in
      if descriptor >= 0 { Glibc.close(descriptor) }
      descriptor = -1
    }
  }
}

/// Two connected sockets: the near one is for the code under test, which closes it, the far one for the test.
final class SocketPair: Sendable {
  let near: Int32
  let far: FarEnd

  init() throws {
    var descriptors: [Int32] = [-1, -1]
    let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let result = socketpair(AF_UNIX, type, 0, &descriptors)
    try #require(result == 0)
    near = descriptors[0]
    far = FarEnd(descriptors[1])
  }
}
