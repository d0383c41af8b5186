internal import Relink

/// What happened on a radio, line by line; the newest lines are kept.
struct RadioTrace {
  private let limit: Int
  private var kept: [String] = []

  init(limit: Int) { self.limit = limit }

  var lines: [String] { Array(kept.suffix(limit)) }

  mutating func note(_ now: MonotonicInstant, _ text: @autoclosure () -> String) {
    guard limit > 0 else { return }
    // Dropping half of twice as many costs less than dropping one each time.
    if kept.count >= 2 * limit { kept.removeFirst(kept.count - limit) }
    let fraction = String(now.nanoseconds % 1_000_000_000)
    let padding = String(repeating: "0", count: max(0, 9 - fraction.count))
    kept.append("\(now.nanoseconds / 1_000_000_000).\(padding)\(fraction) \(text())")
  }
}
