import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Cases B01 and B19 for the calls that came with the journal: each ends, whatever ends the link, and the device counts.
@Suite struct JournalCallLossTests {
  enum LinkEnd: CaseIterable {
    case remoteTerminate, localDisconnect, supervisionTimeout, adapterOff, endOfFile

    var reason: DisconnectReason {
      switch self {
      case .remoteTerminate: .remoteUserTerminated
      case .localDisconnect: .requested
      case .supervisionTimeout: .supervisionTimeout
      case .adapterOff: .adapterOff
      case .endOfFile: .remoteUserTerminated
      }
    }

    func happen(_ scene: Scene, _ peripheral: VirtualPeripheral) {
      switch self {
      case .remoteTerminate: peripheral.terminate()
      case .localDisconnect:
        scene.executor.spawn("disconnect") { [session = scene.session] in await session.disconnect() }
      case .supervisionTimeout: scene.radio.lose(scene.device, .connectionTimeout)
      case .adapterOff: scene.radio.setAdapter(.off)
      case .endOfFile: scene.radio.lose(scene.device, exactly: LinkLoss(.unknown, evidence: [.endOfFile]))
      }
    }
  }

  let peripheral = VirtualPeripheral.twoValues()

  /// Connects, and brings a call to the moment at which the device has its request and says nothing.
  private func begin(
    _ call: JournalCall, _ scene: Scene, _ reaction: ServerReaction = .swallow
  ) throws -> SpawnedTask<WriteOutcome> {
    try scene.connect()
    let opcode: ATTOpcode = call.isReliable ? .executeWriteRequest : .writeRequest
    peripheral.react(to: .opcode(opcode), with: reaction, times: 1)
    let caller = scene.spawn("\(call)") { try await call.make($0) }
    scene.executor.advance(by: .seconds(1))
    return caller
  }

  private func resolve(_ call: JournalCall, _ verdict: Verdict, _ scene: Scene) throws {
    guard call.fate == .resolvedByTheApp, let id = call.id else { return }
    try scene.drive("resolve") { try await $0.resolve(id, as: verdict, by: "Ada") }
  }

  @Test(
    "B01: ends within a second where nobody reconnects", arguments: JournalCall.allCases, LinkEnd.allCases)
  func withoutReconnectionEachCallerLearnsOneDoubtAtOnce(_ call: JournalCall, _ end: LinkEnd) throws {
    var configuration = JournalCall.configuration
    configuration.reconnection = ReconnectionPolicy(isAutomatic: false, attemptsPerOutage: 1)
    try Scene.play(peripheral, configuration, isDurable: true) { scene in
      let caller = try begin(call, scene)
      #expect(!caller.hasEnded)
      end.happen(scene, peripheral)
      scene.executor.advance(by: .seconds(1))
      let cause = caller.value?.doubt?.cause
      if call == .exclusive {
        #expect(cause == .linkLost(end.reason))
      } else if end == .localDisconnect {
        #expect(cause == .disconnected)
      } else if call.fate == .leftInDoubt {
        #expect(cause == .linkLost(end.reason))
      } else {
        #expect(cause == .notReconnecting)
      }
      #expect(scene.belongings.operations == 0)
      scene.radio.setAdapter(.on)
      try scene.connect(.seconds(3))
      scene.executor.advance(by: .seconds(30))
      #expect(peripheral.wr(0x0010) == 0)
      #expect(peripheral.counters.reads[0x0010] == nil)
    }
  }

  @Test(
    "B19: dropped before it was carried out", arguments: JournalCall.allCases, LinkEnd.allCases)
  func afterALossBeforeApplyingTheTagDecides(_ call: JournalCall, _ end: LinkEnd) throws {
    guard end != .localDisconnect else { return }
    try Scene.play(peripheral, JournalCall.configuration, isDurable: true) { scene in
      let caller = try begin(call, scene)
      end.happen(scene, peripheral)
      scene.executor.advance(by: .seconds(1))
      scene.radio.setAdapter(.on)
      scene.executor.advance(by: .seconds(10))
      #expect(scene.session.snapshot().isReady)
      try resolve(call, .notApplied, scene)
      scene.executor.advance(by: .seconds(10))
      expectEnd(of: caller, call, applied: 0, end.reason)
      #expect(scene.recorder.disconnections.map(\.inDoubt) == [call == .exclusive ? 0 : 1])
    }
  }

  @Test("B19: carried out, and dropped before the answer", arguments: JournalCall.allCases)
  func afterALossBehindApplyingTheTagDecides(_ call: JournalCall) throws {
    try Scene.play(peripheral, JournalCall.configuration, isDurable: true) { scene in
      let caller = try begin(call, scene, .applyAndDrop())
      scene.executor.advance(by: .seconds(10))
      #expect(scene.session.snapshot().isReady)
      try resolve(call, .applied, scene)
      scene.executor.advance(by: .seconds(10))
      expectEnd(of: caller, call, applied: 1, .remoteUserTerminated)
      scene.executor.advance(by: .seconds(60))
      #expect(peripheral.wr(0x0010) == (call.fate == .repeated ? 2 : 1))
    }
  }

  /// Checks what the caller learnt, and what the device counted, where the first offer was applied so many times.
  private func expectEnd(
    of caller: SpawnedTask<WriteOutcome>, _ call: JournalCall, applied: Int, _ reason: DisconnectReason
  ) {
    let wasApplied = applied > 0
    switch call.fate {
    case .repeated:
      #expect(caller.value == .succeeded(.acknowledged))
      #expect(peripheral.wr(0x0010) == applied + 1)
      #expect(peripheral.counters.reads[0x0010] == nil)
    case .lookedAt:
      #expect(caller.value == .succeeded(.acknowledged))
      #expect(peripheral.wr(0x0010) == 1)
      #expect(peripheral.counters.reads[0x0010] == 1)
    case .resolvedByTheApp:
      #expect(caller.value == .succeeded(.acknowledged))
      #expect(peripheral.wr(0x0010) == 1)
      #expect(peripheral.counters.reads[0x0010] == nil)
    case .leftInDoubt:
      #expect(caller.value?.doubt?.cause == .linkLost(reason))
      #expect(caller.value?.doubt?.offers == 1)
      #expect(peripheral.wr(0x0010) == (wasApplied ? 1 : 0))
    }
  }

  @Test("B01: ends at its deadline where the device stays away", arguments: JournalCall.allCases)
  func aDeviceThatStaysAwayHoldsNobodyBeyondTheDeadline(_ call: JournalCall) throws {
    try Scene.play(peripheral, JournalCall.configuration, isDurable: true) { scene in
      let caller = try begin(call, scene)
      scene.radio.setAdvertising(false, of: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .milliseconds(28_900))
      #expect(caller.hasEnded == (call.fate == .leftInDoubt))
      scene.executor.advance(by: .milliseconds(200))
      let cause: Doubt.Cause = call.fate == .leftInDoubt ? .linkLost(.supervisionTimeout) : .deadline
      #expect(caller.value?.doubt?.cause == cause)
      #expect(peripheral.wr(0x0010) == 0)
    }
  }

  @Test(
    "a call that the device was never asked for is sent on the next link, once",
    arguments: JournalCall.allCases)
  func whatWasNeverOfferedIsOfferedWhateverItsTag(_ call: JournalCall) throws {
    try Scene.play(peripheral, JournalCall.configuration, isDurable: true) { scene in
      try scene.connect()
      scene.radio.setAdvertising(false, of: scene.device)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      let caller = scene.spawn("\(call)") { try await call.make($0) }
      scene.executor.advance(by: .seconds(5))
      #expect(!caller.hasEnded)
      scene.radio.setAdvertising(true, of: scene.device)
      scene.executor.advance(by: .seconds(10))
      #expect(caller.value == .succeeded(.acknowledged))
      #expect(peripheral.wr(0x0010) == 1)
      #expect(peripheral.counters.reads[0x0010] == nil)
    }
  }
}
