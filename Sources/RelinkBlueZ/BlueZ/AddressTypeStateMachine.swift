internal import BluetoothWire
internal import Relink

/// Decides when to listen for devices that are dialled under the wrong type of their address.
///
/// The kernel never finds such a device and never says why. So a dial that has heard nothing for ``patience`` is worth one
/// short discovery, if nothing else on the radio suffers from it: no dial of ours is younger than that, nobody else
/// discovers, and the last one is long ago. What somebody else's discovery hears serves as well.
struct AddressTypeStateMachine {
  /// What to do, in this order.
  enum Action: Equatable {
    case startDiscovery
    case stopDiscovery
    case setTimer(MonotonicInstant)
    /// The device is there under the other type of its address; its dial is over.
    case found(DeviceAddress)
  }

  static let patience = Duration.seconds(8)
  /// How long a discovery lasts: three of the slowest advertising intervals that phones and sensors use (1 s).
  static let span = Duration.seconds(3)
  /// How long the next one waits after it.
  static let interval = Duration.seconds(60)

  private struct Dial {
    var since: MonotonicInstant
    var wasSought = false
  }

  private var dials: [DeviceAddress: Dial] = [:]
  private var discoveringUntil: MonotonicInstant?
  private var isBusyElsewhere = false
  private var earliest = MonotonicInstant.zero

  /// A dial waits for its device.
  mutating func armed(_ device: DeviceAddress, now: MonotonicInstant) -> [Action] {
    // One that is renewed is as old as it was.
    if dials[device] == nil { dials[device] = Dial(since: now) }
    return proceed(now)
  }

  /// A dial is over.
  mutating func ended(_ device: DeviceAddress) {
    dials[device] = nil
  }

  /// A device advertised.
  mutating func heard(_ address: BluetoothAddress, _ type: DeviceID.AddressType) -> [Action] {
    dials.keys.filter { $0.address == address && $0.type != type }.map { .found($0) }
  }

  /// Discovery began or ended, whoever asked for it.
  mutating func discoveryChanged(isOn: Bool, now: MonotonicInstant) -> [Action] {
    guard discoveringUntil == nil else {
      if !isOn { discoveringUntil = nil }
      return proceed(now)
    }
    isBusyElsewhere = isOn
    return proceed(now)
  }

  /// The kernel did not begin it.
  mutating func discoveryRefused(now: MonotonicInstant) -> [Action] {
    discoveringUntil = nil
    return proceed(now)
  }

  mutating func timerFired(now: MonotonicInstant) -> [Action] {
    if let until = discoveringUntil {
      guard until <= now else { return [.setTimer(until)] }
      discoveringUntil = nil
      return [.stopDiscovery] + proceed(now)
    }
    return proceed(now)
  }

  private mutating func proceed(_ now: MonotonicInstant) -> [Action] {
    guard discoveringUntil == nil, !isBusyElsewhere, dials.values.contains(where: { !$0.wasSought }) else {
      return []
    }
    let ripe = dials.values.map { $0.since.advanced(by: Self.patience) }.max() ?? now
    let due = max(ripe, earliest)
    guard due <= now else { return [.setTimer(due)] }
    for device in dials.keys { dials[device]?.wasSought = true }
    earliest = now.advanced(by: Self.interval)
    let until = now.advanced(by: Self.span)
    discoveringUntil = until
    return [.startDiscovery, .setTimer(until)]
  }
}
