import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B27: after a jump into its bootloader the device is heard under another address, or shows another table.
@Suite struct OtherAddressTests {
  private static let bootloader = VirtualService(
    BluetoothUUID(0xFE59),
    characteristics: [
      VirtualCharacteristic(BluetoothUUID(0xFE5A), [.read, .write], value: [7], valueHandle: 0x0010)
    ])

  /// A peripheral that ends its link when 0x01 is written to it.
  private func peripheral() -> VirtualPeripheral {
    let peripheral = VirtualPeripheral.twoValues()
    peripheral.react(to: .write(Scene.first), with: .answerAndDrop(), times: 1)
    return peripheral
  }

  @Test("B27: another address", arguments: [nil, 3] as [Int?])
  func theSessionStaysWithItsOwnDeviceAndSaysWhatItHeard(_ attempts: Int?) throws {
    let peripheral = peripheral()
    var air = VirtualRadio.Configuration()
    air.dialLimit = .seconds(10)
    let policy = ReconnectionPolicy(attemptsPerOutage: attempts)
    try Scene.play(peripheral, Configuration(reconnection: policy, seed: 1), air: air) { scene in
      let other = try deviceID(2)
      let evidence: [Evidence] = [.observation("it advertises the same name")]
      try scene.connect()
      try scene.drive("jump") { try await $0.write([1], to: Scene.first, idempotency: .nonIdempotent) }
      #expect(scene.run { !scene.recorder.disconnections.isEmpty })
      peripheral.replaceServices(with: [Self.bootloader])
      scene.radio.renameDevice(scene.device, to: other, evidence: evidence)
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(300))
      let seen = ConnectionEvent.seen(as: other, isFollowed: false, evidence)
      #expect(scene.recorder.events.filter { $0 == seen }.count == 1)
      #expect(scene.recorder.violation == nil)
      // It goes on with its own device, which is merely absent, and with no other.
      #expect(scene.radio.statistics(of: other) == VirtualRadio.Statistics())
      #expect(scene.statistics.dials > 20)
      #expect(
        scene.recorder.failures.allSatisfy { $0.reason == .notFound || $0.reason == .failedToEstablish })
      #expect(!read.hasEnded)
      #expect(peripheral.counters.links == 1)
      // Another session for the other name is the app's decision.
      let session = try DeviceSession(with: other, over: scene.radio, configuration: Configuration(seed: 2))
      try scene.executor.drive("other") { try await session.connect() }
      #expect(
        try scene.executor.drive("read") { try await session.read(Characteristic(BluetoothUUID(0xFE5A))) }
          == [7])
      try scene.executor.drive("close") { await session.close() }
      scene.executor.advance(by: .seconds(5))
      // The device comes back as what it was.
      peripheral.replaceServices(with: VirtualPeripheral.twoValues().services.suffix(1))
      scene.radio.renameDevice(other, to: scene.device)
      scene.executor.advance(by: .seconds(30))
      #expect(read.value == [0x0A])
    }
  }

  @Test("B27: another address that the app knows to be the same device")
  func theSessionFollowsItsDeviceWhereTheAppSaysSo() throws {
    let peripheral = peripheral()
    let other = try deviceID(2)
    let configuration = Configuration(identity: { name, _ in name == other }, seed: 1)
    try Scene.play(peripheral, configuration) { scene in
      try scene.connect()
      try scene.drive("jump") { try await $0.write([1], to: Scene.first, idempotency: .nonIdempotent) }
      #expect(scene.run { !scene.recorder.disconnections.isEmpty })
      scene.radio.renameDevice(scene.device, to: other)
      scene.executor.advance(by: .seconds(5))
      #expect(scene.session.snapshot().isReady)
      #expect(scene.radio.statistics(of: other).links == 1)
      #expect(try scene.drive("read") { try await $0.read(Scene.second) } == [0x0B])
    }
  }

  @Test("B27: the same address with another table")
  func theTableIsLearntAgainAndNoHandleOfTheOldOneIsUsed() throws {
    let peripheral = peripheral()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      try scene.drive("jump") { try await $0.write([1], to: Scene.first, idempotency: .nonIdempotent) }
      let old = scene.spawn("old") {
        try await $0.write([2], to: Scene.second, idempotency: .idempotent)
      }
      peripheral.replaceServices(with: [Self.bootloader])
      scene.executor.advance(by: .seconds(10))
      #expect(scene.recorder.readiness.last?.tableChanged == true)
      #expect(scene.recorder.readiness.count == 2)
      // The first write was all that ever arrived under a name that is not there any more.
      #expect(old.hasEnded)
      #expect(peripheral.counters.applied.filter { $0.value != [1] && $0.value != [2] }.isEmpty)
      let applied = peripheral.counters.applied.count
      let gone = scene.spawn("gone") { try await $0.read(Scene.first) }
      scene.executor.run()
      #expect(gone.relinkError?.code == .characteristicNotFound)
      try scene.drive("new") {
        try await $0.write([9], to: Characteristic(BluetoothUUID(0xFE5A)), idempotency: .nonIdempotent)
      }
      #expect(peripheral.counters.applied.count == applied + 1)
      #expect(peripheral.counters.applied.last?.characteristic.uuid == BluetoothUUID(0xFE5A))
    }
  }
}
