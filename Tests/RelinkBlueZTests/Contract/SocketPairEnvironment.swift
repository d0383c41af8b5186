import Glibc
import Relink
import RelinkTesting

@testable import RelinkBlueZ

/// Channels over socket pairs, for the contract suite.
struct SocketPairEnvironment: ChannelContractEnvironment {
  let loop: RadioLoop
  let driver: any ContractDriver

  init(_ loop: RadioLoop) {
    self.loop = loop
    driver = LoopContractDriver(loop, quiet: .milliseconds(20))
  }

  func connect() async throws -> (channel: any PDUChannel, far: any ChannelFarEnd) {
    let pair = try SocketPair()
    let channel = SeqPacketChannel(adopting: OwnedDescriptor(adopting: pair.near), on: loop)
    return (channel, SocketFarEnd(pair.far))
  }
}

/// The far end of a socket pair, which reads only when it is asked what came.
private final class SocketFarEnd: ChannelFarEnd {
  private struct State {
    var received: [[UInt8]] = []
    var isStalled = false
  }

  private let end: FarEnd
  private let state = Locked(State())

  init(_ end: FarEnd) { self.end = end }

  func send(_ pdu: [UInt8]) async { end.trySend(pdu) }

  func received() async -> [[UInt8]] {
    while !state.withLock({ $0.isStalled }), let pdu = end.receiveIfThere() {
      state.withLock { $0.received.append(pdu) }
    }
    return state.withLock { $0.received }
  }

  func end() async { end.close() }

  func setStalled(_ isStalled: Bool) async -> Bool {
    state.withLock { $0.isStalled = isStalled }
    _ = await received()
    return true
  }
}
