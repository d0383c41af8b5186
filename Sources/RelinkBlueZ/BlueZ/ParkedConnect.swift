internal import CBlueZ
internal import Relink

/// The connects that nobody waits for any more: the next dial of the device takes one over, otherwise it ends by itself.
///
/// That takes at most as long as the kernel keeps it pending, and where the kernel forgets that, until the time at which
/// a dial would have given it up. Used on the loop.
final class ParkedConnects {
  private let loop: RadioLoop
  private var parked: [DeviceAddress: ParkedConnect] = [:]

  init(on loop: RadioLoop) {
    self.loop = loop
  }

  /// Keeps a connect that was armed at `since`.
  ///
  /// `endLink` is given the descriptor if it still brings a link up; false if it does not take it.
  func park(
    _ registration: DescriptorRegistration, since: MonotonicInstant, for device: DeviceAddress,
    endLink: @escaping @Sendable (DescriptorRegistration) -> Bool
  ) {
    let connect = ParkedConnect(registration, since: since, device, among: self, on: loop, endLink)
    let other = parked.updateValue(connect, forKey: device)
    other?.close()
    loop.hand(registration, to: connect)
    connect.setWatchdog()
  }

  func contains(_ device: DeviceAddress) -> Bool { parked[device] != nil }

  /// The descriptor of a connect, for tests.
  func registration(of device: DeviceAddress) -> DescriptorRegistration? { parked[device]?.registration }

  /// Takes a connect out; the caller hands its descriptor over to somebody, or closes it.
  func take(_ device: DeviceAddress) -> ParkedConnect? {
    guard let connect = parked.removeValue(forKey: device) else { return nil }
    connect.cancelWatchdog()
    return connect
  }

  /// Closes them all.
  func closeAll() {
    while let device = parked.keys.first { take(device)?.close() }
  }
}

/// One connect that nobody waits for.
final class ParkedConnect: DescriptorHandler {
  let registration: DescriptorRegistration
  /// When it was armed.
  let since: MonotonicInstant
  private let device: DeviceAddress
  private let connects: ParkedConnects
  private let loop: RadioLoop
  private let endLink: @Sendable (DescriptorRegistration) -> Bool

  fileprivate init(
    _ registration: DescriptorRegistration, since: MonotonicInstant, _ device: DeviceAddress,
    among connects: ParkedConnects, on loop: RadioLoop,
    _ endLink: @escaping @Sendable (DescriptorRegistration) -> Bool
  ) {
    self.registration = registration
    self.since = since
    self.device = device
    self.connects = connects
    self.loop = loop
    self.endLink = endLink
  }

  private var watchdog: TimerID { TimerID(owner: self, number: 0) }

  fileprivate func setWatchdog() {
    loop.setTimer(watchdog, at: since.advanced(by: L2CAPDialStateMachine.watchdog)) {
      self.connects.take(self.device)?.close()
    }
  }

  fileprivate func cancelWatchdog() {
    loop.cancelTimer(watchdog)
  }

  fileprivate func close() {
    loop.cancelTimer(watchdog)
    loop.close(registration)
  }

  func descriptorReady(_ events: DescriptorEvents) {
    _ = connects.take(device)
    let isConnected = relink_socket_error(registration.descriptor) == 0 && events.contains(.writable)
    if !isConnected || !endLink(registration) { loop.close(registration) }
  }
}

// Everything in it that is not `let` is touched on the loop alone.
extension ParkedConnects: @unchecked Sendable {}

// As above: its loop alone touches what can change.
extension ParkedConnect: @unchecked Sendable {}
