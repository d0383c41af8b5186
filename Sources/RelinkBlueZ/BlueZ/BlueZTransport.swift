internal import CBlueZ
public import Relink

/// A transport over the Bluetooth of a Linux host: ATT sockets of the kernel, without bluetoothd.
///
/// A device is its address with the type of the address, `C0:DE:00:00:00:01/random`. A dial is a connect that is pending
/// in the kernel and completes when the device is heard. No privilege is needed, and the controller's own reason of a
/// loss is known without one. With CAP_NET_ADMIN, links are ended at once instead of after 2 s, the kernel's reasons are
/// among the evidence, and a device that is dialled under the wrong type of its address is found out.
///
/// A link is one ACL link, from up to gone: a link that is still there, left by another socket or process, is never
/// taken over but waited out.
public final class BlueZTransport: Transport {
  let host: BlueZHost

  /// Makes a transport on the loop of this process.
  ///
  /// - Parameters:
  ///   - adapter: Which adapter to use.
  ///   - bonds: Where bonds are kept; without one, those that are made last as long as the transport. Not used where
  ///     bluetoothd runs, which keeps its own.
  ///   - sources: Where it learns why a link ended.
  ///   - adapterPower: What it does about an adapter that is off.
  ///   - bluetoothd: Whether bluetoothd runs, where that cannot be looked up.
  /// - Throws: `adapterUnavailable` when the system has no Bluetooth sockets or no adapter of that number; `system`
  ///   when the loop could not be made.
  public convenience init(
    adapter: AdapterSelection = .any, bonds: (any BondStore)? = nil, sources: BlueZSources = .all,
    adapterPower: AdapterPower = .asFound, bluetoothd: BluetoothdPresence = .detected
  ) throws(RelinkError) {
    try self.init(
      adapter: adapter, bonds: bonds, sources: sources, adapterPower: adapterPower, bluetoothd: bluetoothd,
      on: RadioLoop.shared())
  }

  /// Makes a transport on a loop.
  ///
  /// - Parameters:
  ///   - adapter: Which adapter to use.
  ///   - bonds: Where bonds are kept; without one, those that are made last as long as the transport. Not used where
  ///     bluetoothd runs, which keeps its own.
  ///   - sources: Where it learns why a link ended.
  ///   - adapterPower: What it does about an adapter that is off.
  ///   - bluetoothd: Whether bluetoothd runs, where that cannot be looked up.
  ///   - loop: Where the transport and each session over it run.
  /// - Throws: `adapterUnavailable` when the system has no Bluetooth sockets or no adapter of that number.
  public init(
    adapter: AdapterSelection = .any, bonds: (any BondStore)? = nil, sources: BlueZSources = .all,
    adapterPower: AdapterPower = .asFound, bluetoothd: BluetoothdPresence = .detected, on loop: RadioLoop
  ) throws(RelinkError) {
    let options = BlueZOptions(bonds: bonds, sources: sources, power: adapterPower, bluetoothd: bluetoothd)
    host = try BlueZHost(adapter, options, on: loop)
    loop.post { [host] in host.start() }
  }

  deinit {
    host.loop.post { [host] in host.stop() }
  }

  // MARK: Transport

  /// The loop.
  public var executor: any SessionExecutor { host.loop }

  /// Exact reasons where a controller is seen; links are ended at once where this process may do that.
  ///
  /// Both are known a moment after the transport was made.
  public var capabilities: TransportCapabilities {
    TransportCapabilities(knowsExactReason: host.seesControllers, endsLinks: host.mayEndLinks)
  }

  /// The state of the chosen adapter; of the best one where any will do.
  ///
  /// - Parameter device: The device.
  /// - Returns: The state at this moment.
  public func adapterState(for device: DeviceID) -> AdapterState { host.adapterState }

  /// The devices to which the host has LE links now, whoever brought them up.
  ///
  /// The kernel does not tell the type of their addresses: that of a registered device is known, the others are taken
  /// for random if their two top bits are set, as those of static random addresses are, and for public otherwise.
  ///
  /// - Returns: The devices, in no order.
  public func existingLinks() -> [DeviceID] {
    let known = host.registry.handlers.map(\.device)
    return host.links().filter { $0.presence != .none }.map { link in
      known.first { $0.address == link.address }
        ?? DeviceID(address: link.address, type: link.address.randomKind == .static ? .random : .public)
    }
  }

  /// Makes `handler` the receiver of everything about `device`; held weakly.
  ///
  /// - Parameters:
  ///   - handler: The receiver.
  ///   - device: The device.
  /// - Throws: `sessionExists` while another handler is registered for the device; `invalidArgument` for a device that
  ///   is no Bluetooth address, or a random address of a kind that there is not.
  public func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    guard let address = DeviceAddress(device) else {
      throw RelinkError(
        .invalidArgument,
        "\(device) is no Bluetooth address with its type; write AA:BB:CC:DD:EE:FF/random or /public.")
    }
    if let fault = address.fault { throw RelinkError(.invalidArgument, fault) }
    try host.registry.register(handler, for: device)
  }

  /// Takes the registration back.
  ///
  /// - Parameter device: The device.
  public func unregister(_ device: DeviceID) {
    host.registry.unregister(device)
  }

  /// Waits for the device with a pending connect, after a link that nobody uses and that is still there is gone.
  ///
  /// Without a limit it waits until it is cancelled; the connect is renewed each minute. A dial that is given up leaves
  /// its connect pending for at most that long, for the next dial to take over; a link that comes of it is ended.
  ///
  /// A link that does not go within 36 s ends the attempt with `phantomLink`, a device whose ATT channel another program
  /// holds with `channelInUse`, and one that is on the air under the other type of its address with `wrongAddressType`:
  /// with CAP_NET_ADMIN it is listened for during 3 s, once in a dial that has heard nothing for 8 s. Without an adapter
  /// that is on, the attempt ends and the session waits.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - attempt: The name of the attempt.
  ///   - options: The limit of the attempt.
  /// - Returns: The attempt, which can be cancelled.
  public func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    guard let address = DeviceAddress(device) else {
      // `register` takes no such device, so nobody waits for an answer.
      return NoDial()
    }
    let dial = L2CAPDial(device, address, attempt, options, host: host)
    host.loop.post { dial.start() }
    return dial
  }
}

/// A dial to something that is no device.
private final class NoDial: Attempt {
  func cancel() {}
}
