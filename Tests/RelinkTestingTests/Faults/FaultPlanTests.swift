import Relink
import RelinkTesting
import Testing

@Suite struct FaultPlanTests {
  private let read: [UInt8] = [0x0A, 0x10, 0x00]
  private let write: [UInt8] = [0x12, 0x10, 0x00, 0x01]

  private func decisions(_ plan: FaultPlan, _ count: Int) -> [FaultPlan.PDUFault] {
    var plan = plan
    return (0..<count).map {
      plan.decide(on: $0.isMultiple(of: 2) ? read : [0x0B, 0xAA], towardsPeer: $0.isMultiple(of: 2))
    }
  }

  @Test func theSameSeedDecidesTheSame() {
    let rates = FaultPlan.Rates.mixed(0.1)
    let first = decisions(FaultPlan(seed: 5, rates: rates), 500)
    #expect(decisions(FaultPlan(seed: 5, rates: rates), 500) == first)
    #expect(decisions(FaultPlan(seed: 6, rates: rates), 500) != first)
  }

  @Test func noneMeansNone() {
    var plan = FaultPlan.none
    for _ in 1...100 {
      #expect(plan.decide(on: read, towardsPeer: true) == .none)
      #expect(plan.decideSend() == .none)
      #expect(plan.decideDial() == nil)
    }
    #expect(plan.strikes == 0)
  }

  @Test func ratesAreShares() {
    var rates = FaultPlan.Rates()
    rates.requests.loseLinkBefore = 0.2
    rates.answers.twice = 0.5
    rates.dials.hang = 1
    rates.sendFailed = 0.1
    var plan = FaultPlan(seed: 3, rates: rates)
    var counts = (lost: 0, twice: 0, failed: 0, values: 0)
    for _ in 1...10_000 {
      if case .loseLinkBefore(let code) = plan.decide(on: read, towardsPeer: true) {
        counts.lost += 1
        #expect(rates.reasons.contains(code))
      }
      if plan.decide(on: [0x0B], towardsPeer: false) == .twice { counts.twice += 1 }
      if plan.decide(on: [0x1B, 0x10, 0x00], towardsPeer: false) != .none { counts.values += 1 }
      if case .failed = plan.decideSend() { counts.failed += 1 }
      #expect(plan.decideDial() == .hang)
    }
    #expect((1900...2100).contains(counts.lost))
    #expect((4850...5150).contains(counts.twice))
    #expect((900...1100).contains(counts.failed))
    #expect(counts.values == 0)
    #expect(plan.strikes == counts.lost + counts.twice + counts.failed + 10_000)
  }

  @Test func everyFaultOfTheMixIsDrawn() {
    let seen = decisions(FaultPlan(seed: 1, rates: .mixed(0.1)), 5000)
    var kinds: Set<String> = []
    for fault in seen {
      switch fault {
      case .none: kinds.insert("none")
      case .loseLinkBefore: kinds.insert("before")
      case .loseLinkAfter: kinds.insert("after")
      case .vanish: kinds.insert("vanish")
      case .late(let span):
        kinds.insert("late")
        #expect(span <= .seconds(2))
      case .twice: kinds.insert("twice")
      case .adapterOff: kinds.insert("adapter")
      case .absence: kinds.insert("absence")
      @unknown default: Issue.record("an unknown fault: \(fault)")
      }
    }
    #expect(kinds.count == 8)
  }

  @Test func aStepStrikesTheOneThatItNames() {
    var plan = FaultPlan.none
    plan.strike(.vanish, at: 2, of: .request, opcode: 0x12)
    plan.strike(.twice, of: .answer)
    plan.strikeSend(.failed(32), at: 3)
    plan.strikeDial(.hang, at: 2)
    #expect(plan.decide(on: write, towardsPeer: true) == .none)
    #expect(plan.decide(on: read, towardsPeer: true) == .none)
    #expect(plan.decide(on: [0x1B, 0x10, 0x00], towardsPeer: false) == .none)
    #expect(plan.decide(on: [0x01, 0x12], towardsPeer: false) == .twice)
    #expect(plan.decide(on: write, towardsPeer: true) == .vanish)
    #expect(plan.decide(on: write, towardsPeer: true) == .none)
    #expect((1...4).map { _ in plan.decideSend() } == [.none, .none, .failed(32), .none])
    #expect((1...3).map { _ in plan.decideDial() } == [nil, .hang, nil])
    #expect(plan.strikes == 4)
  }

  @Test func twoStepsForOnePDUStrikeOneAfterTheOther() {
    var plan = FaultPlan.none
    plan.strike(.vanish, of: .request)
    plan.strike(.twice, of: .request)
    #expect(plan.decide(on: read, towardsPeer: true) == .vanish)
    #expect(plan.decide(on: read, towardsPeer: true) == .twice)
    #expect(plan.decide(on: read, towardsPeer: true) == .none)
  }

  @Test func aHealedPlanDoesNothingMore() {
    var rates = FaultPlan.Rates()
    rates.requests.vanish = 1
    var plan = FaultPlan(seed: 9, rates: rates)
    plan.strikeDial(.busy)
    #expect(plan.decide(on: read, towardsPeer: true) == .vanish)
    plan.heal()
    #expect(plan.decide(on: read, towardsPeer: true) == .none)
    #expect(plan.decideDial() == nil)
    #expect(plan.decideSend() == .none)
    #expect(plan.isHealed)
    #expect(plan.description == "seed 9, healed")
  }

  @Test func aPlanPrintsItself() {
    var rates = FaultPlan.Rates()
    rates.requests.loseLinkAfter = 0.25
    rates.dials.failToEstablish = 0.5
    var plan = FaultPlan(seed: 42, rates: rates)
    plan.strike(.vanish, at: 3, of: .answer, opcode: 0x13)
    #expect(
      plan.description
        == "seed 42, requests lose link after 0.25, dials fail to establish 0.5, answer 13 3: vanish")
  }
}
