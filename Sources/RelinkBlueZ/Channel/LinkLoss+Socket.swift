internal import Glibc
internal import Relink

// What an error number of a socket says about a link. The kernel makes it from an HCI reason (bt_to_errno in
// net/bluetooth/lib.c), several reasons to a number; what is left is a reading, and the number stays in the evidence.
extension LinkLoss {
  /// The other end closed, and no error says why.
  static let endOfFile = LinkLoss(.remoteUserTerminated, evidence: [.endOfFile])

  /// The end of a link that was up, by the error of a call on its socket.
  static func socket(_ error: Int32, call: Evidence.SystemCall) -> LinkLoss {
    LinkLoss(reason(ofLink: error), evidence: [.system(error, call: call)])
  }

  /// The end of a dial, by the error of its connect or the one that was pending when the connect had ended.
  ///
  /// `timeIsUp` says whether the time that the kernel gives a connect (SO_SNDTIMEO) has passed.
  static func dial(_ error: Int32, call: Evidence.SystemCall, timeIsUp: Bool) -> LinkLoss {
    LinkLoss(reason(ofDial: error, timeIsUp: timeIsUp), evidence: [.system(error, call: call)])
  }

  /// The same loss with further evidence behind its own.
  func adding(_ evidence: [Evidence]) -> LinkLoss {
    LinkLoss(reason, evidence: self.evidence + evidence.filter { !self.evidence.contains($0) })
  }

  private static func reason(ofLink error: Int32) -> DisconnectReason {
    switch error {
    // 0x13, 0x14, 0x15; EPIPE is what a Unix socket says of a peer that is gone.
    case ECONNRESET, EPIPE: .remoteUserTerminated
    // 0x08, 0x10
    case ETIMEDOUT: .supervisionTimeout
    // 0x16
    case ECONNABORTED: .localHostTerminated
    // 0x05, 0x18
    case EACCES: .authenticationFailure
    // 0x06
    case EBADE: .keyMissing
    // 0x1a; 0x11, 0x20, 0x27, 0x29; 0x19, 0x1e, 0x23, 0x24, 0x25
    case EPROTONOSUPPORT, EOPNOTSUPP, EPROTO: .linkLayerFault
    // Everything that the kernel has no number for: 0x1f, 0x22, 0x28, 0x2f, 0x3b, 0x3d, 0x3e, 0x3f, 0x44.
    case ENOSYS: .linkLayerFault
    case ENETDOWN, EHOSTUNREACH, EHOSTDOWN: .adapterOff
    case ENODEV, ENXIO: .adapterMissing
    case EPERM: .notPermitted
    default: .unknown
    }
  }

  private static func reason(ofDial error: Int32, timeIsUp: Bool) -> DisconnectReason {
    switch error {
    // 0x0d, 0x0e, 0x0f, 0x1b from the device; the kernel's own timer says the same when nobody was heard.
    case ECONNREFUSED: timeIsUp ? .notFound : .refused
    case ETIMEDOUT, EHOSTDOWN: .notFound
    // 0x3e above all, and 0x02 of a connect that was called off after its 4 s: the device was heard, and then not.
    case ENOSYS, ENOTCONN: .failedToEstablish
    // Another socket has the device's ATT channel, or 0x0c; 0x09 and 0x0a: the controller has no slot left.
    case EBUSY, EMLINK, EALREADY: .busy
    // No adapter that is up has a way to the device.
    case EHOSTUNREACH, ENETDOWN, ENETUNREACH: .adapterOff
    case ENODEV, ENXIO, EAFNOSUPPORT, EPROTONOSUPPORT, EADDRNOTAVAIL: .adapterMissing
    case EPERM: .notPermitted
    default: reason(ofLink: error)
    }
  }
}
