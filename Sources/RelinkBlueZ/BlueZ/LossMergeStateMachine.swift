internal import BluetoothWire
internal import Glibc
internal import Relink

/// Makes one loss of what several sources say about the end of a link, or of a dial.
///
/// What decides the reason, in this order:
///
/// 1. The adapter: one that is gone, blocked, asleep or off ends every link, whatever the codes say. Off is
///    `daemonStopped` where bluetoothd was seen running before and is not any more.
/// 2. Codes, which are handed on and not read here: the reason stays `unknown`, and the diagnosis of the session reads
///    the evidence. It stands in the order in which it is to be believed: a failed switch to encryption, the controller's
///    reason, the error number of the socket, the kernel's reason; ENOSYS behind that, and behind everything end of file,
///    which fold most. Faults of the controller stand last.
/// 3. Time: a link on which nothing ever arrived and whose end the kernel has no number for (ENOSYS) was not
///    established, unless the controller says otherwise.
///
/// A source that is open and has not told yet is waited for, for at most ``patience``. The end of a link from here, which
/// nobody here asked for, is looked at for ``localSpan``: an adapter that is switched off ends its links first.
struct LossMergeStateMachine {
  /// What the sources say at one moment.
  struct Told: Equatable {
    var controller: ControllerLedger.Facts?
    var management: ManagementDisconnectReason?
    /// Whether the kernel ended the link on its way to sleep.
    var isForSleep = false
    /// Whether a source that is open has still to tell of this link.
    var isOwed = false
    var adapter = AdapterState.on
    var daemon = DaemonStateMachine.Fate.notStopped
    /// What else is known of an adapter that is off, in words.
    var remark: String?
  }

  /// What to do.
  enum Action: Equatable {
    /// Ask the sources again then, and say so with `asked`.
    case ask(at: MonotonicInstant)
    case report(LinkLoss)
  }

  /// How long a source that is open is waited for: the kernel queues what it tells before it wakes the socket, so this is
  /// for a busy machine.
  static let patience = Duration.milliseconds(20)
  /// How long the adapter is watched after an end from here.
  static let localSpan = Duration.milliseconds(300)
  /// How long bluetoothd is watched at most: what it gives itself to end (SHUTDOWN_GRACE_SECONDS of BlueZ's `main.c`).
  static let daemonSpan = Duration.seconds(10)
  static let sourceInterval = Duration.milliseconds(2)
  static let watchInterval = Duration.milliseconds(10)

  private let loss: LinkLoss
  private let hasReceived: Bool
  private let began: MonotonicInstant
  private var controller = ControllerLedger.Facts()
  private var management: ManagementDisconnectReason?
  private var isForSleep = false
  /// When off was seen first; an adapter that is back since does not change what the link was lost by.
  private var offSince: MonotonicInstant?
  private var remark: String?

  /// `loss` is what the socket said; `hasReceived` is whether anything had arrived on it.
  init(_ loss: LinkLoss, hasReceived: Bool, now: MonotonicInstant) {
    self.loss = loss
    self.hasReceived = hasReceived
    began = now
  }

  /// The sources were asked.
  mutating func asked(_ told: Told, now: MonotonicInstant) -> Action {
    take(told)
    if loss.reason == .requested { return .report(loss) }
    switch told.adapter {
    case .missing: return report(.adapterMissing)
    case .blocked: return report(.adapterBlocked)
    case .notPermitted: return report(.notPermitted)
    case .suspended: return report(.suspended)
    case .off, .on: break
    }
    if isForSleep { return report(.suspended) }
    // A dial whose adapter went away says so by itself; it may be back by now.
    if offSince == nil, told.adapter == .off || loss.reason == .adapterOff { offSince = now }
    if let offSince { return reportOff(since: offSince, told.daemon, now) }
    let waited = began.duration(to: now)
    if told.isOwed, waited < Self.patience { return .ask(at: now.advanced(by: Self.sourceInterval)) }
    if isFromHere, waited < Self.localSpan { return .ask(at: now.advanced(by: Self.watchInterval)) }
    return report(reasonOnTime)
  }

  private mutating func take(_ told: Told) {
    if let facts = told.controller {
      controller.encryption = facts.encryption ?? controller.encryption
      controller.reason = facts.reason ?? controller.reason
      controller.hardwareError = facts.hardwareError ?? controller.hardwareError
    }
    management = told.management ?? management
    isForSleep = isForSleep || told.isForSleep
    remark = told.remark ?? remark
  }

  private func reportOff(
    since: MonotonicInstant, _ daemon: DaemonStateMachine.Fate, _ now: MonotonicInstant
  ) -> Action {
    switch daemon {
    case .stopped: return report(.daemonStopped)
    case .notStopped: return report(.adapterOff)
    case .unanswered:
      guard since.duration(to: now) < Self.daemonSpan else { return report(.adapterOff) }
      return .ask(at: now.advanced(by: Self.watchInterval))
    }
  }

  /// Whether this host seems to have ended the link, without having been asked to here.
  private var isFromHere: Bool {
    if let encryption = controller.encryption, encryption != .success { return false }
    if let reason = controller.reason { return reason == .connectionTerminatedByLocalHost }
    if management == .localHost { return true }
    return errors.contains { Self.localErrors.contains($0) }
  }

  private static let localErrors = [ECONNABORTED, EHOSTUNREACH, ENETDOWN, ENODEV]

  private var errors: [Int32] {
    loss.evidence.compactMap { if case .system(let number, _) = $0 { number } else { nil } }
  }

  private var reasonOnTime: DisconnectReason {
    let isMute = !hasReceived && controller.reason == nil && controller.encryption == nil
    return isMute && loss.reason == .unknown && errors == [ENOSYS] ? .failedToEstablish : loss.reason
  }

  private func report(_ reason: DisconnectReason) -> Action {
    .report(LinkLoss(reason, evidence: evidence))
  }

  /// All that was told, the most telling first.
  private var evidence: [Evidence] {
    var ordered: [Evidence] = []
    if let status = controller.encryption, status != .success { ordered.append(.encryption(status)) }
    if let reason = controller.reason { ordered.append(.hci(reason)) }
    ordered += loss.evidence.filter { !$0.isVague }
    if let management { ordered.append(.management(management.rawValue)) }
    ordered += loss.evidence.filter(\.isVague)
    if let code = controller.hardwareError {
      ordered.append(.observation("the controller reported a fault of its hardware, number \(code)"))
    }
    if let remark { ordered.append(.observation(remark)) }
    return ordered
  }
}

extension Evidence {
  /// Whether it folds more reasons than the kernel's own few numbers do.
  fileprivate var isVague: Bool {
    switch self {
    case .endOfFile, .system(ENOSYS, _): true
    case .hci, .encryption, .pairing, .management, .system, .att, .observation: false
    }
  }
}
