import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// Discovery as Core Specification Vol 3 Part F 3.4.3 and 3.4.4 ask, PDU by PDU.
@Suite struct GATTServerDiscoveryTests {
  let client = ScriptedClient(.twoValues(value: [0x41]))

  @Test func primaryServicesComeByGroupWithTheirEnds() {
    #expect(client.send("10 0100 ffff 0028") == ["1106 0100 0500 0018 0600 0b00 0118 0e00 2100 00ff".packed])
    #expect(client.send("10 2200 ffff 0028") == ["0110 2200 0a".packed])
  }

  @Test func onlyServicesAreGroups() {
    #expect(client.send("10 0100 ffff 0328") == ["0110 0100 10".packed])
  }

  @Test func characteristicDeclarationsComeByType() {
    // 23 bytes carry three of seven; the client asks on behind the last.
    #expect(
      client.send("08 0100 ffff 0328")
        == ["0907 0200 02 0300 002a 0400 02 0500 012a 0700 20 0800 052a".packed])
    #expect(
      client.send("08 0a00 ffff 0328")
        == ["0907 0a00 02 0b00 2a2b 0f00 1e 1000 01ff 1f00 2a 2000 02ff".packed])
    #expect(client.send("08 2000 ffff 0328") == ["0108 2000 0a".packed])
  }

  @Test func descriptorsComeWithTheirTypes() {
    #expect(client.send("04 1100 1100") == ["0501 1100 0229".packed])
    #expect(client.send("04 1200 1e00") == ["0104 1200 0a".packed])
  }

  @Test func typesOfTwoLengthsComeInTwoAnswers() throws {
    let long = try #require(BluetoothUUID("6E400001-B5A3-F393-E0A9-E50E24DCCA9E"))
    let peripheral = VirtualPeripheral(
      services: [
        VirtualService(.testService, characteristics: [VirtualCharacteristic(long, .read, value: [1])])
      ], hasGenericServices: false)
    let client = ScriptedClient(peripheral)
    #expect(client.send("04 0100 ffff") == ["0501 0100 0028 0200 0328".packed])
    #expect(client.send("04 0300 ffff") == ["0502 0300 9ecadc240ee5a9e093f3a3b50100406e".packed])
  }

  @Test func servicesAreFoundByTheirUUID() {
    #expect(client.send("06 0100 ffff 0028 00ff") == ["07 0e00 2100".packed])
    #expect(client.send("06 0100 ffff 0028 01ff") == ["0106 0100 0a".packed])
  }

  @Test(arguments: [
    "04 0000 ffff", "04 0200 0100", "08 0000 ffff 0328", "10 0200 0100 0028", "06 0000 ffff 0028 00ff",
  ])
  func aRangeStartsAboveZeroAndNotBehindItsEnd(request: String) {
    let pdu = octets(request)
    #expect(client.send(request) == ["01" + hex([pdu[0]]) + hex([pdu[1], pdu[2]]) + "01"])
  }

  @Test func valuesAreReadByType() {
    #expect(client.send("08 0100 ffff 01ff") == ["0903 1000 41".packed])
    #expect(client.peripheral.counters.reads == [0x10: 1])
  }

  @Test func theHashChangesWithTheTableAndWithItAlone() {
    let before = client.send("08 0100 ffff 2a2b")
    client.peripheral.setValue([9], of: Characteristic(.first))
    #expect(client.send("08 0100 ffff 2a2b") == before)
    client.peripheral.append(VirtualService(.battery, characteristics: []))
    let after = client.send("08 0100 ffff 2a2b")
    #expect(after != before)
    #expect(after.first?.count == 4 + 4 + 32)
  }

  @Test func theMTUIsTheSmallerOfBoth() {
    let client = ScriptedClient(.twoValues(mtuLimit: 100))
    #expect(client.send("02 cb00") == ["03 6400".packed])
    // 100 bytes carry thirteen declarations of seven; all six come at once.
    #expect(client.send("08 0100 ffff 0328").first?.count == 2 * (2 + 6 * 7))
    let small = ScriptedClient(.twoValues(mtuLimit: 100), mtuLimit: 50)
    #expect(small.send("02 cb00") == ["03 3200".packed])
  }

  @Test func aRepeatedExchangeIsAnsweredAndCounted() {
    client.send("02 cb00")
    #expect(client.peripheral.counters.violations.isEmpty)
    client.send("02 cb00")
    #expect(client.peripheral.counters.violations == [.repeatedMTUExchange: 1])
  }

  @Test func servicesOfOneUUIDAreToldApart() {
    let name = Characteristic(.batteryLevel, in: .battery, occurrence: 1)
    let peripheral = VirtualPeripheral(services: [
      VirtualService(.battery, characteristics: [VirtualCharacteristic(.batteryLevel, .read, value: [1])]),
      VirtualService(.battery, characteristics: [VirtualCharacteristic(.batteryLevel, .read, value: [2])]),
    ])
    #expect(peripheral.value(of: name) == [2])
    #expect(peripheral.value(of: Characteristic(.batteryLevel)) == [1])
    #expect(peripheral.value(of: Characteristic(.batteryLevel, occurrence: 2)) == nil)
  }
}

extension String {
  /// The text without spaces.
  var packed: String { filter { $0 != " " } }
}
