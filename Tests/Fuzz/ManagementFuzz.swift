// Compiled together with Sources/BluetoothWire by Tests/Fuzz/run, so there is no module to import.

/// Octets are a packet that encodes to the same octets and reads as an event, or an error that fits them.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzManagement(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  readPacket(input)
  // The length field stops most inputs at the door; behind it the octets are parameters of each event in turn.
  guard count > 0 else { return 0 }
  let parameters = [UInt8](input.dropFirst())
  readEvent(ManagementPacket(code: UInt16(input[0]), index: 0, parameters: parameters))
  readEvent(
    ManagementPacket(
      code: ManagementEventCode.commandComplete.rawValue, index: 0, parameters: [input[0], 0, 0] + parameters)
  )
  return 0
}

private func readPacket(_ input: UnsafeRawBufferPointer) {
  do {
    let packet = try ManagementPacket(decoding: input.bytes)
    guard packet.encoded().elementsEqual(input) else { fatalError("\(packet) encodes to other octets") }
    readEvent(packet)
  } catch .truncatedHeader {
    guard input.count < ManagementPacket.headerLength else { fatalError("a whole header was not seen") }
  } catch .badLength(let stated, let actual) {
    guard stated != actual, actual == input.count - ManagementPacket.headerLength else {
      fatalError("a length of \(stated) was refused for \(actual)")
    }
  } catch {
    fatalError("\(error)")
  }
}

/// Keys are loaded as they were told, and nothing that a packet brings is lost or grows.
private func readEvent(_ packet: ManagementPacket) {
  let event = ManagementEvent(packet)
  let octets = packet.parameters
  switch event {
  case .unknown(let code, let parameters):
    guard code.rawValue == packet.code, parameters == octets else { fatalError("\(event) lost octets") }
  case .newLongTermKey(_, let key):
    var record = octets[1..<37]
    // Any octet but 0 says that this host is the central.
    record[9] = record[9] == 0 ? 0 : 1
    guard ManagementCommand.loadLongTermKeys([key]).parameters == [1, 0] + record else {
      fatalError("\(event) is loaded as another key")
    }
  case .newIdentityResolvingKey(_, _, let key):
    guard ManagementCommand.loadIdentityResolvingKeys([key]).parameters == [1, 0] + octets[7..<30] else {
      fatalError("\(event) is loaded as another key")
    }
  case .newSignatureResolvingKey(_, let key):
    guard key.value.bytes.elementsEqual(octets[9..<25]) else { fatalError("\(event) has another key") }
  case .deviceConnected(_, _, let data), .deviceFound(_, _, _, let data):
    guard data.count <= octets.count else { fatalError("\(event) holds more than it came in") }
  case .commandComplete(_, _, .connections(let devices)):
    guard devices.count * 7 <= octets.count else { fatalError("\(event) holds more than it came in") }
  case .commandComplete(_, _, .controllerIndexList(let indices)):
    guard indices.count * 2 <= octets.count else { fatalError("\(event) holds more than it came in") }
  case .userConfirmationRequest(let device, _, _), .userPasskeyRequest(let device),
    .passkeyNotify(let device, _, _), .pinCodeRequest(let device, _), .deviceAdded(let device, _),
    .deviceRemoved(let device), .deviceFlagsChanged(let device, _, _), .deviceDisconnected(let device, _):
    guard device.address.littleEndianBytes.elementsEqual(octets[0..<6]), device.type.rawValue == octets[6]
    else { fatalError("\(event) names another device") }
  default: break
  }
}
