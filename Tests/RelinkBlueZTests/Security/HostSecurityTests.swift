import BluetoothWire
import Relink
import RelinkTesting
import Testing

@testable import RelinkBlueZ

/// The shells, with a kernel that is played.
struct HostSecurityTests {
  private static let name = ManagementAddress(BluetoothAddress(0xF0_F0_F0_F0_F0_02), .leRandom)
  private static let adapter = AdapterRecord(index: 0, address: BluetoothAddress(7), isUp: true)

  private static func device() throws -> DeviceAddress {
    try #require(DeviceAddress(name))
  }

  private static func key(_ octet: UInt8 = 7) throws -> ManagementLongTermKey {
    ManagementLongTermKey(
      device: name, type: .unauthenticatedP256, isCentral: true, encryptionSize: 16, encryptedDiversifier: 0,
      randomNumber: 0, value: try #require(SecurityKey([UInt8](repeating: octet, count: 16))))
  }

  private static func world(_ kernel: PlayedKernel) -> HostSecurity.World {
    HostSecurity.World(
      adapters: { [adapter] }, adapterOfLink: { _ in adapter }, mayManage: { true },
      isDaemonRunning: { kernel.isDaemonRunning.withLock { $0 } },
      send: { command, _ in kernel.commands.add(command) },
      seen: { _, other, _ in kernel.seen.add(other) }, daemonFolder: "/nowhere")
  }

  /// Has the security of a host, with a link to be secured, and says what the kernel answers.
  private static func play(
    daemon: Bool = false, kept: [Bond] = [],
    _ body: (PlayedKernel, VirtualBondStore, PlayedSocket) async throws -> Void
  ) async throws {
    try await withLoop { loop in
      let kernel = PlayedKernel()
      kernel.isDaemonRunning.withLock { $0 = daemon }
      let store = VirtualBondStore(on: loop)
      for bond in kept { store.keep(bond) { _ in } }
      let device = try device()
      let socket = try await loop.run {
        let security = HostSecurity(on: loop, store: store, world(kernel))
        kernel.security.withLock { $0 = security }
        security.start()
        return PlayedSocket(loop, L2CAPSecuring(device, security))
      }
      try await body(kernel, store, socket)
      kernel.security.withLock { $0 = nil }
    }
  }

  @Test func aPairingAsksTheUserAndKeepsTheBond() async throws {
    try await Self.play { kernel, store, socket in
      await socket.secure(.encrypted, .bondOrPairing(.none))
      await kernel.answers(.loadLongTermKeys, after: .loadLongTermKeys([]))
      let information = try #require(
        ManagementResult.controllerInformation(supported: [.bondable], current: [.bondable]))
      await kernel.answers(.readControllerInformation, after: .readControllerInformation, information)
      await kernel.waits(
        for: .pairDevice(address: Self.name.address, type: .leRandom, ioCapability: 3))
      await kernel.says(.userConfirmationRequest(device: Self.name, isYesNoOnly: true, value: 0))
      let questions = await socket.asked.first(1)
      #expect(questions == [.consent])
      socket.responders.withLock { $0 }.first?(.accept)
      await kernel.waits(for: .userConfirmationReply(address: Self.name.address, type: .leRandom))
      let resolving = ManagementIdentityResolvingKey(device: Self.name, value: try Self.key(9).value)
      await kernel.says(.newIdentityResolvingKey(shouldStore: true, randomAddress: nil, key: resolving))
      await kernel.says(.newLongTermKey(shouldStore: true, key: try Self.key()))
      socket.level.withLock { $0 = .encrypted }
      await kernel.says(
        .commandComplete(opcode: .pairDevice, status: .success, result: .device(Self.name)))
      #expect(await socket.outcomes.first(1) == [.secured(.encrypted)])
      let bond = try #require(store.bonds.first)
      #expect(store.bonds.count == 1)
      #expect(bond.device == (try Self.device()).device)
      #expect(bond.adapter == Self.adapter.address)
      #expect(bond.identityKey == resolving.value)
      #expect(bond.longTermKeys.map(\.value) == [try Self.key().value])
      #expect(kernel.seen.all == [])
    }
  }

  private static func bond() throws -> Bond {
    Bond(
      with: try device().device, of: adapter.address, id: 3,
      longTermKeys: [try #require(Bond.LongTermKey(try key()))])
  }

  @Test func theKernelGetsTheKeysThatAreKeptRightBeforeTheRaise() async throws {
    try await Self.play(kept: [try Self.bond()]) { kernel, _, socket in
      await socket.secure(.encrypted, .bond)
      await kernel.answers(.loadLongTermKeys, after: .loadLongTermKeys([try Self.key()]))
      #expect(await socket.raises.first(1) == [.encrypted])
      socket.level.withLock { $0 = .encrypted }
      await socket.becomesWritable()
      #expect(await socket.outcomes.first(1) == [.secured(.encrypted)])
    }
  }

  @Test func besideBluetoothdTheKernelIsToldNothing() async throws {
    try await Self.play(daemon: true, kept: [try Self.bond()]) { kernel, store, socket in
      await socket.secure(.encrypted, .bondOrPairing(.none))
      #expect(await socket.outcomes.first(1) == [.notSecured(.pairingFailed)])
      let security = try #require(kernel.security.withLock { $0 })
      let device = try Self.device().device
      let error = await withCheckedContinuation { continuation in
        security.loop.post { security.removeBond(with: device) { continuation.resume(returning: $0) } }
      }
      #expect(error?.code == .notSent)
      await kernel.says(.userConfirmationRequest(device: Self.name, isYesNoOnly: true, value: 0))
      #expect(kernel.commands.all == [])
      #expect(store.bonds.count == 1)
    }
  }

  @Test func removingTakesTheBondFromKernelAndStore() async throws {
    try await Self.play(kept: [try Self.bond()]) { kernel, store, _ in
      let security = try #require(kernel.security.withLock { $0 })
      let device = try Self.device().device
      async let removed: RelinkError? = withCheckedContinuation { continuation in
        security.loop.post { security.removeBond(with: device) { continuation.resume(returning: $0) } }
      }
      await kernel.waits(
        for: .unpairDevice(address: Self.name.address, type: .leRandom, disconnect: true))
      await kernel.says(
        .commandComplete(opcode: .unpairDevice, status: .notPaired, result: .device(Self.name)))
      #expect(await removed == nil)
      #expect(store.bonds == [])
      #expect(security.records == [])
      #expect(kernel.commands.all.last == .loadLongTermKeys([]))
    }
  }

  @Test func aBondThatSomebodyElseRemovesIsGone() async throws {
    try await Self.play(kept: [try Self.bond()]) { kernel, store, _ in
      let security = try #require(kernel.security.withLock { $0 })
      await kernel.waits(for: .loadLongTermKeys([try Self.key()]))
      await kernel.says(.deviceUnpaired(device: Self.name))
      #expect(security.records == [])
      _ = try await security.loop.run {}
      #expect(store.bonds == [])
    }
  }

  @Test func aClosedSocketHearsNothing() async throws {
    try await Self.play(kept: [try Self.bond()]) { kernel, _, socket in
      await socket.secure(.encrypted, .bond)
      await kernel.waits(for: .loadLongTermKeys([try Self.key()]))
      await socket.closes()
      await kernel.answers(.loadLongTermKeys, after: .loadLongTermKeys([try Self.key()]))
      #expect(socket.raises.all == [])
      #expect(socket.outcomes.all == [])
    }
  }
}

extension ManagementResult {
  /// What an adapter says of itself, as far as pairing looks at it.
  fileprivate static func controllerInformation(
    supported: ManagementSettings, current: ManagementSettings
  ) -> ManagementResult? {
    var bytes = [UInt8](repeating: 0, count: 280)
    for (offset, settings) in [(9, supported), (13, current)] {
      for index in 0..<4 {
        bytes[offset + index] = UInt8(truncatingIfNeeded: settings.rawValue >> (8 * index))
      }
    }
    let packet = ManagementPacket(
      code: ManagementEventCode.commandComplete.rawValue, index: 0, parameters: [0x04, 0x00, 0x00] + bytes)
    guard case .commandComplete(_, _, let result) = ManagementEvent(packet) else { return nil }
    return result
  }
}

/// The kernel's half of the management interface.
private final class PlayedKernel: Sendable {
  let commands = Facts<ManagementCommand>()
  let seen = Facts<DeviceID>()
  let isDaemonRunning = Locked(false)
  let security = Locked<HostSecurity?>(nil)

  func says(_ event: ManagementEvent) async {
    guard let security = security.withLock({ $0 }) else { return }
    try? await security.loop.run { security.received(event, index: 0) }
  }

  func waits(for command: ManagementCommand) async {
    _ = await commands.when { $0.contains(command) }
  }

  func answers(
    _ opcode: ManagementOpcode, after command: ManagementCommand, _ result: ManagementResult = .other([])
  ) async {
    await waits(for: command)
    await says(.commandComplete(opcode: opcode, status: .success, result: result))
  }
}

/// A socket that does nothing but note what is done with it.
private final class PlayedSocket: SecurableSocket {
  enum Outcome: Equatable, Sendable {
    case secured(SecurityLevel)
    case notSecured(DisconnectReason)
    case ended(DisconnectReason)
  }

  let level = Locked(SecurityLevel.none)
  let raises = Facts<SecurityLevel>()
  let outcomes = Facts<Outcome>()
  let asked = Facts<PairingQuestion>()
  let responders = Locked<[PairingResponder]>([])
  private let loop: RadioLoop
  private let securing: L2CAPSecuring

  init(_ loop: RadioLoop, _ securing: L2CAPSecuring) {
    self.loop = loop
    self.securing = securing
  }

  func secure(_ level: SecurityLevel, _ keys: SecurityPolicy.KeySource) async {
    try? await loop.run { self.securing.secure(self, to: level, keys: keys) }
  }

  func becomesWritable() async { try? await loop.run { self.securing.socketBecameWritable() } }

  func closes() async { try? await loop.run { self.securing.socketClosed() } }

  var security: SecurityLevel { level.withLock { $0 } }

  func raise(to level: SecurityLevel) -> Int32 {
    raises.add(level)
    return 0
  }

  func secured(_ level: SecurityLevel) { outcomes.add(.secured(level)) }
  func notSecured(_ loss: LinkLoss) { outcomes.add(.notSecured(loss.reason)) }
  func end(_ loss: LinkLoss) { outcomes.add(.ended(loss.reason)) }

  func asks(_ question: PairingQuestion, _ responder: PairingResponder) {
    responders.withLock { $0.append(responder) }
    asked.add(question)
  }
}
