internal import Relink
internal import RelinkTesting

/// The radio as one process sees it: until the process ends, and then not at all.
///
/// A process that is killed says no last word. Its dials are called off and its channels closed as a kernel does it; what
/// the dead session does from then on reaches nobody, and nothing reaches it. The next process finds the link that lingers
/// and waits until it is gone, as a transport must; links of its own are the session's to wait for.
final class ProcessTransport: BondingTransport, LinkHandler {
  private struct State {
    weak var handler: (any LinkHandler)?
    var device: DeviceID?
    var attempts: [AttemptID: any Attempt] = [:]
    var links: [LinkID: any Link] = [:]
    var isDead = false
  }

  private let radio: VirtualRadio
  /// Dials of different processes have different names.
  private let firstAttempt: UInt64
  private let state = Locked(State())

  init(_ radio: VirtualRadio, process: Int) {
    self.radio = radio
    firstAttempt = UInt64(process) << 32
  }

  var isDead: Bool { state.withLock { $0.isDead } }

  /// Ends the process.
  func kill() {
    let (device, attempts, links) = state.withLock { state in
      state.isDead = true
      defer { (state.attempts, state.links) = ([:], [:]) }
      return (state.device, state.attempts, state.links)
    }
    if let device { radio.unregister(device) }
    radio.setWaitsForOldLinks(true)
    for (_, attempt) in attempts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) { attempt.cancel() }
    for (_, link) in links.sorted(by: { $0.key.rawValue < $1.key.rawValue }) { link.close() }
  }

  // MARK: - Transport

  var executor: any SessionExecutor { radio.executor }
  var capabilities: TransportCapabilities { radio.capabilities }

  func adapterState(for device: DeviceID) -> AdapterState { radio.adapterState(for: device) }

  func existingLinks() -> [DeviceID] { radio.existingLinks() }

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    try radio.register(self, for: device)
    state.withLock { ($0.handler, $0.device) = (handler, device) }
  }

  func unregister(_ device: DeviceID) {
    if !isDead { radio.unregister(device) }
  }

  func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    if isDead { return NoAttempt() }
    let name = AttemptID(rawValue: firstAttempt + attempt.rawValue)
    let dial = radio.dial(device, attempt: name, options: options)
    state.withLock { $0.attempts[name] = dial }
    return dial
  }

  func bond(with device: DeviceID) -> BondKnowledge { radio.bond(with: device) }

  func removeBond(with device: DeviceID, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    // Whoever asks in a process that has ended waits for nothing either.
    if isDead { executor.post { done(nil) } } else { radio.removeBond(with: device, done) }
  }

  // MARK: - LinkHandler

  /// The session, while the process lives.
  private var handler: (any LinkHandler)? { state.withLock { $0.isDead ? nil : $0.handler } }

  private func own(_ attempt: AttemptID) -> AttemptID? {
    guard attempt.rawValue & ~0xFFFF_FFFF == firstAttempt else { return nil }
    state.withLock { $0.attempts[attempt] = nil }
    return AttemptID(rawValue: attempt.rawValue - firstAttempt)
  }

  func linkUp(_ link: any Link, attempt: AttemptID?) {
    let mine = attempt.flatMap(own)
    guard let handler, attempt == nil || mine != nil else { return link.close() }
    radio.setWaitsForOldLinks(false)
    state.withLock { $0.links[link.id] = link }
    handler.linkUp(link, attempt: mine)
  }

  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) {
    // What was never asked for is passed on as it is: the session has to stand it.
    if let mine = own(attempt) {
      handler?.attemptFailed(mine, loss)
    } else if attempt.rawValue & 0xFFFF_FFFF == 0 {
      handler?.attemptFailed(attempt, loss)
    }
  }

  func adapterChanged(_ new: AdapterState) { handler?.adapterChanged(new) }

  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
    handler?.link(link, answered: request, with: answer)
  }

  func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp) {
    handler?.link(link, value: value, of: characteristic, receivedAt: receivedAt)
  }

  func linkTableChanged(_ link: LinkID) { handler?.linkTableChanged(link) }

  func linkWritable(_ link: LinkID) { handler?.linkWritable(link) }

  func link(_ link: LinkID, needs level: SecurityLevel) { handler?.link(link, needs: level) }

  func link(_ link: LinkID, secured level: SecurityLevel) { handler?.link(link, secured: level) }

  func link(_ link: LinkID, notSecured loss: LinkLoss) { handler?.link(link, notSecured: loss) }

  func link(_ link: LinkID, asks question: PairingQuestion, _ responder: PairingResponder) {
    handler?.link(link, asks: question, responder)
  }

  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    state.withLock { $0.links[link] = nil }
    handler?.link(link, closed: loss, inDoubt: inDoubt)
  }
}

/// The dial of a process that has ended.
private final class NoAttempt: Attempt {
  func cancel() {}
}
