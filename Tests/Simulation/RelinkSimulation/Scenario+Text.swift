internal import Relink
internal import RelinkTesting

extension Scenario {
  /// What is special about the scenario, a line each, and then its steps.
  var text: [String] {
    var lines = [
      "seed \(seed)",
      "radio: latency \(radio.latency), connects in \(radio.connectLatency), interval "
        + "\(radio.connectionInterval.map { "\($0)" } ?? "none"), supervision \(radio.supervisionTimeout)"
        + (radio.endsLinks ? ", ends links" : "") + (radio.knowsExactReason ? ", knows reasons" : ""),
      "radio faults: \(faults)",
    ]
    if hasStore { lines += ["store: latency \(store.latency)", "store faults: \(storeFaults)"] }
    if hasDatabaseHash { lines.append("the device has a database hash") }
    if hasSetup { lines.append("a setup runs on each link" + (resumes ? ", and proves what was kept" : "")) }
    if let security {
      lines.append("bonded, \(security.policy.rawValue), encrypted within \(security.encryptionTime)")
    }
    return lines + calls.map(\.text)
  }
}

extension Scenario.Call {
  /// The step on one line.
  var text: String {
    var line = "\(at) \(number): \(step.text)"
    switch step {
    case .read, .write, .again, .discover, .connect, .disconnect, .exclusive: line += ", within \(within)"
    case .subscribe, .listen, .watchJournal, .resolve, .notify, .changeTable, .stale, .cut, .crash, .suspend,
      .setClock, .keys:
      break
    }
    if let cancelledAfter { line += ", cancelled after \(cancelledAfter)" }
    if isElsewhere { line += ", from elsewhere" }
    if isTogether { line += ", together with the one before" }
    return line
  }
}

extension Scenario.Step {
  var text: String {
    switch self {
    case .read(let name): "read \(name)"
    case .write(let write): "write \(write.text)"
    case .again(let number): "write \(number) again"
    case .discover: "discover"
    case .connect: "connect"
    case .disconnect: "disconnect, then connect"
    case .subscribe: "take one notification"
    case .listen: "listen to events"
    case .watchJournal: "watch the journal"
    case .exclusive: "take the link alone"
    case .resolve: "look at the device and resolve"
    case .notify: "the device notifies"
    case .changeTable: "the device starts again with another table"
    case .stale: "an old link speaks"
    case .cut(let reason): "the link is lost: \(reason)"
    case .crash(let crash): crash.text
    case .suspend(let span): "the system sleeps for \(span)"
    case .setClock(let span): "the system clock is set by \(span)"
    case .keys(let change): "keys: \(change.rawValue)"
    }
  }
}

extension Scenario.Crash {
  var text: String {
    let moment =
      switch moment {
      case .atOnce: ""
      case .transition(let count): " at journal transition \(count) from now"
      case .commit(let count): " at commit \(count) from now"
      }
    let clock = clockIsWrong.map { ", the system clock is uncertain for \($0)" } ?? ""
    return (losesPower ? "the power fails" : "the process is killed") + moment + clock
      + ", the next one comes after \(downtime)"
  }
}

extension Scenario.Write {
  var text: String {
    var words = ["\(attribute)", tag.rawValue]
    if way != .request { words.append(way.rawValue) }
    if isDurable { words.append("durable") }
    if hasID { words.append("with ID") }
    if isSubmitted { words.append("submitted") }
    if let lane { words.append("lane \(lane)") }
    if priority != .normal { words.append("priority \(priority)") }
    if let supersedes { words.append("supersedes \(supersedes)") }
    if let offerBefore { words.append("offer before \(offerBefore)") }
    if dropsLink { words.append("drops the link") }
    if failsUnavailable { words.append("fails without adapter") }
    if isSensitive { words.append("sensitive") }
    if isUnbroken { words.append("unbroken") }
    return words.joined(separator: ", ")
  }
}
