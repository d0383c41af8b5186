internal import CBlueZ
internal import Relink

/// A connect that nobody waits for any more: the next dial of the device takes it over, otherwise it ends by itself.
///
/// That takes at most as long as the kernel keeps it pending; a link that it still brings up is ended at once.
final class ParkedConnect: DescriptorHandler {
  let registration: DescriptorRegistration
  /// When it was armed.
  let since: MonotonicInstant
  private let address: DeviceAddress
  private let host: BlueZHost

  init(
    _ registration: DescriptorRegistration, since: MonotonicInstant, _ address: DeviceAddress, host: BlueZHost
  ) {
    self.registration = registration
    self.since = since
    self.address = address
    self.host = host
    host.loop.hand(registration, to: self)
  }

  func descriptorReady(_ events: DescriptorEvents) {
    host.takeParked(address)
    if relink_socket_error(registration.descriptor) == 0, events.contains(.writable) {
      L2CAPEnding(address, host: host).end(registration, hasSent: false, hasReceived: false) { _ in }
    } else {
      host.loop.close(registration)
    }
  }
}

// Everything in it is `let`, and its host is used on the loop alone.
extension ParkedConnect: @unchecked Sendable {}
