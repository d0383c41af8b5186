/// A small generator of evenly distributed numbers (SplitMix64), so that a machine's draws depend on its seed alone.
package struct SplitMix: RandomNumberGenerator, Hashable, Sendable {
  private var state: UInt64

  /// Begins with a seed.
  package init(seed: UInt64) {
    state = seed
  }

  /// The next number.
  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension BackoffPolicy {
  /// The delay before the try that follows `failures` failures in a row: nothing after none, then a random part of a
  /// ceiling that doubles up to the cap.
  func delay(afterFailures failures: Int, using generator: inout SplitMix) -> Duration {
    guard failures > 0 else { return .zero }
    let base = base.clampedNanoseconds
    let cap = cap.clampedNanoseconds
    let shift = min(failures - 1, 62)
    let ceiling = base > cap >> Int64(shift) ? cap : base << Int64(shift)
    guard ceiling > 0 else { return .zero }
    return .nanoseconds(Int64.random(in: 0...ceiling, using: &generator))
  }
}
