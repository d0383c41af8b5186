import BluetoothWire
import Relink
import RelinkTesting

/// A client that speaks in hexadecimal: it sends what a script says and keeps what comes back.
final class ScriptedClient: Sendable {
  let executor: ManualExecutor
  let peripheral: VirtualPeripheral
  let link: PeerLink
  private let log: Log

  /// What the peripheral sent, and how it ended the link.
  final class Log: Sendable {
    let lines = Locked<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  init(
    _ peripheral: VirtualPeripheral, on executor: ManualExecutor = ManualExecutor(), number: Int = 1,
    client: String = "central", mtuLimit: Int = 517
  ) {
    self.executor = executor
    self.peripheral = peripheral
    let log = Log()
    self.log = log
    link = PeerLink(
      number: number, client: client, mtuLimit: mtuLimit, on: executor,
      send: { log.add(hex($0)) }, terminate: { log.add("terminated " + hex([$0.rawValue])) })
    peripheral.linkOpened(link)
  }

  /// Sends octets and answers what came back meanwhile.
  @discardableResult
  func send(_ text: String) -> [String] {
    peripheral.received(octets(text), on: link)
    return taken()
  }

  /// What came since the last look.
  func taken() -> [String] {
    log.lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }

  func close() { peripheral.linkClosed(link, reason: .connectionTimeout) }
}

/// Octets as two digits each, without spaces.
func hex(_ octets: [UInt8]) -> String {
  octets.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
}

/// The octets of a text in hexadecimal; spaces are skipped.
func octets(_ text: String) -> [UInt8] {
  let digits = text.filter { $0 != " " }.map { UInt8($0.hexDigitValue ?? 0) }
  return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

extension BluetoothUUID {
  static let testService = BluetoothUUID(0xFF00 as UInt16)
  static let first = BluetoothUUID(0xFF01 as UInt16)
  static let second = BluetoothUUID(0xFF02 as UInt16)
}

extension VirtualPeripheral {
  /// Value handle 0x0010 with its configuration at 0x0011, and 0x0020 with 0x0021.
  static func twoValues(
    properties: CharacteristicProperties = [.read, .write, .writeWithoutResponse, .notify],
    value: [UInt8] = [], security: VirtualSecurity = .none, lengths: ClosedRange<Int> = 0...512,
    mtuLimit: Int = 517, prepareLimit: Int = 64
  ) -> VirtualPeripheral {
    VirtualPeripheral(
      services: [
        VirtualService(
          .testService,
          characteristics: [
            VirtualCharacteristic(
              .first, properties, value: value, valueHandle: 0x0010, lengths: lengths, security: security),
            VirtualCharacteristic(.second, [.read, .write, .indicate], valueHandle: 0x0020),
          ])
      ], mtuLimit: mtuLimit, prepareLimit: prepareLimit)
  }
}
