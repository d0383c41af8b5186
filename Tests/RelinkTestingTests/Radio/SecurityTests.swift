import Relink
import Testing

@testable import RelinkTesting

/// What a radio with bonds does, as seen by a channel: each end of a try has the shape that a host gives it.
@Suite struct SecurityTests {
  /// Notes what a channel says about its security.
  private final class Handler: PDUChannelHandler {
    let said = Locked<[String]>([])
    let losses = Locked<[LinkLoss]>([])
    let responders = Locked<[PairingResponder]>([])

    func channelReceived(_ pdu: borrowing RawSpan) {}
    func channelWritable() {}
    func channelSecured(_ level: SecurityLevel) { said.withLock { $0.append("secured \(level)") } }
    func channelNotSecured(_ loss: LinkLoss) {
      said.withLock { $0.append("not secured") }
      losses.withLock { $0.append(loss) }
    }
    func channelAsks(_ question: PairingQuestion, _ responder: PairingResponder) {
      said.withLock { $0.append("asks \(question)") }
      responders.withLock { $0.append(responder) }
    }
    func channelClosed(_ loss: LinkLoss) {
      said.withLock { $0.append("closed") }
      losses.withLock { $0.append(loss) }
    }
  }

  private final class Rig {
    let executor = ManualExecutor()
    let radio: VirtualRadio
    let device: DeviceID
    let peripheral = VirtualPeripheral.twoValues(security: .encrypted)
    let handler = Handler()

    init(exact: Bool = true) throws {
      var configuration = VirtualRadio.Configuration()
      configuration.knowsExactReason = exact
      radio = VirtualRadio(on: executor, configuration: configuration)
      device = try deviceID(1)
      radio.add(peripheral, as: device)
    }

    func connect() throws -> VirtualChannel {
      let channel = try #require(radio.connectChannel(to: device))
      channel.open(handler)
      executor.run()
      return channel
    }

    var said: [String] { handler.said.withLock { $0 } }
    var losses: [LinkLoss] { handler.losses.withLock { $0 } }
  }

  @Test func aBondEncryptsAndTheDeviceSeesIt() throws {
    let rig = try Rig()
    rig.radio.setEncryptionTime(.milliseconds(80), of: rig.device)
    rig.radio.bond(rig.device, level: .authenticated)
    let channel = try rig.connect()
    #expect(channel.security == .none)
    channel.secure(to: .encrypted, keys: .bond)
    #expect(rig.said == [])
    rig.executor.advance(by: .milliseconds(79))
    #expect(channel.security == .none)
    rig.executor.advance(by: .milliseconds(1))
    #expect(rig.said == ["secured authenticated"])
    #expect(channel.security == .authenticated)
    #expect(rig.peripheral.counters.encryptions == 1)
    // The next link begins without.
    rig.radio.lose(rig.device, .connectionTimeout)
    rig.executor.run()
    #expect(channel.security == .none)
    let next = try rig.connect()
    #expect(next.security == .none)
  }

  @Test(arguments: [true, false]) func aDeviceThatForgotEndsTheLink(exact: Bool) throws {
    let rig = try Rig(exact: exact)
    rig.radio.bond(rig.device)
    rig.radio.forgetBond(atPeripheral: rig.device)
    try rig.connect().secure(to: .encrypted, keys: .bondOrPairing(.none))
    rig.executor.runUntilIdle()
    #expect(rig.said == ["closed"])
    #expect(
      rig.losses == [
        LinkLoss(
          .unknown,
          evidence: exact
            ? [.hci(.authenticationFailure), .encryption(.pinOrKeyMissing)]
            : [.management(4), .system(13, call: .receive)])
      ])
    #expect(rig.peripheral.counters.pairingRequests == 0)
    #expect(rig.radio.bond(with: rig.device) != .none)
  }

  @Test func aWrongKeySeemsToWorkAndKillsTheLink() throws {
    let rig = try Rig()
    rig.radio.bond(rig.device)
    rig.radio.giveWrongKey(to: rig.device)
    let channel = try rig.connect()
    channel.secure(to: .encrypted, keys: .bond)
    rig.executor.run()
    #expect(rig.said == ["secured encrypted"])
    #expect(channel.send([0x0A, 0x10, 0x00]) == .sent)
    rig.executor.advance(by: .milliseconds(30))
    #expect(rig.said == ["secured encrypted", "closed"])
    #expect(rig.losses.first?.evidence.first == .hci(.connectionTerminatedMICFailure))
    #expect(rig.peripheral.counters.encryptions == 0)
    #expect(rig.peripheral.counters.received.isEmpty)
  }

  @Test func withoutABondNothingIsSentToTheDevice() throws {
    let rig = try Rig()
    try rig.connect().secure(to: .encrypted, keys: .bond)
    rig.executor.run()
    #expect(rig.said == ["not secured"])
    #expect(rig.losses.map(\.reason) == [.bondMissing])
    #expect(rig.peripheral.counters.pairingRequests == 0)
    #expect(rig.radio.existingLinks() == [rig.device])
  }

  @Test func aResponderThatIsDroppedRefuses() throws {
    let rig = try Rig()
    try rig.connect().secure(to: .encrypted, keys: .bondOrPairing(.none))
    rig.executor.run()
    #expect(rig.said == ["asks consent"])
    rig.handler.responders.withLock { $0 = [] }
    rig.executor.run()
    #expect(rig.said == ["asks consent", "not secured"])
    #expect(rig.losses.map(\.evidence) == [[.pairing(0x05)]])
    #expect(rig.radio.bond(with: rig.device) == .none)
  }

  @Test func theHostGivesASilentPairingUp() throws {
    let rig = try Rig()
    rig.radio.setPairing(.silent, of: rig.device)
    try rig.connect().secure(to: .encrypted, keys: .bondOrPairing(.none))
    rig.executor.advance(by: .milliseconds(29_999))
    #expect(rig.said == [])
    rig.executor.advance(by: .milliseconds(1))
    #expect(rig.said == ["not secured", "closed"])
    #expect(rig.losses.first?.evidence == [.pairing(0x08)])
  }

  @Test func whatIsSaidOfSecurityCanBeHeld() throws {
    let rig = try Rig()
    rig.radio.bond(rig.device)
    let channel = try rig.connect()
    rig.radio.hold([.security])
    channel.secure(to: .encrypted, keys: .bond)
    rig.executor.run()
    #expect(rig.radio.heldDeliveries.map(\.kind) == [.security])
    #expect(rig.said == [])
    rig.radio.stopHolding()
    rig.executor.run()
    #expect(rig.said == ["secured encrypted"])
  }

  @Test func aBondedClientHasItsSubscriptionsBackOnceItsLinkIsEncrypted() throws {
    let rig = try Rig()
    rig.radio.bond(rig.device)
    let configuration = try #require(rig.peripheral.configurationHandle(of: Characteristic(.first)))
    for isSecond in [false, true] {
      let channel = try rig.connect()
      if isSecond { #expect(rig.peripheral.update([1], of: Characteristic(.first)) == 0) }
      channel.secure(to: .encrypted, keys: .bond)
      rig.executor.run()
      if !isSecond {
        _ = channel.send([0x12, UInt8(configuration), 0, 1, 0])
        rig.executor.run()
      }
      #expect(rig.peripheral.update([2], of: Characteristic(.first)) == 1)
      rig.radio.lose(rig.device, .connectionTimeout)
      rig.executor.run()
    }
  }

  @Test func aDeviceIsHeardUnderAnotherName() throws {
    let world = try World()
    let other = try deviceID(2)
    _ = try world.up()
    world.radio.renameDevice(world.device, to: other)
    world.dial(.seconds(1))
    world.executor.advance(by: .seconds(2))
    #expect(
      world.log == [
        "1 up by 1", "1 closed supervisionTimeout", "seen as \(other)", "attempt 2 failed notFound",
      ])
    world.dial(to: other)
    world.executor.run()
    #expect(world.radio.statistics(of: other).links == 1)
  }

  @Test(arguments: [AdapterState.off, .blocked, .suspended, .missing, .notPermitted])
  func anAdapterThatIsAwayIsNamed(state: AdapterState) throws {
    let world = try World()
    _ = try world.up()
    world.radio.setAdapter(state)
    world.dial()
    world.executor.run()
    let reason = state.reason
    #expect(
      world.log == [
        "1 up by 1", "1 closed \(reason)", "adapter \(state)", "attempt 2 failed \(reason)",
      ])
  }
}
