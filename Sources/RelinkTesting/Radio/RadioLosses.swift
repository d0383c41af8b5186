internal import BluetoothWire
internal import Relink

/// Says what a transport would say about the end of a link or of a dial.
///
/// With exact reasons it has the controller's code. Without, it has the error number that a Linux kernel gives for the
/// code, as measured with kernel 6.1, and only what that number tells.
struct RadioLosses: Sendable {
  var isExact: Bool

  /// A link that ended with this reason from the controller.
  func link(_ code: HCIErrorCode) -> LinkLoss {
    if isExact { return LinkLoss(reason(code), evidence: [.hci(code)]) }
    let number = errorNumber(code)
    return LinkLoss(reason(errorNumber: number), evidence: [.system(number, call: .receive)])
  }

  /// A dial that ended with this reason from the controller.
  func dial(_ code: HCIErrorCode) -> LinkLoss {
    if isExact { return LinkLoss(reason(code), evidence: [.hci(code)]) }
    let number = errorNumber(code)
    return LinkLoss(reason(errorNumber: number), evidence: [.system(number, call: .connect)])
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

  /// A device that was not heard within the time of a dial.
  let absent = LinkLoss(.notFound, evidence: [.system(ErrorNumber.connectionRefused, call: .connect)])

  /// A connection that was refused before the time of the dial was over.
  let refused = LinkLoss(.refused, evidence: [.system(ErrorNumber.connectionRefused, call: .connect)])

  /// A radio, or a device's channel, that another dial or socket holds.
  let busy = LinkLoss(.busy, evidence: [.system(ErrorNumber.busy, call: .connect)])

  /// An adapter that cannot be used, as a dial finds it.
  func dial(without adapter: AdapterState) -> LinkLoss {
    LinkLoss(
      adapter == .missing ? .adapterMissing : .adapterOff,
      evidence: [.system(ErrorNumber.hostUnreachable, call: .connect)])
  }

  /// An adapter that cannot be used any more, as a link finds it.
  func link(without adapter: AdapterState) -> LinkLoss {
    let evidence: [Evidence] = [.system(ErrorNumber.connectionReset, call: .receive)]
    // The kernel names the remote side as the one that ended the link.
    return LinkLoss(
      adapter == .missing ? .adapterMissing : .adapterOff,
      evidence: isExact ? [.management(3)] + evidence : evidence)
  }

  private func reason(_ code: HCIErrorCode) -> DisconnectReason {
    switch code.rawValue {
    case 0x05: .authenticationFailure
    case 0x06: .keyMissing
    case 0x08: .supervisionTimeout
    case 0x13: .remoteUserTerminated
    case 0x14: .remoteLowResources
    case 0x15: .remotePowerOff
    case 0x16: .localHostTerminated
    case 0x22, 0x28, 0x3B: .linkLayerFault
    case 0x3D: .micFailure
    case 0x3E: .failedToEstablish
    default: .unknown
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

  private func reason(errorNumber: Int32) -> DisconnectReason {
    switch errorNumber {
    case ErrorNumber.connectionReset: .remoteUserTerminated
    case ErrorNumber.timedOut: .supervisionTimeout
    case ErrorNumber.connectionAborted: .localHostTerminated
    case ErrorNumber.accessDenied: .authenticationFailure
    case ErrorNumber.badExchange: .keyMissing
    default: .unknown
    }
  }
}
