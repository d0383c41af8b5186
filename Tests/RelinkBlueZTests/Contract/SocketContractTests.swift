import Relink
import RelinkTesting
import Testing

@testable import RelinkBlueZ

/// The contract suites over sockets of this machine.
@Suite(.timeLimit(.minutes(1))) struct SocketContractTests {
  private func environment(_ loop: RadioLoop) async throws -> VirtualContractEnvironment {
    let driver = LoopContractDriver(loop, quiet: .milliseconds(120))
    let peer = VirtualContractPeer(driver: driver, slowAnswer: .milliseconds(40))
    let server = UnixPeerServer(peer.peripheral, on: loop)
    try await loop.run { try server.setPresent(true) }
    return VirtualContractEnvironment(
      driver: driver, transport: UnixTransport(on: loop),
      device: try #require(UnixTransport.device(at: server.path)),
      absentDevice: UnixTransport.device(at: UnixListener.freshPath()),
      peer: UnixContractPeer(peer: peer, server: server, driver: driver), waitsForOldLinks: true)
  }

  @Test func channelsOverSocketsKeepTheContract() async throws {
    try await withLoop { loop in
      let report = await PDUChannelContract.check(SocketPairEnvironment(loop))
      #expect(report.failures == [])
      #expect(report.skipped == [])
      #expect(report.checks.count == PDUChannelContract.names.count)
    }
  }

  @Test func linksOverUnixSocketsKeepTheContract() async throws {
    try await withLoop { loop in
      let report = await LinkContract.check(try await environment(loop))
      #expect(report.failures == [])
      #expect(report.skipped == [])
      #expect(report.checks.count == LinkContract.names.count)
    }
  }

  @Test func theUnixTransportKeepsTheContract() async throws {
    try await withLoop { loop in
      let report = await TransportContract.check(try await environment(loop))
      #expect(report.failures == [])
      #expect(report.skipped == ["tellsWhenTheAdapterGoes"], "there is no adapter")
      #expect(report.checks.count == TransportContract.names.count)
    }
  }
}
