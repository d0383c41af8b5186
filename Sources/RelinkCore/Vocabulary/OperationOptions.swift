/// A name under which operations keep their order although they concern different attributes.
public struct Lane: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The name.
  public var name: String

  /// Names a lane.
  public init(_ name: String) { self.name = name }

  /// Names a lane.
  public init(stringLiteral name: String) { self.name = name }

  /// The name.
  public var description: String { name }
}

/// What writes that make each other superfluous have in common: a setpoint, a position, a brightness.
public struct SupersedingKey: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The name.
  public var name: String

  /// Names what is superseded.
  public init(_ name: String) { self.name = name }

  /// Names what is superseded.
  public init(stringLiteral name: String) { self.name = name }

  /// The name.
  public var description: String { name }
}

/// Which of several operations that may be offered goes first.
///
/// It never changes the order of two operations on one attribute or lane: the earlier one inherits the priority of those
/// that wait for it.
@nonexhaustive
public enum OperationPriority: Int8, Hashable, Sendable, Comparable {
  /// After everything else.
  case low = -1
  /// The usual one.
  case normal = 0
  /// Before everything else.
  case high = 1

  /// Whether the left one waits for the right one.
  public static func < (left: OperationPriority, right: OperationPriority) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// Where an operation is recorded.
@nonexhaustive
public enum Durability: UInt8, Hashable, Sendable {
  /// In memory: it is gone with the process, and what it did is in doubt.
  case inMemory
  /// In the session's journal store: recorded before the call returns, accounted for after a crash.
  case durable
}

/// What happens to the link when an operation's deadline passes while the device has the request.
@nonexhaustive
public enum ExpiryAction: UInt8, Hashable, Sendable {
  /// The link stays; the device may still carry the request out.
  case keepLink
  /// The link is dropped and brought back: once it is gone, the request can take effect no more.
  case dropLink
}

/// What becomes of an operation while no link can come: the adapter is off, missing or not permitted.
@nonexhaustive
public enum UnavailabilityAction: UInt8, Hashable, Sendable {
  /// It waits, bounded by its deadline.
  case wait
  /// It settles at once.
  case fail
}

/// What must be known of the device's state for an operation to make sense.
@nonexhaustive
public enum ContinuityRequirement: UInt8, Hashable, Sendable {
  /// Nothing.
  case none
  /// The device has kept its state since the call: the link of the call, or later ones that are each proven
  /// ``Continuity/resumed``. Where there was no link, the next one counts as that of the call.
  case unbroken
  /// The link is secured with the bond with which it was when the operation was first offered: the same device, by its
  /// keys, answers. It holds an operation back only from being offered again; one that was first offered on a link
  /// without a bond, or by an earlier process, is not offered again.
  case sameBond
}

/// The security of a link (LE security mode 1, Core Specification Vol 3 Part C 10.2.1).
@nonexhaustive
public enum SecurityLevel: UInt8, Hashable, Sendable, Comparable {
  /// Level 1: none.
  case none = 1
  /// Level 2: encrypted, with a key from unauthenticated pairing.
  case encrypted
  /// Level 3: encrypted, with a key from authenticated pairing.
  case authenticated
  /// Level 4: encrypted, with a 128-bit key from authenticated LE Secure Connections pairing.
  case secureConnections

  /// Whether the left one is the weaker one.
  public static func < (left: SecurityLevel, right: SecurityLevel) -> Bool { left.rawValue < right.rawValue }
}

/// Everything that is decided about one operation beside what it asks and its tag.
package struct OperationOptions: Hashable, Sendable {
  /// A request that must not be offered later than `offerBefore` is left alone from then on.
  package var offerBefore: ExpiryInstant?
  /// What the operation keeps its order in, beside its attribute.
  package var lane: Lane?
  /// Which goes first.
  package var priority = OperationPriority.normal
  /// What it makes superfluous, and is made superfluous by.
  package var supersedes: SupersedingKey?
  /// What its deadline does to the link.
  package var onExpiry = ExpiryAction.keepLink
  /// What becomes of it while no link can come.
  package var ifUnavailable = UnavailabilityAction.wait
  /// What the device must have kept.
  package var continuity = ContinuityRequirement.none
  /// What the link must offer at least.
  package var security = SecurityLevel.none
  /// Where it is recorded.
  package var durability = Durability.inMemory
  /// Whether its bytes are nobody's business.
  package var isSensitive = false

  /// Makes the options of an operation of which nothing special is said.
  package init() {}

  /// The options of most operations.
  package static let plain = OperationOptions()
}

/// An instant that counts the time the system is suspended, and can be carried over a restart.
package struct ExpiryInstant: Hashable, Sendable {
  /// Nanoseconds since boot, suspend included.
  package var bootTime: Int64
  /// The same on the system clock, in nanoseconds since 1970.
  package var wall: Int64

  /// Makes an instant from its readings.
  package init(bootTime: Int64, wall: Int64) {
    self.bootTime = bootTime
    self.wall = wall
  }

  /// The instant that lies a span after a moment.
  package init(_ span: Duration, after now: Timestamp) {
    let span = max(span.clampedNanoseconds, 0)
    bootTime = now.bootTime.addingReportingOverflow(span).overflow ? .max : now.bootTime + span
    wall = now.wall.addingReportingOverflow(span).overflow ? .max : now.wall + span
  }

  /// Whether it has come.
  package func hasPassed(at now: Timestamp) -> Bool { bootTime <= now.bootTime }
}
