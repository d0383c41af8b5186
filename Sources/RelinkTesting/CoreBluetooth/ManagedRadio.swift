public import Relink

/// A double of a platform that owns its links, as CoreBluetooth and BlueZ over D-Bus do.
///
/// A session over it meets everything that such platforms do in another way than an ATT socket: there are no PDUs and
/// no handles; the platform agrees on the ATT_MTU by itself; several requests may be outstanding; writes without
/// response have a flow control of their own; links may come up that nobody dialled; a link is lost with an error that
/// has no HCI code; its end is confirmed some time after it was asked for; a dial has no end of its own. Requests are
/// carried out by a ``VirtualPeripheral``, so that its counters and its reactions are the same as over a
/// ``VirtualRadio``.
///
/// Everything runs on the executor; members that change the world are to be called there, and what follows from them
/// is posted.
public final class ManagedRadio: Transport {
  struct State {
    var devices: [DeviceID: Device] = [:]
    var handlers: [DeviceID: WeakHandler] = [:]
    var adapter: AdapterState = .on
    var nextLink = 1
    var nextTimer = 1
    var dials = 0
  }

  /// What the platform knows of one device.
  struct Device {
    var peripheral: VirtualPeripheral?
    var isReachable = true
    var dial: Dial?
    /// The link that is up or on its way down.
    var link: ManagedLink?
    /// How the next dials that find the device fail.
    var failures: [LinkLoss] = []
    /// The services as last learnt.
    var table: [DiscoveredService]?
    /// What the platform arms again by itself.
    var armed: Set<Characteristic> = []
    /// What links are worth with the keys of the platform's bond; nil where it has none.
    var bond: SecurityLevel?
    /// Whether the device has the key to it.
    var isBondKept = false
    var pairing = PairingBehavior.justWorks
  }

  struct Dial {
    var attempt: AttemptID
    var limitTimer: Int
    /// The timer of a connection that is being made; nil while the device is not there.
    var connectTimer: Int?
  }

  struct WeakHandler {
    weak var handler: (any LinkHandler)?
  }

  /// Where everything runs.
  public let executor: any SessionExecutor
  /// How the platform behaves.
  public let configuration: ManagedConfiguration
  private let state = Locked(State())

  /// Makes a platform without devices, with its adapter on.
  ///
  /// - Parameters:
  ///   - executor: Where everything runs.
  ///   - configuration: How the platform behaves.
  public init(on executor: any SessionExecutor, configuration: ManagedConfiguration = ManagedConfiguration())
  {
    self.executor = executor
    self.configuration = configuration
  }

  // MARK: - Transport

  /// It learns no HCI reason, and cannot say that a link is gone before the platform confirms it.
  public var capabilities: TransportCapabilities {
    TransportCapabilities(knowsExactReason: false, endsLinks: configuration.closingDelay <= .zero)
  }

  /// The state of the one adapter.
  ///
  /// - Parameter device: Any device.
  /// - Returns: The state.
  public func adapterState(for device: DeviceID) -> AdapterState { state.withLock { $0.adapter } }

  /// The devices with a link that is up.
  ///
  /// - Returns: The devices, in the order of their names.
  public func existingLinks() -> [DeviceID] {
    let devices = state.withLock { state in
      state.devices.compactMap { $0.value.link?.isUp == true ? $0.key : nil }
    }
    return devices.sorted { $0.description < $1.description }
  }

  /// Makes `handler` the receiver of everything about `device`; a link that is up already is delivered to it.
  ///
  /// - Parameters:
  ///   - handler: The receiver, held weakly.
  ///   - device: The device.
  /// - Throws: `sessionExists` while another handler is registered for the device.
  public func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    let (isTaken, link) = state.withLock { state -> (Bool, ManagedLink?) in
      let present = state.handlers[device]?.handler
      guard present == nil else { return (present !== handler, nil) }
      state.handlers[device] = WeakHandler(handler: handler)
      return (false, state.devices[device]?.link)
    }
    guard !isTaken else { throw RelinkError(.sessionExists, "There is a session for \(device) already.") }
    guard let link, link.isUp else { return }
    deliver(to: device) { $0.linkUp(link, attempt: nil) }
  }

  /// Takes the registration back; a link that is up stays up.
  ///
  /// - Parameter device: The device.
  public func unregister(_ device: DeviceID) {
    state.withLock { $0.handlers[device] = nil }
  }

  /// Begins to bring a link up, as soon as the device is reachable and no earlier link to it is left.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - attempt: The name of the dial.
  ///   - options: How long the device may be absent; without a limit the dial waits for ever, as the platforms do.
  /// - Returns: The dial.
  public func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    let handle = ManagedAttempt(radio: self, device: device, attempt: attempt)
    let failure = state.withLock { state -> LinkLoss? in
      state.dials += 1
      guard state.adapter == .on else { return LinkLoss(state.adapter.reason, evidence: [.notPoweredOn]) }
      guard state.devices[device]?.dial == nil else {
        return LinkLoss(.busy, evidence: [.observation("the platform is dialling this device already")])
      }
      state.nextTimer += 1
      let dial = Dial(attempt: attempt, limitTimer: state.nextTimer, connectTimer: nil)
      state.devices[device, default: Device()].dial = dial
      return nil
    }
    if let failure {
      deliver(to: device) { $0.attemptFailed(attempt, failure) }
      return handle
    }
    if let limit = options.limit, let dial = state.withLock({ $0.devices[device]?.dial }) {
      setTimer(dial.limitTimer, after: limit) { radio in
        radio.endDial(
          device, attempt, LinkLoss(.notFound, evidence: [.observation("the device was not found")]))
      }
    }
    connectIfPossible(device)
    return handle
  }

  // MARK: - Dialling

  /// Begins to connect if a dial waits, the device is there and its earlier link is gone.
  func connectIfPossible(_ device: DeviceID) {
    let ready = state.withLock { state -> (AttemptID, Int)? in
      guard state.adapter == .on, let known = state.devices[device], let dial = known.dial,
        dial.connectTimer == nil,
        known.link == nil, known.isReachable, known.peripheral != nil
      else { return nil }
      state.nextTimer += 1
      state.devices[device]?.dial?.connectTimer = state.nextTimer
      return (dial.attempt, state.nextTimer)
    }
    guard let (attempt, timer) = ready else { return }
    setTimer(timer, after: configuration.connectDelay) { $0.connected(device, attempt) }
  }

  /// The time that a connection takes is over.
  private func connected(_ device: DeviceID, _ attempt: AttemptID) {
    let (isDue, failure) = state.withLock { state -> (Bool, LinkLoss?) in
      guard let known = state.devices[device], known.dial?.attempt == attempt else { return (false, nil) }
      state.devices[device]?.dial?.connectTimer = nil
      guard known.link == nil, known.isReachable else { return (false, nil) }
      guard let failure = known.failures.first else { return (true, nil) }
      state.devices[device]?.failures.removeFirst()
      return (true, failure)
    }
    guard isDue else { return }
    if let failure { endDial(device, attempt, failure) } else { bringUp(device) }
  }

  /// Brings a link up, for the dial that waits or for none.
  func bringUp(_ device: DeviceID) {
    let made = state.withLock { state -> (ManagedLink, Dial?)? in
      guard let known = state.devices[device], let peripheral = known.peripheral, known.link == nil else {
        return nil
      }
      let link = ManagedLink(
        id: LinkID(rawValue: UInt64(state.nextLink)), number: state.nextLink, device: device,
        peripheral: peripheral, radio: self)
      state.nextLink += 1
      state.devices[device]?.link = link
      state.devices[device]?.dial = nil
      return (link, known.dial)
    }
    guard let (link, dial) = made else { return }
    if let dial { cancelTimers(of: dial) }
    let attempt = dial?.attempt
    deliver(to: device) { $0.linkUp(link, attempt: attempt) }
    link.start()
  }

  /// Ends a dial without a link; a dial that is over already stays as it is.
  func endDial(_ device: DeviceID, _ attempt: AttemptID, _ loss: LinkLoss) {
    let ended = state.withLock { state -> Dial? in
      guard let dial = state.devices[device]?.dial, dial.attempt == attempt else { return nil }
      state.devices[device]?.dial = nil
      return dial
    }
    guard let ended else { return }
    cancelTimers(of: ended)
    deliver(to: device) { $0.attemptFailed(attempt, loss) }
  }

  /// A link is gone: the place is free for the next.
  func linkGone(_ link: ManagedLink) {
    state.withLock { state in
      guard state.devices[link.device]?.link === link else { return }
      state.devices[link.device]?.link = nil
    }
    connectIfPossible(link.device)
  }

  // MARK: - Support

  /// Posts a delivery to the handler that is registered now, if it still is when its turn comes.
  func deliver(to device: DeviceID, _ body: @escaping @Sendable (any LinkHandler) -> Void) {
    guard let handler = state.withLock({ $0.handlers[device]?.handler }) else { return }
    executor.post { [weak self, weak handler] in
      guard let self, let handler else { return }
      guard self.state.withLock({ $0.handlers[device]?.handler }) === handler else { return }
      body(handler)
    }
  }

  func withState<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
    state.withLock { body(&$0) }
  }

  private func setTimer(
    _ number: Int, after span: Duration, _ fire: @escaping @Sendable (ManagedRadio) -> Void
  ) {
    let instant = executor.now.advanced(by: span)
    executor.setTimer(TimerID(owner: self, number: number), at: instant) { [weak self] in
      if let self { fire(self) }
    }
  }

  private func cancelTimers(of dial: Dial) {
    executor.cancelTimer(TimerID(owner: self, number: dial.limitTimer))
    if let timer = dial.connectTimer { executor.cancelTimer(TimerID(owner: self, number: timer)) }
  }
}

/// One dial of a managed radio.
private final class ManagedAttempt: Attempt {
  private weak let radio: ManagedRadio?
  private let device: DeviceID
  private let attempt: AttemptID

  init(radio: ManagedRadio, device: DeviceID, attempt: AttemptID) {
    self.radio = radio
    self.device = device
    self.attempt = attempt
  }

  func cancel() { radio?.endDial(device, attempt, LinkLoss(.requested)) }
}

extension AdapterState {
  /// Why a link or a dial ends in this state.
  var reason: DisconnectReason {
    switch self {
    case .on: .unknown
    case .off: .adapterOff
    case .blocked: .adapterBlocked
    case .suspended: .suspended
    case .missing: .adapterMissing
    case .notPermitted: .notPermitted
    }
  }
}

extension Evidence {
  static let notPoweredOn = Evidence.observation("the platform's Bluetooth is not powered on")
}
