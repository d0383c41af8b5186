/// What a journal row keeps of the latest offer of an operation.
package struct StoredMark: Hashable, Sendable {
  /// The link, in the numbering of the process that made the offer.
  package var generation: Generation
  /// When the mark was made.
  package var at: Timestamp
  /// How many offers there were, this one included.
  package var offers: Int
  /// The boot of the machine in which the moment was read; nil where it is not known.
  package var bootID: String?

  /// Describes an offer.
  package init(generation: Generation, at: Timestamp, offers: Int, bootID: String?) {
    self.generation = generation
    self.at = at
    self.offers = offers
    self.bootID = bootID
  }

  /// The bytes for a store.
  ///
  /// Of a boot ID 4,096 bytes are kept; systems give out 36.
  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.put(JournalCoding.version)
    writer.put(generation.rawValue)
    writer.put(at)
    writer.put(wide: offers)
    writer.put(bootID) { $0.put(remark: $1) }
    return writer.bytes
  }

  /// Reads the bytes from a store.
  package init(decoding bytes: [UInt8]) throws(JournalCodingError) {
    var reader = ByteReader(bytes)
    try reader.version()
    generation = Generation(rawValue: try reader.integer())
    at = try reader.timestamp()
    offers = try reader.wideInteger()
    bootID = try reader.optionalText()
    try reader.end()
  }
}
