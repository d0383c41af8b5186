@testable import RelinkCore

/// Shorthand for scripts of a session machine: times in milliseconds, IDs by number.
extension SessionStateMachine {
  static func script(
    _ policy: ReconnectionPolicy = .plain, hasSetup: Bool = false, seed: UInt64 = 1
  ) -> SessionStateMachine {
    SessionStateMachine(policy: policy, hasSetup: hasSetup, seed: seed, now: .ms(0))
  }

  /// A machine whose dial is under way: attempt 1, waiter 1, since 0 ms.
  static func dialling(
    _ policy: ReconnectionPolicy = .plain, hasSetup: Bool = false
  ) -> SessionStateMachine {
    var machine = script(policy, hasSetup: hasSetup)
    _ = machine.connectRequested(.number(1), deadline: nil, now: .ms(0))
    return machine
  }

  /// A machine whose link 1 is being discovered, since 0 ms.
  static func discovering(
    _ policy: ReconnectionPolicy = .plain, hasSetup: Bool = false
  ) -> SessionStateMachine {
    var machine = dialling(policy, hasSetup: hasSetup)
    _ = machine.linkUp(.number(1), attempt: .number(1), capabilities: .plain, now: .ms(0))
    return machine
  }

  /// A machine that is ready on link 1, since 0 ms.
  static func ready(_ policy: ReconnectionPolicy = .plain) -> SessionStateMachine {
    var machine = discovering(policy)
    machine.makeReady(at: .ms(0))
    return machine
  }

  /// A machine whose first attempt failed at 0 ms; the delay after it is far from over.
  static func waitingInBackoff() -> SessionStateMachine {
    let policy = ReconnectionPolicy(backoff: BackoffPolicy(base: .seconds(1_000), cap: .seconds(1_000)))
    var machine = dialling(policy)
    _ = machine.attemptFailed(.number(1), LinkLoss(.failedToEstablish), now: .ms(0))
    return machine
  }

  /// A machine whose first attempt found, at 0 ms, that the adapter is off.
  static func waitingForAdapter() -> SessionStateMachine {
    var machine = dialling()
    _ = machine.attemptFailed(.number(1), LinkLoss(.adapterOff), now: .ms(0))
    return machine
  }

  /// A machine that waits, at 0 ms, for link 1 to be gone after the app's own end, with the wish for a new link.
  static func waitingForOldLink() -> SessionStateMachine {
    var machine = ready()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(0))
    _ = machine.connectRequested(.number(2), deadline: nil, now: .ms(0))
    return machine
  }

  /// From the table onwards, without setup.
  @discardableResult
  mutating func makeReady(at now: MonotonicInstant) -> [Action] {
    tableLearnt(changed: false) + subscriptionsRestored(now: now)
  }

  /// The dial brings a link that becomes ready at once.
  mutating func bringUp(_ link: LinkID, attempt: AttemptID, at now: MonotonicInstant) {
    _ = linkUp(link, attempt: attempt, capabilities: .plain, now: now)
    makeReady(at: now)
  }

  /// The actions that bring `linkUp` from a link without MTU exchange to its discovery.
  static func adoption(of link: UInt64, _ generation: UInt64, now: MonotonicInstant) -> [Action] {
    [
      .adoptLink(.number(link), Generation(rawValue: generation)),
      .setTimer(.preparation, at: now.advanced(by: ReconnectionPolicy.plain.preparationLimit)),
      .publish(.phase(.discovering)), .prepare(.discovering),
    ]
  }
}

extension ReconnectionPolicy {
  /// No random part: every delay after a failure is zero.
  static let plain = ReconnectionPolicy(backoff: BackoffPolicy(base: .zero, cap: .zero))
}

extension LinkTraits {
  static let plain = LinkTraits(needsMTUExchange: false, mtu: 23)
  static let exchanging = LinkTraits(needsMTUExchange: true, mtu: 23)
}

extension MonotonicInstant {
  static func ms(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
  }
}

extension Timestamp {
  /// The monotonic clock stands at `milliseconds`, after so many more of them in which the system was suspended.
  static func ms(_ milliseconds: Int64, suspended: Int64 = 0) -> Timestamp {
    var timestamp = Timestamp.at(.ms(milliseconds))
    timestamp.bootTime += .ms(suspended)
    return timestamp
  }
}

extension Int64 {
  /// A reading of boot time.
  static func ms(_ milliseconds: Int64) -> Int64 { milliseconds * 1_000_000 }
}

extension LinkID {
  static func number(_ number: UInt64) -> LinkID { LinkID(rawValue: number) }
}

extension AttemptID {
  static func number(_ number: UInt64) -> AttemptID { AttemptID(rawValue: number) }
}

extension ConnectWaiterID {
  static func number(_ number: UInt64) -> ConnectWaiterID { ConnectWaiterID(rawValue: number) }
}

extension DisconnectInfo {
  /// What the machine makes of a loss without evidence.
  static func of(
    _ reason: DisconnectReason, generation: UInt64? = nil, inDoubt: Int = 0, willReconnect: Bool = true
  ) -> DisconnectInfo {
    let moment: LinkMoment = generation == nil ? .dialling : .ready
    let finding = Diagnosis.diagnose(LinkLoss(reason), at: moment)
    return DisconnectInfo(
      reason: finding.reason, evidence: [], confidence: finding.confidence, recovery: finding.recovery,
      willReconnect: willReconnect, generation: generation.map(Generation.init(rawValue:)), inDoubt: inDoubt)
  }
}

extension AttemptInfo {
  static func first(_ number: Int = 1, after: DisconnectReason? = nil) -> AttemptInfo {
    AttemptInfo(number: number, remaining: nil, isReconnection: false, after: after)
  }

  static func again(_ number: Int = 1, after: DisconnectReason? = nil) -> AttemptInfo {
    AttemptInfo(number: number, remaining: nil, isReconnection: true, after: after)
  }
}

extension Readiness {
  static func on(
    _ generation: UInt64, outage: Duration = .zero, attempts: Int = 1, mtu: Int = 23, roundTrips: Int = 0,
    tableChanged: Bool = false, _ continuity: Continuity = .fresh
  ) -> Readiness {
    Readiness(
      generation: Generation(rawValue: generation), outage: outage, attempts: attempts, mtu: mtu,
      roundTrips: roundTrips, tableChanged: tableChanged, continuity: continuity)
  }
}
