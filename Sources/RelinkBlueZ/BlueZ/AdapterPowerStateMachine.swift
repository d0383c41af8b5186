internal import Relink

/// Decides when an adapter that is off is switched on.
struct AdapterPowerStateMachine {
  /// How long an adapter is left off at first, so that who switches it off is done.
  static let firstDelay = Duration.milliseconds(500)
  /// How long it is left alone after a try.
  static let retryDelay = Duration.seconds(3)

  /// What to do.
  struct Actions: Equatable {
    /// The adapters to switch on now.
    var switchOn: [UInt16] = []
    /// When to look at the adapters again.
    var lookAt: MonotonicInstant?
  }

  private var due: [UInt16: MonotonicInstant] = [:]

  /// These adapters are meant, and there at the moment.
  mutating func looked(_ adapters: [AdapterRecord], now: MonotonicInstant) -> Actions {
    let off = adapters.filter { !$0.isUp && !$0.isBlocked && !$0.isAsleep }.map(\.index)
    due = due.filter { off.contains($0.key) }
    var actions = Actions()
    for index in off {
      if let instant = due[index], instant <= now {
        actions.switchOn.append(index)
        due[index] = now.advanced(by: Self.retryDelay)
      } else if due[index] == nil {
        due[index] = now.advanced(by: Self.firstDelay)
      }
    }
    actions.lookAt = due.values.min()
    return actions
  }
}
