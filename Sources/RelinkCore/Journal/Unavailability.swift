/// Why no link can come for now.
package enum Unavailability: Hashable, Sendable {
  /// The adapter is in a state in which it serves nobody.
  case adapter(AdapterState)
  /// The user has to do something first.
  case userAction

  /// What it means for an operation that was never offered.
  package var notSent: NotSentReason {
    switch self {
    case .adapter(let state): .adapterUnavailable(state)
    case .userAction: .userActionNeeded
    }
  }

  /// What it means for one that was.
  var doubt: Doubt.Cause {
    switch self {
    case .adapter(let state): .adapterUnavailable(state)
    case .userAction: .userActionNeeded
    }
  }
}
