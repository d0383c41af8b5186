internal import Glibc
internal import Relink

// What a socket says about a link. Its error number is evidence and is read by the diagnosis of the session, except where
// it means something only together with what the transport knows: the time that passed, and whose the link is.
extension LinkLoss {
  /// The other end closed, and no error says why.
  static let endOfFile = LinkLoss(.unknown, evidence: [.endOfFile])

  /// The end of a link that was up, by the error of a call on its socket.
  static func socket(_ error: Int32, call: Evidence.SystemCall) -> LinkLoss {
    LinkLoss(.unknown, evidence: [.system(error, call: call)])
  }

  /// The end of a dial, by the error of its connect or the one that was pending when the connect had ended.
  ///
  /// `timeIsUp` says whether the time that the kernel gives a connect (SO_SNDTIMEO) has passed; `link` is the link that the
  /// host has to the device.
  static func dial(
    _ error: Int32, call: Evidence.SystemCall, timeIsUp: Bool, link: LinkPresence = .none
  ) -> LinkLoss {
    let number = Evidence.system(error, call: call)
    switch error {
    case ECONNREFUSED where timeIsUp, ETIMEDOUT where timeIsUp:
      return LinkLoss(.notFound, evidence: [number])
    case EBUSY where link != .none:
      let advice = Evidence.observation(
        "another program of this host, bluetoothd for one, has the device's ATT channel: disconnect it there")
      return LinkLoss(.channelInUse, evidence: [advice, number])
    case EBUSY:
      return LinkLoss(.busy, evidence: [number])
    default:
      return LinkLoss(.unknown, evidence: [number])
    }
  }

  /// The same loss with further evidence behind its own.
  func adding(_ evidence: [Evidence]) -> LinkLoss {
    LinkLoss(reason, evidence: self.evidence + evidence.filter { !self.evidence.contains($0) })
  }
}
