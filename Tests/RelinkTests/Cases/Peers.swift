import BluetoothWire
import Relink
import RelinkTesting

func deviceID(_ number: Int) throws -> DeviceID {
  struct NoDeviceID: Error {}
  let octet = String(number, radix: 16)
  let padded = octet.count < 2 ? "0\(octet)" : octet
  guard let device = DeviceID("C0:DE:00:00:00:\(padded)/random") else { throw NoDeviceID() }
  return device
}

extension VirtualPeripheral {
  /// A peripheral with a value at 0x0010 and one at 0x0020, each with its configuration behind it.
  static func twoValues(hasDatabaseHash: Bool = true) -> VirtualPeripheral {
    let properties: CharacteristicProperties = [.read, .write, .writeWithoutResponse, .notify]
    return VirtualPeripheral(
      services: [
        VirtualService(
          BluetoothUUID(0xFFF0),
          characteristics: [
            VirtualCharacteristic(Scene.first.uuid, properties, value: [0x0A], valueHandle: 0x0010),
            VirtualCharacteristic(Scene.second.uuid, properties, value: [0x0B], valueHandle: 0x0020),
          ])
      ], hasDatabaseHash: hasDatabaseHash)
  }

  /// How often a value was written, by its handle.
  func wr(_ handle: UInt16) -> Int { counters.applied(at: handle) }
}

extension RawPeripheral {
  /// Answers what a client asks to learn two values, at 0x0010 and 0x0020, each with its configuration behind it; what
  /// else comes goes to `rest`, which says whether it took it.
  func showTwoValues(rest: @escaping @Sendable ([UInt8], PeerLink) -> Bool = { _, _ in false }) {
    always("10 0100 ffff 0028", answer: "11 06 0100 3000 f0ff")
    otherwise { pdu, link in
      guard [0x04, 0x06, 0x08, 0x10].contains(pdu.first), pdu.count >= 3 else { return rest(pdu, link) }
      let start = UInt16(pdu[1]) | UInt16(pdu[2]) << 8
      switch pdu[0] {
      case 0x08 where pdu.suffix(2) == [0x03, 0x28] && start <= 0x000F:
        link.send([0x09, 0x07, 0x0F, 0x00, 0x1A, 0x10, 0x00, 0x01, 0xFF])
      case 0x08 where pdu.suffix(2) == [0x03, 0x28] && start <= 0x001F:
        link.send([0x09, 0x07, 0x1F, 0x00, 0x1A, 0x20, 0x00, 0x02, 0xFF])
      case 0x04 where start <= 0x0011: link.send([0x05, 0x01, 0x11, 0x00, 0x02, 0x29])
      case 0x04 where start <= 0x0021: link.send([0x05, 0x01, 0x21, 0x00, 0x02, 0x29])
      default: link.send([0x01, pdu[0], pdu[1], pdu[2], 0x0A])
      }
      return true
    }
  }

  /// A peer with two values and an ATT_MTU of 23, whose other answers a case writes down.
  static func twoValues() -> RawPeripheral {
    let peer = RawPeripheral()
    peer.always("02 ....", answer: "03 1700")
    peer.showTwoValues()
    return peer
  }

  /// What came on a link, in hexadecimal.
  func received(on link: Int) -> [String] {
    received.filter { $0.linkNumber == link }.map { PDUPattern($0.pdu).description }
  }

  /// What came of an opcode, in hexadecimal.
  func received(opcode: UInt8) -> [String] {
    received.filter { $0.pdu.first == opcode }.map { PDUPattern($0.pdu).description }
  }
}
