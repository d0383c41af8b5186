internal import BluetoothWire
internal import Relink
internal import RelinkTesting

extension Scenario {
  /// Draws everything from a seed.
  init(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var radio = VirtualRadio.Configuration()
    radio.latency = generator.next(in: .zero ... .milliseconds(40))
    radio.connectLatency = generator.next(in: .zero ... .milliseconds(200))
    if generator.next(below: 3) == 0 { radio.connectionInterval = .milliseconds(30) }
    radio.endsLinks = generator.next(below: 3) == 0
    radio.knowsExactReason = generator.next(below: 2) == 0
    radio.supervisionTimeout = generator.next(in: .zero ... .seconds(6))
    radio.dialLimit = .seconds(10)
    self.init(seed: seed, faults: .none, storeFaults: .none)
    self.radio = radio
    hasDatabaseHash = generator.next(below: 2) == 0
    hasSetup = generator.next(below: 3) == 0
    resumes = hasSetup && generator.next(below: 2) == 0
    faults = Scenario.faults(&generator)
    hasStore = generator.next(below: 4) != 0
    store.latency = generator.next(in: .zero ... .milliseconds(60))
    storeFaults = Scenario.storeFaults(&generator)
    let share = generator.next(below: 4)
    for number in 1...UInt64(generator.next(below: 30) + 12) {
      calls.append(call(number, crashing: share == 0 ? 2 : 1, &generator))
    }
    drawSecurity()
    calls.sort { ($0.at, $0.number) < ($1.at, $1.number) }
    drawCallers(&generator)
  }

  /// In a fourth of the seeds the device is bonded, and its keys change now and then.
  ///
  /// From a generator of its own, so that the other seeds are what they are without it.
  private mutating func drawSecurity() {
    var generator = SeededGenerator(seed: seed ^ 0x5EC0_4E)
    guard generator.next(below: 4) == 0 else { return }
    let policies = Security.Policy.allCases
    security = Security(
      policy: policies[generator.next(below: policies.count)],
      encryptionTime: generator.next(in: .zero ... .milliseconds(200)))
    for _ in 0..<generator.next(below: 5) {
      // Half of the changes are the user's, who makes good what went wrong before.
      let change: KeyChange =
        generator.next(below: 2) == 0
        ? .userActs : KeyChange.allCases[generator.next(below: KeyChange.allCases.count)]
      calls.append(
        Call(
          number: UInt64(calls.count + 1), at: generator.next(in: .zero...Scenario.faultPhase),
          step: .keys(change), within: .seconds(10)))
    }
  }

  /// In a third of the seeds all callers prefer the session's executor, in a third none does.
  private mutating func drawCallers(_ generator: inout SeededGenerator) {
    let (share, crowds) = (generator.next(below: 3), generator.next(below: 2))
    for index in calls.indices {
      calls[index].isElsewhere = share == 2 || (share == 1 && generator.next(below: 2) == 0)
      guard index > 0, calls[index].at == calls[index - 1].at, crowds == 1 else { continue }
      calls[index].isTogether = generator.next(below: 2) == 0
    }
  }

  private init(seed: UInt64, faults: FaultPlan, storeFaults: StoreFaultPlan) {
    self.seed = seed
    self.faults = faults
    self.storeFaults = storeFaults
  }

  /// Each kind of fault is left out in half of the seeds, so that rare ones are not hidden by frequent ones.
  private static func faults(_ generator: inout SeededGenerator) -> FaultPlan {
    let share = generator.nextUnit() * 0.08
    var rates = FaultPlan.Rates.mixed(share)
    for rate in [
      \FaultPlan.Rates.requests.loseLinkBefore, \.requests.loseLinkAfter, \.requests.late,
      \.answers.loseLinkBefore, \.answers.loseLinkAfter, \.answers.vanish, \.answers.late, \.answers.twice,
      \.values.loseLinkBefore, \.values.late, \.dials.fail, \.dials.hang, \.dials.failToEstablish,
      \.dials.refuse, \.dials.busy, \.sendLater, \.sendFailed, \.adapterOff, \.absence,
    ] where generator.next(below: 2) == 0 {
      rates[keyPath: rate] = 0
    }
    rates.outage = .milliseconds(1) ... .seconds(8)
    return FaultPlan(seed: generator.next(), rates: rates)
  }

  private static func storeFaults(_ generator: inout SeededGenerator) -> StoreFaultPlan {
    let share = generator.nextUnit() * 0.1
    var rates = StoreFaultPlan.Rates()
    (rates.failed, rates.lost, rates.unsaid, rates.late) = (share, share, share, share)
    (rates.hang, rates.down) = (share / 8, share / 8)
    for rate in [
      \StoreFaultPlan.Rates.failed, \.lost, \.unsaid, \.late, \.hang, \.down,
    ] where generator.next(below: 2) == 0 {
      rates[keyPath: rate] = 0
    }
    return StoreFaultPlan(seed: generator.next(), rates: rates)
  }

  private func call(_ number: UInt64, crashing: Int, _ generator: inout SeededGenerator) -> Call {
    var at = generator.next(in: .zero...Scenario.faultPhase)
    // Half of the calls come in crowds, so that they wait for each other.
    if generator.next(below: 2) == 0 { at = .seconds(at.components.seconds / 6 * 6) }
    let within = generator.next(in: .milliseconds(50) ... .seconds(40))
    let step: Step =
      switch generator.next(below: 44) {
      case 0..<3: .read(generator.next(below: 3) == 0 ? Scenario.vault : Scenario.setting)
      case 3..<24: .write(write(&generator))
      case 24..<28: .again(UInt64(generator.next(below: Int(number)) + 1))
      case 28: .discover
      case 29: .connect
      case 30: .disconnect
      case 31: .subscribe
      case 32: generator.next(below: 2) == 0 ? .listen : .watchJournal
      case 33: .exclusive
      case 34, 35: .resolve
      case 36, 37: .notify
      case 38: .changeTable
      case 39: .stale
      case 40: clock(&generator)
      case 41: .cut([0x08, 0x13, 0x16, 0x3E].map(HCIErrorCode.init(rawValue:))[generator.next(below: 4)])
      default:
        // The second of two numbers is a crash in one seed of four only, so that long lives are tried too.
        generator.next(below: 2) < crashing ? .crash(crash(&generator)) : .notify
      }
    let cancelledAfter: Duration? =
      switch generator.next(below: 24) {
      case 0: .zero
      case 1..<5: generator.next(in: .zero ... .seconds(5))
      default: nil
      }
    return Call(number: number, at: at, step: step, within: within, cancelledAfter: cancelledAfter)
  }

  private func clock(_ generator: inout SeededGenerator) -> Step {
    switch generator.next(below: 3) {
    case 0: .suspend(generator.next(in: .milliseconds(10) ... .seconds(40)))
    case 1: .setClock(generator.next(in: .seconds(-4_000) ... .seconds(4_000)))
    default: .suspend(generator.next(in: .milliseconds(10) ... .seconds(2)))
    }
  }

  private func crash(_ generator: inout SeededGenerator) -> Crash {
    let moment: Crash.Moment =
      switch generator.next(below: 4) {
      case 0: .atOnce
      case 1: .commit(generator.next(below: 4) + 1)
      default: .transition(generator.next(below: 12) + 1)
      }
    let losesPower = generator.next(below: 3) == 0
    var clockIsWrong: Duration?
    if losesPower, generator.next(below: 2) == 0 {
      clockIsWrong = generator.next(in: .milliseconds(10) ... .seconds(30))
    }
    return Crash(
      moment: moment, losesPower: losesPower, clockIsWrong: clockIsWrong,
      downtime: generator.next(in: .zero ... .seconds(3)))
  }

  private func write(_ generator: inout SeededGenerator) -> Write {
    func happens(oneIn count: Int) -> Bool { generator.next(below: count) == 0 }
    var write = Write(attribute: Scenario.command)
    write.isDurable = hasStore && !happens(oneIn: 3)
    let isStray = happens(oneIn: 24)
    if write.isDurable != isStray {
      write.attribute = happens(oneIn: 2) ? Scenario.vault : Scenario.safe
    } else {
      write.attribute = happens(oneIn: 2) ? Scenario.command : Scenario.setting
    }
    write.tag =
      switch generator.next(below: 12) {
      case 0..<4: .nonIdempotent
      case 4..<8: .idempotent
      case 8, 9: .valueProbe
      case 10: .closureProbe
      default: .appProbe
      }
    write.way =
      switch generator.next(below: 12) {
      case 0: .long
      case 1: .command
      case 2: .reliable
      default: .request
      }
    if write.way == .command, write.tag != .idempotent { write.tag = .nonIdempotent }
    if happens(oneIn: 20) {
      write.attribute = Scenario.poison
      (write.tag, write.way) = (.idempotent, .request)
    }
    write.isSubmitted = happens(oneIn: 3)
    write.isSensitive = happens(oneIn: 10)
    write.hasID = write.isSensitive || write.tag == .appProbe || !happens(oneIn: 3)
    if happens(oneIn: 5) {
      write.lane = (write.isDurable ? "disk " : "memory ") + "\(generator.next(below: 2))"
    }
    if happens(oneIn: 5) { write.priority = happens(oneIn: 2) ? .high : .low }
    if happens(oneIn: 8) { write.supersedes = write.isDurable ? "disk" : "memory" }
    if happens(oneIn: 10) { write.offerBefore = generator.next(in: .milliseconds(10) ... .seconds(20)) }
    write.dropsLink = happens(oneIn: 10)
    write.failsUnavailable = happens(oneIn: 10)
    write.isUnbroken = happens(oneIn: 10)
    return write
  }
}
