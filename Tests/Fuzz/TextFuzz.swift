// Compiled together with Sources/BluetoothWire by Tests/Fuzz/run, so there is no module to import.

/// Text is a UUID or an address that reads back from its description, or neither.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzText(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  let text = String(decoding: input, as: UTF8.self)
  if let uuid = BluetoothUUID(text) {
    guard BluetoothUUID(uuid.description) == uuid else { fatalError("\(uuid) does not read back") }
    guard BluetoothUUID(littleEndian: uuid.encoded()) == uuid else { fatalError("\(uuid) does not decode") }
  }
  if let address = BluetoothAddress(text) {
    guard BluetoothAddress(address.description) == address else {
      fatalError("\(address) does not read back")
    }
    guard BluetoothAddress(littleEndian: address.littleEndianBytes) == address else {
      fatalError("\(address) does not decode")
    }
  }
  if let uuid = BluetoothUUID(littleEndian: input.bytes) {
    guard count == 4 || uuid.encoded().elementsEqual(input) else {
      fatalError("\(uuid) encodes to other octets")
    }
    guard BluetoothUUID(uuid.description) == uuid else { fatalError("\(uuid) does not read back") }
  }
  return 0
}
