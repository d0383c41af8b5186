public import Relink

/// What goes wrong in a ``VirtualJournalStore``: drawn from a seed, written down step by step, or both.
///
/// The same plan asked the same questions in the same order gives the same answers. Steps come before rates.
public struct StoreFaultPlan: Sendable, CustomStringConvertible {
  /// What a store is asked for.
  public enum Call: String, Hashable, Sendable {
    /// To hand a device's journal over.
    case claim
    /// To commit records.
    case append
  }

  /// What becomes of a call.
  @nonexhaustive
  public enum Fault: Hashable, Sendable {
    /// It is done.
    case none
    /// It fails with this code, and certainly nothing was committed.
    case failed(JournalStoreError.Code)
    /// It fails and nobody knows whether it was committed; `isPresent` says whether it was.
    case unknown(isPresent: Bool)
    /// It is done so much later, and what is behind it too.
    case late(Duration)
    /// It, and what is behind it, waits until the store is released or healed.
    case hang
    /// It and all that come after it fail with this code until the store is healed.
    case down(JournalStoreError.Code)
  }

  /// How often each fault strikes, in calls: 0.01 is one in a hundred.
  public struct Rates: Hashable, Sendable {
    /// Calls that fail, certainly.
    public var failed = 0.0
    /// Calls that fail, uncertainly, and are not committed.
    public var lost = 0.0
    /// Calls that fail, uncertainly, and are committed.
    public var unsaid = 0.0
    /// Calls that are late.
    public var late = 0.0
    /// Calls that wait until the store is released or healed.
    public var hang = 0.0
    /// Calls with which the store goes down until it is healed.
    public var down = 0.0
    /// How late a late call is.
    public var lateness: ClosedRange<Duration> = .milliseconds(10) ... .seconds(2)
    /// The codes of calls that fail certainly, or with which the store goes down.
    public var codes: [JournalStoreError.Code] = [.full, .system]

    /// Makes rates of zero.
    public init() {}
  }

  /// Nothing goes wrong.
  public static let none = StoreFaultPlan(seed: 0)

  /// What the draws follow from.
  public var seed: UInt64 { generator.seed }
  /// How often each fault strikes.
  public let rates: Rates
  /// Whether the plan has ended: nothing goes wrong any more.
  public private(set) var isHealed = false
  /// How often something has gone wrong.
  public private(set) var strikes = 0

  private struct Step: Sendable {
    var call: Call?
    var remaining: Int
    var fault: Fault
  }

  /// Faults that do not strike although it is their turn, by their numbers, from 1: what a failing run can do without.
  package var spared: Set<Int> = []

  private var generator: SeededGenerator
  private var steps: [Step] = []

  /// Makes a plan from a seed.
  ///
  /// - Parameters:
  ///   - seed: Any number; print it where a run fails.
  ///   - rates: How often each fault strikes.
  public init(seed: UInt64, rates: Rates = Rates()) {
    generator = SeededGenerator(seed: seed)
    self.rates = rates
  }

  /// Writes down that a fault strikes one call.
  ///
  /// - Parameters:
  ///   - fault: What becomes of it.
  ///   - ordinal: Which one it strikes, from now on and from 1.
  ///   - call: The kind of calls that count; nil counts all.
  public mutating func strike(_ fault: Fault, at ordinal: Int = 1, of call: Call? = nil) {
    steps.append(Step(call: call, remaining: max(ordinal, 1), fault: fault))
  }

  /// Ends the plan: nothing goes wrong any more.
  public mutating func heal() {
    isHealed = true
    steps = []
  }

  /// Decides what becomes of a call.
  ///
  /// - Parameter call: What the store is asked for.
  /// - Returns: The fault, or none.
  public mutating func decide(on call: Call) -> Fault {
    guard !isHealed else { return .none }
    let fault = scripted(call) ?? drawn()
    guard fault != .none else { return .none }
    strikes += 1
    return spared.contains(strikes) ? .none : fault
  }

  private mutating func scripted(_ call: Call) -> Fault? {
    var due: Int?
    for index in steps.indices where steps[index].call ?? call == call {
      steps[index].remaining -= 1
      if steps[index].remaining <= 0 && due == nil { due = index }
    }
    return due.map { steps.remove(at: $0).fault }
  }

  private mutating func drawn() -> Fault {
    // One draw decides, so that a plan costs little where nothing goes wrong.
    var roll = generator.nextUnit()
    func strikes(_ rate: Double) -> Bool {
      roll -= rate
      return roll < 0
    }
    if strikes(rates.failed) { return .failed(code()) }
    if strikes(rates.lost) { return .unknown(isPresent: false) }
    if strikes(rates.unsaid) { return .unknown(isPresent: true) }
    if strikes(rates.late) { return .late(generator.next(in: rates.lateness)) }
    if strikes(rates.hang) { return .hang }
    if strikes(rates.down) { return .down(code()) }
    return .none
  }

  private mutating func code() -> JournalStoreError.Code { generator.next(of: rates.codes) ?? .system }

  /// A whole number from 0 up to a bound, the bound included.
  mutating func draw(upTo bound: Int) -> Int { generator.next(below: bound + 1) }

  /// The seed, the rates that are not zero and the steps that are still to come, on one line.
  public var description: String {
    guard !isHealed else { return "seed \(seed), healed" }
    let shares = [
      ("failed", rates.failed), ("lost", rates.lost), ("unsaid", rates.unsaid), ("late", rates.late),
      ("hang", rates.hang), ("down", rates.down),
    ]
    return
      (["seed \(seed)"] + shares.filter { $0.1 > 0 }.map { "\($0.0) \($0.1)" }
      + steps.map { "\($0.call?.rawValue ?? "call") \($0.remaining): \($0.fault)" }).joined(separator: ", ")
  }
}
