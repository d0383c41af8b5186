internal import CBlueZ
internal import Relink

/// Ends the ACL link beneath an ATT socket, which outlives the socket by about 2 s where nobody ends it.
final class L2CAPEnding: LinkEnding {
  /// How long a socket on which nothing was received is kept open for its first answer.
  static let firstAnswerLimit = Duration.seconds(2)
  /// How long a closed link is awaited before its end is reported all the same: longer than the longest supervision
  /// timeout, 32 s (Core Specification Vol 4 Part E 7.8.12), since until then what was sent may take effect.
  static let goneLimit = Duration.seconds(33)

  private let device: DeviceID
  private let address: DeviceAddress
  private let link: LinkName?
  private let host: BlueZHost

  /// `link` is nil where nobody waits for the end of the link.
  init(_ device: DeviceID, _ address: DeviceAddress, _ link: LinkName?, host: BlueZHost) {
    self.device = device
    self.address = address
    self.link = link
    self.host = host
  }

  func end(
    _ registration: DescriptorRegistration, hasSent: Bool, hasReceived: Bool,
    gone: @escaping @Sendable (LinkLoss) -> Void
  ) {
    if let link { host.forget(link) }
    host.noteClosing(address, true)
    let closing = ClosingLink(registration, address, host: host, gone)
    if hasReceived {
      closing.closeSocket()
    } else {
      closing.awaitFirstAnswer(asks: !hasSent)
    }
  }

  func explain(_ loss: LinkLoss, hasReceived: Bool, then report: @escaping @Sendable (LinkLoss) -> Void) {
    host.explain(loss, of: link, to: device, address, hasReceived: hasReceived, then: report)
  }
}

/// A link on its way out.
private final class ClosingLink: DescriptorHandler {
  private let registration: DescriptorRegistration
  private let address: DeviceAddress
  private let host: BlueZHost
  private let gone: @Sendable (LinkLoss) -> Void
  private var reportAt = MonotonicInstant.distantFuture
  private var looks = LinkLooks()

  init(
    _ registration: DescriptorRegistration, _ address: DeviceAddress, host: BlueZHost,
    _ gone: @escaping @Sendable (LinkLoss) -> Void
  ) {
    self.registration = registration
    self.address = address
    self.host = host
    self.gone = gone
  }

  private var timer: TimerID { TimerID(owner: self, number: 0) }

  /// Closing an ATT socket on which nothing was ever received stops some kernels (6.1.192) if its link goes first.
  func awaitFirstAnswer(asks: Bool) {
    host.loop.hand(registration, to: self)
    host.loop.watch(registration, for: [.readable, .peerHangup])
    if asks {
      // Exchange MTU Request for the smallest MTU (Core Specification Vol 3 Part F 3.4.2.1): any server answers it.
      let request: [UInt8] = [0x02, 23, 0]
      _ = request.withUnsafeBytes { relink_send(registration.descriptor, $0.baseAddress, $0.count) }
    }
    let limit = host.loop.now.advanced(by: L2CAPEnding.firstAnswerLimit)
    host.loop.setTimer(timer, at: limit) { self.closeSocket() }
  }

  /// An answer, or the loss of the link: the socket has nothing to wait for any more.
  func descriptorReady(_ events: DescriptorEvents) {
    let buffer = host.loop.receiveBuffer
    _ = relink_receive(registration.descriptor, buffer.baseAddress, buffer.count)
    closeSocket()
  }

  func closeSocket() {
    host.loop.close(registration)
    host.endLink(to: address)
    reportAt = host.loop.now.advanced(by: L2CAPEnding.goneLimit)
    // In a later job, as the contract asks: the user of the channel may be in its `close`.
    host.loop.setTimer(timer, at: host.loop.now) { self.look() }
  }

  private func look() {
    let now = host.loop.now
    if host.link(to: address) == .none {
      report(LinkLoss(.requested))
    } else if now >= reportAt {
      report(LinkLoss(.requested, evidence: [.observation("the link was still there 33 s after its close")]))
    } else {
      host.loop.setTimer(timer, at: looks.next(after: now)) { self.look() }
    }
  }

  private func report(_ loss: LinkLoss) {
    host.noteClosing(address, false)
    gone(loss)
  }
}

// Everything that is not `let` is touched on the loop alone.
extension ClosingLink: @unchecked Sendable {}
