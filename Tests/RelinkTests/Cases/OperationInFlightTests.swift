import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B01: a pending operation ends when its link does, whatever it is and however the link ends.
@Suite struct OperationInFlightTests {
  /// What is under way when the link ends.
  ///
  /// There is no read of the RSSI in the API yet; with it comes one more row.
  enum InFlight: CaseIterable {
    case read, write, nonIdempotentWrite, longWrite, nonIdempotentLongWrite, longWriteBeforeExecute
    case reliableWrite, discovery, mtuExchange, firstDiscovery, subscription, commandOnAFullChannel
    case readOfTheSetup

    /// The request that the peripheral swallows, once.
    var swallowed: RequestPattern? {
      switch self {
      case .read, .readOfTheSetup: .read(Scene.first)
      case .write, .nonIdempotentWrite: .opcode(.writeRequest)
      case .longWrite, .nonIdempotentLongWrite, .reliableWrite: .opcode(.executeWriteRequest)
      case .longWriteBeforeExecute: .opcode(.prepareWriteRequest)
      case .discovery, .firstDiscovery: .discovery
      case .mtuExchange: .exchangeMTU
      case .subscription: .subscription(Scene.first)
      case .commandOnAFullChannel: nil
      }
    }

    /// Whether it belongs to the way to ready, so that the caller waits in `connect()`.
    var isPreparation: Bool { [.mtuExchange, .firstDiscovery, .readOfTheSetup].contains(self) }

    /// Whether it may have taken effect, and must then not be repeated.
    var isNeverRepeated: Bool { self == .nonIdempotentWrite || self == .nonIdempotentLongWrite }

    /// Whether nothing of it can have taken effect.
    var isProvenNotSent: Bool { self == .longWriteBeforeExecute || self == .commandOnAFullChannel }

    func start(_ scene: Scene) -> SpawnedTask<[UInt8]> {
      let short: [UInt8] = [1, 2, 3]
      let long = [UInt8](repeating: 7, count: 100)
      return scene.spawn("\(self)") { session in
        switch self {
        case .read: return try await session.read(Scene.first)
        case .write, .nonIdempotentWrite:
          let tag: Idempotency = self == .write ? .idempotent : .nonIdempotent
          try await session.write(short, to: Scene.first, idempotency: tag)
        case .longWrite, .nonIdempotentLongWrite, .longWriteBeforeExecute:
          let tag: Idempotency = self == .nonIdempotentLongWrite ? .nonIdempotent : .idempotent
          try await session.write(
            long, to: Scene.first, idempotency: tag, options: WriteOptions(allowsLong: true))
        case .reliableWrite:
          try await session.writeReliably(
            [ReliableWrite(Scene.first, short)], idempotency: .idempotent)
        case .discovery: return try await session.discoverServices().isEmpty ? [] : [1]
        case .mtuExchange, .firstDiscovery, .readOfTheSetup: try await session.connect()
        case .subscription:
          for try await update in session.notifications(from: Scene.first) { return update.value }
        case .commandOnAFullChannel:
          try await session.writeWithoutResponse(short, to: Scene.first, idempotency: .nonIdempotent)
        }
        return []
      }
    }
  }

  /// The ways in which a link ends.
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

  struct Cell: Hashable, CustomTestStringConvertible {
    var inFlight: InFlight
    var end: LinkEnd
    var testDescription: String { "\(inFlight), \(end)" }
    static let all = InFlight.allCases.flatMap { one in LinkEnd.allCases.map { Cell(inFlight: one, end: $0) }
    }
  }

  let peripheral = VirtualPeripheral.twoValues()

  private func configuration(_ cell: Cell, _ reconnection: ReconnectionPolicy, told: Locked<[RelinkError]>)
    -> Configuration
  {
    var configuration = Configuration(reconnection: reconnection, seed: 1)
    if cell.inFlight == .readOfTheSetup {
      configuration.setup = { scope in
        do throws(RelinkError) { _ = try await scope.read(Scene.first) } catch {
          told.withLock { $0.append(error) }
          throw error
        }
        return .unknown
      }
    }
    return configuration
  }

  /// Brings the scene to the moment at which the operation is under way and its answer does not come.
  private func begin(_ cell: Cell, _ scene: Scene) throws -> SpawnedTask<[UInt8]> {
    peripheral.mtuLimit = 23
    if !cell.inFlight.isPreparation { try scene.connect() }
    if let pattern = cell.inFlight.swallowed { peripheral.react(to: pattern, with: .swallow, times: 1) }
    if cell.inFlight == .commandOnAFullChannel { scene.radio.block(scene.device) }
    let caller = cell.inFlight.start(scene)
    scene.executor.advance(by: .seconds(1))
    #expect(!caller.hasEnded)
    return caller
  }

  /// Checks the one error that a caller gets when nobody is going to bring another link.
  private func expectEnd(of caller: SpawnedTask<[UInt8]>, in cell: Cell) {
    guard let error = caller.relinkError else {
      Issue.record("the caller got no error within a second: \(String(describing: caller.result))")
      return
    }
    #expect(error.disconnect?.reason == cell.end.reason)
    if cell.inFlight.isPreparation {
      switch cell.end {
      case .localDisconnect: #expect(error.code == .disconnected)
      case .adapterOff: #expect(error.code == .adapterUnavailable)
      case .remoteTerminate, .supervisionTimeout, .endOfFile: #expect(error.code == .attemptsExhausted)
      }
    } else if cell.end == .localDisconnect {
      // A long write without Execute is called off before the link is given up.
      let isQueued = cell.inFlight == .commandOnAFullChannel || cell.inFlight == .longWriteBeforeExecute
      #expect(error.notSentReason == (isQueued ? .disconnected : nil))
      #expect(error.doubt?.cause == (isQueued ? nil : .disconnected))
    } else if cell.inFlight.isProvenNotSent {
      #expect(error.notSentReason == .notReconnecting)
    } else if cell.inFlight.isNeverRepeated {
      #expect(error.doubt?.cause == .linkLost(cell.end.reason))
      #expect(error.doubt?.lastPossibleEffect != nil)
    } else {
      #expect(error.doubt?.cause == .notReconnecting)
    }
  }

  @Test("B01: ends within a second where nobody reconnects", arguments: Cell.all)
  func withoutReconnectionEachCallerGetsOneErrorAtOnce(_ cell: Cell) throws {
    let told = Locked<[RelinkError]>([])
    let policy = ReconnectionPolicy(isAutomatic: false, attemptsPerOutage: 1)
    try Scene.play(peripheral, configuration(cell, policy, told: told)) { scene in
      let caller = try begin(cell, scene)
      cell.end.happen(scene, peripheral)
      scene.executor.advance(by: .seconds(1))
      if cell.inFlight == .subscription {
        // A stream is no call: it stays declared for the next connect(), with nothing under way, and ends once, with its
        // session.
        #expect(!caller.hasEnded)
        #expect(scene.belongings.outstanding == 0)
        #expect(scene.belongings.consumers == 1)
      } else {
        expectEnd(of: caller, in: cell)
        #expect(scene.belongings.waiters == 0)
        #expect(scene.belongings.connectWaiters == 0)
      }
      if cell.inFlight == .readOfTheSetup {
        let errors = told.withLock { $0 }
        #expect(errors.count == 1)
        #expect(errors.first?.doubt != nil)
      }
      // The session object can be used again at once.
      peripheral.reactProperly()
      scene.radio.setAdapter(.on)
      try scene.connect(.seconds(3))
      #expect(scene.session.snapshot().isReady)
      if cell.inFlight == .subscription {
        #expect(peripheral.counters.subscriptions.map(\.bits) == [1])
        #expect(peripheral.update([9], of: Scene.first) == 1)
        scene.executor.run()
        #expect(caller.value == [9])
      }
    }
  }

  @Test(
    "B01: a subscription whose request was swallowed ends once, with its session", arguments: LinkEnd.allCases
  )
  func aStreamEndsOnceAndSaysWhatEndedTheLink(_ end: LinkEnd) throws {
    let cell = Cell(inFlight: .subscription, end: end)
    let policy = ReconnectionPolicy(isAutomatic: false, attemptsPerOutage: 1)
    try Scene.play(peripheral, configuration(cell, policy, told: Locked([]))) { scene in
      let caller = try begin(cell, scene)
      end.happen(scene, peripheral)
      scene.executor.run()
      let close = scene.spawn("close") { await $0.close() }
      scene.executor.run()
      #expect(close.hasEnded)
      #expect(caller.relinkError?.code == .ended)
      #expect(caller.relinkError?.disconnect?.reason == end.reason)
    }
    #expect(peripheral.counters.subscriptions.isEmpty)
  }

  @Test("B01: offered again after the reconnection", arguments: Cell.all)
  func withReconnectionSafeOperationsAreOfferedAgain(_ cell: Cell) throws {
    let told = Locked<[RelinkError]>([])
    try Scene.play(peripheral, configuration(cell, .standard, told: told)) { scene in
      let caller = try begin(cell, scene)
      cell.end.happen(scene, peripheral)
      scene.executor.advance(by: .seconds(1))
      if cell.end == .localDisconnect && cell.inFlight != .subscription {
        expectEnd(of: caller, in: cell)
        return
      }
      if cell.inFlight.isNeverRepeated { expectEnd(of: caller, in: cell) }
      if cell.end == .adapterOff && cell.inFlight.isPreparation { expectEnd(of: caller, in: cell) }
      scene.radio.setAdapter(.on)
      if cell.end == .localDisconnect { try scene.connect() }
      scene.executor.advance(by: .seconds(20))
      #expect(scene.session.snapshot().isReady)
      switch cell.inFlight {
      case .read: #expect(caller.value == [0x0A])
      case .discovery: #expect(caller.value == [1])
      case .write, .longWrite, .longWriteBeforeExecute, .reliableWrite, .commandOnAFullChannel:
        #expect(caller.value == [])
        #expect(peripheral.wr(0x0010) == 1)
      case .nonIdempotentWrite, .nonIdempotentLongWrite:
        #expect(peripheral.wr(0x0010) == 0)
      case .mtuExchange, .firstDiscovery, .readOfTheSetup:
        if cell.end != .adapterOff { #expect(caller.value == []) }
      case .subscription:
        #expect(peripheral.update([9], of: Scene.first) == 1)
        scene.executor.run()
        #expect(caller.value == [9])
      }
    }
  }

  @Test("B01: ends at its deadline where the device stays away", arguments: Cell.all)
  func aDeviceThatStaysAwayHoldsNobodyBeyondTheDeadline(_ cell: Cell) throws {
    let told = Locked<[RelinkError]>([])
    try Scene.play(peripheral, configuration(cell, .standard, told: told)) { scene in
      let caller = try begin(cell, scene)
      scene.radio.setAdvertising(false, of: scene.device)
      cell.end.happen(scene, peripheral)
      scene.executor.advance(by: .milliseconds(28_900))
      let endsEarly =
        cell.end == .localDisconnect || cell.inFlight.isNeverRepeated
        || cell.end == .adapterOff && cell.inFlight.isPreparation
      if cell.inFlight != .subscription { #expect(caller.hasEnded == endsEarly) }
      scene.executor.advance(by: .milliseconds(100))
      if cell.inFlight == .subscription {
        #expect(!caller.hasEnded)
        caller.cancel()
        scene.executor.run()
        #expect(caller.value == [])
        return
      }
      #expect(caller.hasEnded)
      if endsEarly { return }
      if cell.inFlight.isPreparation {
        #expect(caller.relinkError?.code == .deadlineExceeded)
      } else if cell.inFlight.isProvenNotSent {
        #expect(caller.relinkError?.notSentReason == .deadline)
      } else {
        #expect(caller.relinkError?.doubt?.cause == .deadline)
      }
    }
  }
}
