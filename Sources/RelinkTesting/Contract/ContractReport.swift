/// What a contract suite found out about an implementation of the seam.
public struct ContractReport: Hashable, Sendable, CustomStringConvertible {
  /// One rule, and whether it is kept.
  public struct Check: Hashable, Sendable {
    /// The name of the rule, such as `closesOnce`.
    public var name: String
    /// Whether it is kept.
    public var verdict: Verdict

    /// Describes a check.
    public init(name: String, verdict: Verdict) {
      self.name = name
      self.verdict = verdict
    }
  }

  /// Whether a rule is kept.
  public enum Verdict: Hashable, Sendable {
    /// It is kept.
    case passed
    /// It is not, for this reason.
    case failed(String)
    /// It could not be tried, for this reason.
    case skipped(String)
  }

  /// What was checked.
  public var subject: String
  /// The checks, in the order in which they ran.
  public var checks: [Check]

  /// Makes a report.
  public init(subject: String, checks: [Check] = []) {
    self.subject = subject
    self.checks = checks
  }

  /// The rules that are not kept, each with its reason.
  public var failures: [String] {
    checks.compactMap { if case .failed(let reason) = $0.verdict { "\($0.name): \(reason)" } else { nil } }
  }

  /// The rules that could not be tried.
  public var skipped: [String] {
    checks.compactMap { if case .skipped = $0.verdict { $0.name } else { nil } }
  }

  /// Whether every rule that could be tried is kept, and there was one.
  public var isKept: Bool {
    failures.isEmpty && checks.contains { $0.verdict == .passed }
  }

  /// One line for each check, such as `ok    Link closesOnce`.
  public var description: String {
    checks.map { check in
      switch check.verdict {
      case .passed: "ok    \(subject) \(check.name)"
      case .failed(let reason): "FAIL  \(subject) \(check.name): \(reason)"
      case .skipped(let reason): "skip  \(subject) \(check.name): \(reason)"
      }
    }.joined(separator: "\n")
  }
}

/// Ends a check.
enum ContractEnd: Error {
  case failed(String)
  case skipped(String)
}

/// Ends a check as failed unless the condition holds.
func require(_ condition: Bool, _ reason: @autoclosure () -> String) throws(ContractEnd) {
  guard condition else { throw .failed(reason()) }
}

/// Runs checks one after the other.
///
/// - Parameters:
///   - subject: What is checked.
///   - names: The names of the checks to run; nil for all.
///   - checks: The checks.
///   - run: Runs one.
/// - Returns: What came out.
func runChecks<Body>(
  _ subject: String, _ names: Set<String>?, _ checks: [(name: String, body: Body)],
  _ run: (Body) async throws -> Void
) async -> ContractReport {
  var report = ContractReport(subject: subject)
  for check in checks where names?.contains(check.name) ?? true {
    var verdict = ContractReport.Verdict.passed
    do { try await run(check.body) } catch {
      switch error {
      case ContractEnd.failed(let reason): verdict = .failed(reason)
      case ContractEnd.skipped(let reason): verdict = .skipped(reason)
      default: verdict = .failed("\(error)")
      }
    }
    report.checks.append(ContractReport.Check(name: check.name, verdict: verdict))
  }
  return report
}
