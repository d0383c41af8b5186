internal import BluetoothWire
internal import Relink

extension RadioState {
  /// Brings an ACL link up.
  mutating func open(
    _ device: DeviceID, to peer: (any VirtualPeer)?, attempt: AttemptID?, now: MonotonicInstant,
    radio: VirtualRadio
  ) -> (link: Int, effects: [Effect]) {
    let number = newLinkNumber()
    var link = ACLLink(device: device, upSince: now)
    var effects: [Effect] = []
    if let peer {
      let peerLink = radio.makePeerLink(number)
      link.peer = peer
      link.peerLink = peerLink
      effects.append(.post(.peerOpened(peer, peerLink)))
    } else {
      link.isSilent = true
    }
    links[number] = link
    devices[device, default: Device()].link = number
    devices[device]?.statistics.links += 1
    trace.note(now, "#\(number) up \(device)")
    effects.append(attach(to: number, attempt, now: now, radio: radio))
    return (number, effects)
  }

  /// Puts an ACL link there that nobody here uses, as a process leaves it behind that was killed.
  mutating func leaveBehind(
    _ device: DeviceID, peer: (any VirtualPeer)?, now: MonotonicInstant, radio: VirtualRadio
  )
    -> [Effect]
  {
    guard devices[device]?.link == nil else { return [] }
    let number = newLinkNumber()
    var link = ACLLink(device: device, upSince: now)
    link.isSilent = peer == nil
    var effects: [Effect] = []
    if let peer {
      let peerLink = radio.makePeerLink(number)
      link.peer = peer
      link.peerLink = peerLink
      effects.append(.post(.peerOpened(peer, peerLink)))
    }
    links[number] = link
    devices[device, default: Device()].link = number
    trace.note(now, "#\(number) left behind \(device)")
    return effects
  }

  /// A dial found an ACL link: it gets that one, with all that is on its way on it, as on Linux.
  mutating func adopt(
    _ number: Int, _ attempt: AttemptID, now: MonotonicInstant, radio: VirtualRadio
  ) -> [Effect] {
    guard let link = links[number] else { return [] }
    devices[link.device]?.statistics.adoptions += 1
    trace.note(now, "#\(number) adopted")
    var effects: [Effect] = []
    effects += cancelEnd(number)
    effects.append(attach(to: number, attempt, now: now, radio: radio))
    return effects
  }

  private mutating func attach(
    to number: Int, _ attempt: AttemptID?, now: MonotonicInstant, radio: VirtualRadio
  ) -> Effect {
    guard let device = links[number]?.device else { preconditionFailure("A channel belongs to a link") }
    let channel = makeChannel(on: number, radio: radio)
    // Half of the names that are kept are dropped at once, which costs less than one each time.
    if let count = devices[device]?.linkIDs.count, count >= 128 { devices[device]?.linkIDs.removeFirst(64) }
    devices[device]?.linkIDs.append(LinkID(rawValue: UInt64(channel.number)))
    return .post(.word(.linkUp(device, channel, attempt)))
  }

  /// Makes the channel of a link that has none.
  mutating func makeChannel(on number: Int, radio: VirtualRadio) -> VirtualChannel {
    let channel = VirtualChannel(
      number: newChannelNumber(), linkNumber: number, maximumPDULength: configuration.maximumPDULength,
      radio: radio)
    links[number]?.open = channel
    links[number]?.channels.append(channel)
    return channel
  }

  /// A channel was closed from here.
  mutating func closed(_ channel: VirtualChannel, now: MonotonicInstant) -> [Effect] {
    let number = channel.linkNumber
    guard let link = links[number], link.open === channel else { return [] }
    devices[link.device]?.statistics.closes += 1
    links[number]?.open = nil
    trace.note(now, "#\(number) channel closed")
    return endOld(number, now: now)
  }

  /// Ends a link that nobody here uses, as soon as this host can.
  mutating func endOld(_ number: Int, now: MonotonicInstant) -> [Effect] {
    let loss = Loss(central: losses.requested, peer: .remoteUserTerminatedConnection)
    if configuration.endsLinks || configuration.lingerAfterClose <= .zero {
      return end(number, loss, now: now)
    }
    let due = now.advanced(by: configuration.lingerAfterClose)
    // A link that dies sooner by itself does so.
    if let ending = links[number]?.ending, ending.due <= due { return [] }
    return cancelEnd(number) + [endLater(number, loss, at: due)]
  }

  /// The peer ended a link; what it sent before arrives first.
  mutating func terminated(_ number: Int, _ reason: HCIErrorCode, now: MonotonicInstant) -> [Effect] {
    guard let link = links[number], !link.isPeerDone else { return [] }
    links[number]?.isPeerDone = true
    return [enqueue(number, towardsPeer: false, now: now) { .termination(reason, timer: $0) }]
  }

  /// Ends an ACL link now: what is in the air is lost, and each side is told.
  mutating func end(_ number: Int, _ loss: Loss, now: MonotonicInstant) -> [Effect] {
    guard let link = links.removeValue(forKey: number) else { return [] }
    if devices[link.device]?.link == number { devices[link.device]?.link = nil }
    trace.note(now, "#\(number) down: \(loss.central.cause)")
    var effects: [Effect] = []
    if let ending = link.ending { effects.append(.cancelTimer(ending.timer)) }
    if let timer = link.blocked, timer > 0 { effects.append(.cancelTimer(timer)) }
    if let timer = link.securing?.timer { effects.append(.cancelTimer(timer)) }
    for item in link.towardsPeer.items + link.towardsCentral.items {
      switch item {
      case .pdu(_, _, let timer?), .termination(_, let timer?): effects.append(.cancelTimer(timer))
      case .pdu(_, _, nil), .termination(_, nil): break
      }
    }
    if let peer = link.peer, let peerLink = link.peerLink {
      effects.append(.post(.peerClosed(peer, peerLink, loss.peer)))
    }
    for channel in link.channels { effects.append(.post(.word(.closed(link.device, channel, loss.central)))) }
    return effects + resumeWaitingDial(link.device, now: now)
  }

  mutating func endLater(_ number: Int, _ loss: Loss, at due: MonotonicInstant) -> Effect {
    let timer = newNumber()
    links[number]?.ending = (timer, due)
    return .timer(timer, at: due, .linkDies(link: number, loss))
  }

  private mutating func cancelEnd(_ number: Int) -> [Effect] {
    guard let ending = links[number]?.ending else { return [] }
    links[number]?.ending = nil
    return [.cancelTimer(ending.timer)]
  }

  /// A link lost for a reason of the controller's, with what the peer's controller says of the same event.
  func loss(_ code: HCIErrorCode) -> Loss {
    let peer: HCIErrorCode
    switch code {
    case .remoteUserTerminatedConnection, .remoteDeviceTerminatedLowResources,
      .remoteDeviceTerminatedPowerOff:
      peer = .connectionTerminatedByLocalHost
    case .connectionTerminatedByLocalHost: peer = .remoteUserTerminatedConnection
    default: peer = code
    }
    return Loss(central: losses.link(code), peer: peer)
  }
}
