internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkTesting

/// The contract suites over links of the kernel, with the lab's peripheral as the judge.
struct Contract: Sendable {
  private let lab: Lab

  init(_ lab: Lab) { self.lab = lab }

  /// Runs it; how many rules are not kept.
  func run() async throws -> Int {
    try await lab.begin()
    guard let absent = DeviceID("F0:F0:F0:F0:F0:99/random") else { throw LabFailure("no absent device") }
    let environment = LabContractEnvironment(
      driver: LoopContractDriver(lab.loop, limit: .seconds(60), quiet: .milliseconds(1500)),
      transport: lab.transport, device: lab.device, absentDevice: absent, peer: LabPeer(radio: lab.radio))
    let channels = LabChannelEnvironment(lab: lab, driver: environment.driver)
    var verdicts = Verdicts()
    // One by one, so that a run that does not end has said where.
    for name in LinkContract.names {
      judge(await LinkContract.check(environment, only: [name]), &verdicts)
    }
    for name in TransportContract.names {
      judge(await TransportContract.check(environment, only: [name]), &verdicts)
    }
    for name in PDUChannelContract.names {
      judge(await PDUChannelContract.check(channels, only: [name]), &verdicts)
    }
    return verdicts.failed
  }

  private func judge(_ report: ContractReport, _ verdicts: inout Verdicts) {
    for check in report.checks {
      let name = "\(report.subject) \(check.name)"
      switch check.verdict {
      case .passed: verdicts.check(name, true)
      case .failed(let reason): verdicts.check(name, false, reason)
      case .skipped(let reason): say("skipped \(name): \(reason)")
      }
    }
  }
}

/// The transport over the kernel's sockets with the lab's peripheral.
private struct LabContractEnvironment: ContractEnvironment {
  var driver: any ContractDriver
  var transport: any Transport
  var device: DeviceID
  var absentDevice: DeviceID?
  var peer: any ContractPeer
  var waitsForOldLinks: Bool { true }
  // The kernel has to let a pending connect end by itself; see Tests/Lab/README.md.
  var endsCancelledDials: Bool { false }
}

/// The lab's peripheral as the contract suites use it, over the radio's control socket.
private struct LabPeer: ContractPeer {
  private struct Values: Decodable, Sendable { var values: [String] }

  let radio: RadioControl
  var characteristic: Characteristic { .value }
  var slowAnswer: Duration { .milliseconds(700) }

  /// A radio that does not obey makes a check fail; the line says why.
  private func tell(_ command: String) async {
    do { try await radio.tell(command) } catch { say("the radio: \(error)") }
  }

  func setValue(_ value: [UInt8]) async { await tell("set \(value.hexadecimal)") }
  func notify(_ value: [UInt8]) async { await tell("notify \(value.hexadecimal) value") }
  func endLink() async { await tell("terminate 13") }
  func swallowNextRequest() async { await tell("next swallow value") }
  func answerNextReadLate() async { await tell("next 700 value") }
  func swallowNextExecution() async { await tell("next swallow execute") }
  func answerNextRequestTwice() async { await tell("next twice value") }
  func behave() async { await tell("behave") }

  func writes() async -> [[UInt8]] {
    do {
      return try await radio.ask("written", for: Values.self).values.map { Array(hexadecimal: $0) }
    } catch {
      say("the radio: \(error)")
      return []
    }
  }

  func linkCount() async -> Int {
    do { return try await radio.ask("links", for: RadioLinks.self).links } catch {
      say("the radio: \(error)")
      return 0
    }
  }

  func setPresent(_ isPresent: Bool) async -> Bool {
    await tell("advertise \(isPresent ? 1 : 0)")
    return true
  }

  func setAdapter(_ isOn: Bool) async -> Bool {
    guard let command = Lab.environment("RELINK_LAB_ADAPTER") else { return false }
    do {
      return try Child("/bin/sh", ["-c", "\(command) power \(isOn ? 1 : 0)"]).wait() == 0
    } catch {
      say("the adapter: \(error)")
      return false
    }
  }
}

extension [UInt8] {
  init(hexadecimal text: String) {
    var digits = text.utf8.makeIterator()
    self = []
    while let high = digits.next(), let low = digits.next() {
      append(UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16) ?? 0)
    }
  }
}
