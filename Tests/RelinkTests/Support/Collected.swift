import RelinkTesting

@testable import Relink

/// What a consumer on a manual executor has taken so far, and whether its iteration has ended.
final class Collected<Element: Sendable>: Sendable {
  private let state = Locked<(elements: [Element], hasEnded: Bool)>(([], false))
  private let task = Locked<SpawnedTask<Void>?>(nil)

  var all: [Element] { state.withLock { $0.elements } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func add(_ element: Element) { state.withLock { $0.elements.append(element) } }
  func end() { state.withLock { $0.hasEnded = true } }

  /// The task that takes the elements.
  func runs(_ spawned: SpawnedTask<Void>) { task.withLock { $0 = spawned } }
  func cancel() { task.withLock { $0 }?.cancel() }
}
