import BluetoothWire
import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

struct BlueZHostTests {
  private static let one = BluetoothAddress(0x00_1A_7D_00_00_01)
  private static let two = BluetoothAddress(0x00_1A_7D_00_00_02)

  private static let adapters = [
    AdapterRecord(index: 0, address: one, isUp: false), AdapterRecord(index: 3, address: two, isUp: true),
    AdapterRecord(index: 4, address: BluetoothAddress(0), isUp: true),
  ]

  // MARK: Adapters

  @Test(arguments: [
    ("any", AdapterSelection.any), ("hci0", .index(0)), ("12", .index(12)),
    ("00:1A:7D:00:00:02", .address(two)),
  ])
  func selectionsAreRead(text: String, selection: AdapterSelection) {
    #expect(AdapterSelection(text) == selection)
    #expect(AdapterSelection(selection.description) == selection)
  }

  @Test(arguments: ["", "hci", "hci-1", "hci70000", "00:1A:7D:00:00", "all"])
  func otherTextsAreNoSelection(text: String) {
    #expect(AdapterSelection(text) == nil)
  }

  @Test func anAdapterIsItsAddress() throws {
    let selection = try AdapterSelection.index(3).resolved(among: Self.adapters)
    #expect(selection == .address(Self.two))
    // Plugged in again it has another number.
    let moved = [AdapterRecord(index: 9, address: Self.two, isUp: true)]
    #expect(selection.state(among: moved) == .on)
    #expect(try AdapterSelection.index(4).resolved(among: Self.adapters) == .index(4))
  }

  @Test func anAdapterThatIsNotThereIsSaidWithThoseThatAre() {
    #expect(throws: RelinkError(.adapterUnavailable, "")) {
      try AdapterSelection.index(7).resolved(among: Self.adapters)
    }
    do {
      _ = try AdapterSelection.index(7).resolved(among: Self.adapters)
    } catch {
      #expect(error.message == "There is no adapter hci7; there is hci0, hci3, hci4.")
    }
  }

  @Test func theStateIsThatOfTheAdaptersThatAreMeant() {
    #expect(AdapterSelection.any.state(among: Self.adapters) == .on)
    #expect(AdapterSelection.any.state(among: [Self.adapters[0]]) == .off)
    #expect(AdapterSelection.any.state(among: []) == .missing)
    #expect(AdapterSelection.address(Self.one).state(among: Self.adapters) == .off)
    #expect(AdapterSelection.address(Self.two).state(among: [Self.adapters[0]]) == .missing)
  }

  // MARK: Links

  @Test func aLinkIsThereUntilItIsGoneAndNotWhileItIsOnlyAwaited() {
    let presences = (UInt16(0)...9).map { LinkRecord(address: Self.one, state: $0).presence }
    #expect(presences == [.none, .alive, .none, .none, .none, .none, .none, .alive, .ending, .none])
  }

  @Test func addressesAreReadInTheOrderOfTheWire() throws {
    let address = BluetoothAddress(wire: (0x01, 0, 0, 0, 0xDE, 0xC0))
    #expect(address.description == "C0:DE:00:00:00:01")
    let device = try #require(DeviceID("C0:DE:00:00:00:01/random"))
    let target = try #require(DeviceAddress(device))
    #expect(target.bytes == [0x01, 0, 0, 0, 0xDE, 0xC0])
    #expect(target.kernelType == 2)
    #expect(DeviceAddress(DeviceID(address: address, type: .public))?.kernelType == 1)
    #expect(DeviceID("unix:/x").flatMap(DeviceAddress.init) == nil)
  }

  // MARK: Reasons

  @Test func linksOfOtherProgramsLeaveNothingBehind() {
    var counts = LinkCounts()
    for value in UInt64(1)...1_000 {
      let address = BluetoothAddress(value)
      counts.connected(address, isOurs: { $0 == Self.one })
      if value.isMultiple(of: 2) { counts.disconnected(address, .remote) }
    }
    #expect(counts.deviceCount == 0)
  }

  /// The kernel tells everybody of a disconnection but who asked for it.
  @Test func aLinkWhoseEndIsNeverToldDoesNotHideTheNextOnes() {
    var counts = LinkCounts()
    for _ in 0..<3 {
      counts.connected(Self.one, isOurs: Self.all)
      #expect(counts.owesEnd(of: Self.one))
      #expect(counts.takeEnd(of: Self.one) == nil)
    }
    counts.disconnected(Self.one, .remote)
    #expect(!counts.owesEnd(of: Self.one))
    #expect(counts.takeEnd(of: Self.one) == LinkCounts.End(reason: .remote, isForSleep: false))
  }

  @Test func aLinkThatEndsOnTheWayToSleepSaysSo() {
    var counts = LinkCounts()
    counts.connected(Self.one, isOurs: Self.all)
    counts.disconnected(Self.one, .localHostSuspend)
    #expect(counts.takeEnd(of: Self.one)?.isForSleep == true)
    counts.connected(Self.one, isOurs: Self.all)
    counts.disconnected(Self.one, ManagementDisconnectReason(rawValue: 0x15), isForSleep: true)
    #expect(counts.takeEnd(of: Self.one)?.isForSleep == true)
  }

  @Test func aDeviceThatIsNoLongerOursIsForgotten() {
    var counts = LinkCounts()
    for value in UInt64(1)...1_000 {
      counts.connected(BluetoothAddress(value), isOurs: { $0.value == value })
    }
    #expect(counts.deviceCount == 1)
  }

  @Test func aReasonFromBeforeALinkThatWasNotOursIsNotTold() {
    var counts = LinkCounts()
    counts.connected(Self.one, isOurs: Self.all)
    counts.disconnected(Self.one, .remote)
    counts.connected(Self.one, isOurs: { _ in false })
    counts.disconnected(Self.one, .connectionTimeout)
    #expect(counts.takeEnd(of: Self.one) == nil)
  }

  private static let all: @Sendable (BluetoothAddress) -> Bool = { _ in true }

  @Test func theReasonOfALinkIsToldOnceAndNeverForTheNextOne() {
    var counts = LinkCounts()
    #expect(counts.takeEnd(of: Self.one) == nil)
    counts.connected(Self.one, isOurs: Self.all)
    #expect(counts.takeEnd(of: Self.one) == nil, "it is still there")
    counts.disconnected(Self.one, .remote)
    counts.disconnected(Self.two, .connectionTimeout)
    #expect(counts.takeEnd(of: Self.one)?.reason == .remote)
    #expect(counts.takeEnd(of: Self.one) == nil)
    #expect(counts.takeEnd(of: Self.two) == nil, "a link from before we listened")
    counts.connected(Self.one, isOurs: Self.all)
    counts.disconnected(Self.one, .remote)
    counts.connected(Self.one, isOurs: Self.all)
    #expect(counts.takeEnd(of: Self.one) == nil, "that was the link before")
  }

  // MARK: No Bluetooth

  @Test func aSystemWithoutBluetoothIsSaidInOneLineWithWhatToDo() {
    let error = BlueZHost.noBluetooth(EAFNOSUPPORT)
    #expect(error.code == .adapterUnavailable)
    #expect(error.message.contains("modprobe bluetooth"))
    #expect(!error.description.contains("\n"))
    #expect(BlueZHost.noBluetooth(EPERM).message.contains("RestrictAddressFamilies"))
    #expect(BlueZHost.noBluetooth(EMFILE).message.contains("Too many open files"))
  }

  @Test(.disabled(if: Self.hasBluetooth, "this machine has Bluetooth sockets"))
  func aTransportOnASystemWithoutBluetoothFailsWithThatError() async throws {
    try await withLoop { loop in
      _ = #expect(throws: RelinkError(.adapterUnavailable, "")) { try BlueZTransport(on: loop) }
    }
  }

  private static var hasBluetooth: Bool {
    let descriptor = socket(31, Int32(SOCK_RAW.rawValue), 1)
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0
  }
}
