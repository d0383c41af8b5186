import BluetoothWire
import Relink
import RelinkTesting
import Testing

@Suite struct SamplePeripheralTests {
  @Test func theLockCountsItsMovementsAndSaysSo() {
    let client = ScriptedClient(.lock())
    #expect(client.send("0a 2000") == ["0b00000000"])
    #expect(client.send("12 2100 0100") == ["13"])
    #expect(client.send("12 1000 0100000000000000") == ["13", "1b200001000000"])
    #expect(client.send("52 1000 0200000000000000") == ["1b200002000000"])
    #expect(client.peripheral.counters.appliedByTag == [1: 1, 2: 1])
    #expect(client.send("12 1000") == ["0112 1000 0d".packed])
    #expect(client.send("0a 2000") == ["0b02000000"])
  }

  @Test func theBatteryIsReadByType() {
    #expect(ScriptedClient(.battery(level: 42)).send("08 0100 ffff 192a") == ["0903 0e00 2a".packed])
  }

  @Test func theBeltNotifies() throws {
    let client = ScriptedClient(.heartRateBelt())
    let handle = try #require(
      client.peripheral.configurationHandle(of: Characteristic(.heartRateMeasurement)))
    #expect(client.peripheral.beat(60) == 0)
    #expect(client.send("12" + hex([UInt8(handle), 0]) + "0100") == ["13"])
    #expect(client.peripheral.beat(61) == 1)
    #expect(client.taken() == ["1b" + hex([UInt8(handle - 1), 0]) + "003d"])
  }

  @Test func theThermometerIndicates() throws {
    let client = ScriptedClient(.thermometer())
    let handle = try #require(
      client.peripheral.configurationHandle(of: Characteristic(.temperatureMeasurement)))
    client.send("12" + hex([UInt8(handle), 0]) + "0200")
    #expect(client.peripheral.measure(millidegrees: 36_600) == 1)
    #expect(client.taken() == ["1d" + hex([UInt8(handle - 1), 0]) + "00f88e00fd"])
  }
}
