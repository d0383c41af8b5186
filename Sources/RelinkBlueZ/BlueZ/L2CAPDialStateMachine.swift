internal import Glibc
internal import Relink

/// Decides what a dial over an L2CAP ATT socket does next.
///
/// ```
///             link is ending, or was adopted
///          ┌────────────────────────────────▶ waitingForOldLink ── too long ──▶ ended
///          │                                  │
/// looking ─┤              ┌───────────────────┘ gone
///   ▲      │              ▼
///   │      └─────────▶ arming ──▶ armed ── writable, error, limit, cancelled ──▶ ended
///   └──────── 60 s ───────────────┘
/// ```
///
/// From anywhere `cancelled` and the loss of the adapter lead to the end, and from `armed` the device's voice under the
/// other type of its address.
///
/// A link that lives is asked whose it is by a connect: the kernel says EBUSY if somebody uses its ATT channel, and 0
/// if nobody does. Such a link is not taken over, because answers and prepared values of its last user may be on it.
struct L2CAPDialStateMachine {
  /// What to do, in this order.
  enum Action: Equatable {
    /// See what link the host has to the device, and say so with `looked`.
    case look
    /// End the link to the device where that is permitted.
    case endLink
    /// Open a socket, call connect and say with `connectReturned` what it returned.
    case connect
    case closeSocket
    /// Leave the pending connect to itself, for the next dial of the device or for its own end.
    ///
    /// To close it may wedge the kernel: if the device was heard just now, the kernel (6.1) can cancel the connection
    /// before it has asked for it, and then nobody reaches the device until the adapter is switched off and on.
    case parkSocket
    case setTimer(MonotonicInstant)
    case cancelTimer
    /// The socket is connected. Nothing follows.
    case up
    /// There is no link. Nothing follows.
    case failed(LinkLoss)
  }

  private enum State {
    /// Exits: `waitingForOldLink`, `arming`.
    case looking
    /// Exits: `arming`, `ended`.
    case waitingForOldLink(until: MonotonicInstant, looks: LinkLooks)
    /// Exits: `armed`, `waitingForOldLink`, `ended`.
    case arming
    /// Exits: `looking`, `ended`.
    case armed(since: MonotonicInstant)
    case ended
  }

  /// The longest supervision timeout (32 s, Core Specification Vol 6 Part B 4.5.2) and what the kernel takes besides.
  static let oldLinkLimit = Duration.seconds(36)
  /// How long the kernel keeps a connect pending (SO_SNDTIMEO); then it is renewed, since one now and then hangs.
  static let kernelLimit = Duration.seconds(60)
  /// When a connect that the kernel should have ended is given up.
  static let watchdog = Duration.seconds(63)

  private let deadline: MonotonicInstant
  private var state = State.looking

  init(deadline: MonotonicInstant?) {
    self.deadline = deadline ?? .distantFuture
  }

  mutating func started() -> [Action] {
    [.look]
  }

  /// The host was asked for its link to the device.
  mutating func looked(_ link: LinkPresence, now: MonotonicInstant) -> [Action] {
    switch state {
    case .looking:
      if link == .ending { return waitForOldLink(now, ends: false) }
      state = .arming
      return [.connect]
    case .waitingForOldLink(let until, var looks):
      if link == .none {
        state = .arming
        return [.connect]
      }
      guard now < min(until, deadline) else {
        state = .ended
        // One that outlives every supervision timeout is a link of the host alone.
        let isPhantom = now >= until
        let seen = Evidence.observation(
          isPhantom
            ? "the host lists a link to the device that neither works nor ends; switch the adapter off and on"
            : "an earlier link to the device does not end")
        return [.failed(LinkLoss(isPhantom ? .phantomLink : .busy, evidence: [seen]))]
      }
      let next = looks.next(after: now)
      state = .waitingForOldLink(until: until, looks: looks)
      return [.setTimer(next)]
    case .arming, .armed, .ended:
      return []
    }
  }

  private mutating func waitForOldLink(_ now: MonotonicInstant, ends: Bool) -> [Action] {
    var looks = LinkLooks()
    let next = looks.next(after: now)
    state = .waitingForOldLink(until: now.advanced(by: Self.oldLinkLimit), looks: looks)
    return (ends ? [.endLink] : []) + [.setTimer(next)]
  }

  /// The socket could not be opened, or connect returned this error number, or 0.
  ///
  /// `armedAt` is when it was called: earlier than now where a parked connect was taken over. `link` is the link of the
  /// host to the device; it is asked for where the error leaves it open, and otherwise none.
  mutating func connectReturned(
    _ error: Int32, link: LinkPresence = .none, armedAt: MonotonicInstant, now: MonotonicInstant
  ) -> [Action] {
    guard case .arming = state else { return [] }
    switch error {
    case EINPROGRESS:
      state = .armed(since: armedAt)
      return [.setTimer(min(armedAt.advanced(by: Self.watchdog), deadline))]
    case 0:
      // Done at once: it adopted a link that lives, with whatever its last user left on it.
      return [.closeSocket] + waitForOldLink(now, ends: true)
    default:
      state = .ended
      return [.closeSocket, .failed(LinkLoss.dial(error, call: .connect, timeIsUp: false, link: link))]
    }
  }

  /// Every adapter that is meant was switched off or went away: the kernel may forget the connect without a word.
  ///
  /// There is nothing left that closing the socket could upset.
  mutating func adapterWentAway() -> [Action] {
    if case .ended = state { return [] }
    state = .ended
    let seen = Evidence.observation("the adapter was lost during the dial")
    return [.cancelTimer, .closeSocket, .failed(LinkLoss(.adapterOff, evidence: [seen]))]
  }

  /// The device was heard under the other type of its address, where this dial never finds it.
  mutating func heardUnderOtherType(_ other: DeviceID) -> [Action] {
    guard case .armed = state else { return [] }
    state = .ended
    let advice = Evidence.observation("the device is on the air as \(other): name it so")
    return [.cancelTimer, .parkSocket, .failed(LinkLoss(.wrongAddressType, evidence: [advice]))]
  }

  /// The socket became writable, or hung up; `error` is what was pending on it, or 0.
  mutating func becameWritable(error: Int32, now: MonotonicInstant) -> [Action] {
    guard case .armed(let since) = state else { return [] }
    // A little early: the kernel counts in ticks of its own.
    let timeIsUp = since.duration(to: now) >= Self.kernelLimit - .seconds(1)
    if timeIsUp, [ECONNREFUSED, ETIMEDOUT].contains(error), now < deadline {
      state = .looking
      return [.cancelTimer, .closeSocket, .look]
    }
    state = .ended
    if error == 0 { return [.cancelTimer, .up] }
    return [
      .cancelTimer, .closeSocket, .failed(LinkLoss.dial(error, call: .pendingError, timeIsUp: timeIsUp)),
    ]
  }

  mutating func timerFired(now: MonotonicInstant) -> [Action] {
    switch state {
    case .waitingForOldLink:
      return [.look]
    case .armed(let since):
      if now >= deadline {
        state = .ended
        let heard = Evidence.observation("the device was not heard in the time of the dial")
        return [.parkSocket, .failed(LinkLoss(.notFound, evidence: [heard]))]
      }
      guard since.duration(to: now) >= Self.watchdog else { return [] }
      state = .looking
      return [.closeSocket, .look]
    case .looking, .arming, .ended:
      return []
    }
  }

  mutating func cancelled() -> [Action] {
    if case .ended = state { return [] }
    state = .ended
    return [.cancelTimer, .parkSocket, .failed(LinkLoss(.requested))]
  }
}

/// When a link that has to go is looked for: soon, since the kernel forgets one that is ended within milliseconds, and
/// then less and less often, since one that nobody may end takes seconds.
struct LinkLooks: Equatable {
  static let first = Duration.milliseconds(1)
  static let longest = Duration.milliseconds(50)

  private var interval = LinkLooks.first

  /// The instant of the next look.
  mutating func next(after now: MonotonicInstant) -> MonotonicInstant {
    defer { interval = min(interval * 2, Self.longest) }
    return now.advanced(by: interval)
  }
}
