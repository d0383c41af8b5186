public import BluetoothWire
public import Relink

/// What a test, or a demonstration, does to the world around the session.
extension VirtualRadio {
  // MARK: - Devices

  /// Puts a device into the world, or another peer in its place.
  ///
  /// - Parameters:
  ///   - peer: What answers; held strongly.
  ///   - device: Its name. The same peer may have several.
  ///   - interval: The span between its advertisements; with zero it can be heard at any moment.
  ///   - isAdvertising: Whether it can be dialled.
  public func add(
    _ peer: any VirtualPeer, as device: DeviceID, advertisingEvery interval: Duration = .zero,
    isAdvertising: Bool = true
  ) {
    act {
      $0.devices[device, default: RadioState.Device()].peer = peer
      return $0.advertise(isAdvertising, device, interval: interval, now: $1)
    }
  }

  /// Takes a device out of the world; its link is lost as to a device out of range.
  ///
  /// - Parameter device: The device.
  public func remove(_ device: DeviceID) {
    act { state, now in
      let effects = state.leave(device, for: nil, now: now)
      state.devices[device]?.peer = nil
      state.devices[device]?.outage = nil
      return effects
    }
  }

  /// Lets a device advertise, or makes it mute; a link that is up does not care.
  ///
  /// - Parameters:
  ///   - isAdvertising: Whether it can be dialled.
  ///   - device: The device.
  ///   - interval: The span between its advertisements; nil leaves it as it is.
  public func setAdvertising(_ isAdvertising: Bool, of device: DeviceID, every interval: Duration? = nil) {
    act { $0.advertise(isAdvertising, device, interval: interval, now: $1) }
  }

  /// Carries a device out of range: nothing arrives any more, and its link is lost (0x08) after the supervision timeout.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - span: For how long; nil until ``bringBack(_:)``.
  public func carryAway(_ device: DeviceID, for span: Duration? = nil) {
    act { $0.leave(device, for: span, now: $1) }
  }

  /// Carries a device back into range.
  ///
  /// - Parameter device: The device.
  public func bringBack(_ device: DeviceID) {
    act { $0.comeBack(device, now: $1) }
  }

  // MARK: - The adapter

  /// Switches the adapter on or off, or pulls it out.
  ///
  /// Switched off or pulled out it takes its links and dials with it; their ends are told first, then the new state.
  ///
  /// - Parameter new: The new state.
  public func setAdapter(_ new: AdapterState) {
    act { $0.setAdapter(new, now: $1) }
  }

  // MARK: - Dials

  /// Says how dials to a device go from now on, where no script says otherwise.
  ///
  /// - Parameters:
  ///   - behavior: How they go. Only with `normal` has the fault plan a say.
  ///   - device: The device.
  public func setDialBehavior(_ behavior: DialBehavior, of device: DeviceID) {
    state.withLock { $0.devices[device, default: RadioState.Device()].behavior = behavior }
  }

  /// Says how the next dials to a device go, one after the other, behind what is written already.
  ///
  /// - Parameters:
  ///   - behaviors: How they go.
  ///   - device: The device.
  public func scriptDials(_ behaviors: [DialBehavior], to device: DeviceID) {
    state.withLock { $0.devices[device, default: RadioState.Device()].script += behaviors }
  }

  // MARK: - Links

  /// Says how far links to a device are secured in the eyes of this central: the one that is up, and those to come.
  ///
  /// What the device asks of a link is its own business; see ``VirtualPeripheral/secure(_:_:)``.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - level: The level.
  public func setSecurity(of device: DeviceID, to level: SecurityLevel) {
    act { state, now in
      state.devices[device, default: RadioState.Device()].security = level
      state.trace.note(now, "\(device) security \(level)")
      return []
    }
  }

  /// Loses the link to a device at once; what is in the air, either way, is lost with it.
  ///
  /// - Parameters:
  ///   - device: The device; without a link nothing happens.
  ///   - reason: What the controller here says (Core Specification Vol 1 Part F).
  public func lose(_ device: DeviceID, _ reason: HCIErrorCode) {
    act { state, now in
      guard let link = state.devices[device]?.link else { return [] }
      return state.end(link, state.loss(reason), now: now)
    }
  }

  /// Loses the link to a device at once, with exactly this loss: a reason of the management interface out of its range,
  /// an end of file without any event.
  ///
  /// - Parameters:
  ///   - device: The device; without a link nothing happens.
  ///   - loss: What the channel is told.
  ///   - peerReason: What the device's controller says.
  public func lose(
    _ device: DeviceID, exactly loss: LinkLoss, peerReason: HCIErrorCode = .connectionTimeout
  ) {
    act { state, now in
      guard let link = state.devices[device]?.link else { return [] }
      return state.end(link, RadioState.Loss(central: loss, peer: peerReason), now: now)
    }
  }

  /// Kills the link to a device without a word: everything vanishes on it, both ways, and nobody is ever told.
  ///
  /// It ends when it is closed here or lost. A dial in between gets the same dead link.
  ///
  /// - Parameter device: The device.
  public func silence(_ device: DeviceID) {
    act { state, now in
      guard let link = state.devices[device]?.link else { return [] }
      state.links[link]?.isSilent = true
      state.trace.note(now, "#\(link) silenced")
      return []
    }
  }

  /// Brings a link to a device up that nobody dialled: restored by the system, or by an accept list.
  ///
  /// - Parameter device: The device; where it has a link nothing happens.
  public func restoreLink(to device: DeviceID) {
    act { state, now in
      guard state.devices[device]?.link == nil, let peer = state.devices[device]?.peer else { return [] }
      return state.open(device, to: peer, attempt: nil, now: now, radio: self).effects
    }
  }

  /// Leaves a link to a device there that nobody here uses, as a process does that was killed.
  ///
  /// - Parameter device: The device; where it has a link nothing happens.
  public func leaveLink(to device: DeviceID) {
    act { state, now in
      guard let peer = state.devices[device]?.peer else { return [] }
      return state.leaveBehind(device, peer: peer, now: now, radio: self)
    }
  }

  /// Makes the host believe in a link that does not exist: it is listed, a dial gets it, and nothing ever answers.
  ///
  /// - Parameter device: The device; where it has a link nothing happens.
  public func addPhantomLink(to device: DeviceID) {
    act { $0.leaveBehind(device, peer: nil, now: $1, radio: self) }
  }

  /// Brings a link to a device up at once and hands over its channel, which nobody has opened.
  ///
  /// For what works below links: no handler is told of it.
  ///
  /// - Parameter device: The device.
  /// - Returns: The channel; nil where the radio does not know the device, or a link is there.
  public func connectChannel(to device: DeviceID) -> VirtualChannel? {
    var channel: VirtualChannel?
    act { state, now in
      guard state.devices[device]?.link == nil, let peer = state.devices[device]?.peer else { return [] }
      let effects = state.leaveBehind(device, peer: peer, now: now, radio: self)
      guard let link = state.devices[device]?.link else { return effects }
      channel = state.makeChannel(on: link, radio: self)
      return effects
    }
    return channel
  }

  /// Fills the channel to a device: each send is to be repeated later.
  ///
  /// - Parameter device: The device; without a link nothing happens.
  public func block(_ device: DeviceID) {
    state.withLock { state in
      if let link = state.devices[device]?.link { state.block(link) }
    }
  }

  /// Empties the channel to a device; whoever was told to send later is told that he may.
  ///
  /// - Parameter device: The device.
  public func unblock(_ device: DeviceID) {
    act { state, _ in
      guard let link = state.devices[device]?.link else { return [] }
      return state.unblock(link)
    }
  }

  /// Chooses what a dial from now on does that finds an ACL link, in place of ``Configuration/waitsForOldLinks``.
  ///
  /// A transport must never give a session a link that somebody else left, a process that was killed for example.
  ///
  /// - Parameter waits: Whether it waits until that link is gone; otherwise it gets the old link.
  public func setWaitsForOldLinks(_ waits: Bool) {
    state.withLock { $0.waitsForOldLinks = waits }
  }

  // MARK: - Faults

  /// What goes wrong by itself, as far as it has been played.
  public var faults: FaultPlan { state.withLock { $0.plan } }

  /// Makes a plan of what goes wrong by itself from now on.
  ///
  /// - Parameter plan: The plan, from its beginning.
  public func setFaults(_ plan: FaultPlan) {
    state.withLock { $0.plan = plan }
  }

  /// Ends the plan and all that it began: the adapter is on, absent devices come back, dials that hang go on.
  ///
  /// What a test did itself stays: a device that it carried away comes back too, an adapter that it switched off stays
  /// off, and its scripts go on.
  public func heal() {
    act { $0.heal(now: $1) }
  }

  // MARK: - What can be counted

  /// What was counted about a device.
  ///
  /// May be read on any thread.
  ///
  /// - Parameter device: The device.
  /// - Returns: The counts.
  public func statistics(of device: DeviceID) -> Statistics {
    state.withLock { $0.devices[device]?.statistics ?? Statistics() }
  }

  /// How many dials were under way together, at most.
  ///
  /// May be read on any thread.
  public var maximumConcurrentDials: Int { state.withLock { $0.maximumPendingDials } }

  /// How many dials are under way.
  ///
  /// May be read on any thread.
  public var pendingDials: Int { state.withLock { $0.pendingDials } }

  /// The number of the ACL link to a device; nil where there is none.
  ///
  /// May be read on any thread.
  ///
  /// - Parameter device: The device.
  /// - Returns: The number, counted over all links of the radio.
  public func linkNumber(of device: DeviceID) -> Int? { state.withLock { $0.devices[device]?.link } }

  /// The names of the links to a device, oldest first; the latest 64 are kept.
  ///
  /// May be read on any thread.
  ///
  /// - Parameter device: The device.
  /// - Returns: The names.
  public func linkIDs(of device: DeviceID) -> [LinkID] {
    state.withLock { ($0.devices[device]?.linkIDs ?? []).suffix(64) }
  }

  /// What happened, line by line: seconds, the number of the ACL link, the direction, the bytes.
  ///
  /// May be read on any thread.
  ///
  /// The newest lines are kept, as many as the configuration says.
  public var trace: [String] { state.withLock { $0.trace.lines } }
}
