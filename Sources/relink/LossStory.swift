internal import Relink

/// What a session says and does when its links end in the same way, time after time.
///
/// It is not written down here: the session's own machine is played.
struct LossStory {
  /// Where the losses happen.
  struct Situation: Hashable {
    var moment: LinkMoment
    var isBonded: Bool
  }

  /// What the session does next, by itself.
  enum Course: Hashable {
    case dialsAgain(usesAttempt: Bool)
    case waits(WaitReason)
    case staysAway
  }

  /// What one loss leads to.
  struct Step: Hashable {
    var reason: DisconnectReason
    var recovery: RecoveryAction
    var course: Course
  }

  /// How many losses are played.
  static let length = 5

  /// What each of the losses leads to; where the session waits for the user, what it has come to stays.
  static func play(_ loss: LinkLoss, in situation: Situation) -> [Step] {
    var player = Player(situation)
    var steps: [Step] = []
    while steps.count < length {
      guard let step = player.lose(loss) ?? steps.last else { break }
      steps.append(step)
    }
    return steps
  }
}

/// Plays a session's machine: adapters come back, delays pass, links come up and are lost.
private struct Player {
  private var machine: SessionStateMachine
  private let situation: LossStory.Situation
  private var now: MonotonicInstant = .zero
  private var attempt: AttemptID?
  private var lastLink: UInt64 = 0

  /// More than are ever used up.
  private static let attempts = 100
  /// Long enough for a dial to count as listening, for a link to count as stable, and for the keys to be proven.
  private static let lasting = Duration.seconds(60)

  init(_ situation: LossStory.Situation) {
    self.situation = situation
    machine = SessionStateMachine(
      policy: ReconnectionPolicy(attemptsPerOutage: Self.attempts),
      security: situation.isBonded ? .requireExistingBond : .asRequired, hasSetup: false, seed: 1, now: now)
    machine.bondKnown(situation.isBonded ? .bondedElsewhere : .none)
    take(machine.connectRequested(ConnectWaiterID(rawValue: 1), deadline: nil, now: now))
  }

  /// Comes as far as the situation says, and loses what there is; nil where the session dials nothing.
  mutating func lose(_ loss: LinkLoss) -> LossStory.Step? {
    guard let attempt = nextAttempt() else { return nil }
    let left = attemptsLeft
    self.attempt = nil
    let isReady = situation.moment == .ready
    switch situation.moment {
    case .dialling:
      now = now.advanced(by: Self.lasting)
      take(
        loss.reason == .requested
          ? machine.disconnectRequested(inDoubt: 0, now: now) : machine.attemptFailed(attempt, loss, now: now)
      )
    case .preparing, .ready:
      let link = linkUp(attempt)
      if isReady { becomeReady(link) }
      take(
        loss.reason == .requested
          ? machine.disconnectRequested(inDoubt: 0, now: now)
          : machine.linkClosed(link, loss, inDoubt: 0, now: now))
    }
    guard let info = machine.lastDisconnect else { return nil }
    let course: LossStory.Course
    switch machine.snapshot.state {
    case .idle, .ended: course = .staysAway
    case .waiting(let reason, _) where reason != .backoff: course = .waits(reason)
    case .waiting, .connecting, .ready:
      var ahead = self
      // The loss of a ready session ends no attempt.
      let isUsed = ahead.nextAttempt() == nil || ahead.attemptsLeft != left
      course = .dialsAgain(usesAttempt: isReady || isUsed)
    }
    return LossStory.Step(reason: info.reason, recovery: info.recovery, course: course)
  }

  /// The next dial, after what it has to wait for; nil where that is the app.
  private mutating func nextAttempt() -> AttemptID? {
    if case .waiting(let reason, _) = machine.snapshot.state, reason.isAboutAdapter {
      take(machine.adapterChanged(.on, now: now))
    }
    if case .waiting(.backoff, let until?) = machine.snapshot.state {
      now = until
      take(machine.timerFired(.backoff, now: Timestamp(monotonic: now, bootTime: 0, wall: 0)))
    }
    return attempt
  }

  private var attemptsLeft: Int? {
    if case .connecting(let info, _) = machine.snapshot.state { info.remaining } else { nil }
  }

  private mutating func linkUp(_ attempt: AttemptID) -> LinkID {
    lastLink += 1
    let link = LinkID(rawValue: lastLink)
    let traits = LinkTraits(needsMTUExchange: false, mtu: 23, isSecurable: true)
    take(machine.linkUp(link, attempt: attempt, capabilities: traits, now: now))
    return link
  }

  private mutating func becomeReady(_ link: LinkID) {
    if situation.isBonded { take(machine.linkSecured(link, to: .encrypted, now: now)) }
    take(machine.tableLearnt(changed: false))
    machine.deviceAnswered()
    take(machine.subscriptionsRestored(now: now))
    now = now.advanced(by: Self.lasting)
  }

  private mutating func take(_ actions: [SessionStateMachine.Action]) {
    for case .dial(let attempt) in actions { self.attempt = attempt }
  }
}

extension WaitReason {
  fileprivate var isAboutAdapter: Bool {
    switch self {
    case .adapterOff, .adapterBlocked, .adapterMissing, .suspended, .notPermitted: true
    case .backoff, .userAction, .previousLink: false
    }
  }
}
