public import RelinkCore

extension Probe {
  /// A probe that does whatever it takes to find out, on the link that it is given.
  public typealias Look = @Sendable (LinkScope) async throws -> Verdict

  /// A probe that asks the device in its own way; one that throws cannot tell.
  ///
  /// It may take ``JournalPolicy/probeTime``; its task is cancelled when the link is lost, and when nobody waits any more.
  /// A durable operation needs a probe with a name: see ``named(_:)`` and ``Configuration/probes``.
  public init(_ look: @escaping Look) {
    self.init(.closure(ProbeClosure(look)))
  }

  /// Looks at the device.
  func look(through scope: LinkScope, named probes: [String: Look]) async -> Verdict {
    do {
      switch kind {
      case .app:
        return .unknown
      case .value(let characteristic, let bytes):
        return try await scope.read(characteristic) == bytes ? .applied : .notApplied
      case .named(let name):
        guard let look = probes[name] else { return .unknown }
        return try await look(scope)
      case .closure(let closure):
        guard let look = closure.body as? Look else { return .unknown }
        return try await look(scope)
      }
    } catch {
      return .unknown
    }
  }
}
