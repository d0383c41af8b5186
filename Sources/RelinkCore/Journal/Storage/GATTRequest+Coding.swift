internal import BluetoothWire

/// The number of a request.
private enum RequestKind: UInt8 {
  case exchangeMTU = 1
  case discover
  case read
  case write
  case writeLong
  case writeWithoutResponse
  case setNotifying
  case writeReliably
}

/// The number of a tag.
private enum IdempotencyKind: UInt8 {
  case idempotent = 1
  case nonIdempotent
  case verified
}

/// The number of a kind of probe.
private enum ProbeKind: UInt8 {
  case app = 1
  case value
  case named
  case closure
}

extension ByteWriter {
  mutating func put(_ request: GATTRequest) {
    switch request {
    case .exchangeMTU: put(case: RequestKind.exchangeMTU)
    case .discover: put(case: RequestKind.discover)
    case .read(let name):
      put(case: RequestKind.read)
      put(name)
    case .write(let name, let value):
      put(case: RequestKind.write)
      put(name)
      put(string: value)
    case .writeLong(let name, let value):
      put(case: RequestKind.writeLong)
      put(name)
      put(string: value)
    case .writeWithoutResponse(let name, let value):
      put(case: RequestKind.writeWithoutResponse)
      put(name)
      put(string: value)
    case .setNotifying(let name, let isOn):
      put(case: RequestKind.setNotifying)
      put(name)
      put(isOn)
    case .writeReliably(let writes):
      put(case: RequestKind.writeReliably)
      put(list: writes) {
        $0.put($1.characteristic)
        $0.put(string: $1.value)
      }
    }
  }

  mutating func put(_ idempotency: Idempotency) {
    switch idempotency {
    case .idempotent: put(case: IdempotencyKind.idempotent)
    case .nonIdempotent: put(case: IdempotencyKind.nonIdempotent)
    case .verified(let probe):
      put(case: IdempotencyKind.verified)
      put(probe)
    }
  }

  private mutating func put(_ probe: Probe) {
    switch probe.kind {
    case .app: put(case: ProbeKind.app)
    case .value(let name, let value):
      put(case: ProbeKind.value)
      put(name)
      put(string: value)
    case .named(let name):
      put(case: ProbeKind.named)
      put(text: name)
    case .closure: put(case: ProbeKind.closure)
    }
  }

  private mutating func put(_ name: Characteristic) {
    put(name.uuid)
    put(name.service) { $0.put($1) }
    put(wide: name.occurrence)
  }

  // The form in which a peer spelled it takes no part in equality, so it takes none here.
  private mutating func put(_ uuid: BluetoothUUID) {
    if let short = uuid.short {
      put(2 as UInt8)
      put(short)
    } else {
      put(16 as UInt8)
      put(uuid.low)
      put(uuid.high)
    }
  }
}

extension ByteReader {
  mutating func request() throws(JournalCodingError) -> GATTRequest {
    switch try enumeration(RequestKind.self) {
    case .exchangeMTU: .exchangeMTU
    case .discover: .discover
    case .read: .read(try characteristic())
    case .write: .write(try characteristic(), try string())
    case .writeLong: .writeLong(try characteristic(), try string())
    case .writeWithoutResponse: .writeWithoutResponse(try characteristic(), try string())
    case .setNotifying: .setNotifying(try characteristic(), try bool())
    case .writeReliably:
      .writeReliably(
        try list { reader throws(JournalCodingError) in
          ReliableWrite(try reader.characteristic(), try reader.string())
        })
    }
  }

  mutating func idempotency() throws(JournalCodingError) -> Idempotency {
    switch try enumeration(IdempotencyKind.self) {
    case .idempotent: .idempotent
    case .nonIdempotent: .nonIdempotent
    case .verified: .verified(by: try probe())
    }
  }

  private mutating func probe() throws(JournalCodingError) -> Probe {
    switch try enumeration(ProbeKind.self) {
    case .app: .app
    case .value: Probe(.value(try characteristic(), try string()))
    case .named: .named(try text())
    case .closure: throw .notLasting
    }
  }

  private mutating func characteristic() throws(JournalCodingError) -> Characteristic {
    let uuid = try uuid()
    let service = try optional { reader throws(JournalCodingError) in try reader.uuid() }
    return Characteristic(uuid, in: service, occurrence: try wideInteger())
  }

  private mutating func uuid() throws(JournalCodingError) -> BluetoothUUID {
    let length = try integer(UInt8.self)
    if length == 2 { return BluetoothUUID(try integer(UInt16.self)) }
    guard length == 16 else { throw .malformed("a UUID of \(length) bytes") }
    let low = try integer(UInt64.self)
    let uuid = BluetoothUUID(try integer(), low)
    guard uuid.short == nil else { throw .malformed("a short UUID in 16 bytes") }
    return uuid
  }
}
