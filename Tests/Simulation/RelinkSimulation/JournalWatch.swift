internal import Relink
internal import RelinkTesting

/// Looks at every transition of one process's journal, and says what must not be.
///
/// It knows the rules, not how the journal keeps them: what is offered, when, after what.
final class JournalWatch: AuditSink {
  /// One operation as its transitions show it.
  private struct Operation {
    var number: UInt64?
    var isRecorded = false
    var isMarked = false
    var isOffered = false
    /// An offer of it may have reached the device, and nobody has said that it did not.
    var isInDoubt = false
    var isSuperseded = false
    var settled: Outcome<Confirmation>?
    var generation: Generation?
    var poisonings = 0

    /// Whether the call became no operation: nothing was recorded, so that another one may bear its name.
    var cameToNothing: Bool {
      guard let settled, !isRecorded else { return false }
      if case .notSent = settled { return true }
      return settled.isOfTheStore
    }
  }

  private struct State {
    var operations: [OperationID: Operation] = [:]
    var byNumber: [UInt64: OperationID] = [:]
    var open: [OperationID] = []
    /// Writes in memory that were offered, with their keys.
    var early: [(id: OperationID, keys: [String])] = []
    var transitions = 0
    var killAt: Int?
    var onTransition: (@Sendable () -> Void)?
    var problems: [String] = []
    var lines: [String] = []
  }

  /// What the watch has to know of the writes of the scenario.
  struct Facts: Sendable {
    var writes: [UInt64: Scenario.Write]
    /// The place of a write in the order of calls.
    var order: @Sendable (UInt64) -> Int?
    /// The link on which the session was ready when it was called.
    var bornOn: @Sendable (UInt64) -> Generation?
    var resumes: Bool
    /// Whether nobody sets the system clock.
    var isClockSteady: Bool
    /// Whether a claim on the journal failed, after which nothing waits for what an earlier process left.
    var hasClaimFailed: @Sendable () -> Bool
    /// Whether the store has an operation of this name.
    var isStored: @Sendable (OperationID) -> Bool
  }

  private let facts: Facts
  private let isTracing: Bool
  private let state = Locked(State())

  init(_ facts: Facts, isTracing: Bool) {
    self.facts = facts
    self.isTracing = isTracing
  }

  var problems: [String] { state.withLock { $0.problems } }
  var lines: [String] { state.withLock { $0.lines } }
  var transitions: Int { state.withLock { $0.transitions } }

  /// What became of a write, as far as its operation's transitions say.
  enum Fate {
    /// It has no transition in this life of the process.
    case unknown
    case open
    case settled(Outcome<Confirmation>)
  }

  /// What became of a write.
  func fate(of number: UInt64) -> Fate {
    state.withLock { state in
      guard let id = state.byNumber[number], let operation = state.operations[id] else { return .unknown }
      // A call for which the store could not be used may have been for an operation that it has.
      if operation.settled?.isOfTheStore == true { return .unknown }
      return operation.settled.map(Fate.settled) ?? .open
    }
  }

  /// Whether the latest operation of a write could not be recorded, so that nothing is left of it.
  func cameToNothing(_ number: UInt64) -> Bool {
    state.withLock { state in
      guard let id = state.byNumber[number], let operation = state.operations[id] else { return false }
      return operation.cameToNothing
    }
  }

  /// The numbers of the writes, by the names of their operations.
  var numbers: [String: UInt64] {
    state.withLock { state in
      state.byNumber.reduce(into: [:]) { names, one in names[one.value.description] = one.key }
    }
  }

  /// Calls `body` at the nth transition from now on.
  func atTransition(_ count: Int, _ body: @escaping @Sendable () -> Void) {
    state.withLock { ($0.killAt, $0.onTransition) = ($0.transitions + count, body) }
  }

  /// Forgets what was to happen.
  func disarm() { state.withLock { ($0.killAt, $0.onTransition) = (nil, nil) } }

  func record(_ event: JournalEvent, of device: DeviceID, owner: String) {
    let due = state.withLock { state -> (@Sendable () -> Void)? in
      look(at: event, &state)
      state.transitions += 1
      guard let at = state.killAt, state.transitions >= at else { return nil }
      defer { (state.killAt, state.onTransition) = (nil, nil) }
      return state.onTransition
    }
    due?()
  }

  private func look(at event: JournalEvent, _ state: inout State) {
    let id = event.operation.id
    if isTracing {
      state.lines.append("\(event.at.monotonic.text) journal \(id): \(event.change)")
    }
    // It says something of the store, not of the operation, which may be an earlier process's.
    if event.change == .delivered { return }
    if state.operations[id] == nil {
      var operation = Operation()
      operation.number = number(of: event.operation)
      if let number = operation.number { state.byNumber[number] = id }
      state.operations[id] = operation
      state.open.append(id)
    }
    guard var operation = state.operations[id] else { return }
    // Taken out meanwhile, so that it is changed in place.
    func wrong(_ what: String) { state.problems.append("operation \(id) \(what)") }
    if operation.cameToNothing {
      operation = Operation(number: operation.number)
      if !state.open.contains(id) { state.open.append(id) }
    }
    if operation.settled != nil {
      wrong("changes after its outcome: \(event.change)")
    }
    switch event.change {
    case .recorded:
      operation.isRecorded = true
      // One that has its outcome already takes nobody's place.
      if event.operation.state != .settling {
        supersede(olderThan: event.operation, operation.number, &state)
      }
    case .recovered:
      operation.isRecorded = true
      operation.isMarked = event.operation.lastOffer != nil
      operation.isInDoubt = event.operation.lastOffer != nil
      supersede(olderThan: event.operation, operation.number, &state)
      if let write = operation.number.flatMap({ facts.writes[$0] }), !facts.hasClaimFailed() {
        for one in state.early where one.keys.contains(where: write.keys.contains) {
          wrong("was overtaken by \(one.id) before it was taken over")
        }
      }
    case .marked: operation.isMarked = true
    case .offered(let generation, _):
      for what in faults(of: event, operation, on: generation, state) { wrong(what) }
      if event.operation.durability != .durable, event.operation.request.isWrite,
        let write = operation.number.flatMap({ facts.writes[$0] })
      {
        state.early.append((id, write.keys))
      }
      operation.isOffered = true
      operation.generation = generation
    case .notTaken: operation.isOffered = false
    case .inDoubt(let reason):
      operation.isOffered = false
      operation.isInDoubt = true
      operation.poisonings = reason == .remoteUserTerminated ? operation.poisonings + 1 : 0
      // Another request that was out as well sets the journal's count back, which cannot be seen here: hence the double.
      if operation.poisonings > 2 * Scenario.poisonOffers + 1 { wrong("ends one link after the other") }
    case .judged(let verdict, _):
      if verdict == .notApplied { operation.isInDoubt = false }
    case .settled(let outcome):
      operation.settled = outcome
      // A call that gets the outcome of an earlier process's operation was for that one, of which nothing else is shown.
      if !operation.isRecorded, !outcome.isOfTheStore { operation.isRecorded = facts.isStored(id) }
      state.open.removeAll { $0 == id }
    case .superseded: operation.isSuperseded = true
    case .joined, .probing, .delivered, .storeFailed: break
    @unknown default: wrong("goes an unknown way: \(event.change)")
    }
    // Superseding may have changed it meanwhile only where it is another one's doing.
    operation.isSuperseded = operation.isSuperseded || state.operations[id]?.isSuperseded == true
    state.operations[id] = operation
  }

  /// What is wrong with an offer.
  private func faults(
    of event: JournalEvent, _ operation: Operation, on generation: Generation, _ state: State
  ) -> [String] {
    let shown = event.operation
    var found: [String] = []
    if !operation.isRecorded { found.append("is offered before it is recorded") }
    if operation.isOffered { found.append("is offered while it is out") }
    if shown.durability == .durable, !operation.isMarked { found.append("is offered without a mark") }
    if let last = operation.generation, generation < last { found.append("is offered on an older link") }
    if operation.isInDoubt, shown.request.isWrite {
      switch shown.idempotency {
      case .idempotent: break
      case .nonIdempotent: found.append("is offered again although it may have been done")
      case .verified: found.append("is offered again and nobody has looked")
      @unknown default: break
      }
    }
    if operation.isSuperseded { found.append("is offered although a younger one took its place") }
    if let deadline = shown.deadline, deadline <= event.at.monotonic {
      found.append("is offered after its deadline")
    }
    if facts.isClockSteady, let limit = shown.offerBefore, limit <= event.at.wall {
      found.append("is offered although it has become stale")
    }
    guard let number = operation.number, let write = facts.writes[number] else { return found }
    let born = shown.isRecovered ? Generation(rawValue: 0) : facts.bornOn(number)
    if write.isUnbroken, !facts.resumes, let born, born < generation {
      found.append("is offered although the device may have forgotten")
    }
    guard let place = facts.order(number) else { return found }
    for id in state.open where id != shown.id {
      guard let other = state.operations[id], other.isRecorded, let otherNumber = other.number,
        let otherWrite = facts.writes[otherNumber], let otherPlace = facts.order(otherNumber),
        otherPlace < place, otherWrite.keys.contains(where: write.keys.contains)
      else { continue }
      found.append("overtakes \(id)")
    }
    return found
  }

  /// A younger operation is there: older ones with its superseding key are not offered any more.
  private func supersede(olderThan younger: JournaledOperation, _ number: UInt64?, _ state: inout State) {
    guard let key = younger.supersedes, let number, let place = facts.order(number) else { return }
    for id in state.open where id != younger.id {
      guard let other = state.operations[id]?.number, let write = facts.writes[other],
        write.supersedes == key.name, let otherPlace = facts.order(other), otherPlace < place
      else { continue }
      state.operations[id]?.isSuperseded = true
    }
  }

  private func number(of operation: JournaledOperation) -> UInt64? {
    if let number = Scenario.number(of: operation.id) { return number }
    let value: [UInt8] =
      switch operation.request {
      case .write(_, let value), .writeLong(_, let value), .writeWithoutResponse(_, let value): value
      case .writeReliably(let writes): writes.first?.value ?? []
      default: []
      }
    guard value.count >= 8 else { return nil }
    return value.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension Outcome {
  /// Whether it only says that the store could not be used.
  var isOfTheStore: Bool {
    switch self {
    case .notSent(.storeFailed): true
    case .indeterminate(let doubt): doubt.isUnrecorded
    case .succeeded, .rejected, .notSent: false
    }
  }
}

extension Scenario {
  /// The name that the app gives a write.
  static func id(of number: UInt64) -> OperationID? { OperationID("write \(number)") }

  /// The write that has this name.
  static func number(of id: OperationID) -> UInt64? {
    let name = id.description
    return name.hasPrefix("write ") ? UInt64(name.dropFirst(6)) : nil
  }
}
