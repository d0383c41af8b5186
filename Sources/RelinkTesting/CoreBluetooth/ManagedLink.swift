internal import BluetoothWire
internal import Relink

/// One link of a ``ManagedRadio``: requests by name in, answers out; what is asked of the device is the platform's
/// business.
final class ManagedLink: Link {
  /// What the platform does for one request, as a sequence of PDUs on a bearer of its own.
  struct Job {
    var request: RequestID?
    var kind: Kind
    var bearer: Int
    /// What it began as.
    let asked: Kind
    var hasStarted = false
    /// How far the link was secured when it began.
    var askedAt = SecurityLevel.none
    var isAbandoned = false
    /// What the device answered for want of security; the platform asks it once more when the link is secured.
    var refusal: ATTErrorCode?
  }

  enum Kind {
    case discover
    case read(UInt16, [UInt8])
    case write(UInt16, [UInt8])
    /// The value, and how much of it is prepared.
    case writeLong(UInt16, [UInt8], Int)
    /// A long write whose parts are all prepared.
    case executing
    /// A long write that is called off, and what its caller is told then.
    case callingOff(GATTFailure)
    case subscribe(UInt16, Characteristic, Bool)
  }

  /// What keeps its order: requests about one characteristic, and requests about none.
  enum Lane: Hashable {
    case table
    case value(Characteristic)
  }

  struct State {
    var isUp = true
    var isClosing = false
    var isSilent = false
    var lanes: [Lane: [Job]] = [:]
    /// The accepted requests without an answer, in order.
    var outstanding: [RequestID] = []
    var bufferedCommands = 0
    /// Somebody was told `later`.
    var owesWritable = false
    var notifying: Set<Characteristic> = []
    var nextBearer = 1
    var roundTrips = 0
    var nextTimer = 0
    /// How far the platform has encrypted the link.
    var security = SecurityLevel.none
    var isSecuring = false
  }

  let id: LinkID
  let number: Int
  let device: DeviceID
  let peripheral: VirtualPeripheral
  let radio: ManagedRadio
  let state = Locked(State())

  init(id: LinkID, number: Int, device: DeviceID, peripheral: VirtualPeripheral, radio: ManagedRadio) {
    self.id = id
    self.number = number
    self.device = device
    self.peripheral = peripheral
    self.radio = radio
  }

  var configuration: ManagedConfiguration { radio.configuration }

  /// Whether the link is up and nobody has asked for its end.
  var isUp: Bool { state.withLock { $0.isUp && !$0.isClosing } }

  var capabilities: LinkCapabilities {
    LinkCapabilities(
      maximumOutstanding: configuration.maximumOutstanding, needsMTUExchange: false, mtu: configuration.mtu,
      needsSubscriptionRestore: !configuration.restoresSubscriptions,
      security: state.withLock { $0.security })
  }

  /// How many requests were taken that concern the device; what the platform makes of them is its business.
  var roundTrips: Int { state.withLock { $0.roundTrips } }

  // MARK: - Requests

  func perform(_ request: GATTRequest, id: RequestID) -> LinkAcceptance {
    guard isUp else { return .refused(.linkClosed) }
    if case .writeWithoutResponse(let name, let value) = request { return command(value, to: name, id) }
    let isFull = state.withLock { state in
      guard state.outstanding.count >= configuration.maximumOutstanding else { return false }
      state.owesWritable = true
      return true
    }
    guard !isFull else { return .later }
    switch request {
    case .exchangeMTU:
      state.withLock { $0.outstanding.append(id) }
      answer(id, .success(.mtu(configuration.mtu)))
    case .discover: enqueue(.discover, in: .table, id)
    case .read(let name): return locate(name, id) { .success(.read($0, [])) }
    case .write(let name, let value): return write(value, to: name, id)
    case .writeLong(let name, let value):
      guard value.count <= ATTLimits.maximumAttributeLength else {
        return .refused(.valueTooLong(limit: ATTLimits.maximumAttributeLength))
      }
      return locate(name, id) { .success(.writeLong($0, value, 0)) }
    case .setNotifying(let name, let isOn):
      return locate(name, id) { _ in
        guard let handle = peripheral.configurationHandle(of: name) else { return .failure(.cannotNotify) }
        return .success(.subscribe(handle, name, isOn))
      }
    // The platform has no call for it.
    case .writeReliably: return .refused(.notSupported)
    case .writeWithoutResponse: return .refused(.linkClosed)
    }
    return .accepted
  }

  private func write(_ value: [UInt8], to name: Characteristic, _ id: RequestID) -> LinkAcceptance {
    let limit = ATTLimits.maximumWriteLength(mtu: configuration.mtu)
    guard value.count <= limit else { return .refused(.valueTooLong(limit: limit)) }
    return locate(name, id) { .success(.write($0, value)) }
  }

  /// Looks a name up among the services that the platform has learnt, and queues what is to be done there.
  private func locate(
    _ name: Characteristic, _ id: RequestID, _ kind: (UInt16) -> Result<Kind, GATTRefusal>
  ) -> LinkAcceptance {
    guard let full = resolve(name), let handle = peripheral.valueHandle(of: full) else {
      return .refused(.characteristicNotFound)
    }
    switch kind(handle) {
    case .failure(let refusal): return .refused(refusal)
    case .success(let kind):
      if case .subscribe(_, _, let isOn) = kind { remember(full, isOn: isOn) }
      enqueue(kind, in: .value(full), id)
      return .accepted
    }
  }

  /// Values that come before the answer to a subscription belong to it.
  private func remember(_ name: Characteristic, isOn: Bool) {
    guard isOn else { return }
    state.withLock { _ = $0.notifying.insert(name) }
  }

  func resolve(_ name: Characteristic) -> Characteristic? {
    radio.withState { $0.devices[device]?.table }?.resolve(name)?.name
  }

  private func command(_ value: [UInt8], to name: Characteristic, _ id: RequestID) -> LinkAcceptance {
    let limit = ATTLimits.maximumWriteLength(mtu: configuration.mtu)
    guard value.count <= limit else { return .refused(.valueTooLong(limit: limit)) }
    guard let full = resolve(name), let handle = peripheral.valueHandle(of: full) else {
      return .refused(.characteristicNotFound)
    }
    let isFull = state.withLock { state in
      guard state.bufferedCommands >= configuration.commandBuffer else {
        state.bufferedCommands += 1
        state.outstanding.append(id)
        return false
      }
      state.owesWritable = true
      return true
    }
    guard !isFull else { return .later }
    transmit(.writeCommand(handle: handle, value: value), bearer: 0) { $0.commandLeft() }
    answer(id, .success(.done))
    return .accepted
  }

  private func commandLeft() {
    let isOwed = state.withLock { state in
      state.bufferedCommands -= 1
      defer { state.owesWritable = false }
      return state.owesWritable && state.isUp && !state.isClosing
    }
    if isOwed { radio.deliver(to: device) { [id] in $0.linkWritable(id) } }
  }

  func abandon(_ id: RequestID) -> Bool {
    let (isCertain, isRemoved) = state.withLock { state -> (Bool, Bool) in
      for (lane, jobs) in state.lanes {
        guard let index = jobs.firstIndex(where: { $0.request == id }) else { continue }
        guard case .writeLong = jobs[index].kind else { return (false, false) }
        state.lanes[lane]?[index].isAbandoned = true
        guard !jobs[index].hasStarted else { return (true, false) }
        state.lanes[lane]?.remove(at: index)
        return (true, true)
      }
      return (false, false)
    }
    if isRemoved { answer(id, .failure(.refused(.calledOff))) }
    return isCertain
  }

  func close() {
    let isFirst = state.withLock { state in
      guard state.isUp, !state.isClosing else { return false }
      state.isClosing = true
      return true
    }
    guard isFirst else { return }
    after(configuration.closingDelay) { $0.lost(LinkLoss(.requested)) }
  }

  // MARK: - Deliveries

  /// Posts the answer to a request.
  func answer(_ id: RequestID, _ result: Result<GATTAnswer, GATTFailure>) {
    let (isOpen, isOwed) = state.withLock { state -> (Bool, Bool) in
      guard state.isUp, !state.isClosing, let index = state.outstanding.firstIndex(of: id) else {
        return (false, false)
      }
      state.outstanding.remove(at: index)
      defer { state.owesWritable = false }
      return (true, state.owesWritable)
    }
    guard isOpen else { return }
    radio.deliver(to: device) { [link = self.id] handler in
      handler.link(link, answered: id, with: result)
      if isOwed { handler.linkWritable(link) }
    }
  }

  /// The link is gone; the first to say so is right.
  func lost(_ loss: LinkLoss) {
    let (isFirst, wasClosing, inDoubt, bearers) = state.withLock {
      state -> (Bool, Bool, [RequestID], [Int]) in
      guard state.isUp else { return (false, false, [], []) }
      state.isUp = false
      let bearers = state.lanes.values.flatMap { $0 }.map(\.bearer)
      defer {
        state.lanes = [:]
        state.outstanding = []
      }
      // The platform does not say which of them it has sent.
      return (true, state.isClosing, state.outstanding, bearers)
    }
    guard isFirst else { return }
    for bearer in bearers { cancelDeadline(bearer) }
    peripheral.closed(self)
    let reported = wasClosing ? LinkLoss(.requested, evidence: loss.evidence) : loss
    radio.deliver(to: device) { [id] in $0.link(id, closed: reported, inDoubt: inDoubt) }
    radio.linkGone(self)
  }

  func setSilent(_ isSilent: Bool) { state.withLock { $0.isSilent = isSilent } }
}
