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

  /// Write a value of at most ATT_MTU - 3 bytes without response (4.9.1). Answered, by the link, once handed over.
  case writeWithoutResponse(Characteristic, [UInt8])

  /// Ask for, or decline, notifications or indications of a value (3.3.3.3). Answered with ``GATTAnswer/done``.
  case setNotifying(Characteristic, Bool)

  /// The characteristic that the request concerns, if it concerns one.
  public var characteristic: Characteristic? {
    switch self {
    case .exchangeMTU, .discover: nil
    case .read(let name), .write(let name, _), .writeLong(let name, _), .writeWithoutResponse(let name, _),
      .setNotifying(let name, _):
      name
    }
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

  /// A long write was called off before it was executed, and the device cleared its queue.
  case calledOff

  /// The device queued other bytes for a long write than were sent, and cleared its queue again.
  case prepareMismatch

  /// The link is closed or closing.
  case linkClosed

  /// The system refused the bytes with this error number.
  case system(Int32)

  /// Whether the same request would be refused on the next link too.
  public var isPermanent: Bool {
    switch self {
    case .characteristicNotFound, .cannotNotify, .valueTooLong, .prepareMismatch: true
    case .calledOff, .linkClosed, .system: false
    }
  }
}
