import Relink
import Testing

@testable import RelinkBlueZ

/// Connects that nobody waits for, with socket pairs in their place.
@Suite(.timeLimit(.minutes(1))) struct ParkedConnectTests {
  private func withParked(
    since age: Duration = .zero, takesLinks: Bool = true,
    _ body: (RadioLoop, ParkedConnects, DeviceAddress, Facts<Int>, FarEnd) async throws -> Void
  ) async throws {
    try await withLoop { loop in
      let device = try #require(DeviceID("C0:DE:00:00:00:01/random").flatMap(DeviceAddress.init))
      let pair = try SocketPair()
      let connects = ParkedConnects(on: loop)
      let links = Facts<Int>()
      let near = pair.near
      try await loop.run {
        let dial = NoHandler()
        // Watched for less than a dial watches, since a socket of a pair is writable all the while.
        let registration = try loop.register(OwnedDescriptor(adopting: near), for: .peerHangup, dial).get()
        let since = MonotonicInstant(nanoseconds: loop.now.nanoseconds - age.clampedNanoseconds)
        connects.park(registration, since: since, for: device) { [loop] link in
          guard takesLinks else { return false }
          links.add(1)
          loop.close(link)
          return true
        }
      }
      try await body(loop, connects, device, links, pair.far)
    }
  }

  @Test func oneThatTheKernelForgetsIsClosedWhenADialWouldHaveGivenItUp() async throws {
    try await withParked(since: L2CAPDialStateMachine.watchdog - .milliseconds(20)) {
      loop, connects, device, links, far in
      #expect(far.receive() == [])
      try await loop.run {
        #expect(!connects.contains(device))
        #expect(loop.descriptorCount == 0)
        #expect(loop.timerCount == 0)
      }
      #expect(links.all.isEmpty)
    }
  }

  @Test func oneThatIsTakenOverIsNotClosed() async throws {
    try await withParked { loop, connects, device, _, far in
      try await loop.run {
        #expect(loop.timerCount == 1)
        let taken = try #require(connects.take(device))
        #expect(loop.timerCount == 0)
        #expect(connects.take(device) == nil)
        #expect(loop.descriptorCount == 1)
        loop.close(taken.registration)
      }
      #expect(far.receive() == [], "closed by its new owner")
    }
  }

  @Test func allAreClosedWithTheirHost() async throws {
    try await withParked { loop, connects, device, links, far in
      try await loop.run {
        connects.closeAll()
        #expect(!connects.contains(device))
        #expect(loop.descriptorCount == 0)
        #expect(loop.timerCount == 0)
      }
      #expect(far.receive() == [])
      #expect(links.all.isEmpty)
    }
  }

  @Test(arguments: [true, false]) func aLinkThatComesOfItIsEnded(takesLinks: Bool) async throws {
    try await withParked(takesLinks: takesLinks) { loop, connects, device, links, far in
      try await loop.run {
        guard let registration = connects.registration(of: device) else { return }
        loop.watch(registration, for: .writable)
      }
      #expect(far.receive() == [])
      try await loop.run {
        #expect(!connects.contains(device))
        #expect(loop.descriptorCount == 0)
        #expect(loop.timerCount == 0)
      }
      #expect(links.all.count == (takesLinks ? 1 : 0))
    }
  }
}

private final class NoHandler: DescriptorHandler {
  func descriptorReady(_ events: DescriptorEvents) {}
}
