internal import CBlueZ
internal import Glibc
internal import Relink

/// One dial of a ``UnixTransport``.
final class UnixDial: Attempt {
  private static let firstDelay = Duration.milliseconds(100)
  private static let longestDelay = Duration.seconds(1)

  private let device: DeviceID
  private let attempt: AttemptID
  private let loop: RadioLoop
  private let registry: DeviceRegistry
  private let deadline: MonotonicInstant?
  private var delay = UnixDial.firstDelay
  private var hasEnded = false

  init(
    _ device: DeviceID, _ attempt: AttemptID, _ options: DialOptions, loop: RadioLoop,
    registry: DeviceRegistry
  ) {
    self.device = device
    self.attempt = attempt
    self.loop = loop
    self.registry = registry
    deadline = options.limit.map { loop.now.advanced(by: $0) }
  }

  func cancel() {
    loop.checkIsolated()
    guard !hasEnded else { return }
    hasEnded = true
    loop.cancelTimer(TimerID(owner: self, number: 0))
    loop.post { self.report(LinkLoss(.requested)) }
  }

  /// Called on the loop, and never inside a call of the session.
  func tryOnce() {
    guard !hasEnded else { return }
    guard let path = UnixTransport.path(of: device) else {
      return fail(LinkLoss(.notFound, evidence: [.observation("\(device) is no path")]))
    }
    let result = relink_unix_connect(path)
    if result >= 0 {
      connected(OwnedDescriptor(adopting: result))
    } else if UnixDial.isAbsence(-result) {
      wait(LinkLoss(.notFound, evidence: [.system(-result, call: .connect)]))
    } else {
      fail(LinkLoss(UnixDial.reason(-result), evidence: [.system(-result, call: .connect)]))
    }
  }

  static func reason(_ error: Int32) -> DisconnectReason {
    switch error {
    // The path may not be used; a socket of another type. Neither has anything to do with an adapter.
    case EACCES, EPERM, EPROTOTYPE: .refused
    default: .unknown
    }
  }

  /// Whether an error of connect says that nobody listens there now.
  static func isAbsence(_ error: Int32) -> Bool {
    switch error {
    // No such path; nobody listens any more; its queue is full; the listener is just being replaced.
    case ENOENT, ENOTDIR, ECONNREFUSED, EAGAIN, ECONNRESET: true
    default: false
    }
  }

  private func connected(_ descriptor: consuming OwnedDescriptor) {
    hasEnded = true
    let channel = SeqPacketChannel(adopting: descriptor, on: loop)
    guard let (link, handler) = registry.link(to: device, over: channel, on: loop) else { return }
    link.start()
    handler.linkUp(link, attempt: attempt)
  }

  private func wait(_ loss: LinkLoss) {
    // A session that was dropped without a word needs no link.
    guard registry.handler(for: device) != nil else { return }
    let now = loop.now
    if let deadline, now >= deadline { return fail(loss) }
    let next = min(now.advanced(by: delay), deadline ?? .distantFuture)
    delay = min(delay * 2, UnixDial.longestDelay)
    loop.setTimer(TimerID(owner: self, number: 0), at: next) { self.tryOnce() }
  }

  private func fail(_ loss: LinkLoss) {
    hasEnded = true
    report(loss)
  }

  private func report(_ loss: LinkLoss) {
    registry.handler(for: device)?.attemptFailed(attempt, loss)
  }
}

// Everything that is not `let` is touched on the loop alone.
extension UnixDial: @unchecked Sendable {}
