import RelinkSimulation
import Testing

@Suite("Random operations under random faults")
struct SimulationTests {
  @Test("No seed shows what must not be")
  func seeds() {
    for seed in UInt64(1)...200 {
      let report = Simulation(seed: seed)?.run()
      #expect(
        report?.problems == [], "seed \(seed): play it with relink-simulate --from \(seed) --seeds 1 --trace")
    }
  }

  @Test(
    "No place of a fault shows what must not be",
    arguments: [Sweep.crash, .crashAfterCommit, .powerLossAtCommit, .commitUnsaid, .answerLost])
  func places(sweep: Sweep) {
    let result = sweep.run()
    #expect(result.problems == [], "play it with relink-simulate sweep \(sweep.rawValue) PLACE")
    #expect(result.places > 40)
  }

  @Test("The same seed gives the same trace, byte for byte", arguments: UInt64(1)...20)
  func traces(seed: UInt64) throws {
    let first = try #require(Simulation(seed: seed, tracing: true)?.run())
    let second = try #require(Simulation(seed: seed, tracing: true)?.run())
    #expect(first.trace.count > 10)
    #expect(first.trace == second.trace)
  }
}
