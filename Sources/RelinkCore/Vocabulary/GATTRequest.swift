public import BluetoothWire

/// A request that a session makes on a link, by name of the characteristic and not by handle.
@nonexhaustive
public enum GATTRequest: Hashable, Sendable {
  /// Agree on the ATT_MTU (Core Specification Vol 3 Part G 4.3.1). Answered with ``GATTAnswer/mtu(_:)``.
  case exchangeMTU

  /// Learn, or validate, the attribute table. Answered with ``GATTAnswer/table(_:changed:)``.
  case discover

  /// Read a value, however long (Vol 3 Part G 4.8.1 and 4.8.3). Answered with ``GATTAnswer/value(_:)``.
  case read(Characteristic)

  /// Write a value of at most ATT_MTU - 3 bytes with response (4.9.3). Answered with ``GATTAnswer/done``.
  case write(Characteristic, [UInt8])

  /// Write a value of at most 512 bytes through the prepare queue (4.9.4); answered with ``GATTAnswer/done``.
  case writeLong(Characteristic, [UInt8])

  /// Write several values, each of at most 512 bytes, together: all are queued in this order, each part is verified,
  /// and they are executed at once (4.9.5); answered with ``GATTAnswer/done``.
  ///
  /// It is all or none of them as far as the device keeps its side; some devices execute one value after the other.
  case writeReliably([ReliableWrite])

  /// Write a value of at most ATT_MTU - 3 bytes without response (4.9.1). Answered, by the link, once handed over.
  case writeWithoutResponse(Characteristic, [UInt8])

  /// Ask for, or decline, notifications or indications of a value (3.3.3.3). Answered with ``GATTAnswer/done``.
  case setNotifying(Characteristic, Bool)

  /// The characteristic that the request concerns, if it concerns exactly one by its kind.
  ///
  /// A ``writeReliably(_:)`` has none; ``characteristics`` names those of every request.
  public var characteristic: Characteristic? {
    switch self {
    case .exchangeMTU, .discover, .writeReliably: nil
    case .read(let name), .write(let name, _), .writeLong(let name, _), .writeWithoutResponse(let name, _),
      .setNotifying(let name, _):
      name
    }
  }

  /// All characteristics that the request concerns, each once, in its order.
  public var characteristics: [Characteristic] {
    guard case .writeReliably(let writes) = self else { return characteristic.map { [$0] } ?? [] }
    return writes.reduce(into: []) { names, write in
      if !names.contains(write.characteristic) { names.append(write.characteristic) }
    }
  }
}

/// One value of a ``GATTRequest/writeReliably(_:)``.
public struct ReliableWrite: Hashable, Sendable {
  /// The characteristic that is to take the value.
  public var characteristic: Characteristic
  /// The value, at most 512 bytes (Core Specification Vol 3 Part F 3.2.9).
  public var value: [UInt8]

  /// Names a value and where it goes.
  ///
  /// - Parameters:
  ///   - characteristic: The characteristic that is to take the value.
  ///   - value: The value, at most 512 bytes.
  public init(_ characteristic: Characteristic, _ value: [UInt8]) {
    self.characteristic = characteristic
    self.value = value
  }
}

/// What a link says when a request has been answered.
@nonexhaustive
public enum GATTAnswer: Hashable, Sendable {
  /// It is done; for a write without response: it was handed over, and nothing more is known.
  case done

  /// The value that was read.
  case value([UInt8])

  /// The ATT_MTU in force on the link, 23 to 517 bytes.
  case mtu(Int)

  /// The services of the device, and whether they differ from those of the link before.
  case table([DiscoveredService], changed: Bool)
}

/// Why a link's answer to a request is not a success.
@nonexhaustive
public enum GATTFailure: Error, Hashable, Sendable {
  /// The device answered with an ATT error.
  case rejected(ATTErrorCode)

  /// The device answered with an ATT error when it was to execute its prepare queue: a part may have been written.
  case executionRejected(ATTErrorCode)

  /// The link gave up before anything left for the device.
  case refused(GATTRefusal)

  /// The answer is not one that the request can have; the link ends itself after it.
  case malformedAnswer
}

/// Why a link did not take a request, or took it back: it has had no effect on the device.
@nonexhaustive
public enum GATTRefusal: Error, Hashable, Sendable {
  /// The table of the device has no such characteristic.
  case characteristicNotFound

  /// The characteristic has no Client Characteristic Configuration descriptor, or allows neither way.
  case cannotNotify

  /// The value is longer than the link can carry in this way; the limit is in bytes.
  case valueTooLong(limit: Int)

  /// A request to write several values together has none.
  case noValues

  /// The link has no such request: this kind of transport cannot make it.
  case notSupported

  /// A long or reliable write was called off before it was executed, and the device cleared its queue.
  case calledOff

  /// The device queued other bytes for a long or reliable write than were sent, and cleared its queue again.
  case prepareMismatch

  /// The link is closed or closing.
  case linkClosed

  /// The system refused the bytes with this error number.
  case system(Int32)

  /// Whether the same request would be refused on the next link too.
  public var isPermanent: Bool {
    switch self {
    case .characteristicNotFound, .cannotNotify, .valueTooLong, .noValues, .notSupported, .prepareMismatch:
      true
    case .calledOff, .linkClosed, .system: false
    }
  }
}
