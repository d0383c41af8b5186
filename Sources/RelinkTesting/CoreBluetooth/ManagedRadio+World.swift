internal import BluetoothWire
public import Relink

// What happens around the platform.
extension ManagedRadio {
  /// Puts a device into the air.
  ///
  /// - Parameters:
  ///   - peripheral: What answers for it.
  ///   - device: Its name.
  public func add(_ peripheral: VirtualPeripheral, as device: DeviceID) {
    withState { $0.devices[device, default: Device()].peripheral = peripheral }
    connectIfPossible(device)
  }

  /// Makes a device reachable, or not; a link that is up is not touched.
  ///
  /// - Parameters:
  ///   - isReachable: Whether dials find it.
  ///   - device: The device.
  public func setReachable(_ isReachable: Bool, _ device: DeviceID) {
    withState { $0.devices[device, default: Device()].isReachable = isReachable }
    connectIfPossible(device)
  }

  /// Lets the next dials that find the device fail, one for each loss.
  ///
  /// - Parameters:
  ///   - losses: What they fail with.
  ///   - device: The device.
  public func failNextDials(_ losses: [LinkLoss], to device: DeviceID) {
    withState { $0.devices[device, default: Device()].failures += losses }
  }

  /// Brings a link up that nobody dialled, as a platform does that restores the state of an app; a dial that waits is
  /// served by it.
  ///
  /// Without a registered handler the link waits for one.
  ///
  /// - Parameter device: The device, which has to be known and without a link.
  public func restoreLink(to device: DeviceID) {
    executor.post { [weak self] in self?.bringUp(device) }
  }

  /// Loses the link to a device.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - loss: What the platform says; the default is a time-out without an HCI code.
  public func loseLink(
    to device: DeviceID,
    _ loss: LinkLoss = .platform(.supervisionTimeout, "the platform says that it timed out")
  ) {
    let link = withState { $0.devices[device]?.link }
    executor.post { link?.lost(loss) }
  }

  /// Lets everything vanish that either side of a link sends, while both still believe in the link.
  ///
  /// - Parameters:
  ///   - isSilent: Whether it vanishes.
  ///   - device: The device.
  public func setSilent(_ isSilent: Bool, _ device: DeviceID) {
    withState { $0.devices[device]?.link }?.setSilent(isSilent)
  }

  /// Switches the adapter; away from `on` every dial fails and every link is lost, with no word from the device.
  ///
  /// - Parameter adapter: The new state.
  public func setAdapter(_ adapter: AdapterState) {
    let (isNew, handled, dials, links) = withState {
      state -> (Bool, [DeviceID], [(DeviceID, AttemptID)], [ManagedLink]) in
      let isNew = state.adapter != adapter
      state.adapter = adapter
      let ordered = state.devices.sorted { $0.key.description < $1.key.description }
      return (
        isNew, state.handlers.keys.sorted { $0.description < $1.description },
        ordered.compactMap { device, known in known.dial.map { (device, $0.attempt) } },
        ordered.compactMap(\.value.link)
      )
    }
    guard isNew else { return }
    for device in handled { deliver(to: device) { $0.adapterChanged(adapter) } }
    guard adapter != .on else { return }
    let loss = LinkLoss(adapter.reason, evidence: [.notPoweredOn])
    for (device, attempt) in dials { endDial(device, attempt, loss) }
    for link in links { link.lost(loss) }
  }

  /// How often a session has dialled.
  public var dialCount: Int { withState { $0.dials } }

  /// Whether a dial waits or is under way.
  ///
  /// - Parameter device: The device.
  /// - Returns: Whether there is one.
  public func isDialling(_ device: DeviceID) -> Bool { withState { $0.devices[device]?.dial != nil } }
}

extension LinkLoss {
  /// A loss as a platform without HCI codes reports it.
  ///
  /// - Parameters:
  ///   - reason: What the platform's error means.
  ///   - text: What the platform says.
  /// - Returns: The loss.
  public static func platform(_ reason: DisconnectReason, _ text: String) -> LinkLoss {
    LinkLoss(reason, evidence: [.observation(text)])
  }

  /// What a platform makes of the reason that its controller reports: it tells few of them apart, and hides the code.
  static func platform(hiding code: HCIErrorCode) -> LinkLoss {
    switch code {
    case .connectionTimeout: .platform(.supervisionTimeout, "the platform says that the connection timed out")
    case .remoteUserTerminatedConnection, .remoteDeviceTerminatedLowResources,
      .remoteDeviceTerminatedPowerOff:
      .platform(.remoteUserTerminated, "the platform says that the device disconnected")
    case .connectionFailedToBeEstablished:
      .platform(.failedToEstablish, "the platform says that connecting failed")
    default: .platform(.unknown, "the platform says that the connection failed")
    }
  }
}
