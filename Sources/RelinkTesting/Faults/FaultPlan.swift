internal import BluetoothWire

/// What goes wrong on a radio: drawn from a seed, written down step by step, or both.
///
/// The same plan asked the same questions in the same order gives the same answers, so a run is repeated by its seed.
/// Steps come before rates. A plan is a value: whoever plays it keeps his own.
public struct FaultPlan: Sendable, CustomStringConvertible {
  /// Nothing goes wrong.
  public static let none = FaultPlan(seed: 0, rates: Rates())

  /// What the draws follow from.
  public var seed: UInt64 { generator.seed }

  /// How often each fault strikes.
  public let rates: Rates

  /// Whether the plan has ended: nothing goes wrong any more.
  public private(set) var isHealed = false

  /// How often something has gone wrong.
  public private(set) var strikes = 0

  /// Faults that do not strike although it is their turn, by their numbers, from 1: what a failing run can do without.
  package var spared: Set<Int> = []

  private var generator: SeededGenerator
  private var steps: [Step] = []

  private enum Step: Sendable {
    case pdu(Traffic, opcode: UInt8?, remaining: Int, PDUFault)
    case send(remaining: Int, SendFault)
    case dial(remaining: Int, DialBehavior)
  }

  /// Makes a plan from a seed.
  ///
  /// - Parameters:
  ///   - seed: Any number; print it where a run fails.
  ///   - rates: How often each fault strikes.
  public init(seed: UInt64, rates: Rates) {
    generator = SeededGenerator(seed: seed)
    self.rates = rates
  }

  // MARK: - Steps

  /// Writes down that a fault strikes one PDU.
  ///
  /// - Parameters:
  ///   - fault: What happens to it.
  ///   - ordinal: Which one it strikes, from now on and from 1.
  ///   - traffic: The kind of PDUs that count.
  ///   - opcode: The first octet of the PDUs that count; nil counts all of the kind.
  public mutating func strike(
    _ fault: PDUFault, at ordinal: Int = 1, of traffic: Traffic, opcode: UInt8? = nil
  ) {
    steps.append(.pdu(traffic, opcode: opcode, remaining: max(ordinal, 1), fault))
  }

  /// Writes down that a fault strikes one send of the client.
  ///
  /// - Parameters:
  ///   - fault: What becomes of it.
  ///   - ordinal: Which send it strikes, from now on and from 1.
  public mutating func strikeSend(_ fault: SendFault, at ordinal: Int = 1) {
    steps.append(.send(remaining: max(ordinal, 1), fault))
  }

  /// Writes down that a fault strikes one dial.
  ///
  /// - Parameters:
  ///   - behavior: How the dial goes.
  ///   - ordinal: Which dial it strikes, from now on and from 1.
  public mutating func strikeDial(_ behavior: DialBehavior, at ordinal: Int = 1) {
    steps.append(.dial(remaining: max(ordinal, 1), behavior))
  }

  /// Ends the plan: nothing goes wrong any more.
  public mutating func heal() {
    isHealed = true
    steps = []
  }

  // MARK: - Decisions

  /// Decides what happens to a PDU when it arrives.
  ///
  /// - Parameters:
  ///   - pdu: The bytes.
  ///   - towardsPeer: Whether it goes to the device.
  /// - Returns: The fault, or none.
  public mutating func decide(on pdu: [UInt8], towardsPeer: Bool) -> PDUFault {
    guard !isHealed else { return .none }
    let traffic = Traffic(of: pdu, towardsPeer: towardsPeer)
    let fault = scripted(traffic, pdu) ?? drawn(traffic)
    return fault != .none && isStriking() ? fault : .none
  }

  /// Decides what becomes of a PDU that the client hands over.
  ///
  /// - Returns: The fault, or none.
  public mutating func decideSend() -> SendFault {
    guard !isHealed else { return .none }
    var fault = SendFault.none
    if let step = nextStep({ if case .send = $0 { true } else { false } }), case .send(_, let written) = step
    {
      fault = written
    } else if rates.sendLater > 0 || rates.sendFailed > 0 {
      let roll = generator.nextUnit()
      if roll < rates.sendLater {
        fault = .later(generator.next(in: rates.outage))
      } else if roll < rates.sendLater + rates.sendFailed {
        fault = .failed(ErrorNumber.noBuffers)
      }
    }
    return fault != .none && isStriking() ? fault : .none
  }

  /// Decides how a dial goes.
  ///
  /// - Returns: The behavior, or nil where nothing goes wrong.
  public mutating func decideDial() -> DialBehavior? {
    guard !isHealed else { return nil }
    let behavior = scriptedDial() ?? drawnDial()
    return behavior != nil && isStriking() ? behavior : nil
  }

  /// Counts a fault whose turn it is; whether it is not spared.
  private mutating func isStriking() -> Bool {
    strikes += 1
    return !spared.contains(strikes)
  }

  private mutating func scripted(_ traffic: Traffic, _ pdu: [UInt8]) -> PDUFault? {
    guard !steps.isEmpty else { return nil }
    let step = nextStep { step in
      guard case .pdu(let kind, let opcode, _, _) = step else { return false }
      return kind == traffic && (opcode == nil || opcode == pdu.first)
    }
    if case .pdu(_, _, _, let fault) = step { return fault }
    return nil
  }

  private mutating func scriptedDial() -> DialBehavior? {
    let step = nextStep { if case .dial = $0 { true } else { false } }
    if case .dial(_, let behavior) = step { return behavior }
    return nil
  }

  /// Counts down the steps that a question concerns, and takes out the first whose turn has come.
  private mutating func nextStep(_ concerns: (Step) -> Bool) -> Step? {
    var due: Int?
    for index in steps.indices where concerns(steps[index]) {
      let remaining: Int
      switch steps[index] {
      case .pdu(let traffic, let opcode, let count, let fault):
        remaining = count - 1
        steps[index] = .pdu(traffic, opcode: opcode, remaining: remaining, fault)
      case .send(let count, let fault):
        remaining = count - 1
        steps[index] = .send(remaining: remaining, fault)
      case .dial(let count, let behavior):
        remaining = count - 1
        steps[index] = .dial(remaining: remaining, behavior)
      }
      if remaining <= 0 && due == nil { due = index }
    }
    return due.map { steps.remove(at: $0) }
  }

  private mutating func drawn(_ traffic: Traffic) -> PDUFault {
    let share: PDURates
    switch traffic {
    case .request: share = rates.requests
    case .answer: share = rates.answers
    case .value: share = rates.values
    }
    // One draw decides, so that a plan costs little where nothing goes wrong.
    var roll = generator.nextUnit()
    func strikes(_ rate: Double) -> Bool {
      roll -= rate
      return roll < 0
    }
    if strikes(share.loseLinkBefore) { return .loseLinkBefore(reason()) }
    if strikes(share.loseLinkAfter) { return .loseLinkAfter(reason()) }
    if strikes(share.vanish) { return .vanish }
    if strikes(share.late) { return .late(generator.next(in: rates.lateness)) }
    if strikes(share.twice) { return .twice }
    if strikes(rates.adapterOff) { return .adapterOff(generator.next(in: rates.outage)) }
    if strikes(rates.absence) { return .absence(generator.next(in: rates.outage)) }
    return .none
  }

  private mutating func drawnDial() -> DialBehavior? {
    let share = rates.dials
    var roll = generator.nextUnit()
    func strikes(_ rate: Double) -> Bool {
      roll -= rate
      return roll < 0
    }
    if strikes(share.fail) { return .fail(reason(), after: generator.next(in: rates.dialDelay)) }
    if strikes(share.hang) { return .hang }
    if strikes(share.failToEstablish) { return .failToEstablish(after: generator.next(in: rates.dialDelay)) }
    if strikes(share.refuse) { return .refuse(after: generator.next(in: rates.dialDelay)) }
    if strikes(share.busy) { return .busy }
    return nil
  }

  private mutating func reason() -> HCIErrorCode {
    generator.next(of: rates.reasons) ?? .connectionTimeout
  }

  // MARK: - Text

  /// The seed, the rates that are not zero and the steps that are still to come, on one line.
  public var description: String {
    guard !isHealed else { return "seed \(seed), healed" }
    var parts = ["seed \(seed)"]
    for (name, share) in [("requests", rates.requests), ("answers", rates.answers), ("values", rates.values)]
    {
      parts += named(
        name,
        [
          ("lose link before", share.loseLinkBefore), ("lose link after", share.loseLinkAfter),
          ("vanish", share.vanish), ("late", share.late), ("twice", share.twice),
        ])
    }
    parts += named(
      "dials",
      [
        ("fail", rates.dials.fail), ("hang", rates.dials.hang),
        ("fail to establish", rates.dials.failToEstablish), ("refuse", rates.dials.refuse),
        ("busy", rates.dials.busy),
      ])
    parts += named("sends", [("later", rates.sendLater), ("failed", rates.sendFailed)])
    parts += named("radio", [("adapter off", rates.adapterOff), ("absence", rates.absence)])
    return (parts + steps.map(text)).joined(separator: ", ")
  }

  private func named(_ group: String, _ shares: [(String, Double)]) -> [String] {
    shares.filter { $0.1 > 0 }.map { "\(group) \($0.0) \($0.1)" }
  }

  private func text(_ step: Step) -> String {
    switch step {
    case .pdu(let traffic, let opcode, let remaining, let fault):
      "\(traffic.rawValue)\(opcode.map { " " + hexadecimal([$0]) } ?? "") \(remaining): \(fault)"
    case .send(let remaining, let fault): "send \(remaining): \(fault)"
    case .dial(let remaining, let behavior): "dial \(remaining): \(behavior)"
    }
  }
}
