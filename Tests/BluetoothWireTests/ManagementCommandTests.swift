import BluetoothWire
import Testing

@Suite struct ManagementCommandTests {
  @Test(
    arguments: [
      (.readVersion, "0100 0000 0000"),
      (.readControllerIndexList, "0300 0000 0000"),
      (.readControllerInformation, "0400 0000 0000"),
      (.setPowered(true), "0500 0000 0100 01"),
      (.setPowered(false), "0500 0000 0100 00"),
      (.setConnectable(true), "0700 0000 0100 01"),
      (.setBondable(false), "0900 0000 0100 00"),
      (.setLowEnergy(true), "0D00 0000 0100 01"),
      (.setBREDR(false), "2A00 0000 0100 00"),
      (.setSecureConnections(true), "2D00 0000 0100 01"),
      (.disconnect(address: device.address, type: .leRandom), "1400 0000 0700 01000000DEC0 02"),
      (.getConnections, "1500 0000 0000"),
      (.getConnectionInformation(address: device.address, type: .lePublic), "3100 0000 0700 01000000DEC0 01"),
      (
        .pairDevice(address: device.address, type: .leRandom, ioCapability: 3),
        "1900 0000 0800 01000000DEC0 02 03"
      ),
      (.cancelPairDevice(address: device.address, type: .leRandom), "1A00 0000 0700 01000000DEC0 02"),
      (
        .unpairDevice(address: device.address, type: .leRandom, disconnect: true),
        "1B00 0000 0800 01000000DEC0 02 01"
      ),
      (.startDiscovery(types: 6), "2300 0000 0100 06"),
      (.stopDiscovery(types: 6), "2400 0000 0100 06"),
      (.addDevice(address: device.address, type: .leRandom, action: 2), "3300 0000 0800 01000000DEC0 02 02"),
      (.removeDevice(address: device.address, type: .leRandom), "3400 0000 0700 01000000DEC0 02"),
      (
        .loadConnectionParameters([
          ManagementConnectionParameters(
            device: device, minimumInterval: 6, maximumInterval: 12, latency: 1, supervisionTimeout: 0x0120)
        ]), "3500 0000 1100 0100 01000000DEC0 02 0600 0C00 0100 2001"
      ),
      (.setIOCapability(3), "1800 0000 0100 03"),
      (.userConfirmationReply(address: device.address, type: .leRandom), "1C00 0000 0700 01000000DEC0 02"),
      (
        .userConfirmationNegativeReply(address: device.address, type: .leRandom),
        "1D00 0000 0700 01000000DEC0 02"
      ),
      (
        .userPasskeyReply(address: device.address, type: .leRandom, passkey: 123_456),
        "1E00 0000 0B00 01000000DEC0 02 40E20100"
      ),
      (
        .userPasskeyNegativeReply(address: device.address, type: .leRandom),
        "1F00 0000 0700 01000000DEC0 02"
      ),
      (.setPrivacy(mode: 1, key: secret), "2F00 0000 1100 01 \(secretOctets)"),
      (.loadLongTermKeys([]), "1300 0000 0200 0000"),
      (
        .loadLongTermKeys([longTermKey]),
        "1300 0000 2600 0100 01000000DEC0 02 03 01 10 3412 EFCDAB8967452301 \(secretOctets)"
      ),
      (
        .loadIdentityResolvingKeys([
          ManagementIdentityResolvingKey(device: device, value: secret),
          ManagementIdentityResolvingKey(device: device, value: secret),
        ]),
        "3000 0000 3000 0200 01000000DEC0 02 \(secretOctets) 01000000DEC0 02 \(secretOctets)"
      ),
      (.getDeviceFlags(address: device.address, type: .leRandom), "4F00 0000 0700 01000000DEC0 02"),
      (.other(opcode: .readCommands, parameters: [3]), "0200 0000 0100 03"),
    ] as [(ManagementCommand, String)])
  func itsOctets(command: ManagementCommand, octets: String) {
    #expect(command.encoded(index: 0) == hex(octets))
  }

  @Test func theIndexIsInTheHeader() {
    #expect(ManagementCommand.setPowered(true).encoded(index: 0x0102) == hex("0500 0201 0100 01"))
    #expect(
      ManagementCommand.readControllerIndexList.encoded(index: ManagementPacket.noController)
        == hex("0300 FFFF 0000"))
  }

  @Test func aListThatThePacketCannotSayIsCut() throws {
    let one = ManagementConnectionParameters(
      device: device, minimumInterval: 6, maximumInterval: 12, latency: 1, supervisionTimeout: 100)
    let octets = ManagementCommand.loadConnectionParameters(Array(repeating: one, count: 5_000)).encoded(
      index: 0)
    let packet = try ManagementPacket(decoding: octets)
    let count = Int(packet.parameters[0]) | Int(packet.parameters[1]) << 8
    #expect(packet.parameters.count == 2 + count * 15)
    #expect(count == 4_368)
  }

  @Test func keysThatThePacketCannotSayAreCut() throws {
    let long = ManagementCommand.loadLongTermKeys(Array(repeating: longTermKey, count: 5_000))
    #expect(long.parameters.count == 2 + 1_820 * 36)
    #expect(long.parameters.prefix(2) == [0x1C, 0x07])
    let identity = ManagementCommand.loadIdentityResolvingKeys(
      Array(repeating: ManagementIdentityResolvingKey(device: device, value: secret), count: 5_000))
    #expect(identity.parameters.count == 2 + 2_849 * 23)
    #expect(identity.parameters.prefix(2) == [0x21, 0x0B])
  }

  /// What the kernel tells of a key is what it is given again at the next start.
  @Test func aKeyThatWasToldIsLoadedAsItWas() throws {
    var random = SeededGenerator(seed: 7)
    for _ in 0..<1_000 {
      var record = random.bytes(36...36)
      record[8] &= 1
      let told = ManagementEvent(
        ManagementPacket(code: 0x0A, index: 0, parameters: [random.octet()] + record))
      guard case .newLongTermKey(_, let key) = told else {
        Issue.record("read as \(told)")
        return
      }
      #expect(ManagementCommand.loadLongTermKeys([key]).parameters == [1, 0] + record)
      let identity = ManagementEvent(
        ManagementPacket(code: 0x18, index: 0, parameters: random.bytes(7...7) + record.prefix(23)))
      guard case .newIdentityResolvingKey(_, _, let key) = identity else {
        Issue.record("read as \(identity)")
        return
      }
      #expect(ManagementCommand.loadIdentityResolvingKeys([key]).parameters == [1, 0] + record.prefix(23))
    }
  }
}
