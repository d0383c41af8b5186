/// What a loss means and what to do about it.
///
/// A first, cautious version: nothing but the reason and its evidence is looked at, so ambiguous codes get little
/// confidence and never the advice to remove a pairing.
enum Diagnosis {
  static func diagnose(
    _ loss: LinkLoss, generation: Generation?, willReconnect: Bool, inDoubt: OpenOffers
  ) -> DisconnectInfo {
    DisconnectInfo(
      reason: loss.reason, evidence: loss.evidence, confidence: confidence(in: loss),
      recovery: recovery(from: loss.reason), willReconnect: willReconnect,
      generation: generation, inDoubt: inDoubt.inDoubt, unconfirmed: inDoubt.unconfirmed)
  }

  private static func confidence(in loss: LinkLoss) -> Confidence {
    if loss.reason == .requested { return .high }
    let isAmbiguous = [.unknown, .authenticationFailure, .keyMissing, .micFailure].contains(loss.reason)
    if isAmbiguous { return .low }
    return loss.evidence.contains(where: \.isExact) ? .high : .medium
  }

  private static func recovery(from reason: DisconnectReason) -> RecoveryAction {
    if reason == .requested { return .none }
    if reason == .setupFailed { return .retryOperation }
    return reason.adapterState == nil ? .retryConnection : .waitForAdapter
  }
}

extension Evidence {
  /// Whether the source states the reason itself, without folding several into one.
  fileprivate var isExact: Bool {
    switch self {
    case .hci, .observation, .att: true
    case .management, .system, .endOfFile: false
    }
  }
}
