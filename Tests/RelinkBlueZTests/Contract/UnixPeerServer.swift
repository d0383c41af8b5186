import BluetoothWire
import Glibc
import Relink
import RelinkTesting

@testable import RelinkBlueZ

/// A virtual peripheral that listens at a path, on the loop of its client.
final class UnixPeerServer: @unchecked Sendable {
  // Everything that is not `let` is touched on the loop alone.
  let path = UnixListener.freshPath()
  private let loop: RadioLoop
  private let peer: any VirtualPeer
  private var listening: (listener: UnixListener, registration: DescriptorRegistration)?
  private var links: [Int: ServedChannel] = [:]
  private var count = 0

  init(_ peer: any VirtualPeer, on loop: RadioLoop) {
    self.peer = peer
    self.loop = loop
  }

  deinit { unlink(path) }

  func setPresent(_ isPresent: Bool) throws {
    if isPresent, listening == nil {
      let listener = try UnixListener(at: path)
      // The loop closes what it is given, so it gets a descriptor of its own.
      let descriptor = OwnedDescriptor(adopting: dup(listener.descriptor))
      let registration = try loop.register(descriptor, for: .readable, Acceptor(self)).get()
      listening = (listener, registration)
    } else if !isPresent, let (_, registration) = listening {
      loop.close(registration)
      listening = nil
    }
  }

  fileprivate func accept() {
    guard let descriptor = listening?.listener.descriptor else { return }
    let accepted = Glibc.accept(descriptor, nil, nil)
    guard accepted >= 0 else { return }
    count += 1
    let number = count
    let channel = SeqPacketChannel(adopting: OwnedDescriptor(adopting: accepted), on: loop)
    let link = PeerLink(
      number: number, on: loop, send: { _ = channel.send($0) },
      terminate: { [weak self] _ in self?.terminate(number) })
    let served = ServedChannel(channel, link, peer) { [weak self] in self?.links[number] = nil }
    links[number] = served
    channel.open(served)
    peer.linkOpened(link)
  }

  private func terminate(_ number: Int) {
    links[number]?.channel.close()
  }

  private final class Acceptor: DescriptorHandler {
    // The loop holds the acceptor, and the test the server.
    private weak let server: UnixPeerServer?

    init(_ server: UnixPeerServer) { self.server = server }

    func descriptorReady(_ events: DescriptorEvents) { server?.accept() }
  }
}

/// One link of a served peripheral.
final class ServedChannel: PDUChannelHandler {
  let channel: SeqPacketChannel
  private let link: PeerLink
  private let peer: any VirtualPeer
  private let ended: @Sendable () -> Void

  init(
    _ channel: SeqPacketChannel, _ link: PeerLink, _ peer: any VirtualPeer,
    _ ended: @escaping @Sendable () -> Void
  ) {
    self.channel = channel
    self.link = link
    self.peer = peer
    self.ended = ended
  }

  func channelReceived(_ pdu: borrowing RawSpan) {
    peer.received(pdu.withUnsafeBytes { Array($0) }, on: link)
  }

  func channelWritable() {}

  func channelClosed(_ loss: LinkLoss) {
    peer.linkClosed(link, reason: .remoteUserTerminatedConnection)
    ended()
  }
}

/// A virtual peripheral behind a path, for the contract suites.
struct UnixContractPeer: ContractPeer {
  let peer: VirtualContractPeer
  let server: UnixPeerServer
  let driver: any ContractDriver

  var characteristic: Characteristic { peer.characteristic }
  var secondCharacteristic: Characteristic? { peer.secondCharacteristic }
  var slowAnswer: Duration { peer.slowAnswer }

  func setValue(_ value: [UInt8]) async { await peer.setValue(value) }
  func notify(_ value: [UInt8]) async { await peer.notify(value) }
  func endLink() async { await peer.endLink() }
  func swallowNextRequest() async { await peer.swallowNextRequest() }
  func answerNextReadLate() async { await peer.answerNextReadLate() }
  func swallowNextExecution() async { await peer.swallowNextExecution() }
  func answerNextRequestTwice() async { await peer.answerNextRequestTwice() }
  func behave() async { await peer.behave() }
  func writes() async -> [[UInt8]] { await peer.writes() }

  func linkCount() async -> Int {
    // A connect is done before the listener accepts it, which takes another look of the loop at its descriptors.
    for _ in 0..<2 { await driver.perform {} }
    return await peer.linkCount()
  }

  func setPresent(_ isPresent: Bool) async -> Bool {
    await driver.perform { (try? server.setPresent(isPresent)) != nil }
  }

  func setAdapter(_ isOn: Bool) async -> Bool { false }
}
