/// One fault at a counted place of a run, for sweeps.
enum Injection: Hashable, Sendable {
  /// At the nth job of the executor, callers are cancelled: all who wait, or the first of them.
  case cancel(step: Int, all: Bool)
  /// The process is killed at the nth transition of the journal.
  case crashAtTransition(Int, losesPower: Bool)
  /// The process is killed when the nth commit has been asked for, which is there then or is not.
  case crashAtCommit(Int, isPresent: Bool, losesPower: Bool)
}
