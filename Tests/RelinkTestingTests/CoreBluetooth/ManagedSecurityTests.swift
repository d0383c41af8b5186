import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// A platform that secures its links by itself: nobody above it asks for that, or is told.
@Suite struct ManagedSecurityTests {
  private func rig(_ security: VirtualSecurity = .encrypted) throws -> ManagedRig {
    try ManagedRig(.twoValues(value: [0x41], security: security))
  }

  @Test func aProtectedRequestMakesThePlatformEncrypt() throws {
    let rig = try rig()
    rig.radio.bond(rig.device)
    let link = try rig.connect()
    #expect(link.capabilities.security == .none)
    #expect(!(link is any SecurableLink))
    #expect(rig.answer(.read(firstValue), on: link) == .success(.value([0x41])))
    #expect(link.capabilities.security == .encrypted)
    #expect(rig.answer(.read(firstValue), on: link) == .success(.value([0x41])))
    #expect(rig.peripheral.counters.encryptions == 1)
    #expect(rig.peripheral.counters.securityRefusals == 1)
    #expect(rig.peripheral.counters.pairingRequests == 0)
  }

  @Test func requestsOfSeveralValuesShareOneEncryption() throws {
    let rig = try rig()
    rig.radio.bond(rig.device)
    let link = try rig.connect()
    let ids = [GATTRequest.read(firstValue), .read(secondValue), .write(firstValue, [1]), .read(firstValue)]
      .map {
        rig.perform($0, on: link).0
      }
    rig.executor.advance(by: .seconds(5))
    let answers = ids.flatMap { rig.recorder.answers(to: $0, on: link.id) }
    #expect(
      answers == [
        .success(.value([0x41])), .success(.value([])), .success(.done), .success(.value([1])),
      ])
    #expect(rig.peripheral.counters.encryptions == 1)
    #expect(rig.peripheral.counters.applied(at: 0x10) == 1)
    #expect(rig.executor.timerCount == 0)
  }

  @Test func aLongWriteIsAskedAgainWhole() throws {
    let rig = try rig()
    rig.radio.bond(rig.device)
    let link = try rig.connect()
    let value = [UInt8](repeating: 7, count: 400)
    #expect(rig.answer(.writeLong(firstValue, value), on: link) == .success(.done))
    #expect(rig.peripheral.counters.applied.map(\.value) == [value])
    #expect(rig.peripheral.counters.violations.isEmpty)
  }

  @Test(arguments: [PairingBehavior.justWorks, .comparison(1), .passkeyShown(2), .passkeyTyped(3)])
  func withoutABondThePlatformPairs(behavior: PairingBehavior) throws {
    let rig = try rig()
    rig.radio.setPairing(behavior, of: rig.device)
    let link = try rig.connect()
    #expect(rig.answer(.read(firstValue), on: link) == .success(.value([0x41])))
    #expect(rig.peripheral.counters.pairingRequests == 1)
    rig.radio.loseLink(to: rig.device)
    rig.executor.advance(by: .seconds(1))
    let next = try rig.connect()
    #expect(rig.answer(.read(firstValue), on: next) == .success(.value([0x41])))
    #expect(rig.peripheral.counters.pairingRequests == 1)
    #expect(rig.peripheral.counters.encryptions == 2)
  }

  @Test(arguments: [
    PairingBehavior.refuses, .comparison(1, agrees: false), .passkeyTyped(2, correctly: false),
  ])
  func whatCannotBePairedHasTheDevicesAnswer(behavior: PairingBehavior) throws {
    let rig = try rig()
    rig.radio.setPairing(behavior, of: rig.device)
    let link = try rig.connect()
    #expect(rig.answer(.read(firstValue), on: link) == .failure(.rejected(.insufficientAuthentication)))
    #expect(rig.recorder.link != nil)
    #expect(rig.executor.timerCount == 0)
  }

  @Test func aDeviceThatForgotEndsTheLinkAndThePlatformSaysWhy() throws {
    let rig = try rig()
    rig.radio.bond(rig.device)
    rig.radio.forgetBond(atPeripheral: rig.device)
    let link = try rig.connect()
    let (id, _) = rig.perform(.read(firstValue), on: link)
    rig.executor.advance(by: .seconds(5))
    #expect(rig.recorder.closings(of: link.id).map(\.loss.reason) == [.keyMissing])
    #expect(rig.recorder.answers(to: id, on: link.id).isEmpty)
    // The user removes the pairing in the settings; the next request pairs.
    rig.radio.forgetBond(atHost: rig.device)
    let next = try rig.connect()
    #expect(rig.answer(.read(firstValue), on: next) == .success(.value([0x41])))
    #expect(rig.peripheral.counters.pairingRequests == 1)
  }

  @Test func aDeviceThatSaysNothingEndsTheLink() throws {
    let rig = try rig()
    rig.radio.setPairing(.silent, of: rig.device)
    let link = try rig.connect()
    rig.perform(.read(firstValue), on: link)
    rig.executor.advance(by: .seconds(29))
    #expect(rig.recorder.link != nil)
    rig.executor.advance(by: .seconds(3))
    #expect(rig.recorder.link == nil)
  }

  @Test func moreThanTheBondIsWorthIsNotAskedForForEver() throws {
    let rig = try rig(.authenticated)
    rig.radio.bond(rig.device)
    let link = try rig.connect()
    #expect(rig.answer(.read(firstValue), on: link) == .failure(.rejected(.insufficientAuthentication)))
    #expect(rig.peripheral.counters.encryptions == 1)
  }
}
