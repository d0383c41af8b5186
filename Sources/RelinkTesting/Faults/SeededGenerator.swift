/// A generator whose numbers follow from its seed alone: the same on every system and in every release.
///
/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). Not for secrets.
public struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
  /// What the numbers follow from.
  public let seed: UInt64

  private var state: UInt64

  /// Makes a generator at the start of its sequence.
  ///
  /// - Parameter seed: Any number; print it where a run fails.
  public init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// The next number, evenly spread over all 64 bits.
  ///
  /// - Returns: The number.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to, and not including, 1.
  ///
  /// - Returns: The number, a multiple of 2⁻⁵³.
  public mutating func nextUnit() -> Double {
    Double(next() >> 11) * 0x1p-53
  }

  /// A whole number from 0 up to, and not including, a bound.
  ///
  /// - Parameter bound: The bound; below 1 counts as 1.
  /// - Returns: The number. The bias for bounds far below 2⁶⁴ is not noticeable.
  public mutating func next(below bound: Int) -> Int {
    Int(next() % UInt64(max(bound, 1)))
  }

  /// A span out of a range, in whole nanoseconds.
  ///
  /// - Parameter range: The range.
  /// - Returns: The span.
  public mutating func next(in range: ClosedRange<Duration>) -> Duration {
    let lower = range.lowerBound.clampedNanoseconds
    let width = (range.upperBound - range.lowerBound).clampedNanoseconds
    return .nanoseconds(lower + Int64(next() % (UInt64(max(width, 0)) + 1)))
  }

  /// An element of a collection, each as likely as the others.
  ///
  /// - Parameter elements: What to choose from.
  /// - Returns: The element; nil where there is none.
  public mutating func next<Elements: RandomAccessCollection>(of elements: Elements) -> Elements.Element? {
    guard !elements.isEmpty else { return nil }
    return elements[elements.index(elements.startIndex, offsetBy: next(below: elements.count))]
  }
}
