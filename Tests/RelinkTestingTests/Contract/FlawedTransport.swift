import Relink
import RelinkTesting

/// What an implementation of the seam can get wrong; each breaks some rule of a contract.
enum Flaw: Sendable {
  case none
  // Of links.
  case answersTwice, answersInsideTheCall, writesTwice, shortensLongWrites, losesAValue,
    losesAnswersToCommands,
    inventsValues
  case hidesErrors, takesUnknownNames, sendsWhatItRefuses, takesTooMuch, freesAbandoned, closesTwice,
    hidesDoubt
  case talksBehindClose, takesRequestsWhenClosed
  // Of transports.
  case bringsUpTwice, waitsForEver, ignoresCancel, failsTwice, registersMany, keepsHandlers, listsNothing
  case reusesNames, claimsTheEndTooEarly, hidesTheAdapter
}

/// A transport with one flaw around one that has none.
final class FlawedTransport: Transport {
  let base: any Transport
  let flaw: Flaw
  private let handlers = Locked<[DeviceID: FlawedHandler]>([:])

  init(_ base: any Transport, _ flaw: Flaw) {
    self.base = base
    self.flaw = flaw
  }

  var executor: any SessionExecutor { base.executor }
  var capabilities: TransportCapabilities { base.capabilities }
  func adapterState(for device: DeviceID) -> AdapterState { base.adapterState(for: device) }
  func existingLinks() -> [DeviceID] { flaw == .listsNothing ? [] : base.existingLinks() }

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    let present = handlers.withLock { $0[device] }
    if present?.target == nil || flaw == .registersMany { unregister(device) }
    let wrapped = FlawedHandler(handler, flaw, executor)
    try base.register(wrapped, for: device)
    handlers.withLock { $0[device] = wrapped }
  }

  func unregister(_ device: DeviceID) {
    handlers.withLock { $0[device] = nil }
    base.unregister(device)
  }

  func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    let dial = base.dial(
      device, attempt: attempt, options: flaw == .waitsForEver ? DialOptions(limit: .seconds(9999)) : options)
    return flaw == .ignoresCancel ? DeafAttempt() : dial
  }

  private final class DeafAttempt: Attempt {
    func cancel() {}
  }
}

/// Passes deliveries on, with one flaw.
final class FlawedHandler: LinkHandler {
  private let flaw: Flaw
  private let executor: any SessionExecutor
  private weak let weakTarget: (any LinkHandler)?
  private let strongTarget: (any LinkHandler)?
  private let links = Locked<[LinkID: FlawedLink]>([:])

  init(_ target: any LinkHandler, _ flaw: Flaw, _ executor: any SessionExecutor) {
    self.flaw = flaw
    self.executor = executor
    weakTarget = target
    strongTarget = flaw == .keepsHandlers ? target : nil
  }

  var target: (any LinkHandler)? { weakTarget }

  private func name(_ link: LinkID) -> LinkID { flaw == .reusesNames ? LinkID(rawValue: 0) : link }

  func linkUp(_ link: any Link, attempt: AttemptID?) {
    let wrapped = FlawedLink(link, flaw, named: name(link.id), executor) { [weak self] in self?.target }
    links.withLock { $0[link.id] = wrapped }
    target?.linkUp(wrapped, attempt: attempt)
    if flaw == .bringsUpTwice { target?.linkUp(wrapped, attempt: attempt) }
  }

  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) {
    target?.attemptFailed(attempt, loss)
    if flaw == .failsTwice { target?.attemptFailed(attempt, loss) }
  }

  func adapterChanged(_ state: AdapterState) {
    if flaw != .hidesTheAdapter { target?.adapterChanged(state) }
  }

  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
    guard let wrapped = links.withLock({ $0[link] }), !wrapped.isHidden(request) else { return }
    var told = answer
    if flaw == .hidesErrors, case .failure(.rejected) = answer { told = .success(.done) }
    target?.link(name(link), answered: request, with: told)
    if flaw == .answersTwice { target?.link(name(link), answered: request, with: told) }
    if flaw == .inventsValues {
      target?.link(
        name(link), value: [0x99], of: .contractValue, receivedAt: executor.timestamp())
    }
  }

  func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp) {
    target?.link(name(link), value: value, of: characteristic, receivedAt: receivedAt)
  }

  func linkTableChanged(_ link: LinkID) { target?.linkTableChanged(name(link)) }
  func linkWritable(_ link: LinkID) { target?.linkWritable(name(link)) }

  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    guard let wrapped = links.withLock({ $0[link] }), !wrapped.hasSaidClosed else { return }
    if flaw == .talksBehindClose {
      target?.link(name(link), value: [0x99], of: .contractValue, receivedAt: executor.timestamp())
    }
    target?.link(name(link), closed: loss, inDoubt: flaw == .hidesDoubt ? [] : inDoubt)
    if flaw == .closesTwice { target?.link(name(link), closed: loss, inDoubt: []) }
  }
}

/// Passes requests on, with one flaw.
final class FlawedLink: Link {
  private struct State {
    var hidden: Set<RequestID> = []
    var hasSaidClosed = false
    var nextID: UInt64 = 1 << 40
  }

  let id: LinkID
  private let base: any Link
  private let flaw: Flaw
  private let executor: any SessionExecutor
  private let target: @Sendable () -> (any LinkHandler)?
  private let state = Locked(State())

  init(
    _ base: any Link, _ flaw: Flaw, named id: LinkID, _ executor: any SessionExecutor,
    _ target: @escaping @Sendable () -> (any LinkHandler)?
  ) {
    self.base = base
    self.flaw = flaw
    self.id = id
    self.executor = executor
    self.target = target
  }

  var hasSaidClosed: Bool { state.withLock { $0.hasSaidClosed } }
  var capabilities: LinkCapabilities { base.capabilities }
  var roundTrips: Int { base.roundTrips }
  func isHidden(_ request: RequestID) -> Bool { state.withLock { $0.hidden.contains(request) } }

  private func hiddenID() -> RequestID {
    state.withLock { state in
      state.nextID += 1
      let id = RequestID(rawValue: state.nextID)
      state.hidden.insert(id)
      return id
    }
  }

  func perform(_ asked: GATTRequest, id number: RequestID) -> LinkAcceptance {
    var request = asked
    if flaw == .shortensLongWrites, case .writeLong(let name, let value) = request {
      request = .writeLong(name, Array(value.dropLast()))
    }
    if flaw == .losesAValue, case .writeReliably(let writes) = request {
      request = .writeReliably(Array(writes.prefix(1)))
    }
    let isCommand = if case .writeWithoutResponse = request { true } else { false }
    if flaw == .losesAnswersToCommands, isCommand { state.withLock { _ = $0.hidden.insert(number) } }
    let result = base.perform(request, id: number)
    switch (flaw, result) {
    case (.answersInsideTheCall, .accepted):
      target()?.link(id, answered: number, with: .success(.done))
    case (.writesTwice, .accepted):
      // As a command, which a link takes beside the request that is under way.
      if case .write(let name, let value) = request {
        _ = base.perform(.writeWithoutResponse(name, value), id: hiddenID())
      }
    case (.takesUnknownNames, .refused(.characteristicNotFound)): return .accepted
    case (.sendsWhatItRefuses, .refused(.valueTooLong)):
      _ = base.perform(.write(.contractValue, [1]), id: hiddenID())
    case (.takesTooMuch, .later): return .accepted
    case (.takesRequestsWhenClosed, .refused(.linkClosed)): return .accepted
    default: break
    }
    return result
  }

  func abandon(_ request: RequestID) -> Bool {
    if flaw == .freesAbandoned { state.withLock { _ = $0.hidden.insert(request) } }
    return base.abandon(request)
  }

  func close() {
    base.close()
    guard flaw == .claimsTheEndTooEarly, !hasSaidClosed else { return }
    state.withLock { $0.hasSaidClosed = true }
    executor.post { [target, id] in target()?.link(id, closed: LinkLoss(.requested), inDoubt: []) }
  }
}
