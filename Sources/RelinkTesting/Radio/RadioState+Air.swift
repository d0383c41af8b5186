internal import BluetoothWire
internal import Relink

extension RadioState {
  /// The central hands a PDU over.
  mutating func send(
    _ pdu: [UInt8], on channel: VirtualChannel, now: MonotonicInstant
  ) -> (result: PDUSendResult, effects: [Effect]) {
    guard pdu.count <= channel.maximumPDULength else { return (.failed(ErrorNumber.messageTooLong), []) }
    let number = channel.linkNumber
    guard let link = links[number], link.open === channel else {
      // The link is gone, and its channel has not been told.
      trace.note(now, "#\(number) C>P \(hexadecimal(pdu)) into nothing")
      return (.sent, [])
    }
    if link.blocked != nil {
      links[number]?.isAwaited = true
      return (.later, [])
    }
    switch plan.decideSend() {
    case .none: break
    case .failed(let error):
      trace.note(now, "#\(number) C>P \(hexadecimal(pdu)) refused: \(error)")
      return (.failed(error), [])
    case .later(let span):
      let timer = newNumber()
      links[number]?.blocked = timer
      links[number]?.isAwaited = true
      trace.note(now, "#\(number) C>P \(hexadecimal(pdu)) later")
      return (.later, [.timer(timer, at: now.advanced(by: span), .unblocked(channel))])
    }
    return (.sent, [launch(pdu, on: number, towardsPeer: true, now: now)])
  }

  /// The peer sends a PDU.
  mutating func sendFromPeer(_ pdu: [UInt8], on number: Int, now: MonotonicInstant) -> [Effect] {
    guard let link = links[number], !link.isPeerDone else { return [] }
    return [launch(pdu, on: number, towardsPeer: false, now: now)]
  }

  private mutating func launch(
    _ pdu: [UInt8], on number: Int, towardsPeer: Bool, now: MonotonicInstant
  ) -> Effect {
    let fault = plan.decide(on: pdu, towardsPeer: towardsPeer)
    var delay = Duration.zero
    if case .late(let span) = fault { delay = span }
    return enqueue(number, towardsPeer: towardsPeer, after: delay, now: now) { .pdu(pdu, fault, timer: $0) }
  }

  /// Puts something into the air behind what is there; the effect that is returned brings the first of it down.
  mutating func enqueue(
    _ number: Int, towardsPeer: Bool, after delay: Duration = .zero, now: MonotonicInstant,
    _ item: (_ timer: Int?) -> Lane.Item
  ) -> Effect {
    let lane: WritableKeyPath<ACLLink, Lane> = towardsPeer ? \.towardsPeer : \.towardsCentral
    let anchor = links[number]?.upSince ?? now
    let last = links[number]?[keyPath: lane].lastDue ?? now
    var due = max(quantised(now.advanced(by: configuration.latency), from: anchor, now: now), last)
    // Lateness comes on top of the quantised instant, and what follows stays behind.
    due = due.advanced(by: delay)
    links[number]?[keyPath: lane].lastDue = due
    let event = Event.arrival(link: number, towardsPeer: towardsPeer)
    guard due > now else {
      links[number]?[keyPath: lane].items.append(item(nil))
      return .post(event)
    }
    let timer = newNumber()
    links[number]?[keyPath: lane].items.append(item(timer))
    return .timer(timer, at: due, event)
  }

  /// The connection event that carries what is ready at `instant`: never the one that is going on.
  private func quantised(
    _ instant: MonotonicInstant, from anchor: MonotonicInstant, now: MonotonicInstant
  ) -> MonotonicInstant {
    guard let interval = configuration.connectionInterval?.clampedNanoseconds, interval > 0 else {
      return instant
    }
    let earliest = max(instant.nanoseconds, now.nanoseconds + 1) - anchor.nanoseconds
    let events = (earliest + interval - 1) / interval
    return MonotonicInstant(nanoseconds: anchor.nanoseconds + events * interval)
  }

  // MARK: - Arrival

  mutating func arrived(_ number: Int, towardsPeer: Bool, now: MonotonicInstant) -> [Effect] {
    let lane: WritableKeyPath<ACLLink, Lane> = towardsPeer ? \.towardsPeer : \.towardsCentral
    guard let link = links[number], !link[keyPath: lane].items.isEmpty,
      let item = links[number]?[keyPath: lane].items.removeFirst()
    else { return [] }
    switch item {
    case .termination(let reason, _):
      // On a silent link only the peer notices.
      if link.isSilent { return partFromPeer(number, link) }
      return end(
        number, Loss(central: losses.link(reason), peer: .connectionTerminatedByLocalHost), now: now)
    case .pdu(let pdu, let fault, _):
      let remark = link.isSilent ? " into silence" : fault == .none ? "" : " \(fault)"
      trace.note(now, "#\(number) \(towardsPeer ? "C>P" : "P>C") \(hexadecimal(pdu))\(remark)")
      if link.isSilent { return [] }
      let delivery = deliver(pdu, link, number, towardsPeer: towardsPeer)
      switch fault {
      case .none, .late: return delivery
      case .vanish: return []
      case .twice: return delivery + deliver(pdu, link, number, towardsPeer: towardsPeer)
      case .loseLinkBefore(let code): return end(number, loss(code), now: now)
      case .loseLinkAfter(let code): return delivery + [.now(.linkDies(link: number, loss(code)))]
      case .adapterOff(let span): return setAdapter(.off, for: span, now: now)
      case .absence(let span): return leave(link.device, for: span, now: now)
      }
    }
  }

  private mutating func deliver(_ pdu: [UInt8], _ link: ACLLink, _ number: Int, towardsPeer: Bool) -> [Effect]
  {
    if towardsPeer {
      guard let peer = link.peer, let peerLink = link.peerLink else { return [] }
      if holding.contains(.towardsPeer) {
        hold(.request(link.device, number, pdu))
        return []
      }
      return [.tellPeer(peer, peerLink, pdu)]
    }
    if !link.hasSpoken { links[number]?.hasSpoken = true }
    // What arrives behind a local close is read by nobody.
    guard let channel = link.open else { return [] }
    let word = Word.received(link.device, channel, pdu)
    return hold(word) ? [] : [.tell(word)]
  }

  private mutating func partFromPeer(_ number: Int, _ link: ACLLink) -> [Effect] {
    links[number]?.peer = nil
    links[number]?.peerLink = nil
    guard let peer = link.peer, let peerLink = link.peerLink else { return [] }
    return [.post(.peerClosed(peer, peerLink, .connectionTerminatedByLocalHost))]
  }

  // MARK: - A full channel

  mutating func block(_ number: Int) {
    links[number]?.blocked = 0
  }

  mutating func unblock(_ number: Int) -> [Effect] {
    guard let link = links[number], let timer = link.blocked else { return [] }
    links[number]?.blocked = nil
    links[number]?.isAwaited = false
    var effects: [Effect] = timer > 0 ? [.cancelTimer(timer)] : []
    if link.isAwaited, let channel = link.open {
      effects.append(.post(.word(.writable(link.device, channel))))
    }
    return effects
  }
}
