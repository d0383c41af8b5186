import BluetoothWire

@testable import RelinkCore

/// One command of a random life, from its first call to the last that anybody hears of it, whatever processes and links
/// lie between: what was done to it, and what the rules make of that, written down in the plainest way.
struct NaiveCommand {
  enum Phase: Equatable {
    case recording, queued, probing, inDoubt, unresolved, settling
    case out(RequestID)
    /// It is in no journal, or not in that of this process.
    case gone
  }

  /// An outcome without its particulars.
  enum Kind: Equatable {
    case succeeded
    case rejected(proof: Bool)
    case notSent(NotSentReason)
    case indeterminate(Doubt.Cause)

    init<Value>(_ outcome: Outcome<Value>) {
      switch outcome {
      case .succeeded: self = .succeeded
      case .rejected(let rejection): self = .rejected(proof: rejection.provesNotApplied)
      case .notSent(let reason): self = .notSent(reason)
      case .indeterminate(let doubt): self = .indeterminate(doubt.cause)
      }
    }
  }

  var id: OperationID?
  var request: GATTRequest
  var idempotency: Idempotency
  var options: OperationOptions

  var number = OperationNumber(rawValue: 0)
  var phase = Phase.gone
  var deadline: MonotonicInstant?
  var offerBefore: MonotonicInstant?
  /// An offer may have reached the device.
  var isPossible = false
  /// An offer before the one that is out may have.
  var wasPossible = false
  var isMarked = false
  var supersededBy: OperationID?
  var isExpired = false
  var probes = 0
  var refusals = 0
  var heldOn: Generation?
  var isRecovered = false
  /// What it settles as, once that is committed.
  var outcome: Kind?
  var settleLimit: MonotonicInstant?
  var isToldLate = false

  /// How often the device has carried it out.
  var applied = 0
  /// A loss of power took an outcome that was told.
  var isReplayed = false
  /// Its record was acknowledged.
  var isRecorded = false
  /// It was asked for again, and this process does not know yet what an earlier one did about it: that nothing was sent
  /// is said of the new call.
  var isAskedAgain = false
  /// Everything that anybody was told about it.
  var told: [Kind] = []

  var isDurable: Bool { options.durability == .durable }
  var isLive: Bool { phase != .gone }
  var isOut: Bool { if case .out = phase { true } else { false } }

  var keys: Set<OrderKey> {
    var keys: Set<OrderKey> = []
    _ = request.anyKey {
      keys.insert($0)
      return false
    }
    if let lane = options.lane { keys.insert(.lane(lane)) }
    return keys
  }

  /// What it is without an answer.
  func unanswered(_ notSent: NotSentReason, _ cause: Doubt.Cause) -> Kind {
    isPossible || isOut ? .indeterminate(cause) : .notSent(notSent)
  }

  /// Whether an outcome agrees with what really happened, whoever is told.
  func agrees(with kind: Kind) -> Bool {
    switch kind {
    case .succeeded: idempotency == .idempotent ? applied >= 1 : applied == 1
    case .notSent, .rejected(proof: true): applied == 0
    case .rejected(proof: false), .indeterminate: true
    }
  }

  /// Whether an outcome can stand beside those that were told before.
  func contradicts(_ kind: Kind) -> Bool {
    func isDefinite(_ kind: Kind) -> Bool { if case .indeterminate = kind { false } else { true } }
    guard isDefinite(kind), !isReplayed else { return false }
    return told.contains { isDefinite($0) && $0 != kind }
  }
}

/// The rules of order over all commands that are live.
struct NaiveOrder {
  var commands: [NaiveCommand]
  /// Keys of requests whose answer is still owed although their operation has its outcome.
  var abandoned: [Set<OrderKey>]

  /// The live ones in call order.
  var live: [Int] {
    commands.indices.filter { commands[$0].isLive }.sorted { commands[$0].number < commands[$1].number }
  }

  func waits(_ later: Int, for earlier: Int) -> Bool {
    commands[earlier].number < commands[later].number
      && !commands[earlier].keys.isDisjoint(with: commands[later].keys)
  }

  func isBlocked(_ index: Int) -> Bool {
    abandoned.contains { !$0.isDisjoint(with: commands[index].keys) }
      || live.contains { waits(index, for: $0) }
  }

  /// Its own, and that of whoever waits for it, over any number of steps.
  func priority(of index: Int) -> OperationPriority {
    var waiting: Set<Int> = [index]
    var before = 0
    while waiting.count != before {
      before = waiting.count
      for later in live where waiting.contains(where: { waits(later, for: $0) }) { waiting.insert(later) }
    }
    return waiting.map { commands[$0].options.priority }.max() ?? .normal
  }

  /// The one that goes next of those that can.
  func best(where canGo: (NaiveCommand) -> Bool) -> Int? {
    var best: Int?
    for index in live where commands[index].phase == .queued && canGo(commands[index]) && !isBlocked(index) {
      if best.map({ priority(of: $0) < priority(of: index) }) ?? true { best = index }
    }
    return best
  }
}
