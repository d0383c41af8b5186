internal import BluetoothWire
internal import CBlueZ
internal import Glibc
internal import Relink
internal import Synchronization

/// What a ``BlueZHost`` is made with.
struct BlueZOptions: Sendable {
  var bonds: (any BondStore)?
  var sources = BlueZSources.all
  var power = AdapterPower.asFound
  var bluetoothd = BluetoothdPresence.detected
  var switches = AdapterSwitches.system
  var processes = SystemProcesses.system
}

/// What the kernel knows of adapters and links, for one transport; used on the loop.
final class BlueZHost {
  /// How often adapters are looked at where the management channel tells nothing.
  private static let lookInterval = Duration.seconds(1)

  let loop: RadioLoop
  let registry = DeviceRegistry()
  let options: BlueZOptions
  private let selection: AdapterSelection
  private let queries: OwnedDescriptor
  private(set) var management: ManagementChannel?
  private var state: AdapterState
  private let mayEnd = Atomic<Bool>(false)
  private var closing: Set<DeviceAddress> = []
  private let parked: ParkedConnects
  private(set) lazy var security = HostSecurity(on: loop, store: options.bonds, securityWorld)
  private var dials: [ObjectIdentifier: L2CAPDial] = [:]
  private var power = AdapterPowerStateMachine()
  private var daemon = DaemonStateMachine()
  private var types = AddressTypeStateMachine()

  // What controllers tell; see BlueZHost+Controllers.swift.
  var views: [UInt16: ControllerView] = [:]
  var ledger = ControllerLedger()
  var linkCount: UInt64 = 0
  let sees = Atomic<Bool>(false)

  init(_ selection: AdapterSelection, _ options: BlueZOptions, on loop: RadioLoop) throws(RelinkError) {
    let opened = relink_hci_open()
    guard opened >= 0 else { throw BlueZHost.noBluetooth(-opened) }
    queries = OwnedDescriptor(adopting: opened)
    self.loop = loop
    self.options = options
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
    if options.sources.contains(.management) {
      management = ManagementChannel(
        on: loop, isOurs: { [registry] in registry.hasHandler(at: $0) },
        { [weak self] event in self?.received(event) })
    }
    openViews()
    state = adapterState
    perform(daemon.started())
    keepPower()
    if management == nil { lookAgainLater() }
    security.start()
  }

  /// Stops listening; to be called on the loop.
  func stop() {
    management?.close()
    management = nil
    for timer in TimerNumber.allCases { loop.cancelTimer(self.timer(timer)) }
    closeViews()
    parked.closeAll()
  }

  private enum TimerNumber: Int, CaseIterable { case look, power, types, daemon }

  private func timer(_ number: TimerNumber) -> TimerID { TimerID(owner: self, number: number.rawValue) }

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

  /// The adapters that are meant, with what forbids their use.
  var adapters: [AdapterRecord] {
    BlueZHost.adapters(of: queries.rawValue).filter(selection.includes).map { adapter in
      var adapter = adapter
      adapter.isAsleep = management?.isAsleep(adapter.index) ?? false
      if !adapter.isUp { adapter.isBlocked = options.switches.isBlocked(adapter.index) }
      return adapter
    }
  }

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
    openViews()
    let now = adapterState
    if now != state {
      let before = state
      state = now
      if now == .off { perform(daemon.powerLost(now: loop.now)) }
      if now != .on { leaveAdapter() } else if before != .on { perform(daemon.powerCame()) }
      tellAdapterState(now)
    }
    keepPower()
  }

  private func tellAdapterState(_ state: AdapterState) {
    for (_, handler) in registry.handlers { handler.adapterChanged(state) }
  }

  /// Tells the receiver of a device that there is an adapter again, where a loss has just said that there is none.
  func adapterMayBeBack(for device: DeviceID) {
    loop.post { [self] in
      let now = adapterState
      if now == .on { registry.handler(for: device)?.adapterChanged(now) }
    }
  }

  /// No adapter that is meant can be used, perhaps for a moment only: what is pending there would hang.
  private func leaveAdapter() {
    parked.closeAll()
    for dial in dials.values { dial.adapterWentAway() }
  }

  private func lookAgainLater() {
    let next = loop.now.advanced(by: BlueZHost.lookInterval)
    loop.setTimer(timer(.look), at: next) { [weak self] in
      self?.lookAtAdapters()
      self?.lookAgainLater()
    }
  }

  private func received(_ event: ManagementNews) {
    switch event {
    case .adaptersChanged: lookAtAdapters()
    case .powerLost(let index):
      let adapters = adapters
      // One of several adapters says nothing of a dial that the kernel gave to another.
      guard adapters.count == 1, adapters[0].index == index, state == .on else { return }
      state = .off
      perform(daemon.powerLost(now: loop.now))
      leaveAdapter()
      tellAdapterState(.off)
    case .mayEndLinks:
      mayEnd.store(true, ordering: .relaxed)
      security.handOver()
      keepPower()
    case .advertised(let device):
      guard let type = DeviceID.AddressType(device.type) else { return }
      perform(types.heard(device.address, type))
    case .discoveryChanged(let index, let isOn):
      guard index == discoverer else { return }
      perform(types.discoveryChanged(isOn: isOn, now: loop.now))
    case .discoveryRefused:
      perform(types.discoveryRefused(now: loop.now))
    case .security(let event, let index): security.received(event, index: index)
    case .closed:
      management = nil
      mayEnd.store(false, ordering: .relaxed)
      security.managementClosed()
      lookAgainLater()
    }
  }

  // MARK: Power

  /// Whether the policy asks for what this process may not do.
  private var lacksPower: Bool { options.power == .keepOn && !mayEndLinks }

  private func keepPower() {
    guard options.power == .keepOn, mayEndLinks, let management else { return }
    // bluetoothd would switch off again what is switched on while it ends.
    guard daemon.fate != .unanswered else { return keepPower(at: loop.now.advanced(by: .milliseconds(100))) }
    let actions = power.looked(adapters, now: loop.now)
    for adapter in actions.switchOn {
      // One that was plugged in has LE switched off.
      management.send(.setLowEnergy(true), to: adapter)
      management.send(.setPowered(true), to: adapter)
    }
    guard let next = actions.lookAt else { return loop.cancelTimer(timer(.power)) }
    keepPower(at: next)
  }

  private func keepPower(at instant: MonotonicInstant) {
    loop.setTimer(timer(.power), at: instant) { [weak self] in self?.keepPower() }
  }

  private func perform(_ actions: [DaemonStateMachine.Action]) {
    for action in actions {
      switch action {
      case .look:
        let processes = options.processes
        BackgroundWork.run(then: loop, { processes.findDaemon() }) { [weak self] sight in
          if let self, let sight { daemon.looked(sight) }
        }
      case .watch(let process, let instant):
        loop.setTimer(timer(.daemon), at: instant) { [weak self] in
          guard let self else { return }
          let effort = options.processes.effort(ofDaemon: process)
          perform(daemon.watched(effort, now: loop.now))
        }
      }
    }
  }

  /// The adapters were found in this state; the kernel tells of power that is lost only after the links are.
  func noticed(_ now: AdapterState) {
    if now == .off, state == .on { perform(daemon.powerLost(now: loop.now)) }
  }

  /// What is known of an adapter that is off.
  var daemonFate: DaemonStateMachine.Fate { daemon.fate }

  /// Why an adapter that is off stays off, in words; nil where somebody switches it on.
  var powerRemark: String? {
    if lacksPower { return "to switch the adapter on, this process needs CAP_NET_ADMIN" }
    guard options.power == .asFound, daemon.fate == .stopped else { return nil }
    return
      "bluetoothd switched the adapter off when it stopped; start it again, or have the transport keep it on"
  }

  // MARK: Dials

  func began(_ dial: L2CAPDial) { dials[ObjectIdentifier(dial)] = dial }

  func ended(_ dial: L2CAPDial) {
    dials[ObjectIdentifier(dial)] = nil
    types.ended(dial.address)
  }

  /// A dial waits for its device to be heard.
  func armed(_ dial: L2CAPDial) {
    if mayEndLinks { perform(types.armed(dial.address, now: loop.now)) }
  }

  /// The adapter that listens for devices under the other type of their address.
  private var discoverer: UInt16? { adapters.first(where: \.isUp)?.index }

  private func perform(_ actions: [AddressTypeStateMachine.Action]) {
    for action in actions {
      switch action {
      case .startDiscovery:
        if let discoverer { management?.send(.startDiscovery(types: Self.lowEnergyTypes), to: discoverer) }
      case .stopDiscovery:
        if let discoverer { management?.send(.stopDiscovery(types: Self.lowEnergyTypes), to: discoverer) }
      case .setTimer(let instant):
        loop.setTimer(timer(.types), at: instant) { [weak self] in
          guard let self else { return }
          perform(types.timerFired(now: loop.now))
        }
      case .found(let device):
        for dial in dials.values where dial.address == device { dial.heardUnderOtherType() }
      }
    }
  }

  /// Public and random, as Start Discovery numbers them.
  private static let lowEnergyTypes: UInt8 = 1 << 1 | 1 << 2

  // MARK: Links

  /// The LE links of the adapters that are meant.
  func links() -> [LinkRecord] {
    adapters.flatMap(links(of:))
  }

  private func links(of adapter: AdapterRecord) -> [LinkRecord] {
    withUnsafeTemporaryAllocation(of: relink_connection.self, capacity: Int(RELINK_CONNECTION_LIMIT)) {
      buffer in
      let count = Int(relink_hci_connections(queries.rawValue, adapter.index, buffer.baseAddress))
      return buffer.prefix(max(count, 0)).map { connection in
        LinkRecord(
          address: BluetoothAddress(wire: connection.address),
          place: ControllerLedger.Place(adapter: adapter.index, handle: connection.handle),
          state: connection.state)
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
    for adapter in adapters where adapter.isUp {
      management.send(.disconnect(address: name.address, type: name.managementType), to: adapter.index)
    }
  }

  // MARK: Security

  private var securityWorld: HostSecurity.World {
    HostSecurity.World(
      adapters: { [weak self] in self?.adapters ?? [] },
      adapterOfLink: { [weak self] in self?.adapter(ofLinkTo: $0) },
      mayManage: { [weak self] in self?.mayEndLinks ?? false },
      isDaemonRunning: { [presence = options.bluetoothd, processes = options.processes] in
        switch presence {
        case .detected: processes.findDaemon() != .absent
        case .running: true
        case .absent: false
        }
      },
      send: { [weak self] in self?.management?.send($0, to: $1) },
      seen: { [weak self] device, other, evidence in
        self?.registry.handler(for: device.device)?.deviceSeen(as: other, evidence)
      })
  }

  private func adapter(ofLinkTo device: DeviceAddress) -> AdapterRecord? {
    adapters.first { adapter in
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
      let id = DeviceID(address: device.address, type: device.type)
      L2CAPEnding(id, device, nil, host: self).end(registration, hasSent: false, hasReceived: false) { _ in }
      return true
    }
  }

  func hasParked(_ device: DeviceAddress) -> Bool { parked.contains(device) }

  /// Gives a parked connect to the caller, who has its descriptor handed over.
  func takeParked(_ device: DeviceAddress) -> ParkedConnect? { parked.take(device) }
}

extension DeviceID.AddressType {
  /// The type as mgmt numbers it; nil for one that is no LE address.
  init?(_ type: ManagementAddressType) {
    switch type {
    case .lePublic: self = .public
    case .leRandom: self = .random
    default: return nil
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
