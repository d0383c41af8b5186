import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

struct SocketLossTests {
  private static let calls: [Evidence.SystemCall] = [.connect, .receive, .send, .pendingError]

  /// The numbers that the kernel makes of HCI reasons on a link that was up.
  @Test(arguments: [
    (ECONNRESET, DisconnectReason.remoteUserTerminated),
    (EPIPE, .remoteUserTerminated),
    (ETIMEDOUT, .supervisionTimeout),
    (ECONNABORTED, .localHostTerminated),
    (EACCES, .authenticationFailure),
    (EBADE, .keyMissing),
    (EPROTONOSUPPORT, .linkLayerFault),
    (EOPNOTSUPP, .linkLayerFault),
    (EPROTO, .linkLayerFault),
    (ENOSYS, .linkLayerFault),
    (ENETDOWN, .adapterOff),
    (EHOSTUNREACH, .adapterOff),
    (ENODEV, .adapterMissing),
    (EPERM, .notPermitted),
    (ENOTCONN, .unknown),
    (EIO, .unknown),
  ])
  func endOfALink(error: Int32, reason: DisconnectReason) {
    let loss = LinkLoss.socket(error, call: .receive)
    #expect(loss.reason == .unknown, "the diagnosis reads numbers")
    #expect(Diagnosis.diagnose(loss, at: .ready).reason == reason)
  }

  @Test(arguments: [
    (ECONNREFUSED, true, DisconnectReason.notFound),
    (ECONNREFUSED, false, .refused),
    (ETIMEDOUT, false, .notFound),
    (EHOSTDOWN, false, .notFound),
    (ENOSYS, false, .failedToEstablish),
    (ENOTCONN, false, .failedToEstablish),
    (EBUSY, false, .busy),
    (EMLINK, false, .outOfSlots),
    (EHOSTUNREACH, false, .adapterOff),
    (ENETDOWN, false, .adapterOff),
    (ENODEV, false, .adapterMissing),
    (EAFNOSUPPORT, false, .adapterMissing),
    (EPERM, false, .notPermitted),
    (ECONNRESET, false, .remoteUserTerminated),
    (ECONNABORTED, false, .localHostTerminated),
    (EACCES, false, .authenticationFailure),
  ])
  func endOfADial(error: Int32, timeIsUp: Bool, reason: DisconnectReason) {
    let loss = LinkLoss.dial(error, call: .pendingError, timeIsUp: timeIsUp)
    #expect(Diagnosis.diagnose(loss, at: .dialling).reason == reason)
  }

  @Test func everyNumberOfEveryCallHasAReadingAndKeepsTheNumber() {
    for error in Int32(-1)...200 {
      for call in Self.calls {
        #expect(LinkLoss.socket(error, call: call).evidence == [.system(error, call: call)])
        for timeIsUp in [true, false] {
          let loss = LinkLoss.dial(error, call: call, timeIsUp: timeIsUp)
          #expect(loss.evidence == [.system(error, call: call)])
          #expect(loss.reason != .requested)
          if ![ECONNREFUSED, ETIMEDOUT].contains(error) {
            #expect(loss == LinkLoss.dial(error, call: call, timeIsUp: !timeIsUp))
          }
        }
      }
    }
  }

  @Test func furtherEvidenceStandsBehindAndOnlyOnce() {
    let loss = LinkLoss(.unknown, evidence: [.endOfFile]).adding([.management(3), .endOfFile])
    #expect(loss.evidence == [.endOfFile, .management(3)])
  }
}
