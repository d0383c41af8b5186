internal import BluetoothWire
internal import Relink
internal import Synchronization

// What the sources tell of links, and what becomes of it when one ends.
extension BlueZHost {
  /// Whether the reasons of controllers are seen; false until that is known.
  ///
  /// May be read on any thread.
  var seesControllers: Bool { sees.load(ordering: .relaxed) }

  /// Opens a view of each adapter that is meant and has none, and closes those of adapters that are gone.
  ///
  /// An adapter that comes back has another number, or another socket.
  func openViews() {
    guard options.sources.contains(.controller) else { return }
    let meant = adapters.map(\.index)
    for index in views.keys where !meant.contains(index) { closeView(index) }
    for index in meant where views[index] == nil {
      views[index] = ControllerView(
        of: index, on: loop, heard: { [weak self] in self?.ledger.heard($0, from: index) },
        ended: { [weak self] in self?.closeView(index) })
    }
    sees.store(!views.isEmpty, ordering: .relaxed)
  }

  func closeViews() {
    for index in views.keys { closeView(index) }
  }

  private func closeView(_ adapter: UInt16) {
    views.removeValue(forKey: adapter)?.close()
    ledger.adapterLeft(adapter)
    sees.store(!views.isEmpty, ordering: .relaxed)
  }

  // MARK: Links

  /// A link has just come up, as its socket says.
  ///
  /// What was told before is read first: with the handle of this one it is about an earlier link.
  func linkCameUp(to device: DeviceAddress) -> LinkName {
    linkCount += 1
    let name = LinkName(rawValue: linkCount)
    guard !views.isEmpty else { return name }
    for view in views.values { view.readEverything() }
    let places = links().filter { $0.address == device.address && $0.presence == .alive }
    // With one of each type of address nobody can tell which is which.
    if places.count == 1 { ledger.cameUp(name, at: places[0].place) }
    return name
  }

  /// Nobody asks for a link any more.
  func forget(_ link: LinkName) { ledger.forget(link) }

  // MARK: Losses

  /// What the sources say of a link at this moment; of a dial, where there is none.
  func told(of link: LinkName?, to device: DeviceAddress) -> LossMergeStateMachine.Told {
    var told = LossMergeStateMachine.Told()
    if let link {
      for view in views.values { view.readEverything() }
      management?.readPending()
      told.controller = ledger.facts(of: link)
      let end = management?.takeEnd(of: device)
      told.management = end?.reason
      told.isForSleep = end?.isForSleep ?? false
      told.isOwed = ledger.owes(link) || (management?.owesEnd(of: device) ?? false)
    }
    told.adapter = adapterState
    noticed(told.adapter)
    told.daemon = daemonFate
    if told.adapter == .off { told.remark = powerRemark }
    return told
  }

  /// Says what a loss was, as soon as the sources have told what they know.
  ///
  /// `link` is nil for a dial that has failed.
  func explain(
    _ loss: LinkLoss, of link: LinkName?, to device: DeviceID, _ address: DeviceAddress, hasReceived: Bool,
    then report: @escaping @Sendable (LinkLoss) -> Void
  ) {
    let machine = LossMergeStateMachine(loss, hasReceived: hasReceived, now: loop.now)
    LossInquiry(machine, of: link, to: device, address, host: self, report).ask()
  }
}

/// A loss that is being looked into.
private final class LossInquiry {
  private var machine: LossMergeStateMachine
  private let link: LinkName?
  private let device: DeviceID
  private let address: DeviceAddress
  private let host: BlueZHost
  private let report: @Sendable (LinkLoss) -> Void

  init(
    _ machine: LossMergeStateMachine, of link: LinkName?, to device: DeviceID, _ address: DeviceAddress,
    host: BlueZHost, _ report: @escaping @Sendable (LinkLoss) -> Void
  ) {
    self.machine = machine
    self.link = link
    self.device = device
    self.address = address
    self.host = host
    self.report = report
  }

  func ask() {
    switch machine.asked(host.told(of: link, to: address), now: host.loop.now) {
    case .ask(let instant):
      host.loop.setTimer(TimerID(owner: self, number: 0), at: instant) { self.ask() }
    case .report(let loss):
      if let link { host.forget(link) }
      report(loss)
      if loss.reason.isTheAdapters { host.adapterMayBeBack(for: device) }
    }
  }
}

// Touched on the loop alone.
extension LossInquiry: @unchecked Sendable {}

extension DisconnectReason {
  /// Whether the adapter was in no state to have a link.
  var isTheAdapters: Bool {
    [.adapterOff, .adapterBlocked, .adapterMissing, .daemonStopped, .suspended, .notPermitted].contains(self)
  }
}
