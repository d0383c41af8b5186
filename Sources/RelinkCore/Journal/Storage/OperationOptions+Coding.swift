extension ByteWriter {
  mutating func put(_ options: OperationOptions) {
    put(options.offerBefore) { $0.put($1) }
    put(options.lane) { $0.put(text: $1.name) }
    put(case: options.priority)
    put(options.supersedes) { $0.put(text: $1.name) }
    put(case: options.onExpiry)
    put(case: options.ifUnavailable)
    put(case: options.continuity)
    put(case: options.security)
    put(case: options.durability)
    put(options.isSensitive)
  }

  mutating func put(_ instant: ExpiryInstant) {
    put(instant.bootTime)
    put(instant.wall)
  }
}

extension ByteReader {
  mutating func options() throws(JournalCodingError) -> OperationOptions {
    var options = OperationOptions()
    options.offerBefore = try optionalExpiry()
    options.lane = try optionalText().map { Lane($0) }
    options.priority = try enumeration()
    options.supersedes = try optionalText().map { SupersedingKey($0) }
    options.onExpiry = try enumeration()
    options.ifUnavailable = try enumeration()
    options.continuity = try enumeration()
    options.security = try enumeration()
    options.durability = try enumeration()
    options.isSensitive = try bool()
    return options
  }

  mutating func optionalText() throws(JournalCodingError) -> String? {
    try optional { reader throws(JournalCodingError) in try reader.text() }
  }

  mutating func optionalExpiry() throws(JournalCodingError) -> ExpiryInstant? {
    try optional { reader throws(JournalCodingError) in
      ExpiryInstant(bootTime: try reader.integer(), wall: try reader.integer())
    }
  }
}
