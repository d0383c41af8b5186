internal import BluetoothWire
internal import CBlueZ
internal import Glibc
internal import Relink

/// What the management channel has to tell beside reasons.
enum ManagementNews: Sendable {
  /// An adapter came, went, or was switched.
  case adaptersChanged
  /// An adapter that was on is off; it may be on again by now.
  case powerLost(UInt16)
  /// The kernel lets this process end links.
  case mayEndLinks
  /// Something that securing a link waits for, of the adapter with this index.
  case security(ManagementEvent, index: UInt16)
  /// A device of ours advertised, or one that has the address of one.
  case advertised(ManagementAddress)
  /// Discovery began or ended.
  case discoveryChanged(UInt16, isOn: Bool)
  /// The kernel did not begin discovery.
  case discoveryRefused(UInt16)
  /// The channel is at its end.
  case closed
}

/// The kernel's management interface, used on the loop.
///
/// Anybody may bind it and hears of adapters. Events of devices, and ending links, need CAP_NET_ADMIN.
final class ManagementChannel: DescriptorHandler {
  private let loop: RadioLoop
  private let tell: @Sendable (ManagementNews) -> Void
  private let isOurs: @Sendable (BluetoothAddress) -> Bool
  private var registration: DescriptorRegistration?
  private var counts = LinkCounts()
  private var powered: [UInt16: Bool] = [:]
  /// The adapters of which the kernel said that the host goes to sleep, and until when that is believed.
  private var asleep: [UInt16: MonotonicInstant] = [:]

  /// How long a host that does not sleep can take to say that it woke; the clock stands still while it sleeps.
  private static let longestSleep = Duration.seconds(30)

  /// Nil where the channel cannot be had; to be called on the loop.
  ///
  /// `isOurs` says whether somebody here wants to know of a device.
  init?(
    on loop: RadioLoop, isOurs: @escaping @Sendable (BluetoothAddress) -> Bool,
    _ tell: @escaping @Sendable (ManagementNews) -> Void
  ) {
    self.loop = loop
    self.isOurs = isOurs
    self.tell = tell
    let opened = relink_management_open()
    guard opened >= 0 else { return nil }
    guard let registration = try? loop.register(OwnedDescriptor(adopting: opened), for: .readable, self).get()
    else { return nil }
    self.registration = registration
    send(.readControllerIndexList, to: ManagementPacket.noController)
  }

  func close() {
    if let registration { loop.close(registration) }
    registration = nil
  }

  func send(_ command: ManagementCommand, to index: UInt16) {
    guard let registration else { return }
    let bytes = command.encoded(index: index)
    // Refusals come as events; a full socket means that the kernel is gone.
    _ = bytes.withUnsafeBytes { relink_send(registration.descriptor, $0.baseAddress, $0.count) }
  }

  /// How the latest link to a device ended, if that was told since the last time it was asked for.
  func takeEnd(of device: DeviceAddress) -> LinkCounts.End? { counts.takeEnd(of: device.address) }

  /// Whether a link to the device came up whose end is still to be told.
  func owesEnd(of device: DeviceAddress) -> Bool { counts.owesEnd(of: device.address) }

  /// Whether the host is about to sleep, or has not said that it woke.
  func isAsleep(_ adapter: UInt16) -> Bool { asleep[adapter].map { $0 > loop.now } ?? false }

  // MARK: What comes

  func descriptorReady(_ events: DescriptorEvents) {
    readPending()
    guard let registration, !events.isDisjoint(with: [.error, .hangup]) else { return }
    if relink_socket_error(registration.descriptor) != 0 || events.contains(.hangup) {
      close()
      tell(.closed)
    }
  }

  func readPending() {
    // Bounded: a flood of advertisements of somebody's discovery must not keep the loop.
    for _ in 0..<64 {
      guard let registration else { return }
      let buffer = loop.receiveBuffer
      let length = relink_receive(registration.descriptor, buffer.baseAddress, buffer.count)
      guard length > 0 else { return }
      let bytes = UnsafeRawBufferPointer(start: buffer.baseAddress, count: min(Int(length), buffer.count))
      if let packet = try? ManagementPacket(decoding: bytes.bytes) { received(packet) }
    }
  }

  private func received(_ packet: ManagementPacket) {
    let event = ManagementEvent(packet)
    if event.isAboutSecurity { tellLater(.security(event, index: packet.index)) }
    switch event {
    case .commandComplete(.readControllerIndexList, _, .controllerIndexList(let indices)):
      for index in indices { send(.getConnections, to: index) }
      tellLater(.adaptersChanged)
    case .commandComplete(.getConnections, _, _):
      // Whatever it says: want of a privilege would have been a status alone. Ending links asks for the same one.
      tellLater(.mayEndLinks)
    case .indexAdded:
      send(.getConnections, to: packet.index)
      tellLater(.adaptersChanged)
    case .indexRemoved:
      (powered[packet.index], asleep[packet.index]) = (nil, nil)
      tellLater(.adaptersChanged)
    case .newSettings(let settings), .commandComplete(.setPowered, _, .settings(let settings)):
      // Who switched it is not told of its new settings, but gets them as the result.
      let isOn = settings.contains(.powered)
      if !isOn, powered[packet.index] != false { tellLater(.powerLost(packet.index)) }
      powered[packet.index] = isOn
      tellLater(.adaptersChanged)
    case .controllerSuspend:
      asleep[packet.index] = loop.now.advanced(by: Self.longestSleep)
      tellLater(.adaptersChanged)
    case .controllerResume:
      asleep[packet.index] = nil
      tellLater(.adaptersChanged)
    case .deviceConnected(let device, _, _):
      counts.connected(device.address, isOurs: isOurs)
    case .deviceDisconnected(let device, let reason):
      counts.disconnected(device.address, reason, isForSleep: isAsleep(packet.index))
    case .deviceFound(let device, _, _, _):
      if isOurs(device.address) { tellLater(.advertised(device)) }
    case .discovering(_, let isOn):
      tellLater(.discoveryChanged(packet.index, isOn: isOn))
    case .commandStatus(.startDiscovery, let status), .commandComplete(.startDiscovery, let status, _):
      if status != .success { tellLater(.discoveryRefused(packet.index)) }
    default:
      break
    }
  }

  /// In a job of its own: packets are also read inside calls that sessions make.
  private func tellLater(_ news: ManagementNews) {
    loop.post { [tell] in tell(news) }
  }
}

/// How many links each device of ours has had and lost, so that the word about one is not taken for another's.
///
/// What other programs of the host connect to is not kept: there is at most one entry for each device that is ours, and
/// one that was goes with the next link of any.
struct LinkCounts {
  /// What the kernel said of the end of a link.
  struct End: Equatable {
    var reason: ManagementDisconnectReason
    /// Whether the host was on its way to sleep then, by what was told before it or by the reason itself.
    var isForSleep: Bool
  }

  private struct Count {
    var connected = 0
    var disconnected = 0
    var end: End?
  }

  private var counts: [BluetoothAddress: Count] = [:]

  /// How many devices are kept, for tests.
  var deviceCount: Int { counts.count }

  mutating func connected(_ address: BluetoothAddress, isOurs: (BluetoothAddress) -> Bool) {
    guard isOurs(address) else {
      // A link that is not counted must not leave a count behind that is one short.
      counts[address] = nil
      return
    }
    if counts[address] == nil { counts = counts.filter { isOurs($0.key) } }
    var count = counts[address] ?? Count()
    // The link before is gone, whether that was told or not: who asks the kernel to end one is not told.
    count.disconnected = count.connected
    count.connected += 1
    // What was told of the link before is no news of this one.
    count.end = nil
    counts[address] = count
  }

  mutating func disconnected(
    _ address: BluetoothAddress, _ reason: ManagementDisconnectReason, isForSleep: Bool = false
  ) {
    // One that was connected before the channel was bound has no count of its own.
    guard var count = counts[address], count.disconnected < count.connected else { return }
    count.disconnected += 1
    count.end = End(reason: reason, isForSleep: isForSleep || reason == .localHostSuspend)
    counts[address] = count
  }

  mutating func takeEnd(of address: BluetoothAddress) -> End? {
    guard let count = counts[address], count.connected == count.disconnected else { return nil }
    counts[address] = nil
    return count.end
  }

  func owesEnd(of address: BluetoothAddress) -> Bool {
    counts[address].map { $0.connected > $0.disconnected } ?? false
  }
}

// Everything that is not `let` is touched on the loop alone.
extension ManagementChannel: @unchecked Sendable {}
