@testable import RelinkCore

/// The world around a session machine: it does what the machine asks, as a shell, a transport and their timers would,
/// and says what a session must never do.
struct SessionWorld {
  private enum Place { case resting, attempting, ready, ended }

  private(set) var violations: [String] = []
  private(set) var now = MonotonicInstant.ms(0)

  /// Dials under way, by whether they were called off.
  private(set) var dials: [(id: AttemptID, isCancelled: Bool)] = []
  /// Links that are not gone yet, by whether they were closed here.
  private(set) var links: [(id: LinkID, isClosing: Bool)] = []
  private(set) var current: LinkID?
  /// The link that is being secured.
  private(set) var securing: LinkID?
  private(set) var waiters: [(id: ConnectWaiterID, deadline: MonotonicInstant?)] = []
  private(set) var timers: [SessionStateMachine.Timer: MonotonicInstant] = [:]
  private(set) var step: ConnectionPhase?
  private(set) var wantsAdapterState = false
  private(set) var isEnded = false
  /// Whether somebody has asked for a link since the session last rested.
  private(set) var mayDial = false

  private var place: Place = .resting
  private var attempt = 0
  private var generation: UInt64 = 0
  private var resumed: Set<UInt64> = []

  var dueTimers: [SessionStateMachine.Timer] {
    SessionStateMachine.Timer.allCases.filter { timers[$0].map { $0 <= now } ?? false }
  }

  mutating func advance(_ span: Duration) { now = now.advanced(by: span) }

  mutating func waits(_ id: ConnectWaiterID, until deadline: MonotonicInstant?) {
    waiters.append((id, deadline))
  }

  mutating func wished() { mayDial = true }
  mutating func unwished() { mayDial = false }
  mutating func appeared(_ link: LinkID) { links.append((link, false)) }
  mutating func vanished(_ link: LinkID) {
    links.removeAll { $0.id == link }
    if current == link { leave() }
  }
  private mutating func leave() {
    current = nil
    securing = nil
  }
  mutating func secured() { securing = nil }
  mutating func dialEnded(_ id: AttemptID) { dials.removeAll { $0.id == id } }
  mutating func fired(_ timer: SessionStateMachine.Timer) { timers[timer] = nil }
  mutating func askedForAdapter() { wantsAdapterState = false }

  // MARK: What the machine asks for

  mutating func perform(_ actions: [SessionStateMachine.Action]) {
    for action in actions { perform(action) }
  }

  private mutating func perform(_ action: SessionStateMachine.Action) {
    switch action {
    case .publish(let event):
      publish(event)
    case .dial(let id):
      check(dials.isEmpty, "a dial beside another")
      check(!links.contains { $0.isClosing }, "a dial while an old link is not gone")
      check(current == nil, "a dial beside the link in use")
      check(mayDial, "a dial that nobody wants")
      dials.append((id, false))
    case .cancelAttempt(let id):
      guard let index = dials.firstIndex(where: { $0.id == id }) else { return fail("cancels no dial") }
      check(!dials[index].isCancelled, "cancels a dial twice")
      dials[index].isCancelled = true
    case .adoptLink(let id, let new):
      check(links.contains { $0.id == id && !$0.isClosing }, "adopts a link that is not up")
      check(current == nil, "adopts a second link")
      check(new.rawValue == generation + 1, "a generation that does not ascend by one")
      generation = new.rawValue
      current = id
    case .closeLink(let id):
      guard let index = links.firstIndex(where: { $0.id == id }) else { return fail("closes no link") }
      check(!links[index].isClosing, "closes a link twice")
      links[index].isClosing = true
      if current == id { leave() }
    case .secure(let id, let level, _):
      check(current == id, "secures a link that is not in use")
      check(securing == nil, "secures a link twice at a time")
      check(level > .none, "secures a link to nothing")
      securing = id
    case .declineSecurity(let id):
      check(current == id, "declines security of a link that is not in use")
    case .prepare(let phase):
      check(current != nil, "prepares no link")
      step = phase
    case .offerOperations:
      check(place == .ready, "offers operations before ready")
    case .settleOperations:
      check(current == nil || place != .ready, "settles operations that could be answered")
    case .resume(let ids, _):
      for id in ids {
        check(resumed.insert(id.rawValue).inserted, "resumes a waiter twice")
        check(waiters.contains { $0.id == id }, "resumes somebody who does not wait")
        waiters.removeAll { $0.id == id }
      }
    case .askAdapterState:
      wantsAdapterState = true
    case .setTimer(let timer, let instant):
      timers[timer] = instant
    case .setConnectTimer(let instant):
      timers[.connect] = MonotonicInstant(nanoseconds: instant)
    case .cancelTimer(let timer):
      timers[timer] = nil
    }
  }

  // MARK: The grammar of the history

  private mutating func publish(_ event: ConnectionEvent) {
    check(!isEnded, "an event after the end: \(event)")
    switch (place, event) {
    case (.resting, .idle):
      attempt = 0
      mayDial = false
    case (.resting, .waiting):
      break
    case (.resting, .connecting(let info)):
      check(info.number == attempt + 1 || info.number == 1, "an attempt out of its order")
      attempt = info.number
      place = .attempting
    case (.attempting, .phase(let phase)):
      check(phase != .revalidating, "revalidates before ready")
    case (.ready, .phase(let phase)):
      check(phase == .revalidating, "prepares after ready")
    case (.attempting, .attemptFailed):
      place = .resting
    case (.attempting, .ready(let readiness)):
      check(readiness.generation.rawValue == generation, "ready on an old generation")
      attempt = 0
      place = .ready
    case (.ready, .disconnected(let info)):
      check(info.generation?.rawValue == generation, "lost another generation")
      place = .resting
    case (.resting, .ended):
      isEnded = true
      place = .ended
    default:
      fail("\(event) while \(place)")
    }
  }

  // MARK: What must hold between two inputs

  mutating func inspect(_ machine: SessionStateMachine) {
    let state = machine.snapshot.state
    switch state {
    case .idle: check(place == .resting && !machine.wanted, "idle and still wanted")
    case .waiting(let reason, let until):
      check(place == .resting, "waits inside an attempt")
      switch reason {
      case .backoff: check(until != nil && timers[.backoff] == until, "a delay without its timer")
      case .userAction(let action):
        check(machine.userAction == action, "waits for a user who was not asked")
        check(timers[.backoff] == nil, "waits for a user and for a delay")
      case .previousLink:
        check(
          links.contains { $0.isClosing } || dials.contains { $0.isCancelled }, "waits for no old link")
      case .adapterOff, .adapterBlocked, .suspended, .adapterMissing, .notPermitted:
        check(timers[.adapter] != nil || wantsAdapterState, "nobody asks for the adapter")
      }
    case .connecting(_, nil):
      check(dials.contains { !$0.isCancelled }, "waits for no dial")
    case .connecting(_, .some):
      check(place == .attempting && current != nil, "prepares without a link")
      check(timers[.preparation] != nil, "prepares without a bound")
    case .ready: check(place == .ready && current != nil, "ready without a link")
    case .ended: check(isEnded, "ended without saying so")
    }
    check(machine.currentLink?.id == current, "uses another link than the shell")
    check(dials.count { !$0.isCancelled } <= 1, "two dials")
    if let first = waiters.compactMap(\.deadline).min() {
      check(timers[.connect].map { $0 <= first } ?? false, "a caller with a deadline and no timer")
    }
    switch state {
    case .idle, .ready, .ended: check(waiters.isEmpty, "a caller waits for nothing")
    case .waiting, .connecting: break
    }
  }

  private mutating func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { fail(what()) }
  }

  private mutating func fail(_ what: String) {
    if violations.count < 5 { violations.append(what) }
  }
}
