/// A set of measured times, in nanoseconds.
struct Sample: Sendable {
  private let sorted: [Int64]

  init(_ values: [Int64]) {
    sorted = values.sorted()
  }

  var count: Int { sorted.count }

  /// The value below which the given part of the sample lies, by nearest rank.
  func percentile(_ part: Double) -> Int64 {
    guard let last = sorted.last else { return 0 }
    let rank = Int((part * Double(sorted.count)).rounded(.up))
    return rank >= sorted.count ? last : sorted[max(rank - 1, 0)]
  }

  var median: Int64 { percentile(0.5) }
}

/// The ratio of two medians, with the interval that holds it with 95 % by bootstrap over paired batches.
struct Ratio: Sendable {
  var point: Double
  var low: Double
  var high: Double

  /// Batches of the two contenders that were measured one after the other.
  init(_ ours: [Int64], to theirs: [Int64]) {
    let pairs = zip(ours, theirs).map { Double($0) / Double(max($1, 1)) }
    let point = Ratio.median(pairs)
    self.point = point
    var generator = SystemRandomNumberGenerator()
    let resampled = (0..<2000).map { _ in
      Ratio.median(pairs.indices.map { _ in pairs.randomElement(using: &generator) ?? point })
    }.sorted()
    low = resampled.isEmpty ? point : resampled[resampled.count / 40]
    high = resampled.isEmpty ? point : resampled[resampled.count - 1 - resampled.count / 40]
  }

  private static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }
}
