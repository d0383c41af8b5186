internal import BluetoothWire
internal import Relink

extension LinkLoss {
  /// The reason, or the fact that speaks for it most exactly.
  var cause: String {
    if reason == .unknown, let fact = evidence.first { return fact.description }
    return reason.rawValue
  }
}

/// Says what a transport would say about the end of a link or of a dial.
///
/// With exact reasons it has the controller's code, beside what the kernel makes of it. Without, it has the error number
/// that a Linux kernel gives for the code, as measured with kernel 6.1. What a code means is not said here: a loss has a
/// reason only where a transport knows it by other means.
struct RadioLosses: Sendable {
  var isExact: Bool

  /// A link that ended with this reason from the controller.
  func link(_ code: HCIErrorCode) -> LinkLoss {
    let error = Evidence.system(errorNumber(code), call: .receive)
    return LinkLoss(
      .unknown, evidence: isExact ? [.hci(code), .management(managementReason(code)), error] : [error])
  }

  /// A dial that ended with this reason from the controller.
  func dial(_ code: HCIErrorCode) -> LinkLoss {
    let error = Evidence.system(errorNumber(code), call: .connect)
    return LinkLoss(.unknown, evidence: isExact ? [.hci(code), error] : [error])
  }

  /// A link that was ended from here, because that was asked for.
  var requested: LinkLoss {
    LinkLoss(
      .requested,
      evidence: [
        isExact
          ? .hci(.connectionTerminatedByLocalHost) : .system(ErrorNumber.connectionAborted, call: .receive)
      ])
  }

  /// A link that ended because the device has no key for this host: the kernel saw encryption fail.
  var keyMissing: LinkLoss {
    LinkLoss(
      .unknown,
      evidence: isExact
        ? [.hci(.authenticationFailure), .encryption(.pinOrKeyMissing)]
        : [.management(4), .system(ErrorNumber.accessDenied, call: .receive)])
  }

  /// A device that was not heard within the time of a dial.
  let absent = LinkLoss(.notFound, evidence: [.system(ErrorNumber.connectionRefused, call: .connect)])

  /// A connection that was refused before the time of the dial was over.
  let refused = LinkLoss(.refused, evidence: [.system(ErrorNumber.connectionRefused, call: .connect)])

  /// A radio, or a device's channel, that another dial or socket holds.
  let busy = LinkLoss(.busy, evidence: [.system(ErrorNumber.busy, call: .connect)])

  /// An adapter that cannot be used, as a dial finds it.
  func dial(without adapter: AdapterState) -> LinkLoss {
    LinkLoss(adapter.reason, evidence: [.system(ErrorNumber.hostUnreachable, call: .connect)])
  }

  /// An adapter that cannot be used any more, as a link finds it.
  func link(without adapter: AdapterState) -> LinkLoss {
    let evidence: [Evidence] = [.system(ErrorNumber.connectionReset, call: .receive)]
    // The kernel names the remote side as the one that ended the link, save before it sleeps.
    let told = Evidence.management(adapter == .suspended ? 5 : 3)
    return LinkLoss(adapter.reason, evidence: isExact ? [told] + evidence : evidence)
  }

  /// The reason of Device Disconnected, into which the kernel folds most of the controller's.
  private func managementReason(_ code: HCIErrorCode) -> UInt8 {
    switch code.rawValue {
    case 0x08: 1
    case 0x16: 2
    case 0x13, 0x14, 0x15: 3
    default: 0
    }
  }

  private func errorNumber(_ code: HCIErrorCode) -> Int32 {
    switch code.rawValue {
    case 0x13, 0x14, 0x15: ErrorNumber.connectionReset
    case 0x08: ErrorNumber.timedOut
    case 0x16: ErrorNumber.connectionAborted
    case 0x05: ErrorNumber.accessDenied
    case 0x06: ErrorNumber.badExchange
    case 0x1A: ErrorNumber.protocolNotSupported
    case 0x29: ErrorNumber.operationNotSupported
    default: ErrorNumber.notSupported
    }
  }
}
