import Relink
import RelinkTesting
import Testing

/// Whole sessions over a virtual radio, played with what somebody outside this package has too.
@Suite struct SessionOverRadioTests {
  let executor = ManualExecutor()
  let peer = RawPeripheral()
  let first = Characteristic(BluetoothUUID(0xFF01))
  let second = Characteristic(BluetoothUUID(0xFF02))

  init() {
    // One service with two characteristics: values at 0x0010 and 0x0020, the first with a CCCD at 0x0011.
    peer.always("02 ....", answer: "03 1700")
    peer.always("10 0100 ffff 0028", answer: "11 06 0100 3000 f0ff")
    peer.always("08 0100 3000 0328", answer: "09 07 0f00 1a 1000 01ff")
    peer.always("08 1000 3000 0328", answer: "09 07 1f00 0a 2000 02ff")
    peer.always("04 1100 1e00", answer: "05 01 1100 0229")
    peer.always("04 1200 1e00", answer: "01 04 1200 0a")
    peer.otherwise { pdu, link in
      // Whatever else discovery asks for is not there.
      guard [0x04, 0x06, 0x08, 0x10].contains(pdu.first), pdu.count >= 3 else { return false }
      link.send([0x01, pdu[0], pdu[1], pdu[2], 0x0A])
      return true
    }
  }

  private func radio(
    _ change: (inout VirtualRadio.Configuration) -> Void = { _ in }
  ) throws -> (VirtualRadio, DeviceID) {
    var configuration = VirtualRadio.Configuration()
    configuration.traceLimit = 1000
    change(&configuration)
    let radio = VirtualRadio(on: executor, configuration: configuration)
    let device = try deviceID(1)
    radio.add(peer, as: device)
    return (radio, device)
  }

  private func session(_ device: DeviceID, _ radio: VirtualRadio) throws -> DeviceSession {
    var configuration = Configuration()
    configuration.seed = 1
    return try DeviceSession(with: device, over: radio, configuration: configuration)
  }

  @Test func readsThroughALinkThatComesUpByItself() throws {
    let (radio, device) = try radio()
    let session = try session(device, radio)
    peer.always("0a 1000", answer: "0b 2a")
    #expect(try executor.drive { try await session.read(first) } == [0x2A])
    #expect(peer.unexpected.isEmpty)
    #expect(executor.foreignJobs == 0)
    try executor.drive { await session.close() }
    #expect(executor.runUntilIdle().end == .nothingLeft)
    #expect(radio.existingLinks().isEmpty)
    #expect(executor.timerCount == 0)
  }

  /// A setup that pairs raises it; the next link of the bonded device has it from its start.
  @Test func readinessSaysHowFarTheLinkIsSecuredThen() throws {
    let (radio, device) = try radio()
    var configuration = Configuration()
    configuration.seed = 1
    configuration.setup = { _ in
      radio.setSecurity(of: device, to: .secureConnections)
      return .fresh
    }
    let session = try DeviceSession(with: device, over: radio, configuration: configuration)
    #expect(try executor.drive { try await session.connect() }.security == .secureConnections)
    try executor.drive { await session.close() }
    let (plain, other) = try self.radio { $0.security = .encrypted }
    let second = try self.session(other, plain)
    #expect(try executor.drive { try await second.connect() }.security == .encrypted)
    try executor.drive { await second.close() }
  }

  @Test func failedToEstablishFiveTimesIsNeverReady() throws {
    let (radio, device) = try radio()
    radio.scriptDials(
      [DialBehavior](repeating: .failToEstablish(after: .milliseconds(300)), count: 5), to: device)
    let session = try session(device, radio)
    let readiness = try executor.drive { try await session.connect(within: .never) }
    #expect(readiness.attempts == 6)
    #expect(peer.linksOpened == 1)
    #expect(radio.statistics(of: device).dials == 6)
  }

  @Test func aCallerThatGivesUpOnAnAbsentDeviceLeavesOneCancel() throws {
    let (radio, device) = try radio()
    radio.carryAway(device)
    let session = try session(device, radio)
    let caller = executor.spawn { try await session.connect(within: .never) }
    executor.advance(by: .seconds(10))
    caller.cancel()
    executor.advance(by: .milliseconds(100))
    #expect((caller.error as? RelinkError)?.code == .cancelled)
    #expect(radio.statistics(of: device).cancels == 1)
    #expect(radio.pendingDials == 0)
    radio.bringBack(device)
    try executor.drive { try await session.connect() }
    #expect(radio.maximumConcurrentDials == 1)
  }

  @Test func theSessionNeverDialsIntoALinkThatLingers() throws {
    let (radio, device) = try radio()
    let session = try session(device, radio)
    for _ in 1...3 {
      try executor.drive { try await session.connect() }
      executor.spawn { await session.disconnect() }
      executor.spawn { try await session.connect() }
      executor.advance(by: .seconds(1))
    }
    #expect(executor.runUntilIdle(within: .seconds(60)).waitingTasks.isEmpty)
    #expect(radio.statistics(of: device).adoptions == 0)
    #expect(radio.statistics(of: device).links == 4)
  }

  @Test func aWriteWhoseAnswerIsLostIsDoneOnceAndInDoubt() throws {
    let (radio, device) = try radio()
    let session = try session(device, radio)
    try executor.drive { try await session.connect() }
    peer.expect("12 1000 01") { $0.terminate(.remoteUserTerminatedConnection) }
    let write = executor.spawn { try await session.write([1], to: first, idempotency: .nonIdempotent) }
    executor.runUntilIdle(within: .seconds(60))
    #expect((write.error as? RelinkError)?.code == .indeterminate)
    #expect(peer.receivedText.filter { $0.hasPrefix("12") } == ["12100001"])
    #expect(peer.linksOpened == 2)
  }

  @Test func aLateAnswerNeverReachesTheNextRequest() throws {
    let (radio, device) = try radio()
    let session = try session(device, radio)
    try executor.drive { try await session.connect() }
    peer.expect("0a 1000", answer: "0b aa", after: .seconds(31))
    peer.always("0a 2000", answer: "0b bb")
    let slow = executor.spawn { try await session.read(first, within: .seconds(5)) }
    let next = executor.spawn { try await session.read(second, within: .seconds(120)) }
    executor.runUntilIdle(within: .seconds(120))
    #expect(slow.error is RelinkError)
    #expect(next.value == [0xBB])
    #expect(executor.waitingTasks.isEmpty)
  }

  @Test func wordsOfADeadLinkChangeNothing() throws {
    let (radio, device) = try radio()
    let session = try session(device, radio)
    try executor.drive { try await session.connect() }
    radio.lose(device, .connectionTimeout)
    try executor.drive { try await session.connect() }
    executor.run()
    let old = try #require(radio.linkIDs(of: device).first)
    radio.deliverStale(.closed(old, LinkLoss(.localHostTerminated), inDoubt: []), to: device)
    radio.deliverStale(.answered(old, RequestID(rawValue: 1), .success(.value([1]))), to: device)
    executor.run()
    #expect(session.snapshot().isReady)
    #expect(session.snapshot().staleDeliveries == 2)
    #expect(peer.links.count == 1)
  }

  @Test func anAdapterThatGoesWhileADialIsPendingIsWaitedFor() throws {
    let (radio, device) = try radio()
    radio.carryAway(device)
    let session = try session(device, radio)
    let caller = executor.spawn { try await session.connect(within: .never) }
    executor.advance(by: .seconds(1))
    radio.setAdapter(.off)
    executor.advance(by: .seconds(2))
    radio.bringBack(device)
    radio.setAdapter(.on)
    executor.runUntilIdle(within: .seconds(60))
    #expect(caller.hasEnded)
    try executor.drive { try await session.connect() }
    #expect(session.snapshot().isReady)
  }

  @Test func aSessionLivesThroughAFaultyRadioTheSameWayEachTime() throws {
    func play(_ seed: UInt64) throws -> [String] {
      let executor = ManualExecutor()
      var configuration = VirtualRadio.Configuration()
      configuration.traceLimit = 100_000
      configuration.latency = .milliseconds(7)
      let radio = VirtualRadio(on: executor, configuration: configuration)
      let device = try deviceID(1)
      let peripheral = VirtualPeripheral(services: [
        VirtualService(
          BluetoothUUID(0xFFF0),
          characteristics: [VirtualCharacteristic(BluetoothUUID(0xFF01), [.read, .write], value: [0])])
      ])
      radio.add(peripheral, as: device)
      radio.setFaults(FaultPlan(seed: seed, rates: .mixed(0.02)))
      let session = try session(device, radio)
      for round in 0..<30 {
        executor.spawn("write \(round)") {
          try await session.write([UInt8(round)], to: first, idempotency: .idempotent)
        }
        executor.advance(by: .seconds(1))
      }
      executor.advance(by: .seconds(10))
      radio.heal()
      executor.advance(by: .seconds(120))
      #expect(executor.waitingTasks.isEmpty, "\(radio.faults), seed \(seed)")
      #expect(executor.problems.isEmpty)
      #expect(radio.statistics(of: device).overlappingDials == 0)
      #expect(radio.statistics(of: device).adoptions == 0)
      return radio.trace
    }
    for seed in UInt64(1)...20 {
      let once = try play(seed)
      #expect(once.count > 40)
      #expect(try play(seed) == once)
    }
  }
}
