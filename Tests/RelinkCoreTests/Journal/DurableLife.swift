import BluetoothWire
import Testing

@testable import RelinkCore

/// One random life of a journal and its store, over losses, failing commits, crashes and losses of power, each step
/// compared with what the rules say.
struct DurableLife {
  static let names = (0..<4 as Range<UInt16>).map { Characteristic(BluetoothUUID(0xAA00 + $0)) }
  static let tags: [Idempotency] = [
    .idempotent, .idempotent, .nonIdempotent, .nonIdempotent, .verified(by: .named("p")), .verified(by: .app),
  ]

  var generator: SplitMix
  var journal: OperationJournal
  var commands: [NaiveCommand] = []
  var abandoned: [RequestID: Int] = [:]
  var disk = NaiveStore()
  /// What of the disk survives a loss of power.
  var platter = NaiveStore()
  var inFlight: (records: [JournalRecord], sync: JournalSync)?
  var now = Timestamp.start
  var timer: MonotonicInstant?
  var generation = Generation(rawValue: 1)
  var boots = 1
  var lastNumber: Int64 = 0
  var lastRequest: UInt64 = 0
  /// How many callers wait for an operation.
  var callers: [OperationNumber: Int] = [:]
  /// What has to be told before the step is over.
  var owed: [OperationNumber: NaiveCommand.Kind] = [:]
  /// The same for calls that were called off before it was known that an earlier process has their command.
  var calledOff: [OperationNumber: NaiveCommand.Kind] = [:]

  init(seed: UInt64) {
    generator = SplitMix(seed: seed)
    journal = OperationJournal(policy: .standard, hasStore: true, bootID: "boot 1", now: .start)
    journal.claimRequested()
  }

  mutating func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
  mutating func chance(_ one: Int) -> Bool { draw(one) == 0 }

  var order: NaiveOrder {
    NaiveOrder(commands: commands, abandoned: abandoned.values.map { commands[$0].keys })
  }

  func live(_ number: OperationNumber) -> Int? {
    commands.firstIndex { $0.isLive && $0.number == number }
  }

  // MARK: Steps

  mutating func step() throws {
    pass(draw(400))
    if let due = timer, due <= now.monotonic, !chance(8) { try fireTimer() }
    if let retry = journal.retryAt, retry <= now.monotonic { journal.retryDue(now: now.monotonic) }
    switch draw(100) {
    case 0..<24: try call()
    case 24..<46: try offer()
    case 46..<64: try answer()
    case 64..<82: try work()
    case 82..<86: try cancel()
    case 86..<90: try loseLink()
    case 90..<94: try probe()
    case 94..<96: try resolve()
    case 96: try disconnect()
    case 97: if chance(3) { try restart(powerLost: chance(3)) }
    default: try fireTimer()
    }
    try settleUp()
  }

  mutating func pass(_ milliseconds: Int) {
    now.monotonic = now.monotonic.advanced(by: .milliseconds(milliseconds))
    now.bootTime += Int64(milliseconds) * 1_000_000
    now.wall += Int64(milliseconds) * 1_000_000
  }

  private mutating func call() throws {
    lastNumber += 1
    let number = OperationNumber(rawValue: lastNumber)
    var index: Int
    let known = commands.indices.filter { commands[$0].isDurable && commands[$0].isRecorded }
    if chance(6), let again = known.randomElement(using: &generator) {
      index = again
    } else {
      index = commands.endIndex
      commands.append(randomCommand())
    }
    let command = commands[index]
    let deadline = chance(4) ? nil : now.monotonic.advanced(by: .milliseconds(draw(20_000)))
    let admission = journal.operationRequested(
      OperationJournal.Call(
        number: number, id: command.id, request: command.request, idempotency: command.idempotency,
        deadline: deadline, options: command.options == .plain ? nil : command.options), now: now)
    switch admission {
    case .refused(.mixedDurability):
      commands.remove(at: index)
      let other = commands.contains {
        $0.isLive && $0.isDurable != command.isDurable && !$0.keys.isDisjoint(with: command.keys)
      }
      try #require(other)
    case .refused, .unknown:
      Issue.record("refused: \(admission)")
    case .joined(let first):
      try #require(command.isLive && command.number == first)
      callers[first, default: 0] += 1
      if commands[index].isToldLate {
        commands[index].isToldLate = false
        commands[index].settleLimit = max(now.monotonic, deadline ?? now.monotonic).advanced(by: .seconds(1))
      }
    case .kept(let outcome):
      try hear(index, NaiveCommand.Kind(outcome))
    case .recorded(let wanted, let superseded):
      if let wanted { timer = wanted }
      callers[number] = 1
      commands[index].number = number
      commands[index].phase = command.isDurable ? .recording : .queued
      commands[index].deadline = deadline
      commands[index].offerBefore = command.options.offerBefore.map {
        now.monotonic.advanced(by: .nanoseconds($0.bootTime - now.bootTime))
      }
      commands[index].isToldLate = false
      commands[index].outcome = nil
      commands[index].isPossible = false
      commands[index].supersededBy = nil
      commands[index].isExpired = false
      commands[index].isAskedAgain = command.isRecorded
      if !command.isDurable { supersede(olderThan: index) }
      for settlement in superseded { try tell(settlement) }
    }
  }

  private mutating func randomCommand() -> NaiveCommand {
    var options = OperationOptions.plain
    let place = draw(Self.names.count)
    let isDurable = place < 2
    if isDurable { options.durability = .durable }
    if chance(3) { options.lane = isDurable ? "durable" : "memory" }
    if chance(4) { options.priority = chance(2) ? .high : .low }
    if chance(4) { options.supersedes = chance(2) ? "height" : "tilt" }
    if chance(5) { options.offerBefore = ExpiryInstant(.milliseconds(draw(8_000)), after: now) }
    let request = GATTRequest.write(Self.names[place], [UInt8(truncatingIfNeeded: lastNumber)])
    return NaiveCommand(
      id: isDurable ? OperationID("op\(lastNumber)") : nil, request: request,
      idempotency: Self.tags[draw(Self.tags.count)], options: options)
  }

  private mutating func offer() throws {
    let facts = OperationJournal.LinkFacts(generation)
    for _ in 0..<8 {
      let expected = nextExpected()
      switch journal.next(taking: .any, on: facts, now: now) {
      case .secure:
        Issue.record("security was asked for")
        return
      case .nothing:
        try #require(expected == nil)
        return journal.marksWanted(on: generation, now: now)
      case .settled(let settlement):
        try tell(settlement)
      case .offer(let number, _):
        let index = try #require(expected)
        try #require(commands[index].number == number)
        try offer(index)
      }
    }
  }

  /// What goes next; what is superfluous settles on the way, and where somebody is to be told so, the journal says that
  /// first.
  private mutating func nextExpected() -> Int? {
    guard !journal.isTakingOver else { return nil }
    let (link, works) = (generation, journal.log.isWorking)
    while let index = order.best(where: {
      $0.heldOn != link && (!$0.isDurable || ($0.isMarked && works))
    }) {
      let command = commands[index]
      if let deadline = command.deadline, deadline <= now.monotonic {
        settle(index, command.unanswered(.deadline, .deadline))
      } else if let younger = command.supersededBy {
        settle(index, command.unanswered(.superseded(by: younger), .superseded(by: younger)))
      } else if let limit = command.offerBefore, limit <= now.monotonic {
        settle(index, command.unanswered(.expired, .expired))
      } else {
        return index
      }
      if !command.isDurable { return nil }
    }
    return nil
  }

  /// Invariants of the very moment at which bytes leave.
  private mutating func offer(_ index: Int) throws {
    let command = commands[index]
    try #require(command.idempotency == .idempotent || !command.isPossible, "offered again in doubt")
    if command.isDurable, let id = command.id {
      try #require(disk.row(id.description)?.mark != nil, "sent before it was marked")
      try #require(disk.row(id.description)?.outcome == nil, "sent after its end")
    }
    lastRequest += 1
    let request = RequestID(rawValue: lastRequest)
    journal.offering(command.number, as: request, on: generation, now: now)
    guard !chance(10) else { return journal.offerNotTaken(command.number, now: now) }
    commands[index].phase = .out(request)
    commands[index].wasPossible = command.isPossible
  }

  /// The device carries a command out.
  mutating func apply(_ index: Int) throws {
    commands[index].applied += 1
    let command = commands[index]
    try #require(command.idempotency == .idempotent || command.applied == 1, "done twice: \(command)")
    let wasDenied = command.told.contains {
      switch $0 {
      case .notSent, .rejected(proof: true): true
      case .succeeded, .rejected, .indeterminate: false
      }
    }
    try #require(!wasDenied, "done after it was told that it was not: \(command)")
    for other in order.live where order.waits(other, for: index) {
      try #require(!commands[other].isOut, "overtaken")
    }
    for older in commands[..<index] where !older.keys.isDisjoint(with: command.keys) {
      guard let id = older.id?.description, disk.row(id)?.outcome != nil else { continue }
      try #require(platter.row(id)?.outcome != nil, "the power could bring it back: \(older)")
    }
  }

  private mutating func answer() throws {
    let out = commands.indices.compactMap { index -> (RequestID, Int)? in
      if case .out(let request) = commands[index].phase { (request, index) } else { nil }
    }
    let all = out + abandoned.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    guard let (request, index) = all.randomElement(using: &generator) else { return }
    let command = commands[index]
    let isAbandoned = abandoned.removeValue(forKey: request) != nil
    let (answer, isApplied) = randomAnswer()
    if isApplied { try apply(index) }
    if !isAbandoned {
      switch answer {
      case .success: settle(index, .succeeded)
      case .failure(.rejected(let code)):
        let proof = RejectionRules.standard.provesNotApplied(code) && !command.wasPossible
        settle(index, .rejected(proof: proof))
      case .failure(.malformedAnswer):
        settle(index, .indeterminate(.malformedAnswer))
      case .failure:
        commands[index].phase = .queued
        commands[index].refusals += 1
        if commands[index].refusals == OperationJournal.refusalLimit {
          commands[index].refusals = 0
          commands[index].heldOn = generation
        }
        settleIfSuperfluous(index)
      }
    }
    if let settlement = journal.answered(request, with: answer, now: now) { try tell(settlement) }
  }

  private mutating func randomAnswer() -> (Result<GATTAnswer, GATTFailure>, isApplied: Bool) {
    switch draw(10) {
    case 0: (.failure(.rejected(ATTErrorCode(rawValue: 0x03))), false)
    case 1: (.failure(.rejected(ATTErrorCode(rawValue: 0x80))), chance(2))
    case 2: (.failure(.malformedAnswer), chance(2))
    case 3: (.failure(.refused(.calledOff)), false)
    default: (.success(.done), true)
    }
  }

  private mutating func cancel() throws {
    let number = OperationNumber(
      rawValue: Int64.random(in: max(lastNumber - 12, 0)...lastNumber, using: &generator))
    let index = live(number)
    let isOpen = index.map { commands[$0].phase != .settling } ?? false
    let request = index.flatMap { abandon($0, .cancelled, .cancelled) }
    let end = journal.cancelled(number, now: now)
    try #require((end != nil) == isOpen)
    try #require(end?.abandon == request)
    if let settlement = end?.settlement { try tell(settlement) }
  }

  private mutating func loseLink() throws {
    var inDoubt: [RequestID] = []
    for index in order.live {
      let command = commands[index]
      switch command.phase {
      case .out(let request):
        let isReached = !chance(3)
        if isReached {
          inDoubt.append(request)
          if chance(2) { try apply(index) }
        }
        lost(index, isReached: isReached)
      case .probing:
        commands[index].phase = .inDoubt
        if command.probes >= 3 { settle(index, .indeterminate(.probeInterrupted)) }
      case .queued:
        settleIfSuperfluous(index)
      case .recording, .inDoubt, .unresolved, .settling, .gone:
        break
      }
    }
    for (request, index) in abandoned.sorted(by: { $0.key < $1.key }) {
      inDoubt.append(request)
      if chance(2) { try apply(index) }
    }
    abandoned = [:]
    let loss = journal.linkLost(generation, reason: .supervisionTimeout, inDoubt: inDoubt, now: now)
    for settlement in loss.settled { try tell(settlement) }
    generation = Generation(rawValue: generation.rawValue + 1)
    if !chance(3) { journal.marksWanted(on: generation, now: now) }
  }

  private mutating func lost(_ index: Int, isReached: Bool) {
    let command = commands[index]
    commands[index].phase = .queued
    guard isReached else { return settleIfSuperfluous(index) }
    commands[index].isPossible = true
    commands[index].isMarked = false
    commands[index].refusals = 0
    switch command.idempotency {
    case .nonIdempotent: settle(index, .indeterminate(.linkLost(.supervisionTimeout)))
    case .idempotent: settleIfSuperfluous(index)
    case .verified(let probe): commands[index].phase = probe.kind == .app ? .unresolved : .inDoubt
    }
  }

  mutating func disconnect() throws {
    for index in order.live where commands[index].phase != .settling {
      if case .out = commands[index].phase, chance(2) { try apply(index) }
      _ = abandon(index, .disconnected, .disconnected)
    }
    abandoned = [:]
    let ends = journal.settleAll(notSent: .disconnected, doubt: .disconnected, now: now)
    for settlement in ends.compactMap(\.settlement) { try tell(settlement) }
    generation = Generation(rawValue: generation.rawValue + 1)
  }

  mutating func fireTimer() throws {
    for index in order.live {
      let command = commands[index]
      let isLate = command.deadline.map { $0 <= now.monotonic } ?? false
      if command.phase == .settling {
        guard !command.isToldLate, command.settleLimit.map({ $0 <= now.monotonic }) ?? false else { continue }
        commands[index].isToldLate = true
      } else if isLate {
        _ = abandon(index, .deadline, .deadline)
      } else if let limit = command.offerBefore, limit <= now.monotonic, !command.isExpired {
        if command.phase == .queued || command.phase == .recording {
          _ = abandon(index, .expired, .expired)
        } else {
          commands[index].isExpired = true
        }
      }
    }
    let fired = journal.timerFired(now: now)
    timer = fired.timer
    for settlement in fired.expired.compactMap(\.settlement) { try tell(settlement) }
  }
}
