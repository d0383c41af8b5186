/// One figure of a benchmark beside its goal.
struct Figure: Sendable {
  /// The number of the goal, for those who look it up: `G1`.
  var goal: String
  /// What was measured.
  var name: String
  /// The measured value.
  var value: Double
  /// The unit of `value` and `limit`.
  var unit: String
  /// The value that is not to be exceeded; nil for a figure that only informs.
  var limit: Double?

  var isReached: Bool { limit.map { value <= $0 } ?? true }

  /// The figure as a line of text.
  var line: String {
    let shown = "\(goal)  \(name): \(Figure.short(value)) \(unit)"
    guard let limit else { return shown }
    return shown + "   goal <= \(Figure.short(limit)) \(unit)   " + (isReached ? "reached" : "NOT REACHED")
  }

  /// The figure as a JSON object.
  var json: String {
    let limit = limit.map { "\($0)" } ?? "null"
    return
      "{\"goal\":\"\(goal)\",\"name\":\"\(name)\",\"value\":\(value),\"unit\":\"\(unit)\",\"limit\":\(limit),"
      + "\"reached\":\(isReached)}"
  }

  private static func short(_ value: Double) -> String {
    let scale = value < 10 ? 100.0 : 10.0
    return "\((value * scale).rounded() / scale)"
  }
}
