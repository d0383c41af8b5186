import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// Subscriptions, notifications, indications and changes of the table.
@Suite struct GATTServerValueTests {
  let peripheral = VirtualPeripheral.twoValues()
  let first = Characteristic(.first)
  let second = Characteristic(.second)

  @Test func onlySubscribersAreNotified() {
    let client = ScriptedClient(peripheral)
    #expect(peripheral.update([0x41], of: first) == 0)
    #expect(client.taken() == [])
    #expect(client.send("12 1100 0100") == ["13"])
    #expect(client.send("0a 1100") == ["0b0100"])
    #expect(peripheral.update([0x42], of: first) == 1)
    #expect(client.taken() == ["1b100042"])
    #expect(client.send("12 1100 0000") == ["13"])
    #expect(peripheral.update([0x43], of: first) == 0)
    #expect(peripheral.counters.subscriptions(onLink: 1).map(\.bits) == [1, 0])
    #expect(peripheral.counters.notifications == 1)
  }

  @Test func aConfigurationTakesTheBitsOfItsPropertiesOnly() {
    let client = ScriptedClient(peripheral)
    #expect(client.send("12 1100 0200") == ["0112 1100 13".packed])
    #expect(client.send("12 1100 01") == ["0112 1100 0d".packed])
    #expect(client.send("12 2100 0200") == ["13"])
  }

  @Test func aSubscriptionEndsWithItsLink() {
    let old = ScriptedClient(peripheral, number: 1)
    old.send("12 1100 0100")
    old.close()
    let new = ScriptedClient(peripheral, number: 2)
    #expect(peripheral.update([1], of: first) == 0)
    #expect(new.taken() == [])
  }

  @Test func aSubscriptionOfABondedClientOutlivesItsLink() {
    let old = ScriptedClient(peripheral, number: 1)
    old.send("12 1100 0100")
    peripheral.bond(with: "central")
    old.close()
    let stranger = ScriptedClient(peripheral, number: 2, client: "other")
    let new = ScriptedClient(peripheral, number: 3)
    #expect(peripheral.update([1], of: first) == 1)
    #expect(new.taken() == ["1b100001"])
    #expect(stranger.taken() == [])
    peripheral.eraseBond(with: "central")
    new.close()
    _ = ScriptedClient(peripheral, number: 4)
    #expect(peripheral.update([2], of: first) == 0)
  }

  @Test func aNotificationIsCutToTheMTU() {
    let client = ScriptedClient(peripheral)
    client.send("12 1100 0100")
    peripheral.update(Array(0..<30), of: first)
    #expect(client.taken() == ["1b1000" + hex(Array(0..<20))])
  }

  @Test func oneIndicationAtATime() {
    let client = ScriptedClient(peripheral)
    client.send("12 2100 0200")
    peripheral.update([1], of: second)
    peripheral.update([2], of: second)
    #expect(client.taken() == ["1d200001"])
    #expect(client.send("1e") == ["1d200002"])
    #expect(client.send("1e") == [])
    #expect(peripheral.counters.confirmations == 2)
    #expect(client.send("1e") == [])
    #expect(peripheral.counters.violations == [.unexpectedConfirmation: 1])
  }

  @Test func aValueCanBePushedAtSomebodyWhoDidNotAsk() {
    let client = ScriptedClient(peripheral)
    peripheral.push([7], handle: 0x99)
    peripheral.push([8], handle: 0x98, isIndication: true)
    #expect(client.taken() == ["1b990007", "1d980008"])
  }

  @Test func anInsertedServiceMovesHandlesAndKeepsValuesAndSubscriptions() {
    let client = ScriptedClient(peripheral)
    client.send("12 1000 41")
    client.send("12 1100 0100")
    client.send("12 0900 0200")
    let extra = VirtualService(
      .battery, characteristics: [VirtualCharacteristic(.batteryLevel, .read, value: [50])])
    peripheral.insertInFront(extra, movingBy: 8)
    #expect(client.taken() == ["1d 0800 0100 ffff".packed])
    #expect(peripheral.valueHandle(of: first) == 0x18)
    #expect(peripheral.configurationHandle(of: first) == 0x19)
    #expect(client.send("0a 1800") == ["0b41"])
    #expect(client.send("0a 1000") == ["010a 1000 01".packed])
    peripheral.update([0x42], of: first)
    #expect(client.taken() == ["1b180042"])
    client.send("12 1800 43")
    #expect(peripheral.counters.applied(at: 0x10) == 1)
    #expect(peripheral.counters.applied(at: 0x18) == 1)
  }

  @Test func aBondedClientIsToldOfAChangeOnItsNextLink() {
    let old = ScriptedClient(peripheral, number: 1)
    old.send("12 0900 0200")
    peripheral.bond(with: "central")
    old.close()
    peripheral.append(VirtualService(.battery, characteristics: []))
    let new = ScriptedClient(peripheral, number: 2)
    #expect(new.taken() == ["1d 0800 0100 ffff".packed])
    new.close()
    #expect(ScriptedClient(peripheral, number: 3).taken() == [])
  }

  @Test func aStrangerIsToldNothingOfAChange() {
    let client = ScriptedClient(peripheral)
    peripheral.remove(.testService)
    #expect(client.taken() == [])
    #expect(client.send("0a 1000") == ["010a 1000 01".packed])
  }

  @Test func newFirmwareStartsAnew() {
    let client = ScriptedClient(peripheral)
    client.send("12 1000 41")
    client.send("12 1100 0100")
    peripheral.replaceServices(with: [
      VirtualService(
        .testService,
        characteristics: [VirtualCharacteristic(.first, [.read, .notify], value: [1], valueHandle: 0x30)])
    ])
    #expect(client.send("0a 3000") == ["0b01"])
    #expect(peripheral.update([2], of: first) == 0)
    #expect(peripheral.valueHandle(of: second) == nil)
  }
}
