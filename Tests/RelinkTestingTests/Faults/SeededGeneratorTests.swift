import RelinkTesting
import Testing

@Suite struct SeededGeneratorTests {
  @Test func theSequenceIsThatOfSplitMix64() {
    var generator = SeededGenerator(seed: 1_234_567)
    let numbers = (1...5).map { _ in generator.next() }
    // The published test vector of the algorithm.
    #expect(
      numbers == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
    #expect(generator.seed == 1_234_567)
  }

  @Test func drawsStayInTheirBounds() {
    var generator = SeededGenerator(seed: 1)
    var seen: Set<Int> = []
    for _ in 1...1000 {
      #expect((0..<1).contains(generator.nextUnit()))
      seen.insert(generator.next(below: 7))
      let span = generator.next(in: .milliseconds(3)...(.milliseconds(5)))
      #expect(span >= .milliseconds(3) && span <= .milliseconds(5))
    }
    #expect(seen == Set(0..<7))
    #expect(generator.next(below: 0) == 0)
    #expect(generator.next(in: .seconds(2)...(.seconds(2))) == .seconds(2))
    #expect(generator.next(of: [Int]()) == nil)
    #expect(generator.next(of: ["only"]) == "only")
  }
}
