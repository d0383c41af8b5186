internal import BluetoothWire
internal import Relink
internal import RelinkTesting

/// What one seed stands for: a radio, a peripheral, faults, and what an app does meanwhile.
struct Scenario {
  /// One thing that the app does.
  enum Step: Hashable {
    case read(Characteristic)
    case write(Characteristic, Idempotency, isLong: Bool)
    case writeWithoutResponse(Characteristic)
    case discover
    case connect
    case disconnect
    case subscribe
    case listen
    case notify
    case changeTable
    case stale
  }

  /// A step, when it happens, how long its caller is ready to wait, and when he is cancelled.
  struct Call: Hashable {
    var number: UInt64
    var at: Duration
    var step: Step
    var within: Duration
    var cancelledAfter: Duration?
  }

  /// How long the faults last.
  static let faultPhase = Duration.seconds(60)

  /// Written once for each number, each time counted.
  static let command = Characteristic(BluetoothUUID(0xFF01))
  static let setting = Characteristic(BluetoothUUID(0xFF02))
  static let stream = Characteristic(BluetoothUUID(0xFF03))

  var seed: UInt64
  var radio = VirtualRadio.Configuration()
  var faults: FaultPlan
  var hasDatabaseHash: Bool
  var hasSetup: Bool
  var calls: [Call] = []

  init(seed: UInt64) {
    self.seed = seed
    var generator = SeededGenerator(seed: seed)
    radio.latency = generator.next(in: .zero ... .milliseconds(40))
    radio.connectLatency = generator.next(in: .zero ... .milliseconds(200))
    if generator.next(below: 3) == 0 { radio.connectionInterval = .milliseconds(30) }
    radio.endsLinks = generator.next(below: 3) == 0
    radio.knowsExactReason = generator.next(below: 2) == 0
    radio.supervisionTimeout = generator.next(in: .zero ... .seconds(6))
    radio.dialLimit = .seconds(10)
    hasDatabaseHash = generator.next(below: 2) == 0
    hasSetup = generator.next(below: 3) == 0
    faults = Scenario.faults(seed, &generator)
    for number in 1...UInt64(generator.next(below: 30) + 12) {
      calls.append(Scenario.call(number, &generator))
    }
    calls.sort { ($0.at, $0.number) < ($1.at, $1.number) }
  }

  /// Each kind of fault is left out in half of the seeds, so that rare ones are not hidden by frequent ones.
  private static func faults(_ seed: UInt64, _ generator: inout SeededGenerator) -> FaultPlan {
    let share = generator.nextUnit() * 0.08
    var rates = FaultPlan.Rates.mixed(share)
    func drop(_ rate: WritableKeyPath<FaultPlan.Rates, Double>) {
      if generator.next(below: 2) == 0 { rates[keyPath: rate] = 0 }
    }
    for rate in [
      \FaultPlan.Rates.requests.loseLinkBefore, \.requests.loseLinkAfter, \.requests.late,
      \.answers.loseLinkBefore,
      \.answers.loseLinkAfter, \.answers.vanish, \.answers.late, \.answers.twice, \.values.loseLinkBefore,
      \.values.late, \.dials.fail, \.dials.hang, \.dials.failToEstablish, \.dials.refuse, \.dials.busy,
      \.sendLater,
      \.sendFailed, \.adapterOff, \.absence,
    ] {
      drop(rate)
    }
    rates.outage = .milliseconds(1) ... .seconds(8)
    return FaultPlan(seed: generator.next(), rates: rates)
  }

  private static func call(_ number: UInt64, _ generator: inout SeededGenerator) -> Call {
    let attribute = generator.next(below: 2) == 0 ? command : setting
    let step: Step =
      switch generator.next(below: 32) {
      case 0..<6: .read(setting)
      case 6..<14: .write(attribute, .nonIdempotent, isLong: generator.next(below: 8) == 0)
      case 14..<21: .write(attribute, .idempotent, isLong: generator.next(below: 8) == 0)
      case 21..<23: .writeWithoutResponse(attribute)
      case 23: .discover
      case 24: .connect
      case 25: .disconnect
      case 26: .subscribe
      case 27: .listen
      case 28, 29: .notify
      case 30: .changeTable
      default: .stale
      }
    return Call(
      number: number, at: generator.next(in: .zero...faultPhase), step: step,
      within: generator.next(in: .milliseconds(50) ... .seconds(40)),
      cancelledAfter: generator.next(below: 6) == 0 ? generator.next(in: .zero ... .seconds(5)) : nil)
  }
}
