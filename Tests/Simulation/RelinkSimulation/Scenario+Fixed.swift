internal import BluetoothWire
internal import Relink
internal import RelinkTesting

extension Scenario {
  /// The scenario of the sweeps: operations of every kind, and link losses, over a world in which nothing else goes wrong.
  static var fixed: Scenario {
    var scenario = Scenario(seed: 0)
    scenario.radio = VirtualRadio.Configuration()
    scenario.radio.latency = .milliseconds(10)
    scenario.radio.connectLatency = .milliseconds(50)
    scenario.faults = .none
    scenario.storeFaults = .none
    scenario.store.latency = .milliseconds(4)
    scenario.hasStore = true
    (scenario.hasSetup, scenario.hasDatabaseHash, scenario.resumes) = (true, true, false)
    scenario.ends = .seconds(30)
    scenario.calls = []
    func at(_ milliseconds: Int, _ step: Step, within: Duration = .seconds(15)) {
      let number = UInt64(scenario.calls.count + 1)
      scenario.calls.append(
        Call(number: number, at: .milliseconds(milliseconds), step: step, within: within, cancelledAfter: nil)
      )
    }
    func write(_ attribute: Characteristic, _ tag: Tag, _ change: (inout Write) -> Void = { _ in }) -> Step {
      var write = Write(attribute: attribute, tag: tag, hasID: tag == .appProbe)
      change(&write)
      return .write(write)
    }
    func durable(_ attribute: Characteristic, _ tag: Tag, _ change: (inout Write) -> Void = { _ in }) -> Step
    {
      write(attribute, tag) {
        ($0.isDurable, $0.hasID) = (true, true)
        change(&$0)
      }
    }
    // Before there is a link.
    at(0, durable(vault, .nonIdempotent))
    at(0, write(command, .nonIdempotent))
    at(0, write(setting, .idempotent) { $0.lane = "memory 0" })
    at(0, durable(safe, .idempotent) { $0.isSubmitted = true })
    // On a link, in a crowd that is cut in its middle.
    at(1_000, durable(vault, .nonIdempotent) { $0.isSensitive = true })
    at(1_000, durable(safe, .valueProbe))
    at(1_000, write(command, .nonIdempotent) { $0.way = .long })
    at(1_000, write(setting, .closureProbe))
    at(1_000, .read(setting))
    at(1_000, write(command, .idempotent) { $0.way = .command })
    at(1_040, .cut(.connectionTimeout))
    at(1_100, durable(vault, .idempotent) { $0.way = .reliable })
    at(1_100, .discover)
    // What is in doubt, and waits to be looked at.
    at(4_000, durable(vault, .appProbe))
    at(4_000, durable(safe, .closureProbe) { $0.lane = "disk 0" })
    at(4_020, .cut(.remoteUserTerminatedConnection))
    at(4_500, .resolve)
    at(4_600, .resolve)
    at(5_000, .exclusive)
    // Under the same IDs, and in place of each other.
    at(6_000, .again(1))
    at(6_000, durable(safe, .idempotent) { $0.supersedes = "disk" })
    at(6_000, durable(safe, .idempotent) { ($0.supersedes, $0.priority) = ("disk", .high) })
    at(6_000, .again(6))
    at(6_010, .cut(.connectionTimeout))
    at(
      6_500, durable(vault, .nonIdempotent) { ($0.dropsLink, $0.isSubmitted) = (true, true) },
      within: .milliseconds(300))
    at(7_000, write(poison, .idempotent))
    at(10_000, .notify)
    at(12_000, durable(vault, .nonIdempotent) { $0.isUnbroken = true })
    at(12_000, .disconnect)
    at(14_000, durable(safe, .nonIdempotent) { $0.offerBefore = .seconds(5) })
    at(15_000, .suspend(.seconds(1)))
    return scenario
  }
}
