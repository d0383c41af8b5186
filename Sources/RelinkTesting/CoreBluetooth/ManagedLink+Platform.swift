internal import BluetoothWire
internal import Relink

// What the platform does beneath the requests: it speaks ATT with the peripheral, each request on a bearer of its own.
extension ManagedLink {
  /// The link is up: the platform watches the table by itself, and arms again what it was told to keep.
  func start() {
    let keeps = configuration.restoresSubscriptions
    let armed = keeps ? radio.withState { $0.devices[device]?.armed ?? [] } : []
    state.withLock { $0.notifying = armed }
    peripheral.opened(self, mtu: configuration.mtu)
    let changed = Characteristic(.serviceChanged, in: .genericAttribute)
    for name in [changed] + armed.sorted(by: { $0.description < $1.description }) {
      guard let handle = peripheral.configurationHandle(of: name) else { continue }
      enqueue(.subscribe(handle, name, true), in: .value(name), nil)
    }
  }

  func enqueue(_ kind: Kind, in lane: Lane, _ id: RequestID?) {
    state.withLock { state in
      if let id {
        state.outstanding.append(id)
        state.roundTrips += 1
      }
      state.lanes[lane, default: []].append(
        Job(request: id, kind: kind, bearer: state.nextBearer, asked: kind))
      state.nextBearer += 1
    }
    advance(lane)
  }

  /// Starts the first job of a lane if it waits.
  func advance(_ lane: Lane) {
    let job = state.withLock { state -> Job? in
      guard state.isUp, !state.isClosing, let job = state.lanes[lane]?.first, !job.hasStarted,
        job.refusal == nil
      else {
        return nil
      }
      state.lanes[lane]?[0].hasStarted = true
      state.lanes[lane]?[0].askedAt = state.security
      return job
    }
    guard let job else { return }
    // An ATT transaction ends within 30 s (Core Specification Vol 3 Part F 3.3.3); the platform gives the link up.
    after(.seconds(ATTLimits.transactionTimeout), timer: job.bearer) {
      $0.lost(.platform(.transactionTimeout, "the platform says that the device did not answer"))
    }
    transmit(nextPDU(of: job), bearer: job.bearer) { _ in }
  }

  private func nextPDU(of job: Job) -> ATTPDU {
    switch job.kind {
    // One request stands for all that a discovery takes; what is found comes from the peripheral itself.
    case .discover: .readByGroupTypeRequest(start: 1, end: 0xFFFF, type: .primaryService)
    case .read(let handle, let value):
      value.isEmpty
        ? .readRequest(handle: handle)
        : .readBlobRequest(handle: handle, offset: UInt16(clamping: value.count))
    case .write(let handle, let value): .writeRequest(handle: handle, value: value)
    case .executing: .executeWriteRequest(commit: true)
    case .writeLong(let handle, let value, let offset):
      .prepareWriteRequest(
        handle: handle, offset: UInt16(clamping: offset),
        value: part(of: value, at: offset))
    case .callingOff: .executeWriteRequest(commit: false)
    case .subscribe(let handle, let name, let isOn):
      .writeRequest(handle: handle, value: (isOn ? bits(of: name) : 0).littleEndianOctets)
    }
  }

  private func part(of value: [UInt8], at offset: Int) -> [UInt8] {
    Array(value.dropFirst(offset).prefix(ATTLimits.maximumPrepareLength(mtu: configuration.mtu)))
  }

  /// Notifications where the characteristic has them, otherwise indications.
  private func bits(of name: Characteristic) -> UInt16 {
    peripheral.properties(of: name).contains(.notify) ? 1 : 2
  }

  /// An answer has come: the job goes on, or is done.
  private func received(_ octets: [UInt8], bearer: Int) {
    let found = state.withLock { state -> (Lane, Job)? in
      guard state.isUp, !state.isClosing else { return nil }
      for (lane, jobs) in state.lanes {
        if let job = jobs.first, job.bearer == bearer, job.hasStarted { return (lane, job) }
      }
      return nil
    }
    // A second answer to a request finds its bearer gone.
    guard let (lane, job) = found else { return }
    guard let pdu = try? ATTPDU(decoding: octets) else { return malformed() }
    switch step(job, pdu) {
    case .goOn(let kind):
      let next = state.withLock { state -> Job? in
        state.lanes[lane]?[0].kind = kind
        return state.lanes[lane]?.first
      }
      guard let next else { return }
      transmit(nextPDU(of: next), bearer: bearer) { _ in }
    case .done(.failure(.rejected(let code))) where setAside(job, in: lane, for: code):
      secure(for: job)
    case .done(let result): finish(job, in: lane, result)
    case .malformed: malformed()
    }
  }

  private enum Step {
    case goOn(Kind)
    case done(Result<GATTAnswer, GATTFailure>)
    case malformed
  }

  private func step(_ job: Job, _ pdu: ATTPDU) -> Step {
    switch (job.kind, pdu) {
    case (.callingOff(let failure), .executeWriteResponse), (.callingOff(let failure), .errorResponse):
      .done(.failure(failure))
    case (.writeLong, .errorResponse(_, _, let code)): .goOn(.callingOff(.rejected(code)))
    case (.executing, .errorResponse(_, _, let code)): .done(.failure(.executionRejected(code)))
    case (_, .errorResponse(_, _, let code)): .done(.failure(.rejected(code)))
    case (.discover, .readByGroupTypeResponse): .done(.success(learn()))
    case (.read(let handle, let value), .readResponse(let part)),
      (.read(let handle, let value), .readBlobResponse(let part)):
      part.count == ATTLimits.maximumReadLength(mtu: configuration.mtu)
        ? .goOn(.read(handle, value + part)) : .done(.success(.value(value + part)))
    case (.write, .writeResponse), (.subscribe, .writeResponse): .done(.success(.done))
    case (.writeLong(let handle, let value, let offset), .prepareWriteResponse(_, _, let echo)):
      .goOn(prepared(handle, value, offset, echo: echo, isAbandoned: job.isAbandoned))
    case (.executing, .executeWriteResponse): .done(.success(.done))
    default: .malformed
    }
  }

  /// What follows a part that the device has queued.
  private func prepared(
    _ handle: UInt16, _ value: [UInt8], _ offset: Int, echo: [UInt8], isAbandoned: Bool
  ) -> Kind {
    guard echo == part(of: value, at: offset) else { return .callingOff(.refused(.prepareMismatch)) }
    guard !isAbandoned else { return .callingOff(.refused(.calledOff)) }
    let next = offset + echo.count
    return next < value.count ? .writeLong(handle, value, next) : .executing
  }

  func finish(_ job: Job, in lane: Lane, _ result: Result<GATTAnswer, GATTFailure>) {
    cancelDeadline(job.bearer)
    state.withLock { state in
      state.lanes[lane]?.removeFirst()
      if state.lanes[lane]?.isEmpty == true { state.lanes[lane] = nil }
    }
    if case .subscribe(_, let name, let isOn) = job.kind {
      subscriptionEnded(resolve(name) ?? name, isOn: isOn && (try? result.get()) != nil)
    }
    if let id = job.request { answer(id, result) }
    advance(lane)
  }

  private func subscriptionEnded(_ name: Characteristic, isOn: Bool) {
    state.withLock { state in
      if isOn { state.notifying.insert(name) } else { state.notifying.remove(name) }
    }
    guard configuration.restoresSubscriptions, name.uuid != .serviceChanged else { return }
    radio.withState { state in
      if isOn { state.devices[device]?.armed.insert(name) } else { state.devices[device]?.armed.remove(name) }
    }
  }

  private func malformed() {
    lost(.platform(.protocolViolation, "the platform says that the device broke the protocol"))
  }

  /// Takes the services over as they are now.
  private func learn() -> GATTAnswer {
    let table = peripheral.discovered
    let before = radio.withState { state in
      let before = state.devices[device]?.table
      state.devices[device]?.table = table
      return before
    }
    return .table(table, changed: before.map { $0 != table } ?? false)
  }

  // MARK: - The air

  /// Carries a PDU to the peripheral; `left` runs when it got there.
  func transmit(_ pdu: ATTPDU, bearer: Int, _ left: @escaping @Sendable (ManagedLink) -> Void) {
    let octets = pdu.encoded()
    after(configuration.latency) { link in
      guard link.state.withLock({ $0.isUp && !$0.isSilent }) else { return }
      link.peripheral.received(octets, on: link, bearer: bearer)
      left(link)
    }
  }

  /// Runs work on the executor; without a delay it still waits for its turn.
  func after(_ span: Duration, timer: Int? = nil, _ work: @escaping @Sendable (ManagedLink) -> Void) {
    guard span > .zero else { return radio.executor.post { work(self) } }
    let number = state.withLock { state in
      state.nextTimer -= 1
      return timer ?? state.nextTimer
    }
    radio.executor.setTimer(TimerID(owner: self, number: number), at: now.advanced(by: span)) { work(self) }
  }

  func cancelDeadline(_ bearer: Int) {
    radio.executor.cancelTimer(TimerID(owner: self, number: bearer))
  }
}

// The peripheral's end of the link.
extension ManagedLink: ServedLink {
  package var client: String { configuration.client }
  package var mtuLimit: Int { configuration.mtu }
  package var now: MonotonicInstant { radio.executor.now }

  package func respond(_ pdu: [UInt8], bearer: Int) {
    after(configuration.latency) { link in
      guard link.state.withLock({ !$0.isSilent }) else { return }
      link.received(pdu, bearer: bearer)
    }
  }

  package func push(_ pdu: [UInt8]) {
    // A handle means what it meant when the value was sent.
    guard let decoded = try? ATTPDU(decoding: pdu) else { return }
    switch decoded {
    case .handleValueNotification(let handle, let value):
      deliver(value, of: peripheral.name(at: handle), isIndication: false)
    case .handleValueIndication(let handle, let value):
      deliver(value, of: peripheral.name(at: handle), isIndication: true)
    default: return
    }
  }

  private func deliver(_ value: [UInt8], of name: Characteristic?, isIndication: Bool) {
    after(configuration.latency) { link in
      let isWanted = link.state.withLock { state -> Bool? in
        guard state.isUp, !state.isClosing, !state.isSilent else { return nil }
        return name.map { state.notifying.contains($0) } ?? false
      }
      guard let isWanted else { return }
      if isIndication { link.transmit(.handleValueConfirmation, bearer: 0) { _ in } }
      guard let name else { return }
      if name.uuid == .serviceChanged {
        link.radio.deliver(to: link.device) { $0.linkTableChanged(link.id) }
      } else if isWanted {
        let time = link.radio.executor.timestamp()
        link.radio.deliver(to: link.device) { $0.link(link.id, value: value, of: name, receivedAt: time) }
      }
    }
  }

  package func terminate(_ reason: HCIErrorCode) {
    after(configuration.latency) { $0.lost(.platform(hiding: reason)) }
  }

  package func later(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
    after(delay) { _ in work() }
  }
}
