import BluetoothWire
import Relink
import Testing

@testable import relink_tool

@Suite("Command line")
struct ArgumentsTests {
  @Test("watch takes an address with its type, or a socket path")
  func devices() throws {
    let bluez = try WatchCommand(Arguments(["C0:DE:00:00:00:01/random"]))
    #expect(bluez.way == .bluez)
    #expect(bluez.device.addressType == .random)
    let unix = try WatchCommand(Arguments(["unix:/tmp/lock"]))
    #expect(unix.way == .unix)
    #expect(try WatchCommand(Arguments(["--over", "unix:/tmp/lock"])).device == unix.device)
  }

  @Test("watch takes several reads and subscriptions")
  func options() throws {
    let command = try WatchCommand(
      Arguments([
        "unix:a", "--read", "2A19", "--read", "180F/2A19", "--every", "2m", "--notify", "2A37", "--json",
      ]))
    #expect(
      command.reads == [
        Characteristic(BluetoothUUID(0x2A19)),
        Characteristic(BluetoothUUID(0x2A19), in: BluetoothUUID(0x180F)),
      ])
    #expect(command.every == .seconds(120))
    #expect(command.notified == [Characteristic(BluetoothUUID(0x2A37))])
    #expect(command.isJSON)
  }

  @Test(
    "A command line that cannot be understood says why",
    arguments: [
      [], ["C0:DE:00:00:00:01"], ["C0:DE:00:00:00:01/random", "--read"], ["unix:a", "unix:b"],
      ["unix:a", "--read", "xyz"], ["unix:a", "--every", "0s"], ["unix:a", "--every", "99h"],
      ["unix:a", "--what"],
      ["name"], ["unix:a", "--over", "usb"], ["unix:a", "--over", "unix:b"],
    ])
  func mistakes(words: [String]) {
    #expect(throws: UsageError.self) { try WatchCommand(Arguments(words)) }
  }

  @Test(
    "Times have a unit",
    arguments: [("500ms", Duration.milliseconds(500)), ("1s", .seconds(1)), ("24h", .seconds(86_400))])
  func times(text: String, span: Duration) throws {
    #expect(try Duration(argument: text) == span)
  }

  @Test(
    "What is no time is refused",
    arguments: ["", "5", "s", "-1s", "1.5s", "25h", "99999999999999999999s", "1 s"])
  func noTimes(text: String) {
    #expect(throws: UsageError.self) { try Duration(argument: text) }
  }
}
