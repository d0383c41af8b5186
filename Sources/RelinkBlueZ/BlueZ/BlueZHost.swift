internal import BluetoothWire
internal import CBlueZ
internal import Glibc
internal import Relink
internal import Synchronization

/// What the kernel knows of adapters and links, for one transport; used on the loop.
final class BlueZHost {
  /// How often adapters are looked at where the management channel tells nothing.
  private static let lookInterval = Duration.seconds(1)

  let loop: RadioLoop
  let registry = DeviceRegistry()
  private let selection: AdapterSelection
  private let queries: OwnedDescriptor
  private var management: ManagementChannel?
  private var state: AdapterState
  private let mayEnd = Atomic<Bool>(false)
  private var closing: Set<DeviceAddress> = []
  private let parked: ParkedConnects
  private(set) lazy var security = HostSecurity(on: loop, store: bonds, securityWorld)
  private let bonds: (any BondStore)?

  init(_ selection: AdapterSelection, bonds: (any BondStore)?, on loop: RadioLoop) throws(RelinkError) {
    let opened = relink_hci_open()
    guard opened >= 0 else { throw BlueZHost.noBluetooth(-opened) }
    queries = OwnedDescriptor(adopting: opened)
    self.loop = loop
    self.bonds = bonds
    parked = ParkedConnects(on: loop)
    let adapters = BlueZHost.adapters(of: opened)
    self.selection = try selection.resolved(among: adapters)
    state = self.selection.state(among: adapters)
    // Before another thread asks for it.
    _ = security
  }

  static func noBluetooth(_ error: Int32) -> RelinkError {
    let advice =
      switch error {
      case EAFNOSUPPORT, EPROTONOSUPPORT:
        "load the kernel's Bluetooth modules (modprobe bluetooth); a container needs the host's network namespace"
      case EPERM, EACCES:
        "allow Bluetooth sockets for this process (systemd: RestrictAddressFamilies, or a seccomp filter)"
      default:
        "\(SystemError(number: error).text)"
      }
    return RelinkError(
      .adapterUnavailable, "This system offers no Bluetooth sockets (error \(error)): \(advice).")
  }

  /// Begins to listen to the kernel; to be called on the loop.
  func start() {
    management = ManagementChannel(
      on: loop, isOurs: { [registry] in registry.hasHandler(at: $0) },
      { [weak self] event in self?.received(event) })
    if management == nil { lookAgainLater() }
    security.start()
  }

  /// Stops listening; to be called on the loop.
  func stop() {
    management?.close()
    management = nil
    loop.cancelTimer(TimerID(owner: self, number: 0))
    parked.closeAll()
  }

  // MARK: Adapters

  private static func adapters(of queries: Int32) -> [AdapterRecord] {
    withUnsafeTemporaryAllocation(of: relink_adapter.self, capacity: Int(RELINK_ADAPTER_LIMIT)) { buffer in
      let count = Int(relink_hci_adapters(queries, buffer.baseAddress))
      return buffer.prefix(max(count, 0)).map { adapter in
        AdapterRecord(
          index: adapter.index, address: BluetoothAddress(wire: adapter.address), isUp: adapter.is_up != 0)
      }
    }
  }

  private var adapters: [AdapterRecord] { BlueZHost.adapters(of: queries.rawValue) }

  /// Asks the kernel each time: the answer decides what a session waits for.
  var adapterState: AdapterState { selection.state(among: adapters) }

  /// What a socket is bound to: the adapter by its public address, or any.
  ///
  /// An adapter without a public address can only be reached as the one that the kernel chooses.
  var source: (bytes: [UInt8], type: UInt8) {
    if case .address(let address) = selection {
      (address.littleEndianBytes, ManagementAddressType.lePublic.rawValue)
    } else {
      ([UInt8](repeating: 0, count: Int(RELINK_ADDRESS_LENGTH)), ManagementAddressType.leRandom.rawValue)
    }
  }

  private func lookAtAdapters() {
    let now = adapterState
    guard now != state else { return }
    state = now
    for (_, handler) in registry.handlers { handler.adapterChanged(now) }
  }

  private func lookAgainLater() {
    let next = loop.now.advanced(by: BlueZHost.lookInterval)
    loop.setTimer(TimerID(owner: self, number: 0), at: next) { [weak self] in
      self?.lookAtAdapters()
      self?.lookAgainLater()
    }
  }

  private func received(_ event: ManagementNews) {
    switch event {
    case .adaptersChanged: lookAtAdapters()
    case .mayEndLinks:
      mayEnd.store(true, ordering: .relaxed)
      security.handOver()
    case .security(let event, let index): security.received(event, index: index)
    case .closed:
      management = nil
      security.managementClosed()
      lookAgainLater()
    }
  }

  // MARK: Links

  /// The LE links of the adapters that are meant.
  func links() -> [LinkRecord] {
    adapters.filter(selection.includes).flatMap(links(of:))
  }

  private func links(of adapter: AdapterRecord) -> [LinkRecord] {
    withUnsafeTemporaryAllocation(of: relink_connection.self, capacity: Int(RELINK_CONNECTION_LIMIT)) {
      buffer in
      let count = Int(relink_hci_connections(queries.rawValue, adapter.index, buffer.baseAddress))
      return buffer.prefix(max(count, 0)).map { connection in
        LinkRecord(address: BluetoothAddress(wire: connection.address), state: connection.state)
      }
    }
  }

  /// The link of the host to a device, whoever brought it up.
  func link(to device: DeviceAddress) -> LinkPresence {
    let names = [device.address, security.identity(of: device)?.address]
    let kernel = links().filter { names.contains($0.address) }.map(\.presence).max() ?? .none
    // One of our own that still has its socket would only tell the next dial that it is busy.
    return kernel == .alive && closing.contains(device) ? .ending : kernel
  }

  /// Notes that a link to a device is being ended here, or is gone.
  func noteClosing(_ device: DeviceAddress, _ isClosing: Bool) {
    if isClosing { closing.insert(device) } else { closing.remove(device) }
  }

  /// Whether links can be ended at once; false until the kernel has said so.
  ///
  /// May be read on any thread.
  var mayEndLinks: Bool { mayEnd.load(ordering: .relaxed) }

  /// Ends the link to a device where that is permitted; otherwise it ends by itself 2 s after its last socket.
  func endLink(to device: DeviceAddress) {
    guard let management else { return }
    let name = security.identity(of: device) ?? device
    for adapter in adapters where adapter.isUp && selection.includes(adapter) {
      management.send(.disconnect(address: name.address, type: name.managementType), to: adapter.index)
    }
  }

  // MARK: Security

  private var securityWorld: HostSecurity.World {
    HostSecurity.World(
      adapters: { [weak self] in self.map { host in host.adapters.filter(host.selection.includes) } ?? [] },
      adapterOfLink: { [weak self] in self?.adapter(ofLinkTo: $0) },
      mayManage: { [weak self] in self?.mayEndLinks ?? false },
      isDaemonRunning: { DaemonPresence.isRunning() },
      send: { [weak self] in self?.management?.send($0, to: $1) },
      seen: { [weak self] device, other, evidence in
        self?.registry.handler(for: device.device)?.deviceSeen(as: other, evidence)
      })
  }

  private func adapter(ofLinkTo device: DeviceAddress) -> AdapterRecord? {
    adapters.filter(selection.includes).first { adapter in
      links(of: adapter).contains { $0.address == device.address && $0.presence != .none }
    }
  }

  /// What is known of a bond with a device, of the adapter that is meant.
  func bond(with device: DeviceID) -> BondKnowledge {
    if case .address(let address) = selection { return security.knowledge(of: device, adapter: address) }
    return security.knowledge(of: device, adapter: nil)
  }

  // MARK: Connects that nobody waits for

  func park(_ registration: DescriptorRegistration, since: MonotonicInstant, for device: DeviceAddress) {
    parked.park(registration, since: since, for: device) { [weak self] registration in
      guard let self else { return false }
      L2CAPEnding(device, host: self).end(registration, hasSent: false, hasReceived: false) { _ in }
      return true
    }
  }

  func hasParked(_ device: DeviceAddress) -> Bool { parked.contains(device) }

  /// Gives a parked connect to the caller, who has its descriptor handed over.
  func takeParked(_ device: DeviceAddress) -> ParkedConnect? { parked.take(device) }

  // MARK: What else is known of a loss

  /// The same loss with the management interface's reason behind it, where that told one.
  func withManagementReason(_ loss: LinkLoss, for device: DeviceAddress) -> LinkLoss {
    // The kernel queued it before it woke the socket, but both may have become readable in one round.
    management?.readPending()
    guard let reason = management?.takeReason(for: device) else { return loss }
    let told = loss.adding([.management(reason.rawValue)])
    guard told.reason == .unknown || told.evidence.first == .endOfFile else { return told }
    return LinkLoss(BlueZHost.reading(of: reason) ?? told.reason, evidence: told.evidence)
  }

  static func reading(of reason: ManagementDisconnectReason) -> DisconnectReason? {
    switch reason {
    case .connectionTimeout: .supervisionTimeout
    case .localHost, .localHostSuspend: .localHostTerminated
    case .remote: .remoteUserTerminated
    case .authenticationFailure: .authenticationFailure
    default: nil
    }
  }

  /// The same loss, or that of the adapter where there is no adapter to have a link with.
  func withAdapterState(_ loss: LinkLoss) -> LinkLoss {
    loss.with(adapterState)
  }
}

extension LinkLoss {
  /// A loss that was seen while the adapter was in this state: without an adapter every link and dial ends.
  func with(_ adapter: AdapterState) -> LinkLoss {
    guard reason != .requested else { return self }
    switch adapter {
    case .on:
      // What the kernel says where no adapter has a way; the adapter came back since.
      return self
    case .off:
      return LinkLoss(.adapterOff, evidence: evidence)
    case .blocked:
      return LinkLoss(.adapterBlocked, evidence: evidence)
    case .suspended:
      return LinkLoss(.suspended, evidence: evidence)
    case .missing:
      return LinkLoss(.adapterMissing, evidence: evidence)
    case .notPermitted:
      return LinkLoss(.notPermitted, evidence: evidence)
    }
  }
}

extension BluetoothAddress {
  /// The address in the order of the wire.
  init(wire: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8)) {
    let octets = [wire.5, wire.4, wire.3, wire.2, wire.1, wire.0]
    self.init(octets.reduce(0) { $0 << 8 | UInt64($1) })
  }
}

// Everything that is not `let` is touched on the loop alone.
extension BlueZHost: @unchecked Sendable {}
