internal import BluetoothWire

/// What a loss means and what to do about it: a pure function of the codes, their sources, the moment, and what the
/// session remembers.
///
/// What the transport knows by itself (asked for, absent, no adapter) stands. Otherwise the most exact source decides:
/// the controller, then the device's own words, then the kernel's numbers, of which the one that folds fewer reasons
/// counts. Then come the rules that no table of codes can hold:
///
/// - What speaks about keys counts only where the link was to be encrypted or the device is bonded here. The first
///   time the session tries once more; the second time, or where controller or key store leave no doubt twice over, the
///   pairing has to be made anew, and the session waits for the user.
/// - A message integrity failure within ``micWindow`` of encryption speaks about keys; a later one is noise.
/// - A device that closes the link ``protectedLimit`` times in a row within ``protectedWindow`` of something that needs
///   the bond has probably lost it.
/// - A radio that was busy ``stuckDials`` times in a row is stuck.
/// - What the app has said will happen is no fault.
public enum Diagnosis {
  /// How soon after encryption began a message integrity failure speaks about keys.
  public static let micWindow = Duration.seconds(2)
  /// How soon after something that needs the bond a close by the device counts.
  public static let protectedWindow = Duration.seconds(2)
  /// How many such closes in a row make a lost bond likely.
  public static let protectedLimit = 3
  /// How many links in a row must speak against the keys before they are given up: one further attempt, no more.
  public static let keyLimit = 2
  /// How many dials in a row must find the radio busy before it counts as stuck.
  public static let stuckDials = 5

  /// What is to be said of a loss.
  public struct Finding: Hashable, Sendable {
    /// Why.
    public var reason: DisconnectReason
    /// The next step.
    public var recovery: RecoveryAction
    /// How sure that is.
    public var confidence: Confidence
    /// Whether the loss speaks against the keys of the bond.
    public var speaksAgainstKeys = false
    /// Whether the device closed the link straight after something that needs the bond.
    public var isProtectedClose = false
    /// Whether the session waits until the app says that the user has acted.
    public var needsUser = false
    /// Why the app expected it; nil where it did not.
    public var expectation: String?

    init(_ row: DiagnosisTable.Row) {
      (reason, recovery, confidence) = (row.reason, row.recovery, row.confidence)
    }
  }

  /// Says what a loss means.
  ///
  /// - Parameters:
  ///   - loss: What the transport says.
  ///   - moment: How far it had come.
  ///   - history: What is remembered.
  ///   - table: What codes mean by themselves.
  /// - Returns: The finding; every input has one.
  public static func diagnose(
    _ loss: LinkLoss, at moment: LinkMoment, history: DiagnosisHistory = DiagnosisHistory(),
    table: DiagnosisTable = .standard
  ) -> Finding {
    var finding = Finding(reading(of: loss, at: moment, table))
    if loss.reason == .requested { return finding }
    apply(history, to: &finding, moment)
    if let expectation = history.expectation, !finding.needsUser, finding.reason.isEndOfLink {
      finding.recovery = .none
      finding.expectation = expectation
    }
    return finding
  }

  // MARK: Reading the codes

  private static func reading(
    of loss: LinkLoss, at moment: LinkMoment, _ table: DiagnosisTable
  ) -> DiagnosisTable.Row {
    let keys = loss.evidence.compactMap { DiagnosisTable.Key($0, at: moment) }
    // A row that the app has set stands above everything.
    if let row = keys.lazy.compactMap({ table.changedRow(for: $0, at: moment) }).first { return row }
    if loss.reason != .unknown { return known(loss) }
    let rows = keys.map { (key: $0, row: table.row(for: $0, at: moment)) }
    let ranked = rows.filter { $0.row.reason != .unknown }.sorted { $0.key.rank < $1.key.rank }
    // What the controller says and nobody can read is not made clearer by a number into which it was folded.
    let isUnread = rows.contains { $0.key.isController && $0.row.reason == .unknown }
    guard let best = ranked.first, !(isUnread && best.key.isFolded) else {
      return DiagnosisTable.Row(.unknown, .retryConnection, .low)
    }
    // Two sources that fold reasons and say the same are surer than one.
    let agree = ranked.dropFirst().contains {
      $0.key.rank != best.key.rank && $0.row.reason == best.row.reason
    }
    guard agree, best.row.confidence == .low, !best.row.reason.isAboutKeys else { return best.row }
    return DiagnosisTable.Row(best.row.reason, best.row.recovery, .medium, best.row.note)
  }

  /// What the transport or the session says by itself.
  private static func known(_ loss: LinkLoss) -> DiagnosisTable.Row {
    let reason = loss.reason
    let recovery: RecoveryAction =
      switch reason {
      case .requested, .operationExpired: .none
      case .setupFailed: .retryOperation
      case .pairingFailed: .retryPairing
      case .bondMissing: .removePairingAndPairAgain
      default: reason.adapterState == nil ? .retryConnection : .waitForAdapter
      }
    let isExact = loss.evidence.contains(where: \.isExact)
    let confidence: Confidence =
      if reason == .requested || reason == .bondMissing { .high } else if reason.isAboutKeys {
        .low
      } else if isExact {
        .high
      } else { .medium }
    return DiagnosisTable.Row(reason, recovery, confidence)
  }

  // MARK: The rules

  private static func apply(_ history: DiagnosisHistory, to finding: inout Finding, _ moment: LinkMoment) {
    switch finding.reason {
    case .authenticationFailure, .keyMissing: judgeKeys(history, &finding)
    case .micFailure:
      if let span = history.encryptedFor, span > micWindow {
        finding.confidence = .medium
      } else {
        judgeKeys(history, &finding)
      }
    case .remoteUserTerminated, .remoteLowResources, .remotePowerOff: judgeClose(history, &finding)
    case .busy where history.busyDials + 1 >= stuckDials:
      finding.reason = .adapterStuck
      finding.confidence = .medium
    case .bondMissing, .pairingFailed:
      finding.needsUser = true
    default: break
    }
  }

  private static func judgeKeys(_ history: DiagnosisHistory, _ finding: inout Finding) {
    guard history.isBonded || history.wasEncryptionAsked else {
      if finding.recovery != .retryPairing {
        finding.recovery = .retryConnection
        finding.confidence = .low
      }
      finding.needsUser = finding.recovery == .retryPairing
      return
    }
    finding.speaksAgainstKeys = true
    guard history.keyFailures + 1 >= keyLimit else {
      finding.confidence = max(finding.confidence, .low)
      finding.recovery = .retryConnection
      return
    }
    finding.recovery = .removePairingAndPairAgain
    finding.confidence = finding.confidence == .low ? .medium : .high
    finding.needsUser = true
  }

  private static func judgeClose(_ history: DiagnosisHistory, _ finding: inout Finding) {
    guard let span = history.protectedFor, span <= protectedWindow, history.expectation == nil,
      history.isBonded || history.wasEncryptionAsked
    else { return }
    finding.isProtectedClose = true
    guard history.protectedCloses + 1 >= protectedLimit else { return }
    finding.reason = .keyMissing
    finding.recovery = .removePairingAndPairAgain
    finding.confidence = .low
    finding.needsUser = true
  }
}

extension DiagnosisTable.Key {
  /// Whether it is the controller's own reason.
  fileprivate var isController: Bool { if case .hci = self { true } else { false } }

  /// Whether several reasons of the controller look the same in it.
  fileprivate var isFolded: Bool {
    switch self {
    case .socket, .dial, .management, .endOfFile: true
    case .hci, .encryption, .pairing, .att: false
    }
  }

  /// Which source is believed first: the exact ones, then those that fold several reasons into one.
  fileprivate var rank: Int {
    switch self {
    case .encryption(let code): code == .success ? 9 : 0
    case .hci: 1
    case .pairing: 2
    case .att: 3
    case .socket(38): 6
    case .socket, .dial: 4
    case .management: 5
    case .endOfFile: 7
    }
  }
}

extension DisconnectReason {
  /// Whether it may speak about the keys of a bond.
  var isAboutKeys: Bool { [.authenticationFailure, .keyMissing, .micFailure].contains(self) }

  /// Whether it is a way in which a device goes away.
  fileprivate var isEndOfLink: Bool {
    switch self {
    case .supervisionTimeout, .remoteUserTerminated, .remoteLowResources, .remotePowerOff, .linkLayerFault,
      .notFound, .failedToEstablish, .refused, .unknown, .connectionParameters, .localHostTerminated,
      .micFailure, .authenticationFailure, .keyMissing:
      true
    case .requested, .bondMissing, .pairingFailed, .securityTimeout, .adapterOff, .adapterBlocked,
      .daemonStopped, .suspended, .adapterMissing, .notPermitted, .busy, .channelInUse, .outOfSlots,
      .adapterStuck, .phantomLink, .wrongAddressType, .transactionTimeout, .protocolViolation, .setupFailed,
      .preparationTimeout, .operationExpired:
      false
    }
  }
}

extension Evidence {
  /// Whether the source states the reason itself, without folding several into one.
  var isExact: Bool {
    switch self {
    case .hci, .encryption, .observation, .att: true
    case .pairing, .management, .system, .endOfFile: false
    }
  }
}
