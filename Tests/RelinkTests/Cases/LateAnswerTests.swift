import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B04: the answer to a request that nobody waits for any more is never taken for the answer to the next one.
@Suite struct LateAnswerTests {
  enum GivenUp: CaseIterable {
    /// The caller's deadline of 5 s passed.
    case timedOut
    /// The default deadline passed, which is the bearer's too.
    case timedOutByDefault
    /// The caller was cancelled after a second.
    case cancelled
  }

  /// When the answer to the first request comes, in milliseconds; nil for never.
  static let delays: [Int?] = [900, 3000, 5000, 12_000, 29_999, 30_000, 30_500, 45_000, nil]

  private func first(_ way: GivenUp, in scene: Scene) -> SpawnedTask<[UInt8]> {
    let limit: Deadline = way == .timedOut ? .seconds(5) : .default
    let task = scene.spawn("first") { try await $0.read(Scene.first, within: limit) }
    if way == .cancelled {
      scene.executor.advance(by: .seconds(1))
      task.cancel()
      scene.executor.run()
      #expect(task.hasEnded)
    }
    return task
  }

  @Test("B04: read, give up, read another", arguments: GivenUp.allCases, delays)
  func theNextRequestNeverGetsTheLateAnswer(_ way: GivenUp, _ delay: Int?) throws {
    let peer = RawPeripheral.twoValues()
    if let delay {
      peer.expect("0a 1000", answer: "0b aa", after: .milliseconds(delay))
    } else {
      peer.expect("0a 1000") { _ in }
    }
    peer.always("0a 1000", answer: "0b ab")
    peer.always("0a 2000", answer: "0b bb")
    try Scene.play(peer) { scene in
      try scene.connect()
      let first = first(way, in: scene)
      let isAnsweredInTime =
        delay.map { $0 < (way == .timedOut ? 5000 : 30_000) } ?? false && way != .cancelled
      let next = scene.spawn("next") { try await $0.read(Scene.second, within: .seconds(120)) }
      scene.executor.advance(by: .seconds(120))
      if isAnsweredInTime || delay == 900 {
        #expect(first.value == [0xAA])
      } else {
        #expect(first.relinkError?.doubt?.cause == (way == .cancelled ? .cancelled : .deadline))
      }
      #expect(next.value == [0xBB])
      expectOneRequestAtATime(peer, answeredAfter: delay)
    }
  }

  /// Nothing but the confirmed late answer may lie between the first read and the next request of its link.
  private func expectOneRequestAtATime(_ peer: RawPeripheral, answeredAfter delay: Int?) {
    guard let read = peer.received.firstIndex(where: { $0.pdu == [0x0A, 0x10, 0x00] }) else {
      Issue.record("the first read never arrived")
      return
    }
    let sent = peer.received[read]
    for later in peer.received.dropFirst(read + 1) where later.linkNumber == sent.linkNumber {
      guard let delay else {
        Issue.record("\(later) was sent on a bearer that owed an answer")
        continue
      }
      #expect(sent.at.duration(to: later.at) >= .milliseconds(delay))
      #expect(delay < 30_000)
    }
  }

  @Test("B04: the answer to a cancelled read comes twice")
  func aSecondCopyOfTheLateAnswerIsSwallowedToo() throws {
    let peer = RawPeripheral.twoValues()
    peer.expect("0a 1000", answer: "0b aa", "0b aa", after: .seconds(3))
    peer.always("0a 2000", answer: "0b bb", after: .seconds(1))
    try Scene.play(peer) { scene in
      try scene.connect()
      let first = first(.cancelled, in: scene)
      let next = scene.spawn("next") { try await $0.read(Scene.second) }
      scene.executor.advance(by: .seconds(30))
      #expect(first.relinkError?.doubt?.cause == .cancelled)
      #expect(next.value == [0xBB])
    }
  }
}
