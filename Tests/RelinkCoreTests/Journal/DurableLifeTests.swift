import Testing

@testable import RelinkCore

/// Random lives, each of several processes on one store, held against the rules step by step.
@Suite struct DurableLifeTests {
  @Test(arguments: 0..<150 as Range<UInt64>)
  func everyLifeKeepsTheRules(seed: UInt64) throws {
    var life = DurableLife(seed: seed)
    for _ in 0..<300 { try life.step() }
    try life.end()
  }
}
