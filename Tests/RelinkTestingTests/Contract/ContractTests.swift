import Relink
import RelinkTesting
import Testing

/// The contract suites over the implementations that this package brings.
@Suite struct ContractTests {
  @Test func managedLinksKeepTheContract() async {
    let report = await LinkContract.check(VirtualContractEnvironment.managedRadio(on: ManualExecutor()))
    #expect(report.failures == [])
    #expect(report.skipped == [])
    #expect(report.checks.count == LinkContract.names.count)
  }

  @Test func managedLinksWithoutLatencyKeepTheContract() async {
    let configuration = ManagedConfiguration(
      mtu: 23, maximumOutstanding: 1, restoresSubscriptions: true, commandBuffer: 1, latency: .zero,
      connectDelay: .zero, closingDelay: .zero)
    let environment = VirtualContractEnvironment.managedRadio(
      on: ManualExecutor(), configuration: configuration)
    let report = await LinkContract.check(environment)
    #expect(report.failures == [])
    let transport = await TransportContract.check(environment)
    #expect(transport.failures == [])
  }

  @Test func theManagedRadioKeepsTheContract() async {
    let report = await TransportContract.check(VirtualContractEnvironment.managedRadio(on: ManualExecutor()))
    #expect(report.failures == [])
    #expect(report.skipped == [])
  }

  @Test(arguments: [Duration.zero, .milliseconds(15)])
  func linksOverTheVirtualRadioKeepTheContract(latency: Duration) async {
    var configuration = VirtualRadio.Configuration()
    configuration.latency = latency
    let environment = VirtualContractEnvironment.virtualRadio(
      on: ManualExecutor(), configuration: configuration)
    let report = await LinkContract.check(environment)
    #expect(report.failures == [])
    #expect(report.skipped == [])
  }

  @Test(arguments: [(true, false), (false, true), (false, false)])
  func theVirtualRadioKeepsTheContract(endsLinks: Bool, waits: Bool) async {
    var configuration = VirtualRadio.Configuration()
    configuration.endsLinks = endsLinks
    configuration.waitsForOldLinks = waits
    let environment = VirtualContractEnvironment.virtualRadio(
      on: ManualExecutor(), configuration: configuration)
    let report = await TransportContract.check(environment)
    #expect(report.failures == [])
    #expect(report.skipped == (endsLinks || waits ? [] : ["waitsForALinkThatIsStillClosing"]))
  }

  @Test(arguments: [true, false])
  func channelsOfTheVirtualRadioKeepTheContract(endsLinks: Bool) async {
    var configuration = VirtualRadio.Configuration()
    configuration.endsLinks = endsLinks
    let report = await PDUChannelContract.check(VirtualChannelEnvironment(configuration))
    #expect(report.failures == [])
    #expect(report.skipped == [])
    #expect(report.checks.count == PDUChannelContract.names.count)
  }

  @Test func theSuitesRunOnAnExecutorThatRunsByItself() async {
    let executor = QueueExecutor()
    let driver = LoopContractDriver(executor, limit: .seconds(20), quiet: .milliseconds(10))
    let latency = Duration.milliseconds(1)
    let radio = ManagedRadio(
      on: executor,
      configuration: ManagedConfiguration(latency: latency, connectDelay: latency, closingDelay: latency))
    let device = DeviceID("7E8B0C9D")!
    let peer = VirtualContractPeer(driver: driver, slowAnswer: .milliseconds(200))
    await driver.perform { radio.add(peer.peripheral, as: device) }
    let environment = VirtualContractEnvironment(
      driver: driver, transport: radio, device: device, absentDevice: DeviceID("nobody"), peer: peer,
      waitsForOldLinks: true)
    // Two rules need an answer that is late by more than a busy machine can be.
    let timed: Set = ["takesNoMoreThanItSays", "deliversNothingButClosedAfterClose"]
    let links = await LinkContract.check(environment, only: Set(LinkContract.names).subtracting(timed))
    #expect(links.failures == [])
    let transports = await TransportContract.check(environment)
    #expect(transports.failures == [])
    // There is no world here to take the device or the adapter away.
    #expect(transports.skipped == ["leavesNothingOfACancelledDial", "tellsWhenTheAdapterGoes"])
  }

  @Test func aReportSaysWhatIsNotKept() {
    let report = ContractReport(
      subject: "Link",
      checks: [
        ContractReport.Check(name: "one", verdict: .passed),
        ContractReport.Check(name: "two", verdict: .failed("it is not")),
        ContractReport.Check(name: "three", verdict: .skipped("nothing to try it with")),
      ])
    #expect(!report.isKept)
    #expect(report.failures == ["two: it is not"])
    #expect(report.skipped == ["three"])
    #expect(
      report.description
        == "ok    Link one\nFAIL  Link two: it is not\nskip  Link three: nothing to try it with")
    #expect(!ContractReport(subject: "Link").isKept)
  }
}

/// Channels of a virtual radio to a peer that keeps what it gets.
struct VirtualChannelEnvironment: ChannelContractEnvironment {
  let driver: any ContractDriver
  private let radio: VirtualRadio
  private let device: DeviceID
  private let numbers = Locked(0)

  init(_ configuration: VirtualRadio.Configuration = VirtualRadio.Configuration()) {
    let executor = ManualExecutor()
    driver = ManualContractDriver(executor)
    radio = VirtualRadio(on: executor, configuration: configuration)
    device = DeviceID("C0:DE:00:00:00:01/random")!
  }

  func connect() async throws -> (channel: any PDUChannel, far: any ChannelFarEnd) {
    let peer = KeepingPeer()
    let channel = await driver.perform { [radio, device] in
      radio.add(peer, as: device)
      return radio.connectChannel(to: device)
    }
    guard let channel, await driver.wait(until: { peer.link.withLock { $0 } != nil }) else {
      throw RelinkError(.linkLost, "there is no link")
    }
    return (channel, FarEnd(peer: peer, radio: radio, device: device, driver: driver))
  }

  private struct FarEnd: ChannelFarEnd {
    let peer: KeepingPeer
    let radio: VirtualRadio
    let device: DeviceID
    let driver: any ContractDriver

    func send(_ pdu: [UInt8]) async {
      await driver.perform { [peer] in peer.link.withLock { $0 }?.send(pdu) }
    }
    func received() async -> [[UInt8]] { peer.pdus.withLock { $0 } }
    func end() async {
      await driver.perform { [peer] in peer.link.withLock { $0 }?.terminate(.remoteUserTerminatedConnection) }
    }
    func setStalled(_ isStalled: Bool) async -> Bool {
      await driver.perform { [radio, device] in isStalled ? radio.block(device) : radio.unblock(device) }
      return true
    }
  }
}

/// A peer that keeps what it gets.
private final class KeepingPeer: VirtualPeer {
  let pdus = Locked<[[UInt8]]>([])
  let link = Locked<PeerLink?>(nil)

  func linkOpened(_ link: PeerLink) { self.link.withLock { $0 = link } }
  func received(_ pdu: [UInt8], on link: PeerLink) { pdus.withLock { $0.append(pdu) } }
  func linkClosed(_ link: PeerLink, reason: HCIErrorCode) { self.link.withLock { $0 = nil } }
}
