/// What a journal row keeps of an operation beside its name and its place.
package struct StoredOperation: Hashable, Sendable {
  /// What is asked of the device.
  package var request: GATTRequest
  /// Whether it may be repeated.
  package var idempotency: Idempotency
  /// Everything else that was decided about it.
  package var options: OperationOptions
  /// When the caller's wait ends; nil for never.
  package var deadline: ExpiryInstant?
  /// The boot of the machine in which its instants were read; nil where it is not known.
  package var bootID: String?

  /// Describes an operation.
  package init(
    request: GATTRequest, idempotency: Idempotency, options: OperationOptions, deadline: ExpiryInstant?,
    bootID: String?
  ) {
    self.request = request
    self.idempotency = idempotency
    self.options = options
    self.deadline = deadline
    self.bootID = bootID
  }

  /// The bytes for a store.
  ///
  /// Throws where the probe is a closure, a value or a text has more than 65,535 bytes, or there are
  /// more values than that.
  package func encoded() throws(JournalCodingError) -> [UInt8] {
    if case .verified(let probe) = idempotency, !probe.isLasting { throw .notLasting }
    var writer = ByteWriter()
    writer.put(JournalCoding.version)
    writer.put(request)
    writer.put(idempotency)
    writer.put(options)
    writer.put(deadline) { $0.put($1) }
    writer.put(bootID) { $0.put(text: $1) }
    if let count = writer.excess { throw .tooLong(count) }
    return writer.bytes
  }

  /// Reads the bytes from a store.
  package init(decoding bytes: [UInt8]) throws(JournalCodingError) {
    var reader = ByteReader(bytes)
    try reader.version()
    request = try reader.request()
    idempotency = try reader.idempotency()
    options = try reader.options()
    deadline = try reader.optionalExpiry()
    bootID = try reader.optionalText()
    try reader.end()
  }

  /// The same without the bytes of values: those that are written and those that a probe expects.
  package func redacted() -> StoredOperation {
    var copy = self
    switch request {
    case .exchangeMTU, .discover, .read, .setNotifying: break
    case .write(let name, _): copy.request = .write(name, [])
    case .writeLong(let name, _): copy.request = .writeLong(name, [])
    case .writeWithoutResponse(let name, _): copy.request = .writeWithoutResponse(name, [])
    case .writeReliably(let writes):
      copy.request = .writeReliably(writes.map { ReliableWrite($0.characteristic, []) })
    }
    if case .verified(let probe) = idempotency, case .value(let name, _) = probe.kind {
      copy.idempotency = .verified(by: Probe(.value(name, [])))
    }
    return copy
  }

  /// The SHA-256 digest of request and tag: the same for the same, in every version of the library.
  ///
  /// Options and deadline take no part: a command that is asked for again is the same command with more time. Of a probe
  /// that is a closure it knows only that it is one.
  package var fingerprint: [UInt8] { Self.fingerprint(of: request, idempotency) }

  static func fingerprint(of request: GATTRequest, _ idempotency: Idempotency) -> [UInt8] {
    var writer = ByteWriter()
    writer.put(request)
    writer.put(idempotency)
    return SHA256.digest(of: writer.bytes)
  }
}
