import Foundation
import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

@Suite(.timeLimit(.minutes(1))) struct UnixTransportTests {
  private static let first = AttemptID(rawValue: 1)

  @Test func aConnectIsALinkAndEndOfFileIsItsLoss() async throws {
    try await withLoop { loop in
      let listener = try UnixListener(at: UnixListener.freshPath())
      let rig = try UnixRig(loop, path: listener.path)
      _ = try await rig.dial()
      let far = try listener.accept()
      #expect(await rig.recorder.first(1) == [.linkUp(Self.first)])
      let link = try #require(rig.recorder.link)
      let accepted = try await loop.run { link.perform(.exchangeMTU, id: RequestID(rawValue: 7)) }
      #expect(accepted == .accepted)
      let request = far.receive()
      #expect(request.first == 0x02)
      far.send([0x03, 100, 0])
      #expect(await rig.recorder.first(2).last == .answered(RequestID(rawValue: 7), .success(.mtu(100))))
      let discovering = try await loop.run { link.perform(.discover, id: RequestID(rawValue: 8)) }
      #expect(discovering == .accepted)
      _ = far.receive()
      far.close()
      let end = await rig.recorder.first(3).last
      let loss = LinkLoss(.unknown, evidence: [.endOfFile])
      #expect(end == .closed(loss, inDoubt: [RequestID(rawValue: 8)]))
    }
  }

  @Test func aLocalCloseIsReportedAtOnceAndSeenAtTheOtherEnd() async throws {
    try await withLoop { loop in
      let listener = try UnixListener(at: UnixListener.freshPath())
      let rig = try UnixRig(loop, path: listener.path)
      _ = try await rig.dial()
      let far = try listener.accept()
      _ = await rig.recorder.first(1)
      let link = try #require(rig.recorder.link)
      try await loop.run { link.close() }
      #expect(await rig.recorder.first(2).last == .closed(LinkLoss(.requested), inDoubt: []))
      #expect(far.receive() == [])
      try await loop.run { #expect(loop.descriptorCount == 0) }
    }
  }

  @Test func anAbsentDeviceIsAwaited() async throws {
    try await withLoop { loop in
      let path = UnixListener.freshPath()
      let rig = try UnixRig(loop, path: path)
      _ = try await rig.dial()
      try await loop.run { #expect(loop.timerCount == 1) }
      let listener = try UnixListener(at: path)
      let far = try listener.accept()
      #expect(await rig.recorder.first(1) == [.linkUp(Self.first)])
      far.close()
    }
  }

  @Test func aPathWhereNobodyListensAnyMoreIsAnAbsentDevice() async throws {
    try await withLoop { loop in
      let path = UnixListener.freshPath()
      // A file that is there and does not listen.
      #expect(FileManager.default.createFile(atPath: path, contents: Data()))
      defer { unlink(path) }
      let rig = try UnixRig(loop, path: path)
      _ = try await rig.dial(limit: .milliseconds(20))
      let loss = LinkLoss(.notFound, evidence: [.system(ECONNREFUSED, call: .connect)])
      #expect(await rig.recorder.first(1) == [.attemptFailed(Self.first, loss)])
    }
  }

  @Test func aDialEndsAtItsLimit() async throws {
    try await withLoop { loop in
      let rig = try UnixRig(loop, path: UnixListener.freshPath())
      let begun = loop.now
      _ = try await rig.dial(limit: .milliseconds(250))
      let loss = LinkLoss(.notFound, evidence: [.system(ENOENT, call: .connect)])
      #expect(await rig.recorder.first(1) == [.attemptFailed(Self.first, loss)])
      #expect(begun.duration(to: loop.now) >= .milliseconds(250))
      try await loop.run { #expect(loop.timerCount == 0) }
    }
  }

  @Test func aCancelledDialFailsOnceAndLeavesNothingBehind() async throws {
    try await withLoop { loop in
      let path = UnixListener.freshPath()
      let rig = try UnixRig(loop, path: path)
      let attempt = try await rig.dial()
      try await loop.run {
        attempt.cancel()
        #expect(rig.recorder.all.isEmpty, "never inside the call")
      }
      #expect(await rig.recorder.first(1) == [.attemptFailed(Self.first, LinkLoss(.requested))])
      try await loop.run { #expect(loop.timerCount == 0) }
      #expect(rig.recorder.all.count == 1)
    }
  }

  @Test func aDialThatIsCancelledInTheSameJobDoesNotConnect() async throws {
    try await withLoop { loop in
      let listener = try UnixListener(at: UnixListener.freshPath())
      let rig = try UnixRig(loop, path: listener.path)
      try await loop.run {
        rig.transport.dial(rig.device, attempt: Self.first, options: DialOptions()).cancel()
      }
      #expect(await rig.recorder.first(1) == [.attemptFailed(Self.first, LinkLoss(.requested))])
      try await loop.run { #expect(loop.descriptorCount == 0) }
    }
  }

  @Test func aPathThatCanBeNoSocketEndsTheDial() async throws {
    try await withLoop { loop in
      let rig = try UnixRig(loop, path: "/" + String(repeating: "x", count: 200))
      _ = try await rig.dial()
      let loss = LinkLoss(.unknown, evidence: [.system(ENAMETOOLONG, call: .connect)])
      #expect(await rig.recorder.first(1) == [.attemptFailed(Self.first, loss)])
    }
  }

  @Test(arguments: [EACCES, EPERM, EPROTOTYPE]) func aPathThatMayNotBeUsedIsARefusal(error: Int32) {
    #expect(UnixDial.reason(error) == .refused)
    #expect(!UnixDial.isAbsence(error))
  }

  @Test func aSocketOfAnotherTypeRefusesWithItsNumber() async throws {
    try await withLoop { loop in
      let path = UnixListener.freshPath()
      let listener = try UnixListener(at: path, type: SOCK_STREAM)
      let rig = try UnixRig(loop, path: listener.path)
      _ = try await rig.dial()
      let loss = LinkLoss(.refused, evidence: [.system(EPROTOTYPE, call: .connect)])
      #expect(await rig.recorder.first(1) == [.attemptFailed(Self.first, loss)])
    }
  }

  @Test func aDeviceHasOneHandlerAtATime() async throws {
    try await withLoop { loop in
      let rig = try UnixRig(loop, path: UnixListener.freshPath())
      let other = LinkEventRecorder()
      #expect(throws: RelinkError(.sessionExists, "")) {
        try rig.transport.register(other, for: rig.device)
      }
      try rig.transport.register(rig.recorder, for: rig.device)
      rig.transport.unregister(rig.device)
      try rig.transport.register(other, for: rig.device)
    }
  }

  @Test func aDeviceHasOneHandlerInTheProcessAndNotInEachTransport() async throws {
    try await withLoop { loop in
      let rig = try UnixRig(loop, path: UnixListener.freshPath())
      let second = UnixTransport(on: loop)
      let other = LinkEventRecorder()
      #expect(throws: RelinkError(.sessionExists, "")) { try second.register(other, for: rig.device) }
      // Nor can a transport give up what another one holds.
      second.unregister(rig.device)
      #expect(throws: RelinkError(.sessionExists, "")) { try second.register(other, for: rig.device) }
      rig.transport.unregister(rig.device)
      try second.register(other, for: rig.device)
      rig.transport.unregister(rig.device)
      #expect(throws: RelinkError(.sessionExists, "")) {
        try rig.transport.register(rig.recorder, for: rig.device)
      }
    }
  }

  @Test func aHandlerIsHeldWeakly() async throws {
    try await withLoop { loop in
      let transport = UnixTransport(on: loop)
      let device = try #require(UnixTransport.device(at: UnixListener.freshPath()))
      do {
        let dropped = LinkEventRecorder()
        try transport.register(dropped, for: device)
      }
      let next = LinkEventRecorder()
      try transport.register(next, for: device)
    }
  }

  @Test func aHandlerThatIsGoneIsReplacedThroughAnotherTransport() async throws {
    try await withLoop { loop in
      let first = UnixTransport(on: loop)
      let second = UnixTransport(on: loop)
      let device = try #require(UnixTransport.device(at: UnixListener.freshPath()))
      do {
        let dropped = LinkEventRecorder()
        try first.register(dropped, for: device)
      }
      let next = LinkEventRecorder()
      try second.register(next, for: device)
      // The late word of the first is not the second's.
      first.unregister(device)
      #expect(throws: RelinkError(.sessionExists, "")) {
        try first.register(LinkEventRecorder(), for: device)
      }
      withExtendedLifetime(next) {}
    }
  }

  @Test func aTransportThatIsGoneHoldsNoDevice() async throws {
    try await withLoop { loop in
      let device = try #require(UnixTransport.device(at: UnixListener.freshPath()))
      let recorder = LinkEventRecorder()
      try UnixTransport(on: loop).register(recorder, for: device)
      let other = LinkEventRecorder()
      let transport = UnixTransport(on: loop)
      try transport.register(other, for: device)
      withExtendedLifetime((recorder, transport)) {}
    }
  }

  @Test(arguments: ["C0:DE:00:00:00:01/random", "unix:", "/run/lock", "tcp:1"])
  func aDeviceThatIsNoPathIsRefused(text: String) async throws {
    try await withLoop { loop in
      let device = try #require(DeviceID(text))
      #expect(throws: RelinkError(.invalidArgument, "")) {
        try UnixTransport(on: loop).register(LinkEventRecorder(), for: device)
      }
    }
  }

  @Test func aPeripheralInAnotherLanguageIsDialledAgainAfterEachLoss() async throws {
    try await withLoop { loop in
      let peripheral = try PythonPeripheral()
      defer { peripheral.kill() }
      let rig = try UnixRig(loop, path: peripheral.path)
      for round in UInt64(1)...5 {
        _ = try await rig.dial(round)
        let before = Int(round - 1) * 3
        #expect(await rig.recorder.first(before + 1).last == .linkUp(AttemptID(rawValue: round)))
        let link = try #require(rig.recorder.link)
        let id = RequestID(rawValue: round)
        _ = try await loop.run { link.perform(.exchangeMTU, id: id) }
        #expect(await rig.recorder.first(before + 2).last == .answered(id, .success(.mtu(64))))
        try await loop.run { link.close() }
        #expect(await rig.recorder.first(before + 3).last == .closed(LinkLoss(.requested), inDoubt: []))
      }
      // A process that is killed is a device that is lost, and then absent.
      _ = try await rig.dial(6)
      #expect(await rig.recorder.first(16).last == .linkUp(AttemptID(rawValue: 6)))
      peripheral.kill()
      guard case .closed(let loss, inDoubt: []) = await rig.recorder.first(17).last else {
        Issue.record("the link was not lost")
        return
      }
      #expect(Diagnosis.diagnose(loss, at: .ready).reason == .remoteUserTerminated)
      _ = try await rig.dial(7, limit: .milliseconds(10))
      guard case .attemptFailed(_, let absence) = await rig.recorder.first(18).last else {
        Issue.record("a device that is gone was found")
        return
      }
      #expect(absence.reason == .notFound)
    }
  }
}
