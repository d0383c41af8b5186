public import BluetoothWire
public import Relink

/// What a virtual peripheral did, counted on its own side: the judge of "was it sent twice".
///
/// It lives as long as the peripheral, over all links. Handles are those of the moment at which something happened.
public struct PeripheralCounters: Hashable, Sendable {
  /// Every write that was applied, in order.
  public internal(set) var applied: [AppliedWrite] = []
  /// Every write of a Client Characteristic Configuration that was accepted, in order.
  public internal(set) var subscriptions: [SubscriptionWrite] = []
  /// How often each value was read, by its handle; a long read counts once.
  public internal(set) var reads: [UInt16: Int] = [:]
  /// How many PDUs of each opcode clients sent.
  public internal(set) var received: [ATTOpcode: Int] = [:]
  /// How many prepare queues with something in them were executed; each value of them is among `applied`.
  public internal(set) var executions = 0
  /// How many links came up.
  public internal(set) var links = 0
  /// How many notifications were sent.
  public internal(set) var notifications = 0
  /// How many indications were sent.
  public internal(set) var indications = 0
  /// How many indications were confirmed.
  public internal(set) var confirmations = 0
  /// How often a client asked to be paired.
  public internal(set) var pairingRequests = 0
  /// How often a link was encrypted.
  public internal(set) var encryptions = 0
  /// How many requests were refused because their link is not secured enough.
  public internal(set) var securityRefusals = 0
  /// How often a client broke the protocol, by the way in which it did.
  public internal(set) var violations: [ClientViolation: Int] = [:]

  /// How often a write of this value was applied, by its handle.
  public func applied(at handle: UInt16) -> Int {
    applied.reduce(0) { $0 + ($1.handle == handle ? 1 : 0) }
  }

  /// The writes that were applied to this value, by its handle, in order.
  public func writes(at handle: UInt16) -> [AppliedWrite] {
    applied.filter { $0.handle == handle }
  }

  /// How often a write that carried this tag was applied; see ``AppliedWrite/tag``.
  public func applied(tag: UInt64) -> Int {
    applied.reduce(0) { $0 + ($1.tag == tag ? 1 : 0) }
  }

  /// How often each tag was applied; see ``AppliedWrite/tag``.
  public var appliedByTag: [UInt64: Int] {
    applied.reduce(into: [:]) { counts, write in
      if let tag = write.tag { counts[tag, default: 0] += 1 }
    }
  }

  /// How many writes of Client Characteristic Configurations were accepted on one link.
  public func subscriptions(onLink number: Int) -> [SubscriptionWrite] {
    subscriptions.filter { $0.link == number }
  }
}

/// A write that took effect on a virtual peripheral.
public struct AppliedWrite: Hashable, Sendable {
  /// How a value came in.
  @nonexhaustive
  public enum Way: Hashable, Sendable {
    /// A Write Request.
    case request
    /// A Write Command.
    case command
    /// An Execute Write Request; the parts of one value count as one write, from the part at its start on.
    case prepared
  }

  /// The handle of the value at that moment.
  public var handle: UInt16
  /// The characteristic.
  public var characteristic: Characteristic
  /// The value after the write.
  public var value: [UInt8]
  /// How it came in.
  public var way: Way
  /// The number of the link on which it came.
  public var link: Int
  /// The central that sent it.
  public var client: String
  /// When it was applied.
  public var at: MonotonicInstant

  /// The number in the first eight bytes, least significant first; nil for a shorter value.
  ///
  /// A test that gives each operation a number of its own finds it here again.
  public var tag: UInt64? {
    guard value.count >= 8 else { return nil }
    return value.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// A write of a Client Characteristic Configuration that a virtual peripheral accepted.
public struct SubscriptionWrite: Hashable, Sendable {
  /// The handle of the descriptor at that moment.
  public var handle: UInt16
  /// The characteristic.
  public var characteristic: Characteristic
  /// The bits: 1 asks for notifications, 2 for indications (Core Specification Vol 3 Part G 3.3.3.3).
  public var bits: UInt16
  /// The number of the link on which it came.
  public var link: Int
  /// When it was applied.
  public var at: MonotonicInstant
}

/// A way in which a client can break the protocol.
@nonexhaustive
public enum ClientViolation: Hashable, Sendable {
  /// A request while an earlier one of the bearer had no answer (Core Specification Vol 3 Part F 3.3.2).
  case overlappingRequest
  /// A confirmation without an indication.
  case unexpectedConfirmation
  /// A second Exchange MTU Request on a link (Vol 3 Part F 3.4.2.1).
  case repeatedMTUExchange
  /// A PDU that is longer than the ATT_MTU.
  case oversizedPDU
  /// A PDU that cannot be read.
  case malformedPDU
  /// A PDU that only a server may send, or one with an opcode that is not defined.
  case unexpectedPDU
}
