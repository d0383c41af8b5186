internal import BluetoothWire
internal import Relink

/// The bonds of a host, and the links of one transport that are being secured; used on the loop.
final class HostSecurity {
  let loop: RadioLoop
  private let store: (any BondStore)?
  private let world: World
  private var isStarted = false
  private let book: Locked<BondBook>
  private var links: [ObjectIdentifier: Weak] = [:]
  /// What wants to know of bonds once the store has been read.
  private var waiting: [@Sendable () -> Void] = []
  /// What bluetoothd was last seen to keep.
  private var daemonBonds: [DeviceID: BondReading] = [:]
  private var removals: [BondRemoval] = []
  /// Whether bluetoothd ran when it was last looked for; nil before that.
  private var isDaemonRunning: Bool?

  /// What the rest of the transport knows and does.
  struct World: Sendable {
    /// The adapters that are meant, whether they are on or not.
    var adapters: @Sendable () -> [AdapterRecord]
    /// The adapter that has a link to the device.
    var adapterOfLink: @Sendable (DeviceAddress) -> AdapterRecord?
    /// Whether the management interface obeys this process.
    var mayManage: @Sendable () -> Bool
    /// Whether bluetoothd runs; it waits for the system, and is called on threads of its own.
    var isDaemonRunning: @Sendable () -> Bool
    var send: @Sendable (ManagementCommand, _ index: UInt16) -> Void
    /// Tells a session that its device has another name.
    var seen: @Sendable (DeviceAddress, _ other: DeviceID, [Evidence]) -> Void
    /// Where bluetoothd keeps its bonds.
    var daemonFolder = DaemonBonds.folder
  }

  private struct Weak {
    weak var link: L2CAPSecuring?
  }

  /// No more is remembered of bluetoothd's bonds.
  private static let mostDaemonBonds = 256

  init(on loop: RadioLoop, store: (any BondStore)?, _ world: World) {
    self.loop = loop
    self.store = store
    self.world = world
    book = Locked(BondBook(isKept: store != nil))
  }

  // MARK: Links

  func add(_ link: L2CAPSecuring) { links[ObjectIdentifier(link)] = Weak(link: link) }

  func remove(_ link: L2CAPSecuring) { links[ObjectIdentifier(link)] = nil }

  private var current: [L2CAPSecuring] { links.values.compactMap(\.link) }

  /// What the kernel calls a device that told its identity on the link that it has now.
  func identity(of device: DeviceAddress) -> DeviceAddress? {
    current.first { $0.device == device }?.identity.flatMap { DeviceAddress($0) }
  }

  func adapter(ofLinkTo device: DeviceAddress) -> AdapterRecord? { world.adapterOfLink(device) }

  func send(_ command: ManagementCommand, to index: UInt16) { world.send(command, index) }

  func seen(_ device: DeviceAddress, as other: ManagementAddress) {
    guard let other = DeviceAddress(other)?.device else { return }
    world.seen(device, other, [.observation("the device told its identity while it was paired")])
  }

  /// Looks whether bluetoothd runs.
  private func lookForDaemon(_ done: @escaping @Sendable (HostSecurity, Bool) -> Void) {
    BackgroundWork.run(then: loop, world.isDaemonRunning) { [weak self] isRunning in
      self?.isDaemonRunning = isRunning
      if let self { done(self, isRunning) }
    }
  }

  // MARK: Bonds

  /// Looks for bluetoothd and reads the store.
  func start() {
    guard !isStarted else { return }
    isStarted = true
    lookForDaemon { _, _ in }
    guard let store else { return }
    store.load { [weak self, loop] result in
      loop.post { [weak self] in self?.loaded(result) }
    }
  }

  private func loaded(_ result: Result<KeptBonds, RelinkError>) {
    book.withLock { $0.loaded(try? result.get()) }
    handOver()
    let waited = waiting
    waiting = []
    for tell in waited { tell() }
  }

  /// Gives the kernel what the store has, where there is no bluetoothd that does so.
  ///
  /// Called when one of the things that it takes has come: the bonds, the permission, an adapter.
  func handOver() {
    guard store != nil, book.withLock({ $0.contents }) == .loaded, world.mayManage() else { return }
    lookForDaemon { security, isDaemonRunning in
      guard !isDaemonRunning else { return }
      for adapter in security.world.adapters() { security.loadKeys(adapter, without: nil) }
    }
  }

  /// Replaces the keys that the kernel holds for an adapter.
  func loadKeys(_ adapter: AdapterRecord?, without device: DeviceID?) {
    guard let adapter else { return }
    let keys = book.withLock { $0.keys(of: adapter.address, without: device) }
    world.send(.loadIdentityResolvingKeys(keys.identity), adapter.index)
    world.send(.loadLongTermKeys(keys.longTerm), adapter.index)
  }

  /// Gathers what decides how a link may be secured, and says it in a later job.
  ///
  /// The level of the link is left to the caller.
  func learn(
    of device: DeviceID, adapter: AdapterRecord?,
    _ done: @escaping @Sendable (SecuringStateMachine.Facts) -> Void
  ) {
    let mayManage = world.mayManage() && adapter != nil
    lookForDaemon { security, isDaemonRunning in
      let tell: @Sendable (BondReading) -> Void = { bond in
        done(
          SecuringStateMachine.Facts(
            level: .none, bond: bond, isDaemonRunning: isDaemonRunning, mayManage: mayManage))
      }
      if isDaemonRunning {
        security.readDaemonBond(with: device, tell)
      } else {
        security.whenLoaded { tell($0.reading(of: device, adapter: adapter)) }
      }
    }
  }

  private func whenLoaded(_ tell: @escaping @Sendable (HostSecurity) -> Void) {
    guard book.withLock({ $0.contents }) == .loading else { return tell(self) }
    waiting.append { [weak self] in
      if let self { tell(self) }
    }
  }

  private func reading(of device: DeviceID, adapter: AdapterRecord?) -> BondReading {
    book.withLock { book in
      if let bond = book.bond(with: device, of: adapter?.address) {
        return .kept(bond.level, isElsewhere: false)
      }
      return book.contents == .loaded ? .missing : .unreadable
    }
  }

  private func readDaemonBond(with device: DeviceID, _ done: @escaping @Sendable (BondReading) -> Void) {
    guard let address = device.address else { return done(.missing) }
    let (folder, adapters) = (world.daemonFolder, world.adapters().map(\.address))
    BackgroundWork.run(then: loop) {
      let readings = adapters.map { DaemonBonds.read(address, of: $0, in: folder) }
      return readings.first { $0 != .missing && $0 != .unreadable }
        ?? (readings.contains(.unreadable) ? .unreadable : .missing)
    } _: { [weak self] reading in
      self?.remember(reading, of: device)
      done(reading)
    }
  }

  private func remember(_ reading: BondReading, of device: DeviceID) {
    if daemonBonds.count >= Self.mostDaemonBonds { daemonBonds = [:] }
    daemonBonds[device] = reading
  }

  /// What is known of a bond, at once.
  func knowledge(of device: DeviceID, adapter: BluetoothAddress?) -> BondKnowledge {
    switch isDaemonRunning {
    case nil:
      lookForDaemon { _, _ in }
      return .unknown
    case false?:
      return book.withLock { $0.knowledge(of: device, adapter: adapter) }
    case true?:
      break
    }
    switch daemonBonds[device] {
    case .kept: return .bondedElsewhere
    case .missing: return .none
    case .unreadable: return .unknown
    case nil:
      readDaemonBond(with: device) { _ in }
      return .unknown
    }
  }

  /// The bonds that are kept here; may be called on any thread.
  var records: [BondRecord] { book.withLock { $0.all.map(\.record) } }

  /// Keeps what pairing made.
  func made(
    _ keys: [ManagementLongTermKey], _ identity: ManagementIdentityResolvingKey?, _ adapter: AdapterRecord?
  ) {
    guard let adapter, let name = keys.first?.device, let device = DeviceAddress(name)?.device else { return }
    let kept = keys.compactMap { Bond.LongTermKey($0) }
    guard !kept.isEmpty else { return }
    // A device without private addresses has a key of zeros (Core Specification Vol 3 Part H 2.4.2.1).
    let isOwn = identity?.device == name && identity?.value.bytes.contains { $0 != 0 } == true
    let bond = book.withLock {
      $0.made(
        Bond(
          with: device, of: adapter.address, id: 0, longTermKeys: kept,
          identityKey: isOwn ? identity?.value : nil))
    }
    // A bond that could not be written is kept in memory; the next process then asks for a new one.
    store?.keep(bond) { _ in }
  }

  // MARK: Removing

  /// Removes the bond with a device, from the kernel and from the store; `done` is called in a later job.
  func removeBond(with device: DeviceID, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    guard let address = DeviceAddress(device) else {
      return loop.post {
        done(RelinkError(.invalidArgument, "\(device) is no Bluetooth address with its type."))
      }
    }
    lookForDaemon { security, isDaemonRunning in
      guard isDaemonRunning else { return security.removeOwnBond(with: address, done) }
      let words =
        "bluetoothd keeps the bonds of this host: remove it there (bluetoothctl remove \(address.address))."
      done(RelinkError(.notSent, words))
    }
  }

  private func removeOwnBond(with address: DeviceAddress, _ done: @escaping @Sendable (RelinkError?) -> Void)
  {
    let adapters = world.adapters()
    let removal = BondRemoval(address, awaiting: world.mayManage() ? adapters.map(\.index) : [], done)
    forget(address.device, of: nil, removal)
    for index in removal.awaited {
      world.send(
        .unpairDevice(address: address.address, type: address.managementType, disconnect: true), index)
    }
    // What an adapter that is off refuses, an empty place in its list does.
    if world.mayManage() { for adapter in adapters { loadKeys(adapter, without: nil) } }
    removals.append(removal)
    loop.setTimer(removal.timer, at: loop.now.advanced(by: BondRemoval.limit)) { [weak self] in
      removal.expired()
      self?.settleRemovals()
    }
    settleRemovals()
  }

  /// Forgets the bonds with a device of an adapter, or of all.
  private func forget(_ device: DeviceID, of adapter: BluetoothAddress?, _ removal: BondRemoval?) {
    for bond in book.withLock({ $0.removed(device, of: adapter) }) {
      guard let store else { continue }
      removal?.writes += 1
      store.remove(bond.device, of: bond.adapter) { [weak self, loop] error in
        loop.post { [weak self] in
          removal?.written(error)
          self?.settleRemovals()
        }
      }
    }
  }

  private func settleRemovals() {
    let ended = removals.filter(\.isOver)
    removals.removeAll { $0.isOver }
    for removal in ended {
      loop.cancelTimer(removal.timer)
      loop.post { removal.done(removal.error) }
    }
  }

  // MARK: What the kernel says

  func received(_ event: ManagementEvent, index: UInt16) {
    switch event {
    case .commandComplete(.unpairDevice, let status, .device(let other)):
      for removal in removals where removal.isAbout(other) { removal.answered(index, status) }
      settleRemovals()
    case .deviceUnpaired(let other):
      let adapter = world.adapters().first { $0.index == index }
      if let adapter, let device = DeviceAddress(other)?.device { forget(device, of: adapter.address, nil) }
    default:
      for link in current where link.adapter?.index == index || link.adapter == nil {
        link.received(event, isDaemonRunning: isDaemonRunning ?? true)
      }
    }
  }

  func managementClosed() {
    for link in current { link.managementClosed() }
  }
}

// Everything that is not `let` is touched on the loop alone.
extension HostSecurity: @unchecked Sendable {}

extension ManagementEvent {
  /// Whether it is an event, or an answer, that securing a link waits for.
  var isAboutSecurity: Bool {
    switch self {
    case .commandComplete(let opcode, _, _), .commandStatus(let opcode, _):
      [
        .loadLongTermKeys, .readControllerInformation, .setBondable, .setSecureConnections, .pairDevice,
        .unpairDevice,
      ].contains(opcode)
    case .authenticationFailed, .newLongTermKey, .newIdentityResolvingKey, .userConfirmationRequest,
      .userPasskeyRequest, .passkeyNotify, .deviceUnpaired:
      true
    default: false
    }
  }
}
