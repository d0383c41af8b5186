import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

struct L2CAPDialStateMachineTests {
  private static let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

  private func at(_ span: Duration) -> MonotonicInstant { Self.start.advanced(by: span) }

  /// What a session makes of a failure, which is the last of the actions.
  private func failure(_ actions: [L2CAPDialStateMachine.Action]) -> DisconnectReason? {
    guard case .failed(let loss)? = actions.last else { return nil }
    return Diagnosis.diagnose(loss, at: .dialling).reason
  }

  /// A dial whose connect is pending in the kernel.
  private func armed(limit: Duration? = nil) -> L2CAPDialStateMachine {
    var machine = L2CAPDialStateMachine(deadline: limit.map(at))
    #expect(machine.started() == [.look])
    #expect(machine.looked(.none, now: at(.zero)) == [.connect])
    let timer = min(limit ?? .seconds(63), .seconds(63))
    #expect(
      machine.connectReturned(EINPROGRESS, armedAt: at(.zero), now: at(.zero)) == [.setTimer(at(timer))])
    return machine
  }

  @Test func aConnectThatCompletesIsALink() {
    var machine = armed()
    #expect(machine.becameWritable(error: 0, now: at(.seconds(5))) == [.cancelTimer, .up])
    #expect(machine.cancelled() == [], "the link was delivered before")
    #expect(machine.timerFired(now: at(.seconds(60))) == [])
  }

  @Test func aLinkThatEndsIsWaitedOutBeforeTheConnect() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    #expect(machine.started() == [.look])
    var now = MonotonicInstant.zero
    // Soon at first, since most are gone then, and at most each 50 ms.
    for interval in [1, 2, 4, 8, 16, 32, 50, 50] {
      let next = now.advanced(by: .milliseconds(interval))
      #expect(machine.looked(.ending, now: now) == [.setTimer(next)])
      #expect(machine.timerFired(now: next) == [.look])
      now = next
    }
    #expect(machine.looked(.none, now: now) == [.connect])
  }

  @Test func aConnectThatAdoptedALivingLinkIsClosedAndTheLinkWaitedOut() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.started()
    #expect(machine.looked(.alive, now: at(.zero)) == [.connect])
    #expect(
      machine.connectReturned(0, armedAt: at(.zero), now: at(.zero))
        == [.closeSocket, .endLink, .setTimer(at(.milliseconds(1)))])
    #expect(machine.timerFired(now: at(.milliseconds(50))) == [.look])
    #expect(machine.looked(.none, now: at(.milliseconds(50))) == [.connect])
    #expect(
      machine.connectReturned(EINPROGRESS, armedAt: at(.milliseconds(50)), now: at(.milliseconds(50))).count
        == 1)
  }

  @Test func aLinkThatSomebodyUsesIsBusyAndIsNotEnded() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.started()
    #expect(machine.looked(.alive, now: at(.zero)) == [.connect])
    let actions = machine.connectReturned(EBUSY, link: .alive, armedAt: at(.zero), now: at(.zero))
    #expect(actions.first == .closeSocket)
    guard case .failed(let loss)? = actions.last else { return #expect(Bool(false), "it goes on") }
    #expect(loss.reason == .channelInUse)
    #expect(loss.evidence.last == .system(EBUSY, call: .connect))
    guard case .observation(let advice)? = loss.evidence.first else {
      return #expect(Bool(false), "no advice")
    }
    #expect(advice.contains("disconnect it there"))
  }

  @Test func aRadioThatMakesAnotherLinkIsBusy() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.started()
    _ = machine.looked(.none, now: at(.zero))
    let busy = LinkLoss(.busy, evidence: [.system(EBUSY, call: .connect)])
    #expect(
      machine.connectReturned(EBUSY, armedAt: at(.zero), now: at(.zero)) == [.closeSocket, .failed(busy)])
  }

  @Test func aLinkThatLivesIsAskedOnlyOnce() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.looked(.alive, now: at(.zero))
    _ = machine.connectReturned(0, armedAt: at(.zero), now: at(.zero))
    #expect(machine.looked(.alive, now: at(.milliseconds(50))) == [.setTimer(at(.milliseconds(52)))])
  }

  @Test func aLinkThatDoesNotEndIsNamed() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.started()
    _ = machine.looked(.ending, now: at(.zero))
    #expect(machine.looked(.ending, now: at(.seconds(35))).count == 1)
    #expect(failure(machine.looked(.ending, now: at(.seconds(36)))) == .phantomLink)
    #expect(machine.timerFired(now: at(.seconds(37))) == [])
  }

  @Test func theLimitHoldsWhileAnOldLinkIsWaitedOut() {
    var machine = L2CAPDialStateMachine(deadline: at(.seconds(3)))
    _ = machine.started()
    _ = machine.looked(.ending, now: at(.zero))
    #expect(failure(machine.looked(.ending, now: at(.seconds(3)))) == .busy)
  }

  @Test(arguments: [ECONNREFUSED, ETIMEDOUT])
  func aConnectThatTheKernelGaveUpAfterItsTimeIsRenewed(error: Int32) {
    var machine = armed()
    #expect(
      machine.becameWritable(error: error, now: at(.milliseconds(59_900)))
        == [.cancelTimer, .closeSocket, .look])
    #expect(machine.looked(.none, now: at(.seconds(60))) == [.connect])
    #expect(
      machine.connectReturned(EINPROGRESS, armedAt: at(.seconds(60)), now: at(.seconds(60))) == [
        .setTimer(at(.seconds(123)))
      ])
    #expect(machine.becameWritable(error: 0, now: at(.seconds(61))) == [.cancelTimer, .up])
  }

  @Test func aParkedConnectThatIsTakenOverKeepsItsTime() {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.looked(.none, now: at(.seconds(50)))
    #expect(
      machine.connectReturned(EINPROGRESS, armedAt: at(.zero), now: at(.seconds(50)))
        == [.setTimer(at(.seconds(63)))])
    #expect(machine.becameWritable(error: ECONNREFUSED, now: at(.seconds(60))).last == .look)
  }

  @Test func aConnectThatTheKernelForgotIsRenewed() {
    var machine = armed()
    #expect(machine.timerFired(now: at(.seconds(63))) == [.closeSocket, .look])
    #expect(machine.looked(.none, now: at(.seconds(63))) == [.connect])
  }

  @Test func aDeviceThatIsNotHeardWithinTheLimitIsNotFound() {
    var machine = armed(limit: .seconds(90))
    #expect(machine.becameWritable(error: ECONNREFUSED, now: at(.seconds(60))).last == .look)
    _ = machine.looked(.none, now: at(.seconds(60)))
    #expect(
      machine.connectReturned(EINPROGRESS, armedAt: at(.seconds(60)), now: at(.seconds(60))) == [
        .setTimer(at(.seconds(90)))
      ])
    let actions = machine.timerFired(now: at(.seconds(90)))
    #expect(actions.first == .parkSocket)
    #expect(failure(actions) == .notFound)
  }

  @Test(arguments: [
    (EBUSY, DisconnectReason.busy), (EHOSTUNREACH, .adapterOff), (EAFNOSUPPORT, .adapterMissing),
    (EPERM, .notPermitted), (EMLINK, .outOfSlots),
  ])
  func aConnectThatIsRefusedAtOnceFails(error: Int32, reason: DisconnectReason) {
    var machine = L2CAPDialStateMachine(deadline: nil)
    _ = machine.started()
    _ = machine.looked(.none, now: at(.zero))
    let actions = machine.connectReturned(error, armedAt: at(.zero), now: at(.zero))
    #expect(actions.first == .closeSocket)
    #expect(failure(actions) == reason)
    guard case .failed(let loss)? = actions.last else { return }
    #expect(loss.evidence == [.system(error, call: .connect)])
  }

  @Test func refusedMeansAbsentOnlyAfterTheKernelsTime() {
    var early = armed()
    let refused = LinkLoss(.unknown, evidence: [.system(ECONNREFUSED, call: .pendingError)])
    let actions = early.becameWritable(error: ECONNREFUSED, now: at(.seconds(2)))
    #expect(actions == [.cancelTimer, .closeSocket, .failed(refused)])
    #expect(failure(actions) == .refused)
    var late = armed(limit: .seconds(60))
    let absent = LinkLoss(.notFound, evidence: [.system(ECONNREFUSED, call: .pendingError)])
    #expect(
      late.becameWritable(error: ECONNREFUSED, now: at(.seconds(60)))
        == [.cancelTimer, .closeSocket, .failed(absent)])
  }

  @Test func aDialEndsWithItsAdapterWhereverItIs() {
    var looking = L2CAPDialStateMachine(deadline: nil)
    _ = looking.started()
    var waiting = L2CAPDialStateMachine(deadline: nil)
    _ = waiting.looked(.ending, now: at(.zero))
    for var machine in [looking, waiting, armed()] {
      let actions = machine.adapterWentAway()
      #expect(actions.dropLast() == [.cancelTimer, .closeSocket])
      #expect(failure(actions) == .adapterOff)
      #expect(machine.adapterWentAway() == [])
      #expect(machine.cancelled() == [])
      #expect(machine.becameWritable(error: ECONNABORTED, now: at(.seconds(1))) == [])
    }
  }

  @Test func aDeviceUnderTheOtherTypeOfItsAddressEndsTheDialWithItsName() throws {
    let device = try #require(DeviceID("C0:DE:00:00:00:01/public").flatMap(DeviceAddress.init))
    var machine = armed()
    let actions = machine.heardUnderOtherType(device.other)
    #expect(actions.dropLast() == [.cancelTimer, .parkSocket])
    guard case .failed(let loss)? = actions.last else { return #expect(Bool(false), "it goes on") }
    #expect(loss.reason == .wrongAddressType)
    #expect(loss.evidence.description.contains("C0:DE:00:00:00:01/random"))
    #expect(machine.heardUnderOtherType(device.other) == [])
    var looking = L2CAPDialStateMachine(deadline: nil)
    #expect(looking.heardUnderOtherType(device.other) == [], "nothing is armed")
  }

  @Test func aCancelledDialFailsOnceWhereverItIs() {
    let requested = LinkLoss(.requested)
    let all: [L2CAPDialStateMachine.Action] = [.cancelTimer, .parkSocket, .failed(requested)]
    var looking = L2CAPDialStateMachine(deadline: nil)
    _ = looking.started()
    #expect(looking.cancelled() == all)
    #expect(looking.looked(.none, now: at(.zero)) == [])
    var waiting = L2CAPDialStateMachine(deadline: nil)
    _ = waiting.looked(.ending, now: at(.zero))
    #expect(waiting.cancelled() == all)
    #expect(waiting.timerFired(now: at(.seconds(1))) == [])
    var pending = armed()
    #expect(pending.cancelled() == all)
    #expect(pending.cancelled() == [])
    #expect(pending.becameWritable(error: 0, now: at(.seconds(1))) == [])
    #expect(pending.connectReturned(0, armedAt: at(.seconds(1)), now: at(.seconds(1))) == [])
  }
}
