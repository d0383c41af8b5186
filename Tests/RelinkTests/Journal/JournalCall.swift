import RelinkTesting

@testable import Relink

/// The outcome of a write; Swift Testing has a confirmation of its own.
typealias WriteOutcome = Outcome<Confirmation>

/// A way to ask for one write of `[1, 2, 3]` to the first value, with what becomes of it after a loss.
enum JournalCall: CaseIterable {
  case verifiedByValue, verifiedByClosure, verifiedByName, verifiedByApp
  case submitted, submittedOnce, reliable, reliableOnce, namedOnce, exclusive
  case durable, durableOnce, durableVerified

  static let value: [UInt8] = [1, 2, 3]
  static let probeName = "first is 1 2 3"

  /// Says of the first value whether it is the one that these calls write.
  static let look: Probe.Look = { try await $0.read(Scene.first) == value ? .applied : .notApplied }

  /// What a session needs for these calls.
  static var configuration: Configuration { Configuration(probes: [probeName: look], seed: 1) }

  /// What its tag lets the session do once it is in doubt.
  enum Fate { case repeated, lookedAt, resolvedByTheApp, leftInDoubt }

  var fate: Fate {
    switch self {
    case .verifiedByValue, .verifiedByClosure, .verifiedByName, .durableVerified: .lookedAt
    case .verifiedByApp: .resolvedByTheApp
    case .submitted, .reliable, .durable: .repeated
    case .submittedOnce, .reliableOnce, .namedOnce, .exclusive, .durableOnce: .leftInDoubt
    }
  }

  var isReliable: Bool { self == .reliable || self == .reliableOnce }

  /// The name of the operation, for those that a test speaks of by name.
  var id: OperationID? {
    switch self {
    case .verifiedByApp, .namedOnce: OperationID("\(self)")
    default: nil
    }
  }

  private var tag: Idempotency {
    switch self {
    case .verifiedByValue: .verified(by: .value(of: Scene.first, is: Self.value))
    case .verifiedByClosure: .verified(by: Probe(Self.look))
    case .verifiedByName, .durableVerified: .verified(by: .named(Self.probeName))
    case .verifiedByApp: .verified(by: .app)
    case .submitted, .reliable, .durable: .idempotent
    case .submittedOnce, .reliableOnce, .namedOnce, .exclusive, .durableOnce: .nonIdempotent
    }
  }

  private var options: WriteOptions {
    switch self {
    case .durable, .durableOnce, .durableVerified: WriteOptions(durability: .durable)
    default: WriteOptions()
    }
  }

  /// Makes the call, and returns the outcome that the caller learns.
  func make(_ session: DeviceSession) async throws -> Outcome<Confirmation> {
    do throws(RelinkError) {
      switch self {
      case .submitted, .submittedOnce:
        let request = WriteRequest(Self.value, to: Scene.first, idempotency: tag, id: id, options: options)
        return await (try session.submit(request)).outcome
      case .reliable, .reliableOnce:
        let writes = [ReliableWrite(Scene.first, Self.value)]
        try await session.writeReliably(writes, idempotency: tag, id: id, options: options)
      case .exclusive:
        do {
          try await session.withLink { try await $0.write(Self.value, to: Scene.first) }
        } catch let error as RelinkError {
          throw error
        } catch {
          throw RelinkError(.system, "\(error)")
        }
      default:
        try await session.write(Self.value, to: Scene.first, idempotency: tag, id: id, options: options)
      }
      return .succeeded(.acknowledged)
    } catch {
      return try error.confirmed
    }
  }
}

extension RelinkError {
  /// The outcome that the error speaks of; throws the error where there is none.
  var confirmed: Outcome<Confirmation> {
    get throws {
      switch outcome {
      case .rejected(let rejection): .rejected(rejection)
      case .notSent(let reason): .notSent(reason)
      case .indeterminate(let doubt): .indeterminate(doubt)
      case .succeeded, nil: throw self
      }
    }
  }
}

extension Outcome {
  /// Why it was not sent, where that is the outcome.
  var notSentReason: NotSentReason? {
    if case .notSent(let reason) = self { reason } else { nil }
  }

  /// What is in doubt, where that is the outcome.
  var doubt: Doubt? {
    if case .indeterminate(let doubt) = self { doubt } else { nil }
  }
}
