import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// What an observer was told.
private enum Told: Equatable {
  case connecting, connected
  case failed(DisconnectReason)
  case disconnected(DisconnectInfo)
  case pairingError(Bool)
  case ended(EndReason)
}

private final class Witness: DeviceSessionObserver {
  private let state = Locked<[Told]>([])
  var told: [Told] { state.withLock { $0 } }
  private func note(_ told: Told) { state.withLock { $0.append(told) } }

  func deviceConnecting(_ device: DeviceID) { note(.connecting) }
  func deviceConnected(_ device: DeviceID) { note(.connected) }
  func deviceConnectionFailed(_ device: DeviceID, info: DisconnectInfo) { note(.failed(info.reason)) }
  func deviceDisconnected(_ device: DeviceID, info: DisconnectInfo) { note(.disconnected(info)) }
  func deviceSessionEnded(_ device: DeviceID, reason: EndReason) { note(.ended(reason)) }
}

/// One that knows the older method alone.
private final class OlderWitness: DeviceSessionObserver {
  private let state = Locked<[Bool]>([])
  var told: [Bool] { state.withLock { $0 } }
  @available(*, deprecated)
  func deviceDisconnected(_ device: DeviceID, pairingError: Bool) {
    state.withLock { $0.append(pairingError) }
  }
}

@Suite struct ObserverTests {
  @Test func anObserverAndAStreamTellTheSameStory() throws {
    let witness = Witness()
    let older = OlderWitness()
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      let tokens = [scene.session.observe(with: witness), scene.session.observe(with: older)]
      try scene.connect()
      scene.radio.scriptDials([.refuse(after: .zero)], to: scene.device)
      for reason in [HCIErrorCode.connectionTimeout, .remoteUserTerminatedConnection] {
        scene.radio.lose(scene.device, reason)
        scene.executor.advance(by: .seconds(5))
      }
      scene.radio.setAdapter(.off)
      scene.executor.advance(by: .seconds(1))
      scene.radio.setAdapter(.on)
      scene.executor.advance(by: .seconds(30))
      _ = try scene.drive("close") { await $0.close() }
      scene.executor.run()
      let story = scene.recorder.events.compactMap { event -> Told? in
        switch event {
        case .connecting: .connecting
        case .ready: .connected
        case .attemptFailed(let info): .failed(info.reason)
        case .disconnected(let info): .disconnected(info)
        case .ended(let reason): .ended(reason)
        default: nil
        }
      }
      #expect(witness.told == story)
      #expect(story.filter { $0 == .connected }.count == 4)
      #expect(older.told == [false, false, false, false])
      withExtendedLifetime(tokens) {}
    }
  }

  @Test func theOlderMethodIsToldOfPairingsThatAreOfNoUse() {
    let older = OlderWitness()
    for recovery in [RecoveryAction.retryConnection, .removePairingAndPairAgain, .retryPairing, .none] {
      let info = DisconnectInfo(
        reason: .keyMissing, evidence: [], confidence: .high, recovery: recovery, willReconnect: false,
        generation: nil, inDoubt: 0)
      older.deviceDisconnected(DeviceID(address: BluetoothAddress(1), type: .public), info: info)
    }
    #expect(older.told == [false, true, true, false])
  }

  @Test func aTokenThatIsDroppedEndsTheObservation() throws {
    let witness = Witness()
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      var token: ObservationToken? = scene.session.observe(with: witness)
      try scene.connect()
      #expect(witness.told == [.connecting, .connected])
      withExtendedLifetime(token) {}
      token = nil
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(5))
      #expect(witness.told == [.connecting, .connected])
    }
  }

  @Test func anObserverThatIsGoneIsInNobodysWay() throws {
    try Scene.play(VirtualPeripheral.twoValues()) { scene in
      var witness: Witness? = Witness()
      weak let gone = witness
      let token = scene.session.observe(with: witness ?? Witness())
      try scene.connect()
      witness = nil
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(5))
      #expect(gone == nil)
      token.cancel()
      scene.executor.run()
    }
  }

  // MARK: Where the stream lost events

  @Test func aSnapshotTellsWhatWasMissed() throws {
    let info = DisconnectInfo(
      reason: .supervisionTimeout, evidence: [], confidence: .high, recovery: .retryConnection,
      willReconnect: true, generation: Generation(rawValue: 1), inDoubt: 0)
    let attempt = AttemptInfo(number: 1, remaining: nil, isReconnection: false, after: nil)
    func readiness(_ generation: UInt64) -> Readiness {
      Readiness(
        generation: Generation(rawValue: generation), outage: .zero, attempts: 1, mtu: 23, roundTrips: 1,
        tableChanged: false, continuity: .unknown)
    }
    func snapshot(_ state: Snapshot.State) -> ConnectionEvent {
      .snapshot(Snapshot(state: state, since: .zero, lastDisconnect: info))
    }
    var story = ObserverStory()
    #expect(story.heard(snapshot(.idle(.neverAsked))) == [])
    #expect(story.heard(snapshot(.ready(readiness(1)))) == [.connecting, .connected])
    #expect(story.heard(.missed(3)) == [])
    #expect(story.heard(snapshot(.ready(readiness(1)))) == [])
    #expect(story.heard(snapshot(.ready(readiness(2)))) == [.disconnected(info), .connecting, .connected])
    #expect(story.heard(snapshot(.connecting(attempt, nil))) == [.disconnected(info), .connecting])
    #expect(story.heard(snapshot(.waiting(.backoff, until: nil))) == [.failed(info)])
    #expect(story.heard(snapshot(.connecting(attempt, .discovering))) == [.connecting])
    #expect(story.heard(snapshot(.ready(readiness(3)))) == [.connected])
    #expect(story.heard(.disconnected(info)) == [.disconnected(info)])
  }
}
