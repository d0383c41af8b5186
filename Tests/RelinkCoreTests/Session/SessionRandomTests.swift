import Testing

@testable import RelinkCore

/// Random lives of a session: 100,000 inputs, legal ones and others, and what must hold after each.
@Suite struct SessionRandomTests {
  @Test(arguments: 0..<100 as Range<UInt64>)
  func aSessionKeepsItsRulesWhateverComes(seed: UInt64) {
    var life = SessionLife(seed: seed)
    for step in 0..<1_000 {
      life.step()
      if !life.violations.isEmpty {
        Issue.record("seed \(seed), step \(step), after \(life.trace.suffix(8)): \(life.violations)")
        return
      }
    }
    life.end()
    #expect(life.violations == [], "seed \(seed), at the end")
    #expect(life.waiting == 0, "seed \(seed): a caller waits for ever")
  }

  @Test func theSameSeedLivesTheSameLife() {
    func trace(_ seed: UInt64) -> [SessionLife.Entry] {
      var life = SessionLife(seed: seed)
      for _ in 0..<1_000 { life.step() }
      return life.trace
    }
    #expect(trace(7) == trace(7))
    #expect(trace(7) != trace(8))
  }

  @Test func theLivesReachEverything() {
    var seen: Set<String> = []
    for seed in 0..<20 as Range<UInt64> {
      var life = SessionLife(seed: seed)
      for _ in 0..<1_000 { life.step() }
      life.end()
      seen.formUnion(life.trace.flatMap(\.actions).map(\.kind))
    }
    let kinds = [
      "publish idle", "publish waiting", "publish connecting", "publish phase", "publish attemptFailed",
      "publish ready", "publish disconnected", "publish ended", "dial", "cancelAttempt", "adoptLink",
      "closeLink", "prepare", "offerOperations", "settleOperations", "resume", "askAdapterState", "setTimer",
      "cancelTimer",
    ]
    #expect(Set(kinds).subtracting(seen) == [])
  }
}

/// One random life.
private struct SessionLife {
  struct Entry: Equatable {
    var input: String
    var actions: [SessionStateMachine.Action]
  }

  private static let reasons: [DisconnectReason] = [
    .notFound, .failedToEstablish, .supervisionTimeout, .remoteUserTerminated, .adapterOff, .adapterMissing,
    .refused, .keyMissing, .micFailure, .busy, .pairingFailed, .adapterBlocked, .suspended,
  ]

  private var generator: SplitMix
  private var machine: SessionStateMachine
  private var world = SessionWorld()
  private var lastLink: UInt64 = 0
  private var lastWaiter: UInt64 = 0
  private(set) var trace: [Entry] = []

  var violations: [String] { world.violations }
  var waiting: Int { world.waiters.count }

  init(seed: UInt64) {
    generator = SplitMix(seed: seed)
    let policy = ReconnectionPolicy(
      isAutomatic: !seed.isMultiple(of: 5), attemptsPerOutage: seed.isMultiple(of: 3) ? 3 : nil,
      backoff: seed.isMultiple(of: 2) ? BackoffPolicy() : BackoffPolicy(base: .zero, cap: .zero),
      stability: .seconds(1))
    machine = SessionStateMachine(
      policy: policy, security: SecurityPolicy(level: seed.isMultiple(of: 7) ? .encrypted : .none),
      hasSetup: !seed.isMultiple(of: 4), seed: seed, now: .ms(0))
  }

  mutating func step() {
    world.advance(.milliseconds(Int64.random(in: 0...300, using: &generator)))
    if let timer = world.dueTimers.first {
      fire(timer)
    } else if world.wantsAdapterState {
      world.askedForAdapter()
      feed("adapter asked", machine.adapterChanged(randomAdapter(), now: world.now))
    } else {
      switch Int.random(in: 0..<100, using: &generator) {
      case 0..<10: app()
      case 10..<60: transport()
      case 60..<90: preparation()
      case 90..<99: nonsense()
      default: if chance(10) { close() }
      }
    }
    world.inspect(machine)
  }

  /// The app ends the session, and everything that still runs comes to its end.
  mutating func end() {
    close()
    for link in world.links { linkClosed(link.id) }
    for dial in world.dials { attemptFailed(dial.id) }
    world.inspect(machine)
  }

  // MARK: Inputs

  private mutating func app() {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<4:
      lastWaiter += 1
      let id = ConnectWaiterID(rawValue: lastWaiter)
      let deadline: MonotonicInstant? =
        chance(2)
        ? nil : world.now.advanced(by: .milliseconds(Int64.random(in: 0...5_000, using: &generator)))
      world.waits(id, until: deadline)
      if !world.isEnded { world.wished() }
      feed("connect", machine.connectRequested(id, deadline: deadline?.nanoseconds, now: world.now))
    case 4..<6:
      switch machine.workArrived(now: world.now) {
      case .wait(let actions):
        world.wished()
        feed("work", actions)
      case .refuse: feed("work refused", [])
      }
    case 6..<8:
      let id = ConnectWaiterID(rawValue: UInt64.random(in: 0...lastWaiter + 1, using: &generator))
      feed(
        "cancel",
        machine.connectCancelled(id, hasOtherWork: chance(2), now: world.now))
    case 8:
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: feed("user acted", machine.userActed(now: world.now))
      case 1: machine.bondKnown(chance(2) ? .bondedElsewhere : .none)
      default:
        machine.disconnectionExpected(within: .seconds(1), because: "restart", now: world.now)
      }
    default:
      world.unwished()
      feed("disconnect", machine.disconnectRequested(inDoubt: 1, now: world.now))
    }
  }

  private mutating func transport() {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<5:
      if let dial = world.dials.randomElement(using: &generator) {
        if chance(3) { attemptFailed(dial.id) } else { linkUp(dial.id) }
      }
    case 5..<8:
      if let link = world.links.randomElement(using: &generator), link.isClosing || chance(3) {
        linkClosed(link.id)
      }
    case 8:
      feed("adapter", machine.adapterChanged(randomAdapter(), now: world.now))
    default:
      if chance(4) { linkUp(nil) }
    }
  }

  /// The step that the machine asked for goes on, or another one out of turn.
  private mutating func preparation() {
    guard let link = world.current, let generation = machine.currentLink?.generation else { return }
    if chance(10) {
      return feed("table", machine.tableInvalidated(on: link))
    }
    if chance(15) {
      let loss = LinkLoss(.setupFailed)
      return feed(
        "preparation failed", machine.preparationFailed(on: link, loss, inDoubt: 0, now: world.now))
    }
    machine.roundTripsCounted(1, now: world.now)
    if chance(10) {
      return feed("security needed", machine.securityNeeded(.encrypted, on: link, now: world.now))
    }
    if world.securing != nil, chance(2) { return securing(link) }
    switch chance(5) ? ConnectionPhase.settingUp : world.step {
    case nil: break
    case .exchangingMTU: feed("mtu", machine.mtuExchanged(100, now: world.now))
    case .discovering, .revalidating: feed("learnt", machine.tableLearnt(changed: chance(2)))
    case .securing: securing(link)
    case .restoringSubscriptions: feed("restored", machine.subscriptionsRestored(now: world.now))
    case .settingUp: feed("set up", machine.setupFinished(on: generation, .resumed, now: world.now))
    }
  }

  private mutating func traits() -> LinkTraits {
    LinkTraits(needsMTUExchange: chance(2), mtu: 23, isSecurable: chance(2))
  }

  private mutating func securing(_ link: LinkID) {
    world.secured()
    if chance(3) {
      let loss = LinkLoss(chance(2) ? .bondMissing : .pairingFailed)
      feed("not secured", machine.linkNotSecured(link, loss, now: world.now))
    } else {
      feed("secured", machine.linkSecured(link, to: chance(8) ? .none : .encrypted, now: world.now))
    }
  }

  /// What a race or a confused transport may bring.
  private mutating func nonsense() {
    let old = Generation(rawValue: 0)
    switch Int.random(in: 0..<9, using: &generator) {
    case 0: feed("stale attempt", machine.attemptFailed(.number(0), LinkLoss(.refused), now: world.now))
    case 1: feed("stale link", machine.linkClosed(.number(0), LinkLoss(.refused), inDoubt: 0, now: world.now))
    case 2:
      lastLink += 1
      world.appeared(.number(lastLink))
      let link = LinkID.number(lastLink)
      feed(
        "link of no dial",
        machine.linkUp(link, attempt: .number(999_999), capabilities: .plain, now: world.now))
    case 3: feed("stale setup", machine.setupFinished(on: old, .fresh, now: world.now))
    case 4: feed("stale table", machine.tableInvalidated(on: .number(0)))
    case 5: feed("restored", machine.subscriptionsRestored(now: world.now))
    case 6: feed("mtu", machine.mtuExchanged(50, now: world.now))
    case 7: feed("learnt", machine.tableLearnt(changed: false))
    default:
      // A timer that was cancelled, or is not due.
      let timer = SessionStateMachine.Timer.allCases.randomElement(using: &generator) ?? .backoff
      if world.timers[timer] == nil {
        feed("stale \(timer)", machine.timerFired(timer, now: .at(world.now)))
      }
    }
  }

  // MARK: Parts

  private mutating func close() {
    world.unwished()
    feed("close", machine.endRequested(.closed, inDoubt: 0, now: world.now))
  }

  private mutating func fire(_ timer: SessionStateMachine.Timer) {
    world.fired(timer)
    feed("timer \(timer)", machine.timerFired(timer, now: .at(world.now)))
  }

  private mutating func linkUp(_ attempt: AttemptID?) {
    lastLink += 1
    world.appeared(.number(lastLink))
    if let attempt { world.dialEnded(attempt) }
    feed(
      "link up",
      machine.linkUp(
        .number(lastLink), attempt: attempt, capabilities: traits(), now: world.now))
  }

  private mutating func attemptFailed(_ id: AttemptID) {
    world.dialEnded(id)
    feed("attempt failed", machine.attemptFailed(id, LinkLoss(randomReason()), now: world.now))
  }

  private mutating func linkClosed(_ id: LinkID) {
    world.vanished(id)
    feed("link closed", machine.linkClosed(id, LinkLoss(randomReason()), inDoubt: 0, now: world.now))
  }

  private mutating func feed(_ input: String, _ actions: [SessionStateMachine.Action]) {
    trace.append(Entry(input: input, actions: actions))
    world.perform(actions)
  }

  private mutating func randomReason() -> DisconnectReason {
    Self.reasons.randomElement(using: &generator) ?? .unknown
  }

  private mutating func randomAdapter() -> AdapterState {
    chance(4) ? .off : chance(8) ? .missing : .on
  }

  private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
}

extension SessionStateMachine.Action {
  /// The name of the action, and of the event that it publishes.
  fileprivate var kind: String {
    switch self {
    case .publish(let event): "publish \("\(event)".prefix { $0 != "(" })"
    default: String("\(self)".prefix { $0 != "(" })
    }
  }
}
