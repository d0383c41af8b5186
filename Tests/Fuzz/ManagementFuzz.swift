// Compiled together with Sources/BluetoothWire by Tests/Fuzz/run, so there is no module to import.

/// Octets are a packet that encodes to the same octets and reads as an event, or an error that fits them.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzManagement(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  readEvent(input)
  // The length field stops most inputs at the door; behind it the octets are parameters of each event in turn.
  guard count > 0 else { return 0 }
  let parameters = [UInt8](input.dropFirst())
  _ = ManagementEvent(ManagementPacket(code: UInt16(input[0]), index: 0, parameters: parameters))
  _ = ManagementEvent(
    ManagementPacket(
      code: ManagementEventCode.commandComplete.rawValue, index: 0, parameters: [input[0], 0, 0] + parameters)
  )
  return 0
}

private func readEvent(_ input: UnsafeRawBufferPointer) {
  do {
    let packet = try ManagementPacket(decoding: input.bytes)
    guard packet.encoded().elementsEqual(input) else { fatalError("\(packet) encodes to other octets") }
    let event = ManagementEvent(packet)
    if case .unknown(let code, let parameters) = event {
      guard code.rawValue == packet.code, parameters == packet.parameters else {
        fatalError("\(event) lost octets")
      }
    }
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
