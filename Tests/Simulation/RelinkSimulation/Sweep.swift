internal import Relink
internal import RelinkTesting

/// One scenario, played again and again with one fault at each place at which it can strike, one after the other, until a
/// run is through before its turn has come.
public enum Sweep: String, CaseIterable, Sendable {
  /// The system refuses the nth PDU.
  case sendFails = "send-fails"
  /// The channel is full at the nth PDU.
  case sendLater = "send-later"
  /// The link is lost over the nth PDU to the device, before it arrives.
  case requestLost = "request-lost"
  /// The link is lost over the nth PDU to the device, after it has arrived.
  case requestDone = "request-done"
  /// The link is lost over the nth answer.
  case answerLost = "answer-lost"
  /// The nth dial is refused.
  case dialFails = "dial-fails"
  /// The nth call of the store fails, certainly.
  case commitFails = "commit-fails"
  /// The nth call of the store fails, and was not committed.
  case commitLost = "commit-lost"
  /// The nth call of the store fails, and was committed all the same.
  case commitUnsaid = "commit-unsaid"
  /// The nth call of the store takes two seconds.
  case commitLate = "commit-late"
  /// The nth call of the store is never answered, nor are later ones, until the world heals.
  case commitHangs = "commit-hangs"
  /// From the nth call on the store fails until the world heals.
  case storeDown = "store-down"
  /// At the nth job, the first caller who waits is cancelled.
  case cancelOne = "cancel-one"
  /// At the nth job, all who wait are cancelled.
  case cancelAll = "cancel-all"
  /// The process is killed at the nth transition of the journal.
  case crash
  /// The power fails at the nth transition of the journal.
  case powerLoss = "power-loss"
  /// The process is killed when it has asked for the nth commit, which is not there afterwards.
  case crashBeforeCommit = "crash-before-commit"
  /// The process is killed when it has asked for the nth commit, which is there afterwards.
  case crashAfterCommit = "crash-after-commit"
  /// The power fails when the nth commit has been asked for; all that need not survive is lost.
  case powerLossAtCommit = "power-loss-at-commit"

  /// What a sweep showed.
  public struct Result: Sendable {
    /// How many places there were.
    public var places: Int
    /// What was not as it must be, with its place.
    public var problems: [String]
  }

  /// Plays the scenario until the fault does not strike any more.
  ///
  /// - Parameter place: The only place to play; nil for all.
  public func run(only place: Int? = nil) -> Result {
    var result = Result(places: 0, problems: [])
    for number in (place ?? 1)...(place ?? 1_000_000) {
      guard let report = simulation(number)?.run() else { break }
      result.problems += report.problems.map { "\(rawValue) \(number): \($0)" }
      if !report.hasStruck || result.problems.count > 20 { break }
      result.places += 1
    }
    return result
  }

  /// The run of one place, with everything that happens in it.
  public func trace(_ place: Int) -> [String] { simulation(place, tracing: true)?.run().trace ?? [] }

  private func simulation(_ number: Int, tracing: Bool = false) -> Simulation? {
    var scenario = Scenario.fixed
    var injection: Injection?
    switch self {
    case .sendFails: scenario.faults.strikeSend(.failed(105), at: number)
    case .sendLater: scenario.faults.strikeSend(.later(.milliseconds(700)), at: number)
    case .requestLost: scenario.faults.strike(.loseLinkBefore(.connectionTimeout), at: number, of: .request)
    case .requestDone: scenario.faults.strike(.loseLinkAfter(.connectionTimeout), at: number, of: .request)
    case .answerLost: scenario.faults.strike(.loseLinkBefore(.connectionTimeout), at: number, of: .answer)
    case .dialFails: scenario.faults.strikeDial(.refuse(after: .milliseconds(100)), at: number)
    case .commitFails: scenario.storeFaults.strike(.failed(.full), at: number)
    case .commitLost: scenario.storeFaults.strike(.unknown(isPresent: false), at: number)
    case .commitUnsaid: scenario.storeFaults.strike(.unknown(isPresent: true), at: number)
    case .commitLate: scenario.storeFaults.strike(.late(.seconds(2)), at: number)
    case .commitHangs: scenario.storeFaults.strike(.hang, at: number)
    case .storeDown: scenario.storeFaults.strike(.down(.full), at: number)
    case .cancelOne: injection = .cancel(step: number, all: false)
    case .cancelAll: injection = .cancel(step: number, all: true)
    case .crash: injection = .crashAtTransition(number, losesPower: false)
    case .powerLoss: injection = .crashAtTransition(number, losesPower: true)
    case .crashBeforeCommit: injection = .crashAtCommit(number, isPresent: false, losesPower: false)
    case .crashAfterCommit: injection = .crashAtCommit(number, isPresent: true, losesPower: false)
    case .powerLossAtCommit: injection = .crashAtCommit(number, isPresent: false, losesPower: true)
    }
    return Simulation(scenario, injecting: injection, tracing: tracing)
  }
}
