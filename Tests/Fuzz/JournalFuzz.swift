// Compiled together with Sources/RelinkCore by Tests/Fuzz/run, so only the codec beneath is a module to import.
internal import BluetoothWire

/// Bytes are a part of a journal row that encodes to the same bytes, or an error.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJournal(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  let input = [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  if let operation = try? StoredOperation(decoding: input) {
    guard let encoded = try? operation.encoded(), encoded == input else {
      fatalError("\(operation) encodes to other bytes")
    }
    guard values(of: operation.request) <= count else {
      fatalError("\(operation) holds more than it came in")
    }
    let redacted = operation.redacted()
    guard values(of: redacted.request) == 0, let bytes = try? redacted.encoded(),
      (try? StoredOperation(decoding: bytes)) == redacted
    else { fatalError("\(redacted) does not decode, or holds values") }
    guard operation.fingerprint.count == SHA256.length else { fatalError("\(operation) has no fingerprint") }
  }
  if let mark = try? StoredMark(decoding: input), mark.bootID?.utf8.count ?? 0 <= JournalCoding.longestRemark
  {
    guard mark.encoded() == input else { fatalError("\(mark) encodes to other bytes") }
  }
  if let outcome = try? JournalCoding.decode(input) {
    guard JournalCoding.encode(outcome) == input else { fatalError("\(outcome) encodes to other bytes") }
  }
  return 0
}

private func values(of request: GATTRequest) -> Int {
  switch request {
  case .exchangeMTU, .discover, .read, .setNotifying: 0
  case .write(_, let value), .writeLong(_, let value), .writeWithoutResponse(_, let value): value.count
  case .writeReliably(let writes): writes.reduce(0) { $0 + $1.value.count }
  }
}
