internal import Glibc

/// Writes a line at once, whatever the output is: a run that is ended has said what it knew.
func say(_ line: String) {
  let bytes = Array((line + "\n").utf8)
  _ = write(STDOUT_FILENO, bytes, bytes.count)
}

/// Counts what holds and what does not, one line each.
struct Verdicts {
  private(set) var passed = 0
  private(set) var failed = 0

  mutating func check(_ what: String, _ holds: Bool, _ detail: @autoclosure () -> String = "") {
    if holds {
      passed += 1
      say("ok      \(what)")
    } else {
      failed += 1
      say("FAILED  \(what): \(detail())")
    }
  }

  mutating func equal<Value: Equatable>(_ what: String, _ value: Value, _ wanted: Value) {
    check(what, value == wanted, "\(value), and not \(wanted)")
  }

  /// Passes where there are no faults; shows the first ones.
  mutating func none(_ what: String, _ faults: [String]) {
    check(what, faults.isEmpty, "\(faults.count), such as " + faults.prefix(8).joined(separator: "; "))
  }
}
