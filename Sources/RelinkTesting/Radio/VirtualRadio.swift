internal import BluetoothWire
public import Relink

/// A radio of virtual devices: an adapter, an air with faults in it, and peers that somebody wrote.
///
/// It models what costs reconnecting clients dearly on Linux: an ACL link outlives the channel that was closed here by
/// two seconds, and a dial in that time gets the old link, with everything that is on its way on it; links die without
/// a word; dials hang; connections come up that the device never heard of.
///
/// Every delivery is a job of its own on the executor, also where it takes no time. With a ``ManualExecutor`` the same
/// program gives the same ``trace``, byte for byte. Except where a member says otherwise it is used on the executor.
public final class VirtualRadio: BondingTransport {
  typealias LinkMaker = @Sendable (LinkID, VirtualChannel, DeviceID, any LinkHandler) -> any Link

  /// Where everything of this radio runs.
  public let executor: any SessionExecutor

  /// What the radio is like.
  public let configuration: Configuration

  let state: Locked<RadioState>
  private let makeLink: LinkMaker

  /// Makes a radio with its adapter on and nobody in the air; its links speak ATT.
  ///
  /// - Parameters:
  ///   - executor: Where it runs, and its only source of time.
  ///   - configuration: What it is like.
  public convenience init(on executor: any SessionExecutor, configuration: Configuration = Configuration()) {
    let memories = Locked<[DeviceID: AttributeTableMemory]>([:])
    self.init(on: executor, configuration: configuration) { id, channel, device, handler in
      let memory = memories.withLock { memories in
        let memory = memories[device] ?? AttributeTableMemory()
        memories[device] = memory
        return memory
      }
      let link = ATTLink(id: id, over: channel, on: executor, for: handler, tables: memory)
      link.start()
      return link
    }
  }

  init(on executor: any SessionExecutor, configuration: Configuration, makeLink: @escaping LinkMaker) {
    self.executor = executor
    self.configuration = configuration
    self.makeLink = makeLink
    state = Locked(RadioState(configuration: configuration))
  }

  // MARK: - Transport

  /// What the configuration says.
  public var capabilities: TransportCapabilities {
    TransportCapabilities(
      knowsExactReason: configuration.knowsExactReason, endsLinks: configuration.endsLinks)
  }

  /// The state of the adapter; there is one for all devices.
  ///
  /// May be read on any thread.
  ///
  /// - Parameter device: Any device.
  /// - Returns: The state.
  public func adapterState(for device: DeviceID) -> AdapterState { state.withLock { $0.adapter } }

  /// The devices with an ACL link, in the order in which the links came up: links in use, links that linger behind a
  /// closed channel, links that are dead and do not show it.
  ///
  /// - Returns: The devices.
  public func existingLinks() -> [DeviceID] {
    state.withLock { state in state.links.sorted { $0.key < $1.key }.map(\.value.device) }
  }

  /// Makes `handler` the receiver of everything about `device`; held weakly.
  ///
  /// May be called on any thread.
  ///
  /// - Parameters:
  ///   - handler: The receiver.
  ///   - device: The device.
  /// - Throws: `sessionExists` while another handler is registered for the device.
  public func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    let isTaken = state.withLock { state -> Bool in
      if let other = state.devices[device]?.handler.handler, other !== handler { return true }
      state.devices[device, default: RadioState.Device()].handler.handler = handler
      return false
    }
    if isTaken {
      throw RelinkError(.sessionExists, "There is a session for \(device) already; end it, or use it.")
    }
  }

  /// Takes the registration back.
  ///
  /// May be called on any thread.
  ///
  /// - Parameter device: The device.
  public func unregister(_ device: DeviceID) {
    state.withLock { $0.devices[device]?.handler.handler = nil }
  }

  /// Begins to bring a link to the device up.
  ///
  /// While an ACL link to the device is there that nobody here uses, the dial gets that one at once, as on Linux.
  ///
  /// - Parameters:
  ///   - device: The device; one that the radio does not know is absent.
  ///   - attempt: The name of the dial.
  ///   - options: How long the device may be absent.
  /// - Returns: The dial.
  public func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    let now = executor.now
    let (dial, effects) = state.withLock {
      $0.dial(device, attempt, limit: options.limit, now: now, radio: self)
    }
    perform(effects)
    return VirtualAttempt(device: device, dial: dial, radio: self)
  }

  fileprivate func cancel(_ device: DeviceID, dial: Int?) {
    act { $0.cancelDial(device, dial: dial, now: $1) }
  }

  // MARK: - Channels and peers

  func send(_ pdu: [UInt8], on channel: VirtualChannel) -> PDUSendResult {
    let now = executor.now
    let (result, effects) = state.withLock { $0.send(pdu, on: channel, now: now) }
    perform(effects)
    return result
  }

  func security(of channel: VirtualChannel) -> SecurityLevel {
    state.withLock { $0.security(of: channel.linkNumber) }
  }

  func close(_ channel: VirtualChannel) {
    act { $0.closed(channel, now: $1) }
  }

  func makePeerLink(_ number: Int) -> PeerLink {
    PeerLink(
      number: number, client: configuration.clientName, mtuLimit: configuration.maximumPDULength,
      on: executor,
      send: { [weak self] pdu in self?.act { $0.sendFromPeer(pdu, on: number, now: $1) } },
      terminate: { [weak self] reason in self?.act { $0.terminated(number, reason, now: $1) } })
  }

  // MARK: - The shell

  /// Lets the machine decide, leaves it, and does what it says.
  func act(_ decide: (inout RadioState, MonotonicInstant) -> [RadioState.Effect]) {
    let now = executor.now
    perform(state.withLock { decide(&$0, now) })
  }

  private func handle(_ event: RadioState.Event) {
    switch event {
    case .peerOpened(let peer, let link): peer.linkOpened(link)
    case .peerClosed(let peer, let link, let reason): peer.linkClosed(link, reason: reason)
    case .peerSecurity(let peer, let news): news.tell(peer)
    case .arrival, .word, .dialDue, .dialFails, .linkDies, .adapterReturns, .deviceReturns, .unblocked,
      .securing:
      act { $0.handle(event, now: $1, radio: self) }
    }
  }

  func perform(_ effects: [RadioState.Effect]) {
    for effect in effects {
      switch effect {
      case .post(let event): executor.post { [weak self] in self?.handle(event) }
      case .timer(let number, let due, let event):
        executor.setTimer(TimerID(owner: self, number: number), at: due) { [weak self] in self?.handle(event)
        }
      case .cancelTimer(let number): executor.cancelTimer(TimerID(owner: self, number: number))
      case .now(let event): handle(event)
      case .tell(let word): tell(word)
      case .tellPeer(let peer, let link, let pdu): peer.received(pdu, on: link)
      }
    }
  }

  private func tell(_ word: RadioState.Word) {
    switch word {
    case .linkUp(let device, let channel, let attempt):
      guard let handler = handler(of: device) else { return channel.close() }
      let id = LinkID(rawValue: UInt64(channel.number))
      handler.linkUp(makeLink(id, channel, device, handler), attempt: attempt)
    case .attemptFailed(let device, let attempt, let loss): handler(of: device)?.attemptFailed(attempt, loss)
    case .adapterChanged(let device, let adapter): handler(of: device)?.adapterChanged(adapter)
    case .received(_, let channel, let pdu): channel.deliver(.received(pdu))
    case .writable(_, let channel): channel.deliver(.writable)
    case .closed(_, let channel, let loss): channel.deliver(.closed(loss))
    case .secured(_, let channel, let level): channel.deliver(.secured(level))
    case .notSecured(_, let channel, let loss): channel.deliver(.notSecured(loss))
    case .asks(_, let channel, let question, let number):
      channel.deliver(.asks(question, responder(on: channel.linkNumber, number)))
    case .seen(let device, let other, let evidence): handler(of: device)?.deviceSeen(as: other, evidence)
    }
  }

  func handler(of device: DeviceID) -> (any LinkHandler)? {
    state.withLock { $0.devices[device]?.handler.handler }
  }
}

/// A dial on a virtual radio.
private final class VirtualAttempt: Attempt {
  private let device: DeviceID
  private let dial: Int?
  private let radio: VirtualRadio

  init(device: DeviceID, dial: Int?, radio: VirtualRadio) {
    self.device = device
    self.dial = dial
    self.radio = radio
  }

  func cancel() { radio.cancel(device, dial: dial) }
}
