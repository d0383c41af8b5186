// Compiled together with Sources/BluetoothWire by Tests/Fuzz/run, so there is no module to import.

/// Octets are an event that fits them, or an error that does. Anything else ends the run.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHCI(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  readPacket(input)
  // The length field stops most inputs at the door; behind it the octets are parameters of any event.
  readParameters(.lowEnergyMeta, [UInt8](input))
  if let code = input.first { readParameters(HCIEventCode(rawValue: code), [UInt8](input.dropFirst())) }
  return 0
}

private func readPacket(_ input: UnsafeRawBufferPointer) {
  do {
    let event = try HCIEvent(decoding: input.bytes)
    let parameters = [UInt8](input.dropFirst(HCIEvent.headerLength))
    guard input[0] == HCIEvent.packetType, Int(input[2]) == parameters.count else {
      fatalError("\(event) was read from what is no event")
    }
    let again = HCIEvent(code: HCIEventCode(rawValue: input[1]), parameters: parameters.span.bytes)
    guard again == event else { fatalError("\(event) and \(again) are the same octets") }
  } catch .truncatedHeader {
    guard input.count < HCIEvent.headerLength else { fatalError("a whole header was not seen") }
  } catch .notAnEvent(let type) {
    guard type == input[0], type != HCIEvent.packetType else { fatalError("an event was not seen") }
  } catch .badLength(let stated, let actual) {
    guard stated != actual, actual == input.count - HCIEvent.headerLength else {
      fatalError("a length of \(stated) was refused for \(actual)")
    }
  } catch {
    fatalError("\(error)")
  }
}

private func readParameters(_ code: HCIEventCode, _ parameters: [UInt8]) {
  let event = HCIEvent(code: code, parameters: parameters.span.bytes)
  guard octets(in: event) <= parameters.count else { fatalError("\(event) holds more than it came in") }
  switch event {
  case .unknown(let seen, let kept):
    guard seen == code, kept == parameters else { fatalError("\(event) lost octets") }
  case .disconnectionComplete(_, let handle, _), .encryptionChange(_, let handle, _, _),
    .encryptionKeyRefreshComplete(_, let handle), .connectionUpdateComplete(_, let handle, _, _, _),
    .longTermKeyRequest(let handle, _, _):
    guard handle <= 0x0FFF else { fatalError("\(event) has reserved bits") }
  case .connectionComplete(let connection):
    guard connection.handle <= 0x0FFF else { fatalError("\(event) has reserved bits") }
  case .advertisingReports(let reports):
    guard !reports.isEmpty else { fatalError("\(event) has no report") }
  case .extendedAdvertisingReports(let reports):
    guard !reports.isEmpty else { fatalError("\(event) has no report") }
  case .commandComplete(_, let status, let returned):
    guard status?.rawValue == returned.first else { fatalError("\(event) has another status") }
  case .commandStatus, .hardwareError: break
  }
}

/// The octets of all lists, as a bound on what a controller and its air can make us keep.
private func octets(in event: HCIEvent) -> Int {
  switch event {
  case .advertisingReports(let reports): reports.reduce(0) { $0 + 10 + $1.advertisingData.count }
  case .extendedAdvertisingReports(let reports): reports.reduce(0) { $0 + 24 + $1.advertisingData.count }
  case .commandComplete(_, _, let octets), .unknown(_, let octets): octets.count
  default: 0
  }
}
