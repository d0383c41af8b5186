import Relink
import RelinkTesting
import Testing

/// The faults of a virtual store: by step, by seed.
@Suite struct StoreFaultPlanTests {
  @Test func stepsCountTheCallsThatTheyConcern() {
    var plan = StoreFaultPlan.none
    plan.strike(.hang, at: 2, of: .append)
    plan.strike(.failed(.full), at: 2)
    #expect(plan.description == "seed 0, append 2: hang, call 2: failed(full)")
    let calls: [StoreFaultPlan.Call] = [.append, .claim, .append, .append]
    #expect(calls.map { plan.decide(on: $0) } == [.none, .failed(.full), .hang, .none])
    #expect(plan.strikes == 2)
  }

  @Test func theSameSeedGivesTheSameFaultsAndEachComes() {
    var rates = StoreFaultPlan.Rates()
    (rates.failed, rates.lost, rates.unsaid, rates.late, rates.hang, rates.down) = (
      0.1, 0.1, 0.1, 0.1, 0.1, 0.1
    )
    var plan = StoreFaultPlan(seed: 5, rates: rates)
    var again = plan
    let faults = (0..<1_000).map { _ in plan.decide(on: .append) }
    #expect(faults == (0..<1_000).map { _ in again.decide(on: .append) })
    #expect((500...700).contains(plan.strikes), "\(plan.strikes)")
    let kinds = Set(faults.map { "\($0)".prefix { $0 != "(" } })
    #expect(kinds == ["none", "failed", "unknown", "late", "hang", "down"])
    #expect(faults.contains(.unknown(isPresent: true)) && faults.contains(.unknown(isPresent: false)))
    plan.heal()
    #expect(plan.isHealed && plan.decide(on: .claim) == .none)
    #expect(plan.description == "seed 5, healed")
  }
}
