import BluetoothWire
import Relink
import RelinkTesting
import Testing

@testable import RelinkBlueZ

/// Sessions over real descriptors, whose ends are all that says what became of a link.
@Suite(.timeLimit(.minutes(1))) struct SocketPairSessionTests {
  private static let first = Characteristic(BluetoothUUID(0xFF01))

  private static func peripheral() -> VirtualPeripheral {
    let peripheral = VirtualPeripheral(
      services: [
        VirtualService(
          BluetoothUUID(0xFFF0),
          characteristics: [
            VirtualCharacteristic(
              first.uuid, [.read, .write, .writeWithoutResponse, .notify], value: [0x0A], valueHandle: 0x0010)
          ])
      ])
    peripheral.mtuLimit = 23
    return peripheral
  }

  /// A session over socket pairs; `body` runs beside the loop.
  private func withSession(
    _ configuration: Configuration, lowestDescriptor: Int32 = 3,
    _ body: (DeviceSession, SocketPairTransport, LoopContractDriver, RadioLoop) async throws -> Void
  ) async throws {
    try await withLoop { loop in
      let transport = SocketPairTransport(Self.peripheral(), on: loop, lowestDescriptor: lowestDescriptor)
      let device = try #require(UnixTransport.device(at: UnixListener.freshPath()))
      let session = try DeviceSession(with: device, over: transport, configuration: configuration)
      try await body(session, transport, LoopContractDriver(loop), loop)
      await session.close()
      try await loop.run { transport.dropSpares() }
    }
  }

  // MARK: B01

  /// What is under way when the far end is closed.
  enum InFlight: CaseIterable {
    case read, write, nonIdempotentWrite, longWrite, discovery, mtuExchange, firstDiscovery, subscription

    var swallowed: RequestPattern {
      switch self {
      case .read: .read(SocketPairSessionTests.first)
      case .write, .nonIdempotentWrite: .opcode(.writeRequest)
      case .longWrite: .opcode(.executeWriteRequest)
      case .discovery, .firstDiscovery: .discovery
      case .mtuExchange: .exchangeMTU
      case .subscription: .subscription(SocketPairSessionTests.first)
      }
    }

    /// Whether it belongs to the way to ready, so that the caller waits in `connect()`.
    var isPreparation: Bool { self == .mtuExchange || self == .firstDiscovery }

    func make(_ session: DeviceSession) async throws {
      let first = SocketPairSessionTests.first
      switch self {
      case .read: _ = try await session.read(first)
      case .write: try await session.write([1], to: first, idempotency: .idempotent)
      case .nonIdempotentWrite: try await session.write([1], to: first, idempotency: .nonIdempotent)
      case .longWrite:
        try await session.write(
          [UInt8](repeating: 7, count: 100), to: first, idempotency: .nonIdempotent,
          options: WriteOptions(allowsLong: true))
      case .discovery: _ = try await session.discoverServices()
      case .mtuExchange, .firstDiscovery: try await session.connect()
      case .subscription: for try await _ in session.notifications(from: first) {}
      }
    }
  }

  @Test("B01: the end of file of a socket, without any word of a controller", arguments: InFlight.allCases)
  func theEndOfFileEndsWhatIsUnderWayOnce(_ inFlight: InFlight) async throws {
    let configuration = Configuration(
      reconnection: ReconnectionPolicy(isAutomatic: false, attemptsPerOutage: 1), seed: 1)
    try await withSession(configuration) { session, transport, driver, loop in
      let peripheral = transport.peripheral
      if !inFlight.isPreparation { try await session.connect() }
      let before = peripheral.counters.received
      try await loop.run { peripheral.react(to: inFlight.swallowed, with: .swallow, times: 1) }
      let errors = Facts<RelinkError>()
      let caller = Task {
        do { try await inFlight.make(session) } catch let error as RelinkError { errors.add(error) }
      }
      // All of it is read before the end is closed: what is left unread would make a reset of it.
      let opcodes: [ATTOpcode] =
        switch inFlight {
        case .longWrite: [.executeWriteRequest]
        case .mtuExchange: [.exchangeMTURequest]
        case .read: [.readRequest]
        case .write, .nonIdempotentWrite, .subscription: [.writeRequest]
        case .discovery, .firstDiscovery:
          [.readByGroupTypeRequest, .readByTypeRequest, .findInformationRequest]
        }
      let isSwallowed = await driver.wait {
        let now = peripheral.counters.received
        return opcodes.contains { now[$0, default: 0] > before[$0, default: 0] }
      }
      #expect(isSwallowed)
      #expect(errors.all.isEmpty)
      try await loop.run { transport.endFarSide(of: 0) }
      if inFlight == .subscription {
        // A stream is no call: it stays declared for the next connect(), and ends once, with its session.
        let isIdle = await driver.wait { session.snapshot().state == .idle(.notReconnecting) }
        #expect(isIdle)
        #expect(errors.all.isEmpty)
        await session.close()
      }
      let error = try #require(await errors.first(1).first)
      #expect(error.disconnect?.reason == .remoteUserTerminated)
      #expect(error.disconnect?.evidence == [.endOfFile])
      switch inFlight {
      case .read, .write, .discovery: #expect(error.doubtCause == .notReconnecting)
      case .nonIdempotentWrite, .longWrite:
        #expect(error.doubtCause == .linkLost(.remoteUserTerminated))
      case .mtuExchange, .firstDiscovery: #expect(error.code == .attemptsExhausted)
      case .subscription: #expect(error.code == .ended)
      }
      try await caller.value
      #expect(errors.all.count == 1)
      #expect(peripheral.counters.applied.isEmpty)
      if inFlight == .subscription { return }
      // The session object can be used again at once.
      try await loop.run { peripheral.reactProperly() }
      let value = try await session.read(Self.first)
      #expect(value == [0x0A])
    }
  }

  // MARK: B03

  @Test("B03: the second link has the descriptor number of the first, whose late end and bytes come then")
  func aLateWordOfADescriptorOfTheSameNumberReachesNobody() async throws {
    let configuration = Configuration(seed: 1)
    // No other test of this process has as many descriptors.
    try await withSession(configuration, lowestDescriptor: 900) { session, transport, driver, loop in
      let recorder = EventRecorder()
      let events = session.events()
      let recording = Task { await recorder.record(from: events) }
      try await session.connect()
      await session.disconnect()
      let readiness = try await session.connect()
      #expect(readiness.generation == Generation(rawValue: 2))
      #expect(transport.descriptors == [900, 900])
      let peripheral = transport.peripheral
      try await loop.run {
        peripheral.react(to: .read(Self.first), with: .answerLate(.milliseconds(50)), times: 1)
      }
      let counted = peripheral.counters.received[.readRequest, default: 0]
      let read = Task { try await session.read(Self.first) }
      let isAsked = await driver.wait { peripheral.counters.received[.readRequest, default: 0] > counted }
      #expect(isAsked)
      try await loop.run {
        // An answer to the read that is out, as far as its bytes say, and then the end.
        #expect(transport.send([0x0B, 0xAA], onLink: 0) == .sent)
        transport.endFarSide(of: 0)
      }
      #expect(try await read.value == [0x0A])
      #expect(session.snapshot().isReady)
      await session.close()
      await recording.value
      let outline = recorder.events.dropFirst().filter { if case .phase = $0 { false } else { true } }
      #expect(
        outline.map(\.outline) == [
          "connecting(1)", "ready(1)", "disconnected(requested)", "idle(disconnected)", "connecting(1)",
          "ready(2)", "disconnected(requested)", "ended(closed)",
        ])
    }
  }
}

extension RelinkError {
  /// What an operation in doubt is in doubt for.
  fileprivate var doubtCause: Doubt.Cause? {
    if case .indeterminate(let doubt) = outcome { doubt.cause } else { nil }
  }
}
