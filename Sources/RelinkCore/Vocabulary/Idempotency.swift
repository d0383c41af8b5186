/// Whether a request may be repeated when a link died and nobody knows whether it took effect.
///
/// What was never offered is offered whatever its tag.
@nonexhaustive
public enum Idempotency: Hashable, Sendable {
  /// Twice is as good as once: offered again after the next ready.
  case idempotent
  /// Twice would be wrong: never offered again once it was offered.
  case nonIdempotent
  /// The device can be asked: after the next ready the probe looks first, and its verdict decides.
  case verified(by: Probe)
}

extension Idempotency {
  /// The same tag without code of the app's, which would otherwise live as long as whatever keeps the tag.
  var withoutClosure: Idempotency {
    guard case .verified(let probe) = self, !probe.isLasting else { return self }
    return .verified(by: Probe(.closure(.forgotten)))
  }

  /// Whether two calls ask with the same tag; closures cannot be told apart, and each call brings its own.
  func isSame(as other: Idempotency) -> Bool { withoutClosure == other.withoutClosure }
}

/// How to find out whether a request that is in doubt was carried out.
///
/// A probe runs after the session is ready again, before anything else that concerns the same attribute or lane. It must
/// have no side effect: when the link is lost under it, it runs again on the next one, ``JournalPolicy/probeLimit``
/// times. A device that carries a request out late, after it was looked at, defeats any probe.
public struct Probe: Hashable, Sendable {
  /// On the heap, so that a tag is no larger than one without a probe: each operation carries one about.
  package indirect enum Kind: Hashable, Sendable {
    case app
    case value(Characteristic, [UInt8])
    case named(String)
    case closure(ProbeClosure)
  }

  package var kind: Kind

  package init(_ kind: Kind) {
    self.kind = kind
  }

  /// The app finds out by itself, or asks somebody, and calls `resolve(_:as:by:)`; the operation waits until then,
  /// bounded by its deadline.
  public static let app = Probe(.app)

  /// Reads a characteristic: the request was carried out if the value is `bytes`, and was not if it is another one.
  ///
  /// Right where nobody else changes that value meanwhile.
  public static func value(of characteristic: Characteristic, is bytes: some Collection<UInt8>) -> Probe {
    Probe(.value(characteristic, Array(bytes)))
  }

  /// The probe of this name in the session's configuration.
  ///
  /// A durable operation needs one that has a name, or reads a value, since a closure does not outlive its process. A
  /// name that the configuration does not know cannot tell.
  public static func named(_ name: String) -> Probe { Probe(.named(name)) }

  /// Whether it means the same in another process.
  package var isLasting: Bool {
    if case .closure = kind { false } else { true }
  }
}

/// A probe's closure as the machines carry it about: they know only whether it is the same.
package final class ProbeClosure: Hashable, Sendable {
  /// What `Relink` made it of.
  package let body: any Sendable

  /// Stands for one that is kept no longer.
  static let forgotten = ProbeClosure(())

  /// Wraps a closure.
  package init(_ body: any Sendable) {
    self.body = body
  }

  /// Whether both are the same object.
  package static func == (left: ProbeClosure, right: ProbeClosure) -> Bool { left === right }

  /// Feeds the identity of the object.
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// What was found out about a request that was in doubt.
@nonexhaustive
public enum Verdict: String, Hashable, Sendable {
  /// It was carried out: the operation has succeeded.
  case applied
  /// It was not, and will not be: it is offered again.
  case notApplied
  /// It cannot be told: the operation is indeterminate.
  case unknown
}
