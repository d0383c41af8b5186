public import RelinkCore

/// One value that a device sent of its own accord, by notification or indication.
public struct ValueUpdate: Hashable, Sendable {
  /// The value.
  public var value: [UInt8]
  /// The link on which it came.
  public var generation: Generation
  /// When it was received.
  public var receivedAt: Timestamp
  /// What may be missing before this value; nil where nothing is.
  public var gap: Gap?

  /// Describes a value.
  public init(value: [UInt8], generation: Generation, receivedAt: Timestamp, gap: Gap? = nil) {
    self.value = value
    self.generation = generation
    self.receivedAt = receivedAt
    self.gap = gap
  }
}

/// What may be missing before a value.
public struct Gap: Hashable, Sendable {
  /// Whether a link was lost, or the device's table changed, since the value before.
  ///
  /// The device may have sent values in between that nobody received.
  public var isAfterLoss: Bool
  /// How many values were received and dropped because the consumer was slow.
  public var dropped: Int

  /// Describes a gap.
  public init(isAfterLoss: Bool, dropped: Int) {
    self.isAfterLoss = isAfterLoss
    self.dropped = dropped
  }
}

/// How many elements a stream keeps for a consumer that is slow.
public struct Buffering: Hashable, Sendable {
  /// The number of elements, at least 1.
  public let limit: Int

  /// Keeps the newest `count` elements; older ones are dropped, counted, and the consumer is told.
  public static func newest(_ count: Int) -> Buffering { Buffering(limit: max(count, 1)) }
}
