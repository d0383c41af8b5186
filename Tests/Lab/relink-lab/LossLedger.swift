internal import Relink
internal import RelinkTesting

/// What became of one call.
enum Fate: UInt8, Sendable {
  case pending, succeeded, rejected, notSent, indeterminate
  /// No outcome at all, which no call may end with.
  case lawless

  init(_ error: any Error) {
    switch (error as? RelinkError)?.outcome {
    case .rejected: self = .rejected
    case .notSent: self = .notSent
    case .indeterminate: self = .indeterminate
    case .succeeded, nil: self = .lawless
    }
  }
}

/// What callers were told, to be compared with what the peripheral counted.
///
/// Operations are numbered from 1 in the order in which they were called.
struct LossLedger: Sendable {
  /// Reads, and writes of either kind.
  struct Calls: Sendable {
    private(set) var fates: [Fate] = []

    /// Room from the start, so that memory that grows later is a leak.
    init() { fates.reserveCapacity(1 << 16) }

    mutating func called() -> UInt64 {
      fates.append(.pending)
      return UInt64(fates.count)
    }

    /// Notes the outcome; false if there was one already.
    mutating func settled(_ number: UInt64, _ fate: Fate) -> Bool {
      defer { fates[Int(number) - 1] = fate }
      return fates[Int(number) - 1] == .pending
    }

    func count(_ fate: Fate) -> Int { fates.count { $0 == fate } }

    var summary: String {
      "\(fates.count) calls: \(count(.succeeded)) succeeded, \(count(.rejected)) rejected, "
        + "\(count(.notSent)) not sent, \(count(.indeterminate)) indeterminate"
    }

    /// The operations whose outcome and counter contradict each other.
    func disagreements(with counts: [UInt64: [Int]], mayRepeat: Bool) -> [String] {
      fates.indices.compactMap { index in
        let applied = counts[UInt64(index) + 1]?.count ?? 0
        let agrees =
          switch fates[index] {
          case .succeeded: mayRepeat ? applied >= 1 : applied == 1
          case .rejected, .notSent: applied == 0
          case .indeterminate: mayRepeat || applied <= 1
          case .pending, .lawless: false
          }
        return agrees ? nil : "#\(index + 1) \(fates[index]), applied \(applied) times"
      }
    }
  }

  /// What was called.
  enum Kind: CaseIterable, Sendable { case read, idempotent, nonIdempotent }

  private var calls: [Kind: Calls] = [:]
  /// Two outcomes of one call, answers of a link that was gone before the call, and the like.
  var faults: [String] = []

  // Reads, by the number that the peripheral gave each.
  private var isReadAnswered: [Bool] = []
  private(set) var newestLink = 0

  init() {
    isReadAnswered.reserveCapacity(1 << 16)
    for kind in Kind.allCases { calls[kind] = Calls() }
  }

  subscript(kind: Kind) -> Calls { calls[kind, default: Calls()] }

  mutating func called(_ kind: Kind) -> UInt64 {
    calls[kind, default: Calls()].called()
  }

  mutating func settled(_ kind: Kind, _ number: UInt64, _ fate: Fate) {
    if !calls[kind, default: Calls()].settled(number, fate) {
      faults.append("call #\(number) has two outcomes")
    }
    if fate == .lawless { faults.append("call #\(number) ended without an outcome") }
  }

  /// A read was answered with its number and the link on which it was asked; it had been called when `floor` was the
  /// newest link known.
  mutating func readAnswered(_ answer: Pair, floor: Int) {
    while isReadAnswered.count <= answer.first { isReadAnswered.append(false) }
    if isReadAnswered[answer.first] { faults.append("read \(answer.first) answered two callers") }
    isReadAnswered[answer.first] = true
    if answer.second < floor {
      faults.append("a read that was called on link \(floor) was answered by link \(answer.second)")
    }
    newestLink = max(newestLink, answer.second)
  }

  var highestRead: Int { isReadAnswered.count - 1 }
}

/// The values of the notification stream, each with its number and link.
struct StreamLedger: Sendable {
  private(set) var received = 0
  private(set) var gaps = 0
  private(set) var dropped = 0
  private(set) var faults: [String] = []
  private var last: (number: Int, link: Int, generation: Generation)?

  mutating func received(_ update: ValueUpdate) {
    guard let value = try? Pair(update.value) else {
      faults.append("a value of \(update.value.count) bytes")
      return
    }
    received += 1
    if let gap = update.gap {
      gaps += 1
      dropped += gap.dropped
    }
    if let last {
      if update.generation == last.generation {
        if value.second != last.link {
          faults.append("one generation, links \(last.link) and \(value.second)")
        }
        if update.gap == nil, value.first != last.number + 1 {
          faults.append("value \(value.first) follows \(last.number) on one link and no gap is told")
        }
      } else {
        if value.second <= last.link || update.generation < last.generation {
          faults.append("link \(value.second) follows link \(last.link)")
        }
        if update.gap?.isAfterLoss != true { faults.append("a link was lost and no gap is told") }
      }
      if value.first <= last.number { faults.append("value \(value.first) follows \(last.number)") }
    }
    last = (value.first, value.second, update.generation)
  }
}

/// The history of a session: its grammar, its losses, and how long each way back took.
struct HistoryLedger: Sendable {
  private(set) var grammar = HistoryGrammar()
  private(set) var losses = 0
  private(set) var readies = 0
  private(set) var failedAttempts: [DisconnectReason: Int] = [:]
  private(set) var notReconnecting = 0
  private(set) var missed = 0
  private(set) var roundTrips: [Int] = []
  /// From the loss that was seen to the first read that a newer link answered, in milliseconds.
  private(set) var reconnections: [Double] = []
  private(set) var readyTimes: [Double] = []
  private var lostAt: MonotonicInstant?
  private var linkLost = 0
  /// Whether a read has been answered since the latest loss, on a newer link.
  private(set) var isBack = false

  mutating func happened(_ event: ConnectionEvent, at now: MonotonicInstant, newestLink: Int) {
    grammar.accept(event)
    switch event {
    case .ready(let readiness):
      readies += 1
      roundTrips.append(readiness.roundTrips)
      if let lostAt { readyTimes.append(lostAt.duration(to: now).milliseconds) }
    case .disconnected(let info):
      losses += 1
      lostAt = now
      linkLost = newestLink
      isBack = false
      if !info.willReconnect { notReconnecting += 1 }
    case .attemptFailed(let info):
      failedAttempts[info.reason, default: 0] += 1
    case .missed(let count):
      missed += count
    default:
      break
    }
  }

  mutating func readAnswered(by link: Int, at now: MonotonicInstant) {
    guard !isBack, link > linkLost else { return }
    isBack = true
    if let lostAt { reconnections.append(lostAt.duration(to: now).milliseconds) }
  }
}

extension Duration {
  var milliseconds: Double { Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15 }
}

/// Values in order of size, for medians.
struct Distribution {
  private let sorted: [Double]

  init(_ values: [Double]) { sorted = values.sorted() }

  var median: Double {
    guard !sorted.isEmpty else { return .nan }
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }

  var ninetieth: Double { sorted.isEmpty ? .nan : sorted[(sorted.count * 9 + 9) / 10 - 1] }
  var maximum: Double { sorted.last ?? .nan }

  var summary: String {
    "median \(Self.tenths(median)) ms, p90 \(Self.tenths(ninetieth)), max \(Self.tenths(maximum)), n \(sorted.count)"
  }

  static func tenths(_ value: Double) -> String {
    value.isFinite ? String(Double(Int(value * 10 + 0.5)) / 10) : "none"
  }
}
