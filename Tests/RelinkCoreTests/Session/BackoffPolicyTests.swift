import Testing

@testable import RelinkCore

@Suite struct BackoffPolicyTests {
  private let policy = BackoffPolicy(base: .milliseconds(250), cap: .seconds(30))

  @Test(arguments: [-1, 0])
  func nothingIsWaitedForWhereNothingFailed(_ failures: Int) {
    var generator = SplitMix(seed: 1)
    let before = generator
    #expect(policy.delay(afterFailures: failures, using: &generator) == .zero)
    #expect(generator == before)
  }

  @Test(arguments: [
    (1, 250), (2, 500), (3, 1_000), (7, 16_000), (8, 30_000), (9, 30_000), (62, 30_000), (63, 30_000),
    (64, 30_000), (1_000_000, 30_000),
  ])
  func theCeilingDoublesUpToTheCap(_ failures: Int, _ milliseconds: Int64) {
    var generator = SplitMix(seed: 1)
    let ceiling = Duration.milliseconds(milliseconds)
    var longest = Duration.zero
    var shortest = ceiling
    for _ in 0..<2_000 {
      let delay = policy.delay(afterFailures: failures, using: &generator)
      longest = max(longest, delay)
      shortest = min(shortest, delay)
    }
    #expect(longest <= ceiling && longest > ceiling * 0.99)
    #expect(shortest >= .zero && shortest < ceiling * 0.01)
  }

  @Test func theSameSeedDrawsTheSameDelays() {
    func delays(_ seed: UInt64) -> [Duration] {
      var generator = SplitMix(seed: seed)
      return (1...10).map { policy.delay(afterFailures: $0, using: &generator) }
    }
    #expect(delays(3) == delays(3))
    #expect(delays(3) != delays(4))
  }

  @Test(arguments: [
    BackoffPolicy(base: .zero, cap: .seconds(1)), BackoffPolicy(base: .seconds(1), cap: .zero),
    BackoffPolicy(base: .seconds(-5), cap: .seconds(-5)),
  ])
  func aPolicyWithoutASpanNeverWaits(_ policy: BackoffPolicy) {
    var generator = SplitMix(seed: 1)
    for failures in 0...70 { #expect(policy.delay(afterFailures: failures, using: &generator) == .zero) }
  }

  @Test func theLongestSpansDoNotOverflow() {
    var generator = SplitMix(seed: 1)
    let policy = BackoffPolicy(base: .seconds(Int64.max), cap: .seconds(Int64.max))
    for failures in [1, 2, 62, 63, 64, Int.max] {
      #expect(policy.delay(afterFailures: failures, using: &generator) >= .zero)
    }
  }

  /// The published first outputs of SplitMix64 for the seed 1234567.
  @Test func theGeneratorIsSplitMix64() {
    var generator = SplitMix(seed: 1_234_567)
    let drawn = (0..<5).map { _ in generator.next() }
    #expect(
      drawn == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
  }
}
