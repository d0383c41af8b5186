internal import BluetoothWire
public import RelinkCore

/// A link that speaks ATT over a channel: one bearer, a table of attributes, the procedures of GATT.
///
/// One request is outstanding at a time (Core Specification Vol 3 Part F 3.3.2); writes without response go beside it.
/// A request without an answer for 30 s ends the link with `transactionTimeout`, and what the protocol does not allow
/// ends it with `protocolViolation`: after either no answer could be credited.
///
/// Names are looked up in the table that `discover` learnt on this link. Before that, and after the device said that
/// its table changed, requests that name a characteristic get `later`; the answer to the next `discover` says when.
/// Values from handles that the table does not name are dropped.
///
/// All of it happens on the executor. Nothing is delivered inside `perform`, `abandon` or `close`.
public actor ATTLink: SecurableLink, PDUChannelHandler {
  /// The name of the link.
  public nonisolated let id: LinkID

  nonisolated let executor: any SessionExecutor
  let channel: any PDUChannel
  let securable: (any SecurableChannel)?
  let tables: AttributeTableMemory
  weak var handler: (any LinkHandler)?

  // The executor lets one call in at a time, and no delivery is made while one of these is being changed, so the check
  // at run time that no two changes overlap would only cost time on each PDU.
  @exclusivity(unchecked) var bearer = BearerStateMachine()
  /// The request that holds the bearer.
  @exclusivity(unchecked) var current: Current?
  /// Answers that need nothing from the device, to be delivered outside the call that asked.
  private var posted: [PostedAnswer] = []
  /// The request that the device refused for want of security, with its answer, until the link is secured.
  @exclusivity(unchecked) var setAside: SetAside?
  /// The channel was asked to secure its link, and has not answered.
  var isSecuring = false

  @exclusivity(unchecked) var table: AttributeTable?
  /// The handles that may mean something else by now.
  @exclusivity(unchecked) var staleHandles: ClosedRange<UInt16>?
  var isDiscoveryOutdated = false
  var discoveryRestarts = 0
  /// How many values came from handles that the table does not name.
  private(set) var droppedValues = 0

  private var hasExchangedMTU = false
  /// Somebody was told `later` because the channel was full.
  @exclusivity(unchecked) private var owesWritable = false
  var isClosedHere = false
  private var isGone = false

  /// A request that holds the bearer.
  struct Current {
    var id: RequestID
    var procedure: GATTProcedure
    /// What was asked for, where it may have to be asked again.
    var request: GATTRequest?
    /// Nobody waits for it: it is not asked again.
    var isAbandoned = false
  }

  private struct PostedAnswer {
    var id: RequestID
    var answer: GATTAnswer
    /// Whether it reached the device.
    var hasLeft: Bool
  }

  /// Makes a link; ``start()`` opens the channel.
  ///
  /// - Parameters:
  ///   - id: A name that no other link of the process has.
  ///   - channel: A connected channel that nobody opened yet.
  ///   - executor: The executor on which the channel delivers.
  ///   - handler: What receives everything about the link; held weakly.
  ///   - tables: The memory of the device's attribute table.
  public init(
    id: LinkID, over channel: any PDUChannel, on executor: any SessionExecutor, for handler: any LinkHandler,
    tables: AttributeTableMemory
  ) {
    self.id = id
    self.channel = channel
    securable = channel as? any SecurableChannel
    self.executor = executor
    self.handler = handler
    self.tables = tables
  }

  /// The executor of the link.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens the channel; to be called on the executor, once, right before `linkUp` is delivered.
  public nonisolated func start() {
    assumeIsolated { $0.channel.open($0) }
  }

  /// What the bearer let pass or threw away.
  package nonisolated var counters: BearerCounters { assumeIsolated { $0.bearer.counters } }

  /// How many values came from handles that the table does not name.
  package nonisolated var droppedValueCount: Int { assumeIsolated { $0.droppedValues } }
}

// MARK: - Link

extension ATTLink {
  /// One request at a time; the session agrees on the MTU and arms subscriptions; how far the link is secured is the
  /// channel's answer at the moment.
  ///
  /// To be read on the executor.
  public nonisolated var capabilities: LinkCapabilities {
    assumeIsolated {
      LinkCapabilities(
        maximumOutstanding: 1, needsMTUExchange: true, mtu: $0.bearer.mtu, needsSubscriptionRestore: true,
        security: $0.channel.security)
    }
  }

  /// How many requests have left on this link, those of procedures one by one; to be read on the executor.
  public nonisolated var roundTrips: Int { assumeIsolated { $0.bearer.requests } }

  /// Hands a request over: `accepted` once the channel took its first PDU.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - id: Its name.
  /// - Returns: Whether the link took it.
  public nonisolated func perform(_ request: GATTRequest, id: RequestID) -> LinkAcceptance {
    assumeIsolated { $0.begin(request, id) }
  }

  /// Nobody waits for the request any more; its answer is delivered all the same.
  ///
  /// A long or reliable write of which Execute Write has not left is called off at the device and then answered as
  /// refused.
  ///
  /// - Parameter id: The name of the request.
  /// - Returns: Whether it is certain that the request takes no effect: a queued write that is called off.
  @discardableResult
  public nonisolated func abandon(_ id: RequestID) -> Bool {
    assumeIsolated {
      if $0.setAside?.id == id {
        $0.setAside?.isAbandoned = true
        return true
      }
      guard $0.current?.id == id, $0.bearer.end == nil else { return false }
      $0.bearer.requestAbandoned()
      $0.current?.isAbandoned = true
      return $0.callOffQueuedWrite()
    }
  }

  /// Ends the link from here; after it nothing but `closed` is delivered.
  public nonisolated func close() {
    assumeIsolated {
      guard !$0.isClosedHere, !$0.isGone else { return }
      $0.isClosedHere = true
      let hadEnded = $0.bearer.end != nil
      $0.bearer.closed()
      if !hadEnded { $0.leave() }
    }
  }

  func begin(_ request: GATTRequest, _ id: RequestID) -> LinkAcceptance {
    guard bearer.end == nil else { return .refused(.linkClosed) }
    flush()
    let acceptance = start(request, id)
    if securable != nil, acceptance == .accepted, current?.id == id { current?.request = request }
    return acceptance
  }

  private func start(_ request: GATTRequest, _ id: RequestID) -> LinkAcceptance {
    switch request {
    case .exchangeMTU:
      // The exchange happens once per connection (Vol 3 Part F 3.4.2.1); later askers get what was agreed.
      if hasExchangedMTU, !isExchangingMTU {
        return post(PostedAnswer(id: id, answer: .mtu(bearer.mtu), hasLeft: false))
      }
      let offered = max(ATTLimits.defaultMTU, min(channel.maximumPDULength, Self.largestUsefulMTU))
      let acceptance = begin(.exchangeMTU(offered: offered), .exchangeMTURequest(mtu: UInt16(offered)), id)
      if acceptance == .accepted { hasExchangedMTU = true }
      return acceptance
    case .discover:
      let procedure = DiscoveryProcedure(known: tables.table, mayKeepKnown: staleHandles == nil)
      let acceptance = begin(.discovery(procedure), procedure.first, id)
      if acceptance == .accepted { (isDiscoveryOutdated, discoveryRestarts) = (false, 0) }
      return acceptance
    case .read(let name):
      guard let handle = valueHandle(of: name) else { return unresolved() }
      let procedure = ReadProcedure(handle: handle)
      return begin(.read(procedure), procedure.first, id)
    case .write(let name, let value):
      guard let handle = valueHandle(of: name) else { return unresolved() }
      let limit = ATTLimits.maximumWriteLength(mtu: bearer.mtu)
      guard value.count <= limit else { return .refused(.valueTooLong(limit: limit)) }
      return begin(.write, .writeRequest(handle: handle, value: value), id)
    case .writeLong(let name, let value):
      guard let handle = valueHandle(of: name) else { return unresolved() }
      let limit = ATTLimits.maximumAttributeLength
      guard value.count <= limit else { return .refused(.valueTooLong(limit: limit)) }
      let procedure = QueuedWriteProcedure(handle: handle, value: value, mtu: bearer.mtu)
      return begin(.writeQueued(procedure), procedure.first, id)
    case .writeReliably(let writes):
      return beginReliably(writes, id)
    case .writeWithoutResponse(let name, let value):
      guard let handle = valueHandle(of: name) else { return unresolved() }
      let limit = ATTLimits.maximumWriteLength(mtu: bearer.mtu)
      guard value.count <= limit else { return .refused(.valueTooLong(limit: limit)) }
      return command(.writeCommand(handle: handle, value: value), id)
    case .setNotifying(let name, let isOn):
      guard staleHandles == nil, let entry = table?.entry(of: name) else { return unresolved() }
      guard let handle = entry.configuration, let bits = entry.configurationValue(isOn) else {
        return .refused(.cannotNotify)
      }
      return begin(.write, .writeRequest(handle: handle, value: [bits, 0]), id)
    }
  }

  private func beginReliably(_ writes: [ReliableWrite], _ id: RequestID) -> LinkAcceptance {
    guard !writes.isEmpty else { return .refused(.noValues) }
    let limit = ATTLimits.maximumAttributeLength
    var queued: [QueuedWriteProcedure.Write] = []
    for write in writes {
      guard let handle = valueHandle(of: write.characteristic) else { return unresolved() }
      guard write.value.count <= limit else { return .refused(.valueTooLong(limit: limit)) }
      queued.append(QueuedWriteProcedure.Write(handle: handle, value: write.value))
    }
    let procedure = QueuedWriteProcedure(queued, mtu: bearer.mtu)
    return begin(.writeQueued(procedure), procedure.first, id)
  }

  /// 512 bytes of value behind the longest header there is, that of a Prepare Write.
  private static let largestUsefulMTU = 517

  private var isExchangingMTU: Bool {
    if case .exchangeMTU = current?.procedure { true } else { false }
  }

  private func valueHandle(of name: Characteristic) -> UInt16? {
    staleHandles == nil ? table?.valueHandle(of: name) : nil
  }

  /// What a name that led nowhere means for its request.
  private func unresolved() -> LinkAcceptance {
    table == nil || staleHandles != nil ? .later : .refused(.characteristicNotFound)
  }

  private func begin(_ procedure: GATTProcedure, _ pdu: ATTPDU, _ id: RequestID) -> LinkAcceptance {
    switch bearer.requestAdmission {
    case .now: break
    case .busy: return .later
    case .full:
      owesWritable = true
      return .later
    case .ended: return .refused(.linkClosed)
    }
    switch channel.send(pdu.encoded()) {
    case .sent:
      current = Current(id: id, procedure: procedure)
      arm(bearer.requestSent(pdu.opcode, now: executor.now))
      return .accepted
    case .later:
      channelFilled()
      owesWritable = true
      return .later
    case .failed(let number):
      return .refused(.system(number))
    }
  }

  private func command(_ pdu: ATTPDU, _ id: RequestID) -> LinkAcceptance {
    switch bearer.commandAdmission {
    case .now, .busy: break
    case .full:
      owesWritable = true
      return .later
    case .ended: return .refused(.linkClosed)
    }
    switch channel.send(pdu.encoded()) {
    case .sent:
      bearer.channelTook()
      return post(PostedAnswer(id: id, answer: .done, hasLeft: true))
    case .later:
      channelFilled()
      owesWritable = true
      return .later
    case .failed(let number):
      return .refused(.system(number))
    }
  }

  private func post(_ answer: PostedAnswer) -> LinkAcceptance {
    posted.append(answer)
    if posted.count == 1 {
      executor.post { [weak self] in self?.assumeIsolated { $0.deliverPosted() } }
    }
    return .accepted
  }

  private func deliverPosted() {
    // The handler may ask for more of them, or close the link, from inside the delivery.
    let answers = posted
    posted = []
    for (position, answer) in answers.enumerated() {
      if isClosedHere {
        posted = Array(answers[position...]) + posted
        return
      }
      handler?.link(id, answered: answer.id, with: .success(answer.answer))
    }
  }
}

// MARK: - Sending what waits

extension ATTLink {
  /// Sends the next request of the procedure that holds the bearer, behind what has arrived already.
  func sendNext(_ pdu: ATTPDU) {
    arm(bearer.requestContinued(pdu, now: executor.now))
    executor.post { [weak self] in
      self?.assumeIsolated {
        $0.bearer.requestReleased()
        $0.flush()
      }
    }
  }

  /// Sends a confirmation or an error response; false if that ended the bearer.
  func reply(_ pdu: ATTPDU) -> Bool {
    if bearer.commandAdmission == .now {
      switch channel.send(pdu.encoded()) {
      case .sent:
        bearer.channelTook()
        return true
      case .later: channelFilled()
      case .failed: break
      }
    }
    switch bearer.controlDeferred(pdu) {
    case .none: return true
    case .end:
      leave()
      return false
    }
  }

  /// Offers what waits to the channel, again if the system refused it before.
  @inline(__always)
  func flush() {
    if bearer.hasWaiting { flushWaiting() }
  }

  private func flushWaiting() {
    while let pdu = bearer.waiting {
      switch channel.send(pdu.encoded()) {
      case .sent:
        arm(bearer.waitingSent(now: executor.now))
      case .later:
        channelFilled()
        return
      case .failed:
        // A dead channel says so by closing; of a passing trouble the next event is the end.
        return
      }
    }
  }

  /// Stops a long or reliable write that has not been executed.
  ///
  /// - Returns: whether it is stopped: Execute Write has not left and will not.
  @discardableResult
  func callOffQueuedWrite() -> Bool {
    guard case .writeQueued(var procedure) = current?.procedure else { return false }
    if !procedure.isExecuting {
      procedure.calledOff()
    } else {
      guard !bearer.isOutstanding else { return false }
      guard bearer.deferredRequestReplaced(by: procedure.executionCalledOff()) else { return false }
    }
    current?.procedure = .writeQueued(procedure)
    return true
  }

  @inline(__always)
  func announceWritable() {
    if owesWritable { announceWritableIfSo() }
  }

  private func announceWritableIfSo() {
    guard bearer.commandAdmission == .now else { return }
    owesWritable = false
    handler?.linkWritable(id)
  }

  private func channelFilled() {
    arm(bearer.channelFilled(now: executor.now))
  }

  private func arm(_ action: BearerStateMachine.TimerAction) {
    switch action {
    case .none: break
    case .setTimer(let instant): setTimer(at: instant)
    }
  }

  private func setTimer(at instant: MonotonicInstant) {
    executor.setTimer(timer, at: instant) { [weak self] in self?.assumeIsolated { $0.timerFired() } }
  }

  private var timer: TimerID { TimerID(owner: self, number: 0) }

  private func timerFired() {
    guard !isGone else { return }
    switch bearer.timerFired(now: executor.now, isSecuring: isSecuring) {
    case .none: break
    case .setTimer(let instant):
      setTimer(at: instant)
      flush()
    case .end: leave()
    }
  }

  /// Ends the channel; the bearer has ended before.
  func leave() {
    executor.cancelTimer(timer)
    channel.close()
  }
}

// MARK: - PDUChannelHandler

extension ATTLink {
  /// One PDU from the device.
  ///
  /// - Parameter pdu: Its bytes.
  public nonisolated func channelReceived(_ pdu: borrowing RawSpan) {
    assumeIsolated { $0.received(pdu) }
  }

  /// The channel takes PDUs again.
  public nonisolated func channelWritable() {
    assumeIsolated {
      $0.bearer.channelBecameWritable()
      $0.flush()
      $0.askAgain()
      $0.announceWritable()
    }
  }

  /// The link is gone.
  ///
  /// - Parameter loss: What the channel knows about it.
  public nonisolated func channelClosed(_ loss: LinkLoss) {
    assumeIsolated { $0.gone(loss) }
  }

  func now() -> Timestamp { executor.timestamp() }

  func valueDropped() {
    droppedValues += 1
  }

  private func gone(_ loss: LinkLoss) {
    guard !isGone else { return }
    isGone = true
    executor.cancelTimer(timer)
    var last = bearer.end?.loss ?? loss
    if last != loss { last.evidence += loss.evidence }
    let inDoubt = requestsInDoubt()
    bearer.closed()
    current = nil
    setAside = nil
    posted = []
    handler?.link(id, closed: last, inDoubt: inDoubt)
  }

  private func requestsInDoubt() -> [RequestID] {
    var requests = posted.filter(\.hasLeft).map(\.id)
    if let current {
      switch current.procedure {
      case .writeQueued(let procedure):
        // A prepare queue dies with its link; only Execute Write takes effect, once it has left.
        if procedure.isExecuting, bearer.isOutstanding { requests.append(current.id) }
      case .exchangeMTU, .discovery, .read, .write:
        requests.append(current.id)
      }
    }
    return requests.sorted()
  }
}
