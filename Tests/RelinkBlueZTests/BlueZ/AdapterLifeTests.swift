import BluetoothWire
import Glibc
import Relink
import RelinkTesting
import Testing

@testable import RelinkBlueZ

/// A clock that stands where it is put.
private func at(_ span: Duration) -> MonotonicInstant {
  MonotonicInstant(nanoseconds: 1_000_000_000_000).advanced(by: span)
}

struct DaemonStateMachineTests {
  private func running() -> DaemonStateMachine {
    var machine = DaemonStateMachine()
    #expect(machine.started() == [.look])
    machine.looked(.running(77))
    return machine
  }

  /// bluetoothd switches the adapter off and is there a little longer.
  @Test func oneThatEndsAfterThePowerHasStopped() {
    var machine = running()
    #expect(machine.powerLost(now: at(.seconds(1))) == [.watch(77, at: at(.seconds(1)))])
    #expect(machine.fate == .unanswered)
    #expect(machine.powerLost(now: at(.seconds(1))) == [], "it is being found out")
    let again = at(.seconds(1)).advanced(by: .milliseconds(20))
    #expect(
      machine.watched(DaemonEffort(ticks: 5, isAsleep: true), now: at(.seconds(1))) == [.watch(77, at: again)]
    )
    #expect(machine.fate == .unanswered)
    #expect(machine.watched(nil, now: again) == [])
    #expect(machine.fate == .stopped)
    #expect(machine.powerLost(now: at(.seconds(2))) == [], "there is none any more")
  }

  @Test func oneThatStaysIsTheUsersSwitch() {
    var machine = running()
    _ = machine.powerLost(now: at(.seconds(1)))
    #expect(machine.watched(DaemonEffort(ticks: 5, isAsleep: true), now: at(.seconds(1))).count == 1)
    #expect(machine.watched(DaemonEffort(ticks: 5, isAsleep: true), now: at(.milliseconds(1499))).count == 1)
    #expect(
      machine.watched(DaemonEffort(ticks: 5, isAsleep: true), now: at(.milliseconds(1500))) == [], "it rests")
    #expect(machine.fate == .notStopped)
    #expect(machine.powerLost(now: at(.seconds(9))) == [.watch(77, at: at(.seconds(9)))])
  }

  @Test func oneThatEndsWhileSomebodySwitchesTheAdapterOnHasStopped() {
    var machine = running()
    _ = machine.powerLost(now: at(.zero))
    #expect(machine.powerCame() == [])
    _ = machine.watched(nil, now: at(.milliseconds(20)))
    #expect(machine.fate == .stopped)
  }

  /// On a slow machine it takes seconds to put everything away.
  @Test func oneThatComputesIsWatchedForAsLongAsItGivesItself() {
    var machine = running()
    _ = machine.powerLost(now: at(.zero))
    for tenth in 0..<100 {
      // Its time grows now and then, or it waits for a processor all the while.
      let effort =
        tenth < 50
        ? DaemonEffort(ticks: UInt64(tenth / 3), isAsleep: true) : DaemonEffort(ticks: 17, isAsleep: false)
      #expect(machine.watched(effort, now: at(.milliseconds(tenth * 100))).count == 1)
    }
    #expect(machine.watched(DaemonEffort(ticks: 99, isAsleep: false), now: at(.seconds(10))) == [])
    #expect(machine.fate == .notStopped)
  }

  @Test func oneThatWasNotSeenBeforeHasNotStopped() {
    var machine = DaemonStateMachine()
    #expect(machine.powerLost(now: at(.zero)) == [], "nobody has looked yet")
    machine.looked(.absent)
    #expect(machine.powerLost(now: at(.seconds(1))) == [])
    #expect(machine.fate == .notStopped)
  }

  @Test func oneThatCameWithThePowerIsKnown() {
    var machine = running()
    _ = machine.powerLost(now: at(.seconds(1)))
    _ = machine.watched(nil, now: at(.seconds(1)))
    #expect(machine.fate == .stopped)
    #expect(machine.powerCame() == [.look])
    #expect(machine.fate == .notStopped)
    machine.looked(.running(99))
    #expect(machine.powerLost(now: at(.seconds(20))) == [.watch(99, at: at(.seconds(20)))])
    _ = machine.watched(nil, now: at(.seconds(20)))
    #expect(machine.fate == .stopped)
  }
}

struct AdapterPowerStateMachineTests {
  private typealias Actions = AdapterPowerStateMachine.Actions

  private let off = AdapterRecord(index: 0, address: BluetoothAddress(1), isUp: false)
  private let on = AdapterRecord(index: 0, address: BluetoothAddress(1), isUp: true)

  @Test func oneThatIsOffIsSwitchedOnAfterAMomentAndThenEachThreeSeconds() {
    var machine = AdapterPowerStateMachine()
    #expect(machine.looked([on], now: at(.zero)) == Actions())
    let first = at(.milliseconds(500))
    #expect(machine.looked([off], now: at(.zero)) == Actions(lookAt: first))
    #expect(machine.looked([off], now: at(.milliseconds(499))) == Actions(lookAt: first))
    let second = first.advanced(by: .seconds(3))
    #expect(machine.looked([off], now: first) == Actions(switchOn: [0], lookAt: second))
    #expect(machine.looked([off], now: first.advanced(by: .seconds(2))) == Actions(lookAt: second))
    #expect(
      machine.looked([off], now: second) == Actions(switchOn: [0], lookAt: second.advanced(by: .seconds(3))))
    #expect(machine.looked([on], now: second) == Actions())
  }

  @Test func oneThatIsBlockedAsleepOrGoneIsLeftAlone() {
    var machine = AdapterPowerStateMachine()
    var (blocked, asleep) = (off, off)
    blocked.isBlocked = true
    asleep.isAsleep = true
    for adapters in [[blocked], [asleep], []] {
      _ = machine.looked([off], now: at(.zero))
      #expect(machine.looked(adapters, now: at(.seconds(9))) == Actions())
    }
  }
}

struct AddressTypeStateMachineTests {
  private typealias Action = AddressTypeStateMachine.Action

  private static let device = DeviceAddress(DeviceID("C0:DE:00:00:00:01/public")!)!
  private static let another = DeviceAddress(DeviceID("C0:DE:00:00:00:02/random")!)!
  private static let begun: [Action] = [.startDiscovery, .setTimer(at(.seconds(11)))]

  /// A dial that has waited for 8 s, and its discovery.
  private func discovering() -> AddressTypeStateMachine {
    var machine = AddressTypeStateMachine()
    #expect(machine.armed(Self.device, now: at(.zero)) == [.setTimer(at(.seconds(8)))])
    #expect(machine.timerFired(now: at(.seconds(8))) == Self.begun)
    #expect(machine.discoveryChanged(isOn: true, now: at(.seconds(8))) == [])
    return machine
  }

  @Test func aDeviceUnderTheOtherTypeIsFound() {
    var machine = discovering()
    #expect(machine.heard(Self.another.address, .public) == [])
    #expect(machine.heard(Self.device.address, .public) == [], "as it was dialled")
    #expect(machine.heard(Self.device.address, .random) == [.found(Self.device)])
    machine.ended(Self.device)
    #expect(machine.heard(Self.device.address, .random) == [])
    #expect(machine.timerFired(now: at(.seconds(11))) == [.stopDiscovery])
  }

  @Test func oneDiscoveryIsEnoughForADial() {
    var machine = discovering()
    #expect(machine.timerFired(now: at(.seconds(11))) == [.stopDiscovery])
    #expect(machine.discoveryChanged(isOn: false, now: at(.seconds(11))) == [])
    // The connect of a long dial is renewed each minute.
    #expect(machine.armed(Self.device, now: at(.seconds(60))) == [])
    #expect(machine.timerFired(now: at(.seconds(600))) == [])
  }

  @Test func aDiscoveryDoesNotDisturbAYoungerDialAndNotSoonAnother() {
    var machine = AddressTypeStateMachine()
    _ = machine.armed(Self.device, now: at(.zero))
    #expect(machine.armed(Self.another, now: at(.seconds(5))) == [.setTimer(at(.seconds(13)))])
    #expect(machine.timerFired(now: at(.seconds(8))) == [.setTimer(at(.seconds(13)))])
    // It was heard and is a dial no more.
    machine.ended(Self.another)
    #expect(machine.timerFired(now: at(.seconds(13))) == [.startDiscovery, .setTimer(at(.seconds(16)))])
    #expect(machine.timerFired(now: at(.seconds(16))) == [.stopDiscovery])
    #expect(machine.armed(Self.another, now: at(.seconds(17))) == [.setTimer(at(.seconds(73)))])
    #expect(machine.timerFired(now: at(.seconds(73))).first == .startDiscovery)
  }

  @Test func nothingIsStartedWhileSomebodyElseDiscovers() {
    var machine = AddressTypeStateMachine()
    _ = machine.armed(Self.device, now: at(.zero))
    #expect(machine.discoveryChanged(isOn: true, now: at(.seconds(1))) == [])
    #expect(machine.timerFired(now: at(.seconds(8))) == [])
    // What that hears serves as well.
    #expect(machine.heard(Self.device.address, .random) == [.found(Self.device)])
    #expect(machine.discoveryChanged(isOn: false, now: at(.seconds(8))) == Self.begun)
  }

  @Test func aDiscoveryThatTheKernelRefusesIsOver() {
    var machine = discovering()
    #expect(machine.discoveryRefused(now: at(.seconds(8))) == [])
    #expect(machine.timerFired(now: at(.seconds(11))) == [])
    #expect(machine.armed(Self.another, now: at(.seconds(12))) == [.setTimer(at(.seconds(68)))])
  }
}

struct AdapterStateTests {
  private static let root = "/tmp/relink-switches-\(getpid())"

  /// Makes a folder as the kernel shows its switches.
  private func withSwitches(
    _ switches: [(name: String, type: String, soft: String, hard: String)],
    _ body: (AdapterSwitches) -> Void
  ) throws {
    let root = "\(Self.root)-\(UInt64.random(in: 0...UInt64.max))"
    mkdir(root, 0o700)
    defer { _ = remove(root) }
    for (number, entry) in switches.enumerated() {
      let folder = "\(root)/rfkill\(number)"
      mkdir(folder, 0o700)
      for (file, text) in [
        ("name", entry.name), ("type", entry.type), ("soft", entry.soft), ("hard", entry.hard),
      ] {
        try write(text + "\n", to: "\(folder)/\(file)")
      }
    }
    body(AdapterSwitches(root: root))
    for number in switches.indices {
      for file in ["name", "type", "soft", "hard"] { unlink("\(root)/rfkill\(number)/\(file)") }
      rmdir("\(root)/rfkill\(number)")
    }
    rmdir(root)
  }

  private func write(_ text: String, to path: String) throws {
    let file = try #require(fopen(path, "w"))
    fputs(text, file)
    fclose(file)
  }

  @Test func anAdapterIsBlockedByItsOwnSwitchOrByOneForAll() throws {
    let wifi = (name: "phy0", type: "wlan", soft: "1", hard: "1")
    try withSwitches([wifi, (name: "hci0", type: "bluetooth", soft: "0", hard: "0")]) {
      #expect(!$0.isBlocked(0))
    }
    try withSwitches([wifi, (name: "hci0", type: "bluetooth", soft: "1", hard: "0")]) {
      #expect($0.isBlocked(0))
    }
    try withSwitches([
      (name: "hci0", type: "bluetooth", soft: "0", hard: "0"),
      (name: "hci1", type: "bluetooth", soft: "0", hard: "1"),
    ]) {
      #expect(!$0.isBlocked(0))
      #expect($0.isBlocked(1))
    }
    try withSwitches([(name: "tpacpi_bluetooth_sw", type: "bluetooth", soft: "1", hard: "0")]) {
      #expect($0.isBlocked(0))
    }
    #expect(!AdapterSwitches(root: "/nonexistent").isBlocked(0))
  }

  @Test func bluetoothdIsFoundByTheNameOfItsProcess() throws {
    let root = "\(Self.root)-processes"
    mkdir(root, 0o700)
    let processes = SystemProcesses(root: root)
    #expect(processes.findDaemon() == nil, "no process is seen at all")
    #expect(SystemProcesses(root: "/nonexistent").findDaemon() == nil)
    for (folder, name) in [("1", "init"), ("77", "bluetoothctl"), ("sys", "bluetoothd")] {
      mkdir("\(root)/\(folder)", 0o700)
      try write(name + "\n", to: "\(root)/\(folder)/comm")
    }
    #expect(processes.findDaemon() == nil, "whose processes these are is not known")
    mkdir("\(root)/self", 0o700)
    mkdir("\(root)/self/ns", 0o700)
    symlink("pid:[4026532000]", "\(root)/self/ns/pid")
    #expect(processes.findDaemon() == nil, "a namespace of its own hides the host's processes")
    unlink("\(root)/self/ns/pid")
    symlink("pid:[4026531836]", "\(root)/self/ns/pid")
    #expect(processes.findDaemon() == .absent)
    unlink("\(root)/1/comm")
    #expect(processes.findDaemon() == nil, "the first process is hidden")
    try write("init\n", to: "\(root)/1/comm")
    try write("bluetoothd\n", to: "\(root)/77/comm")
    #expect(processes.findDaemon() == .running(77))
    let rest = "1 77 77 0 -1 4194560 1500 0 3 0 12 7 0 0 20 0 1 0 5000 9000000 1500"
    for (line, effort) in [
      ("77 (bluetoothd) S \(rest)", DaemonEffort(ticks: 19, isAsleep: true)),
      ("77 (bluetoothd) R \(rest)", DaemonEffort(ticks: 19, isAsleep: false)),
      ("77 (bluetoothd) Z \(rest)", nil),
      ("77 (bluetoothctl) S \(rest)", nil), ("77 (bluetoothd) S 1 77", nil), ("", nil), (")", nil),
    ] as [(String, DaemonEffort?)] {
      try write(line + "\n", to: "\(root)/77/stat")
      #expect(processes.effort(ofDaemon: 77) == effort)
    }
    #expect(processes.effort(ofDaemon: 78) == nil)
    unlink("\(root)/self/ns/pid")
    rmdir("\(root)/self/ns")
    rmdir("\(root)/self")
    for folder in ["1", "77", "sys"] {
      unlink("\(root)/\(folder)/comm")
      unlink("\(root)/\(folder)/stat")
      rmdir("\(root)/\(folder)")
    }
    rmdir(root)
  }

  @Test func whatForbidsTheUseOfAnAdapterIsItsState() {
    let on = AdapterRecord(index: 0, address: BluetoothAddress(1), isUp: true)
    var (off, blocked, asleep) = (on, on, on)
    (off.isUp, blocked.isUp, blocked.isBlocked, asleep.isAsleep) = (false, false, true, true)
    let states = [
      [blocked], [asleep], [off, blocked], [asleep, blocked], [asleep, on], [blocked, on], [],
    ]
    .map(AdapterSelection.any.state(among:))
    #expect(states == [.blocked, .suspended, .off, .suspended, .on, .on, .missing])
  }

  @Test func aRandomAddressOfNoKindIsRefusedWithWhatItMayBe() throws {
    let fault = try #require(DeviceID("80:DE:00:00:00:01/random").flatMap(DeviceAddress.init)?.fault)
    #expect(fault.contains("80:DE:00:00:00:01/public?"))
    for name in [
      "C0:DE:00:00:00:01/random", "40:DE:00:00:00:01/random", "00:DE:00:00:00:01/random",
      "80:DE:00:00:00:01/public",
    ] {
      #expect(DeviceID(name).flatMap(DeviceAddress.init)?.fault == nil)
    }
  }

  @Test func whatWorksLongRunsOffTheLoopAndComesBackToIt() async throws {
    try await withLoop { loop in
      let results = Facts<Bool>()
      try await loop.run {
        BackgroundWork.run(then: loop, { loop.isCurrent }) { isOnLoop in
          results.add(isOnLoop)
          results.add(loop.isCurrent)
        }
      }
      #expect(await results.first(2) == [false, true])
    }
  }
}
