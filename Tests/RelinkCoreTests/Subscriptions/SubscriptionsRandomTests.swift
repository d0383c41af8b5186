import BluetoothWire
import Testing

@testable import RelinkCore

/// Random lives of the subscriptions of a session, against a device that knows what is armed on it.
@Suite struct SubscriptionsRandomTests {
  @Test(arguments: 0..<50 as Range<UInt64>)
  func whatIsArmedIsWhatIsWanted(seed: UInt64) throws {
    var life = SubscriptionsLife(seed: seed)
    for _ in 0..<300 { try life.step() }
    try life.settle()
  }
}

private struct SubscriptionsLife {
  private static let names = (0..<3 as Range<UInt16>).map { Characteristic.subscribed(0xAA00 + $0) }

  private var generator: SplitMix
  private var machine = SubscriptionsStateMachine()
  private let restoring: Bool
  private var isUp = false
  private var armed: Set<Characteristic> = []
  private var outstanding: (id: RequestID, name: Characteristic, isOn: Bool)?
  private var consumers: [ConsumerID: Characteristic] = [:]
  private var last: UInt64 = 0

  init(seed: UInt64) {
    generator = SplitMix(seed: seed)
    restoring = seed.isMultiple(of: 2)
  }

  mutating func step() throws {
    switch Int.random(in: 0..<20, using: &generator) {
    case 0..<4:
      last += 1
      let id = ConsumerID(rawValue: last)
      guard let name = Self.names.randomElement(using: &generator) else { return }
      let asked = chance(2) ? name : Characteristic(name.uuid)
      try #require(machine.consumerAdded(id, of: asked) == .kept)
      consumers[id] = name
    case 4..<8:
      if let id = consumers.keys.sorted().randomElement(using: &generator) {
        machine.consumerRemoved(id)
        consumers[id] = nil
      }
    case 8..<12: try request()
    case 12..<16: try answer(chance(6) ? .undecided : .done)
    case 16: try answer(.refused)
    case 17: if isUp { loseLink() } else { bringLinkUp() }
    case 18: if isUp { bringLinkUp() }
    default: try deliver()
    }
    try #require(machine.hasConsumers == !consumers.isEmpty)
  }

  /// Goes on without new wishes until nothing is due: then the device is armed for whoever is there, and no other.
  mutating func settle() throws {
    if !isUp { bringLinkUp() }
    for _ in 0..<20 {
      try request()
      try answer(.done)
    }
    try #require(machine.nextRequest() == nil)
    try #require(machine.isRestored)
    try #require(armed == Set(consumers.values))
    try deliver()
  }

  private mutating func bringLinkUp() {
    isUp = true
    // The answer to a request from before the table changed means nothing to the machine, but the device acts on it.
    apply()
    _ = machine.tableLearnt(.holding(Self.names), restoring: restoring)
  }

  private mutating func loseLink() {
    isUp = false
    if chance(2) { apply() }
    outstanding = nil
    if restoring { armed = [] }
    machine.linkLost()
  }

  private mutating func request() throws {
    guard isUp, outstanding == nil, case .setNotifying(let name, let isOn)? = machine.nextRequest() else {
      return
    }
    last += 1
    machine.requestTaken(.setNotifying(name, isOn), as: RequestID(rawValue: last))
    outstanding = (RequestID(rawValue: last), name, isOn)
  }

  private mutating func answer(_ answer: SubscriptionsStateMachine.Answer) throws {
    guard let one = outstanding else { return }
    // A device that will not be disarmed is not what this is about.
    let answer = one.isOn ? answer : .done
    if answer == .done { apply() }
    outstanding = nil
    let failed = machine.answered(one.id, answer)
    for id in failed ?? [] {
      try #require(answer == .refused && consumers[id] == one.name)
      consumers[id] = nil
    }
    if answer == .refused { try #require(!consumers.values.contains(one.name) || failed == nil) }
  }

  private mutating func apply() {
    guard let one = outstanding else { return }
    if one.isOn { armed.insert(one.name) } else { armed.remove(one.name) }
  }

  private mutating func deliver() throws {
    guard isUp, let name = Self.names.randomElement(using: &generator) else { return }
    let recipients = machine.valueReceived(of: name).map(\.id)
    try #require(recipients == consumers.filter { $0.value == name }.keys.sorted())
  }

  private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
}
