internal import CBlueZ
internal import Glibc
internal import Relink

/// One dial of a ``BlueZTransport``: an armed connect that the kernel completes when it hears the device.
///
/// A dial that is given up leaves its connect to ``ParkedConnect``.
final class L2CAPDial: Attempt, DescriptorHandler {
  private let device: DeviceID
  let address: DeviceAddress
  private let attempt: AttemptID
  private let host: BlueZHost
  private var machine: L2CAPDialStateMachine
  private var registration: DescriptorRegistration?
  private var armedAt = MonotonicInstant.zero
  /// Whether it has failed, and the sources are still being asked why.
  private var isBeingExplained = false

  init(
    _ device: DeviceID, _ address: DeviceAddress, _ attempt: AttemptID, _ options: DialOptions,
    host: BlueZHost
  ) {
    self.device = device
    self.address = address
    self.attempt = attempt
    self.host = host
    machine = L2CAPDialStateMachine(deadline: options.limit.map { host.loop.now.advanced(by: $0) })
  }

  /// Called on the loop, and never inside a call of the session.
  func start() {
    host.began(self)
    perform(machine.started())
  }

  func cancel() {
    host.loop.checkIsolated()
    if isBeingExplained {
      isBeingExplained = false
      host.loop.post { self.deliverFailure(LinkLoss(.requested)) }
    }
    perform(machine.cancelled(), isPosted: true)
  }

  /// No adapter that is meant can be used; called on the loop, and never inside a call of the session.
  func adapterWentAway() {
    perform(machine.adapterWentAway())
  }

  /// The device was heard under the other type of its address; called as above.
  func heardUnderOtherType() {
    perform(machine.heardUnderOtherType(address.other))
  }

  func descriptorReady(_ events: DescriptorEvents) {
    guard let registration else { return }
    var error = relink_socket_error(registration.descriptor)
    // A hang-up without an error is no connection either.
    if error == 0, !events.contains(.writable) { error = ENOTCONN }
    perform(machine.becameWritable(error: error, now: host.loop.now))
  }

  /// Delivers at once, or in a later job where the session itself made the call.
  private func perform(_ actions: [L2CAPDialStateMachine.Action], isPosted: Bool = false) {
    for action in actions {
      switch action {
      case .look:
        // Nobody would receive the link of a session that was dropped without a word.
        guard host.registry.handler(for: device) != nil else { return perform(machine.cancelled()) }
        // What a parked connect brings up is new, and nobody has used it.
        let link = host.hasParked(address) ? LinkPresence.none : host.link(to: address)
        perform(machine.looked(link, now: host.loop.now))
      case .endLink:
        host.endLink(to: address)
      case .connect:
        let error = connect()
        let link = error == EBUSY ? host.link(to: address) : .none
        perform(machine.connectReturned(error, link: link, armedAt: armedAt, now: host.loop.now))
        if error == EINPROGRESS { host.armed(self) }
      case .closeSocket:
        if let registration { host.loop.close(registration) }
        registration = nil
      case .parkSocket:
        if let registration { host.park(registration, since: armedAt, for: address) }
        registration = nil
      case .setTimer(let instant):
        host.loop.setTimer(TimerID(owner: self, number: 0), at: instant) {
          self.perform(self.machine.timerFired(now: self.host.loop.now))
        }
      case .cancelTimer:
        host.loop.cancelTimer(TimerID(owner: self, number: 0))
      case .up:
        host.ended(self)
        deliverLink()
      case .failed(let loss):
        host.ended(self)
        if isPosted {
          host.loop.post { self.deliverFailure(loss) }
        } else {
          explain(loss)
        }
      }
    }
  }

  /// The error number of the connect, or of what had to come before it; 0 when it is done.
  private func connect() -> Int32 {
    if let parked = host.takeParked(address) {
      host.loop.hand(parked.registration, to: self)
      registration = parked.registration
      armedAt = parked.since
      return EINPROGRESS
    }
    armedAt = host.loop.now
    let source = host.source
    let opened = source.bytes.withUnsafeBufferPointer { relink_l2cap_open($0.baseAddress, source.type) }
    guard opened >= 0 else { return -opened }
    let descriptor = OwnedDescriptor(adopting: opened)
    _ = relink_socket_set_send_timeout(
      opened, L2CAPDialStateMachine.kernelLimit.clampedNanoseconds / 1_000_000)
    let result = address.bytes.withUnsafeBufferPointer {
      relink_l2cap_connect(opened, $0.baseAddress, address.kernelType)
    }
    guard result == 0 || result == -EINPROGRESS else { return -result }
    switch host.loop.register(descriptor, for: .writable, self) {
    case .success(let registration): self.registration = registration
    case .failure(let error): return error.number
    }
    return -result
  }

  private func deliverLink() {
    guard let registration, let descriptor = host.loop.release(registration) else { return }
    self.registration = nil
    let mtu = Int(relink_l2cap_mtu(descriptor.rawValue))
    let channel = SeqPacketChannel(
      descriptor, on: host.loop, maximumPDULength: mtu < 23 ? 517 : min(mtu, 517),
      ending: L2CAPEnding(device, address, host.linkCameUp(to: address), host: host),
      securing: L2CAPSecuring(address, host.security))
    guard let (link, handler) = host.registry.link(to: device, over: channel, on: host.loop) else { return }
    link.start()
    handler.linkUp(link, attempt: attempt)
  }

  private func explain(_ loss: LinkLoss) {
    isBeingExplained = true
    host.explain(loss, of: nil, to: device, address, hasReceived: false) { [self] loss in
      guard isBeingExplained else { return }
      isBeingExplained = false
      deliverFailure(loss)
    }
  }

  private func deliverFailure(_ loss: LinkLoss) {
    host.registry.handler(for: device)?.attemptFailed(attempt, loss)
  }
}

// Everything that is not `let` is touched on the loop alone.
extension L2CAPDial: @unchecked Sendable {}
