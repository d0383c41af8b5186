internal import Relink

/// One thing that happened, in words and as fields.
struct EventLine: Equatable {
  /// The name of the event.
  var name: String
  /// The same for people.
  var text: String
  /// The same for programs.
  var fields: [(key: String, value: Field)] = []

  /// A value in a JSON object.
  enum Field: Equatable {
    case text(String)
    case number(Int)
    case flag(Bool)
    case milliseconds(Duration)
  }

  static func == (left: EventLine, right: EventLine) -> Bool {
    left.name == right.name && left.text == right.text
      && left.fields.map(\.key) == right.fields.map(\.key)
      && left.fields.map(\.value) == right.fields.map(\.value)
  }

  init(name: String, text: String, fields: [(key: String, value: Field)] = []) {
    self.name = name
    self.text = text
    self.fields = fields
  }

  /// Describes an event of a session.
  init(_ event: ConnectionEvent) {
    switch event {
    case .snapshot(let snapshot):
      self = EventLine(snapshot)
    case .idle(let reason):
      self.init(name: "idle", text: "no link wanted: \(reason)", fields: [("reason", .text("\(reason)"))])
    case .waiting(let reason, _):
      self.init(name: "waiting", text: "for \(reason)", fields: [("for", .text("\(reason)"))])
    case .connecting(let attempt):
      self.init(
        name: "connecting",
        text: "attempt \(attempt.number)" + (attempt.after.map { " after \($0)" } ?? ""),
        fields: [
          ("attempt", .number(attempt.number)), ("isReconnection", .flag(attempt.isReconnection)),
        ])
    case .phase(let phase):
      self.init(name: "phase", text: "\(phase)", fields: [("phase", .text("\(phase)"))])
    case .attemptFailed(let info):
      self = EventLine("attemptFailed", info)
    case .ready(let readiness):
      self = EventLine(readiness)
    case .disconnected(let info):
      self = EventLine("disconnected", info)
    case .seen(let other, let isFollowed, _):
      self.init(
        name: "seen", text: "as \(other), \(isFollowed ? "dialled there from now on" : "not dialled there")",
        fields: [("as", .text("\(other)")), ("isFollowed", .flag(isFollowed))])
    case .missed(let count):
      self.init(name: "missed", text: "\(count) events", fields: [("count", .number(count))])
    case .ended(let reason):
      self.init(name: "ended", text: "\(reason)", fields: [("reason", .text("\(reason)"))])
    }
  }

  private init(_ snapshot: Snapshot) {
    let state =
      switch snapshot.state {
      case .idle(let reason): "idle: \(reason)"
      case .waiting(let reason, _): "waiting for \(reason)"
      case .connecting(let attempt, _): "connecting, attempt \(attempt.number)"
      case .ready(let readiness): "ready on link \(readiness.generation)"
      case .ended(let reason): "ended: \(reason)"
      }
    self.init(name: "snapshot", text: state, fields: [("state", .text(state))])
  }

  private init(_ readiness: Readiness) {
    self.init(
      name: "ready",
      text: "link \(readiness.generation) after \(readiness.outage.short), MTU \(readiness.mtu), "
        + "\(readiness.roundTrips) round trips" + (readiness.tableChanged ? ", table changed" : "")
        + (readiness.security == .none ? "" : ", \(readiness.security)"),
      fields: [
        ("generation", .number(Int(readiness.generation.rawValue))),
        ("outageMilliseconds", .milliseconds(readiness.outage)), ("attempts", .number(readiness.attempts)),
        ("mtu", .number(readiness.mtu)), ("roundTrips", .number(readiness.roundTrips)),
        ("tableChanged", .flag(readiness.tableChanged)), ("continuity", .text("\(readiness.continuity)")),
        ("security", .text("\(readiness.security)")),
      ])
  }

  private init(_ name: String, _ info: DisconnectInfo) {
    let evidence = info.evidence.map { "\($0)" }.joined(separator: ", ")
    self.init(
      name: name,
      text: "\(info.reason)" + (evidence.isEmpty ? "" : " [\(evidence)]")
        + (info.inDoubt > 0 ? ", \(info.inDoubt) in doubt" : "")
        + (info.recovery == .none ? "" : ", \(info.recovery)"),
      fields: [
        ("reason", .text("\(info.reason)")), ("evidence", .text(evidence)),
        ("confidence", .text("\(info.confidence)")), ("recovery", .text("\(info.recovery)")),
        ("willReconnect", .flag(info.willReconnect)), ("inDoubt", .number(info.inDoubt)),
      ])
  }
}

extension EventLine {
  /// The line as a JSON object.
  func json(time: String) -> String {
    let all = [("time", Field.text(time)), ("event", .text(name))] + fields
    return "{" + all.map { "\(Self.quoted($0.0)):\($0.1.json)" }.joined(separator: ",") + "}"
  }

  /// Text as a JSON string.
  static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension EventLine.Field {
  fileprivate var json: String {
    switch self {
    case .text(let text): EventLine.quoted(text)
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    case .milliseconds(let span): "\(Double(span.clampedNanoseconds / 1000) / 1000)"
    }
  }
}

extension Duration {
  /// The span with a unit that suits its size.
  var short: String {
    let milliseconds = clampedNanoseconds / 1_000_000
    return switch milliseconds {
    case ..<10_000: "\(milliseconds) ms"
    case ..<600_000: "\(milliseconds / 1000) s"
    default: "\(milliseconds / 60_000) min"
    }
  }
}
