import Glibc
import Relink
import RelinkTesting
import Testing

@testable import RelinkBlueZ

/// A transport whose links are socket pairs with a virtual peripheral at the far end, on the same loop.
///
/// Nothing but the descriptor says what becomes of a link: there is no event of a controller.
final class SocketPairTransport: Transport {
  /// The peripheral at the far end of every link.
  let peripheral: VirtualPeripheral
  private let loop: RadioLoop
  private let registry = DeviceRegistry()
  /// The number that the descriptor of each link gets, or the next free one above.
  private let lowestDescriptor: Int32
  private let made = Locked<[Made]>([])

  private struct Made: Sendable {
    var descriptor: Int32
    var far: ServedChannel
    /// Another name of the near end's description, which keeps that alive when the channel has closed its own.
    var spare: FarEnd
  }

  init(_ peripheral: VirtualPeripheral, on loop: RadioLoop, lowestDescriptor: Int32 = 3) {
    self.peripheral = peripheral
    self.loop = loop
    self.lowestDescriptor = lowestDescriptor
  }

  /// The numbers of the near descriptors, in the order of the links.
  var descriptors: [Int32] { made.withLock { $0.map(\.descriptor) } }

  /// Closes the far end of a link, counted from 0; to be called on the loop.
  func endFarSide(of index: Int) { made.withLock { $0[index].far }.channel.close() }

  /// Sends a PDU from the far end of a link; to be called on the loop.
  func send(_ pdu: [UInt8], onLink index: Int) -> PDUSendResult {
    made.withLock { $0[index].far }.channel.send(pdu)
  }

  /// Forgets the second names of the near ends, without which a closed link has nobody to read it.
  func dropSpares() {
    for spare in made.withLock({ $0.map(\.spare) }) { spare.close() }
  }

  private func dialled(_ device: DeviceID, _ attempt: AttemptID) {
    guard let handler = registry.handler(for: device) else { return }
    guard let pair = try? SocketPair() else {
      return handler.attemptFailed(attempt, LinkLoss(.failedToEstablish))
    }
    let near = fcntl(pair.near, F_DUPFD_CLOEXEC, lowestDescriptor)
    let far = SeqPacketChannel(adopting: OwnedDescriptor(adopting: pair.far.release()), on: loop)
    let number = made.withLock { $0.count + 1 }
    let link = PeerLink(
      number: number, on: loop, send: { _ = far.send($0) }, terminate: { _ in far.close() })
    let served = ServedChannel(far, link, peripheral) {}
    made.withLock { $0.append(Made(descriptor: near, far: served, spare: FarEnd(pair.near))) }
    far.open(served)
    peripheral.linkOpened(link)
    let channel = SeqPacketChannel(adopting: OwnedDescriptor(adopting: near), on: loop)
    guard let (new, receiver) = registry.link(to: device, over: channel, on: loop) else { return }
    new.start()
    receiver.linkUp(new, attempt: attempt)
  }

  // MARK: Transport

  var executor: any SessionExecutor { loop }
  var capabilities: TransportCapabilities { TransportCapabilities(knowsExactReason: false, endsLinks: true) }

  func adapterState(for device: DeviceID) -> AdapterState { .on }
  func existingLinks() -> [DeviceID] { registry.linked }

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    try registry.register(handler, for: device)
  }

  func unregister(_ device: DeviceID) { registry.unregister(device) }

  func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    loop.post { self.dialled(device, attempt) }
    return Immediate()
  }

  /// A dial that is over before it could be called off.
  private final class Immediate: Attempt {
    func cancel() {}
  }
}
