import BluetoothWire
import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

struct LossMergeStateMachineTests {
  private typealias Told = LossMergeStateMachine.Told

  private static let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

  private func at(_ span: Duration) -> MonotonicInstant { Self.start.advanced(by: span) }

  private func machine(_ number: Int32?, hasReceived: Bool = true) -> LossMergeStateMachine {
    let loss = number.map { LinkLoss.socket($0, call: .receive) } ?? .endOfFile
    return LossMergeStateMachine(loss, hasReceived: hasReceived, now: Self.start)
  }

  private func told(_ change: (inout Told) -> Void = { _ in }) -> Told {
    var told = Told()
    change(&told)
    return told
  }

  private func facts(_ reason: UInt8?, encryption: UInt8? = nil) -> ControllerLedger.Facts {
    ControllerLedger.Facts(
      encryption: encryption.map(HCIErrorCode.init(rawValue:)),
      reason: reason.map(HCIErrorCode.init(rawValue:)))
  }

  // MARK: Codes

  @Test func everythingThatWasToldIsEvidenceAndTheMostTellingStandsFirst() {
    var machine = machine(EACCES)
    let action = machine.asked(
      told {
        $0.controller = facts(0x16, encryption: 0x06)
        $0.controller?.hardwareError = 7
        $0.management = .authenticationFailure
      }, now: at(.zero))
    let evidence: [Evidence] = [
      .encryption(HCIErrorCode(rawValue: 6)), .hci(HCIErrorCode(rawValue: 0x16)),
      .system(EACCES, call: .receive), .management(4),
      .observation("the controller reported a fault of its hardware, number 7"),
    ]
    #expect(action == .report(LinkLoss(.unknown, evidence: evidence)))
  }

  @Test func whatFoldsMostStandsBehindTheKernelsReason() {
    for (number, vague) in [(ENOSYS, Evidence.system(ENOSYS, call: .receive)), (nil, .endOfFile)] {
      var machine = machine(number)
      let action = machine.asked(told { $0.management = .connectionTimeout }, now: at(.zero))
      #expect(action == .report(LinkLoss(.unknown, evidence: [.management(1), vague])))
    }
  }

  @Test func encryptionThatCameUpIsNoEvidence() {
    var machine = machine(ETIMEDOUT)
    let action = machine.asked(told { $0.controller = facts(0x08, encryption: 0) }, now: at(.zero))
    let evidence: [Evidence] = [.hci(HCIErrorCode(rawValue: 8)), .system(ETIMEDOUT, call: .receive)]
    #expect(action == .report(LinkLoss(.unknown, evidence: evidence)))
  }

  /// The sources alone, the socket alone, and all of them: the finest reason of those that told.
  @Test(
    arguments: [
      (0x22, ENOSYS, 0, DisconnectReason.linkLayerFault), (0x3B, ENOSYS, 0, .connectionParameters),
      (0x3D, ENOSYS, 0, .micFailure), (0x3E, ENOSYS, 0, .failedToEstablish),
      (0x08, ETIMEDOUT, 1, .supervisionTimeout),
      (0x13, ECONNRESET, 3, .remoteUserTerminated), (0x14, ECONNRESET, 3, .remoteLowResources),
      (0x15, ECONNRESET, 3, .remotePowerOff), (0x06, EBADE, 0, .keyMissing),
    ] as [(UInt8, Int32, UInt8, DisconnectReason)])
  func theControllersReasonDecides(_ hci: UInt8, _ number: Int32, _ mgmt: UInt8, _ reason: DisconnectReason) {
    var machine = machine(number)
    let action = machine.asked(
      told {
        $0.controller = facts(hci)
        $0.management = ManagementDisconnectReason(rawValue: mgmt)
      }, now: at(.zero))
    guard case .report(let loss) = action else { return #expect(Bool(false), "it waits") }
    #expect(Diagnosis.diagnose(loss, at: .ready).reason == reason)
  }

  @Test func everyNumberOfEverySourceIsReportedAndKept() {
    for code in UInt8(0)...255 {
      var machine = machine(Int32(code))
      let action = machine.asked(
        told {
          $0.controller = facts(code)
          $0.management = ManagementDisconnectReason(rawValue: code)
        }, now: at(LossMergeStateMachine.localSpan))
      guard case .report(let loss) = action else { return #expect(Bool(false), "it waits for \(code)") }
      #expect(loss.evidence.contains(.hci(HCIErrorCode(rawValue: code))))
      #expect(loss.evidence.contains(.management(code)))
      #expect(loss.evidence.contains(.system(Int32(code), call: .receive)))
    }
  }

  @Test func aLinkOnWhichNothingArrivedWasNotEstablished() {
    let evidence: [Evidence] = [.system(ENOSYS, call: .receive)]
    var mute = machine(ENOSYS, hasReceived: false)
    #expect(mute.asked(told(), now: at(.zero)) == .report(LinkLoss(.failedToEstablish, evidence: evidence)))
    var answered = machine(ENOSYS)
    #expect(answered.asked(told(), now: at(.zero)) == .report(LinkLoss(.unknown, evidence: evidence)))
    // The controller knows better.
    var known = machine(ENOSYS, hasReceived: false)
    guard case .report(let loss) = known.asked(told { $0.controller = facts(0x3D) }, now: at(.zero)) else {
      return #expect(Bool(false), "it waits")
    }
    #expect(loss.reason == .unknown)
  }

  // MARK: Waiting

  @Test func aSourceThatIsOpenIsWaitedForAndNotForLong() {
    var machine = machine(ECONNRESET)
    var now = at(.zero)
    var waits = 0
    while case .ask(let next) = machine.asked(told { $0.isOwed = true }, now: now) {
      waits += 1
      now = next
    }
    #expect(waits == 10)
    #expect(at(.zero).duration(to: now) == LossMergeStateMachine.patience)
    var prompt = self.machine(ECONNRESET)
    #expect(prompt.asked(told { $0.isOwed = true }, now: at(.zero)) == .ask(at: at(.milliseconds(2))))
    let reset = LinkLoss(
      .unknown, evidence: [.hci(HCIErrorCode(rawValue: 0x13)), .system(ECONNRESET, call: .receive)])
    #expect(
      prompt.asked(told { $0.controller = facts(0x13) }, now: at(.milliseconds(2))) == .report(reset))
  }

  @Test func whatWasToldOnceIsKept() {
    var machine = machine(ECONNRESET)
    _ = machine.asked(
      told {
        $0.management = .remote
        $0.isOwed = true
      }, now: at(.zero))
    guard case .report(let loss) = machine.asked(told(), now: at(.milliseconds(2))) else { return }
    #expect(loss.evidence.contains(.management(3)))
  }

  @Test func whatWasAskedForIsReportedAtOnce() {
    var machine = LossMergeStateMachine(LinkLoss(.requested), hasReceived: true, now: Self.start)
    let off = told {
      $0.adapter = .off
      $0.isOwed = true
    }
    #expect(machine.asked(off, now: at(.zero)) == .report(LinkLoss(.requested)))
  }

  // MARK: The adapter

  @Test(arguments: [
    (AdapterState.off, DisconnectReason.adapterOff), (.missing, .adapterMissing), (.blocked, .adapterBlocked),
    (.suspended, .suspended), (.notPermitted, .notPermitted),
  ])
  func withoutAnAdapterEveryLossIsTheAdapters(state: AdapterState, reason: DisconnectReason) {
    var machine = machine(ECONNRESET)
    let evidence: [Evidence] = [.system(ECONNRESET, call: .receive)]
    #expect(
      machine.asked(told { $0.adapter = state }, now: at(.zero))
        == .report(LinkLoss(reason, evidence: evidence)))
  }

  @Test func anEndFromHereIsTheAdaptersWhereThatGoesOffNext() {
    let ways: [(Int32, Told)] = [
      (ECONNABORTED, told()), (ECONNRESET, told { $0.controller = facts(0x16) }),
      (ECONNRESET, told { $0.management = .localHost }),
    ]
    for (number, first) in ways {
      var machine = machine(number)
      #expect(machine.asked(first, now: at(.zero)) == .ask(at: at(.milliseconds(10))))
      guard case .report(let loss) = machine.asked(told { $0.adapter = .off }, now: at(.milliseconds(10)))
      else {
        return #expect(Bool(false), "it waits")
      }
      #expect(loss.reason == .adapterOff)
    }
    var other = machine(ECONNABORTED)
    _ = other.asked(told(), now: at(.zero))
    guard case .report(let loss) = other.asked(told(), now: at(.milliseconds(300))) else {
      return #expect(Bool(false), "it waits")
    }
    #expect(Diagnosis.diagnose(loss, at: .ready).reason == .localHostTerminated)
  }

  @Test func aKeyThatIsMissingIsNoEndFromHere() {
    var machine = machine(EACCES)
    guard
      case .report = machine.asked(told { $0.controller = facts(0x16, encryption: 6) }, now: at(.zero))
    else { return #expect(Bool(false), "it waits") }
  }

  @Test func anAdapterThatIsOffBecauseItsDaemonStoppedSaysSo() {
    var machine = machine(ECONNABORTED)
    let open = told {
      $0.adapter = .off
      $0.daemon = .unanswered
    }
    #expect(machine.asked(open, now: at(.zero)) == .ask(at: at(.milliseconds(10))))
    // It may be on again before the answer comes.
    let stopped = told {
      $0.daemon = .stopped
      $0.remark = "why"
    }
    let evidence: [Evidence] = [.system(ECONNABORTED, call: .receive), .observation("why")]
    #expect(
      machine.asked(stopped, now: at(.milliseconds(10)))
        == .report(LinkLoss(.daemonStopped, evidence: evidence)))
    var running = self.machine(ECONNABORTED)
    _ = running.asked(open, now: at(.zero))
    guard case .report(let loss) = running.asked(open, now: at(LossMergeStateMachine.daemonSpan)) else {
      return #expect(Bool(false), "it waits for ever")
    }
    #expect(loss.reason == .adapterOff)
  }

  @Test func aDialWhoseAdapterWentAwayIsTheAdaptersThoughThatIsBack() {
    let loss = LinkLoss(.adapterOff, evidence: [.observation("off")])
    var machine = LossMergeStateMachine(loss, hasReceived: false, now: Self.start)
    #expect(
      machine.asked(told { $0.daemon = .unanswered }, now: at(.zero)) == .ask(at: at(.milliseconds(10))))
    #expect(machine.asked(told(), now: at(.milliseconds(10))) == .report(loss))
  }

  @Test func aHostThatFellAsleepAndWokeSinceIsStillTheReason() {
    var machine = machine(ECONNRESET)
    let told = told {
      $0.management = ManagementDisconnectReason(rawValue: 0x15)
      $0.isForSleep = true
    }
    let evidence: [Evidence] = [.system(ECONNRESET, call: .receive), .management(0x15)]
    #expect(machine.asked(told, now: at(.zero)) == .report(LinkLoss(.suspended, evidence: evidence)))
  }
}
