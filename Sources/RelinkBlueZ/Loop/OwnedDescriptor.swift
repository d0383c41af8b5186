internal import CBlueZ

/// A file descriptor with one owner, who closes it.
///
/// Dropping it closes the descriptor too, so that no path leaks one.
public struct OwnedDescriptor: ~Copyable, Sendable {
  private let number: Int32

  /// Takes over an open descriptor; nobody else may close it from now on.
  public init(adopting number: Int32) {
    self.number = number
  }

  /// The number, for calls that do not close it; valid while the descriptor is owned.
  package var rawValue: Int32 { number }

  /// Gives the descriptor away: the caller owns it now.
  package consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }

  deinit {
    _ = relink_close(number)
  }
}
