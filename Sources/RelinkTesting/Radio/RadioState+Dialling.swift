internal import BluetoothWire
internal import Relink

extension RadioState {
  /// A dial was asked for.
  ///
  /// - Returns: The number of the dial, for calling it off; nil where it has failed or succeeded already.
  mutating func dial(
    _ device: DeviceID, _ attempt: AttemptID, limit: Duration?, now: MonotonicInstant, radio: VirtualRadio
  ) -> (dial: Int?, effects: [Effect]) {
    devices[device, default: Device()].statistics.dials += 1
    trace.note(now, "dial \(device) attempt \(attempt.rawValue)")
    guard adapter == .on else {
      return (nil, [refuse(device, attempt, losses.dial(without: adapter), now: now)])
    }
    if devices[device]?.dial != nil {
      devices[device]?.statistics.overlappingDials += 1
      return (nil, [refuse(device, attempt, losses.busy, now: now)])
    }
    if let link = devices[device]?.link {
      guard links[link]?.open == nil else { return (nil, [refuse(device, attempt, losses.busy, now: now)]) }
      if !waitsForOldLinks { return (nil, adopt(link, attempt, now: now, radio: radio)) }
    }
    if let limit = configuration.dialsAtOnce, pendingDials >= limit {
      return (nil, [refuse(device, attempt, losses.busy, now: now)])
    }
    let (behavior, isFault) = nextBehavior(device)
    if behavior == .busy { return (nil, [refuse(device, attempt, losses.busy, now: now)]) }
    let number = newNumber()
    devices[device]?.dial = Dial(
      number: number, attempt: attempt, behavior: behavior, limit: limit ?? configuration.dialLimit,
      isFault: isFault)
    pendingDials += 1
    maximumPendingDials = max(maximumPendingDials, pendingDials)
    guard let old = devices[device]?.link else { return (number, begin(device, now: now)) }
    devices[device]?.dial?.isWaiting = true
    return (number, endOld(old, now: now))
  }

  /// An old link is gone: the dial that waited for it begins.
  mutating func resumeWaitingDial(_ device: DeviceID, now: MonotonicInstant) -> [Effect] {
    guard devices[device]?.dial?.isWaiting == true else { return [] }
    devices[device]?.dial?.isWaiting = false
    return begin(device, now: now)
  }

  private mutating func nextBehavior(_ device: DeviceID) -> (DialBehavior, isFault: Bool) {
    guard let entry = devices[device] else { return (.normal, false) }
    if !entry.script.isEmpty {
      devices[device]?.script.removeFirst()
      return (entry.script[0], false)
    }
    if entry.behavior != .normal { return (entry.behavior, false) }
    if let fault = plan.decideDial() { return (fault, true) }
    return (.normal, false)
  }

  private mutating func begin(_ device: DeviceID, now: MonotonicInstant) -> [Effect] {
    guard let dial = devices[device]?.dial else { return [] }
    func failure(_ loss: LinkLoss, after delay: Duration) -> [Effect] {
      let timer = newNumber()
      devices[device]?.dial?.limitTimer = timer
      return [.timer(timer, at: now.advanced(by: delay), .dialFails(device, dial: dial.number, loss))]
    }
    switch dial.behavior {
    case .normal: return failure(losses.absent, after: dial.limit) + audibilityChanged(device, now: now)
    case .hang, .busy: return []
    case .fail(let code, let delay): return failure(losses.dial(code), after: delay)
    case .failExactly(let loss, let delay): return failure(loss, after: delay)
    case .refuse(let delay): return failure(losses.refused, after: delay)
    case .failToEstablish:
      return [.post(.dialDue(device, dial: dial.number))]
    }
  }

  /// The device can be heard, or cannot be heard any more: a dial that waits for it goes on, or waits again.
  mutating func audibilityChanged(_ device: DeviceID, now: MonotonicInstant) -> [Effect] {
    guard let entry = devices[device], let dial = entry.dial, dial.behavior == .normal,
      !dial.isWaiting
    else { return [] }
    var effects: [Effect] = []
    if let timer = dial.connectTimer {
      devices[device]?.dial?.connectTimer = nil
      effects.append(.cancelTimer(timer))
    }
    guard entry.isAudible else { return effects }
    let timer = newNumber()
    devices[device]?.dial?.connectTimer = timer
    let due = nextAdvertisement(of: entry, now: now).advanced(by: configuration.connectLatency)
    effects.append(.timer(timer, at: due, .dialDue(device, dial: dial.number)))
    return effects
  }

  private func nextAdvertisement(of entry: Device, now: MonotonicInstant) -> MonotonicInstant {
    let interval = entry.interval.clampedNanoseconds
    guard interval > 0, now > entry.anchor else { return max(now, entry.anchor) }
    let passed = now.nanoseconds - entry.anchor.nanoseconds
    let periods = (passed + interval - 1) / interval
    return MonotonicInstant(nanoseconds: entry.anchor.nanoseconds + periods * interval)
  }

  // MARK: - Ends of dials

  mutating func dialDue(
    _ device: DeviceID, dial number: Int, now: MonotonicInstant, radio: VirtualRadio
  ) -> [Effect] {
    guard let dial = devices[device]?.dial, dial.number == number else { return [] }
    var effects = takeDial(device)
    if case .failToEstablish(let delay) = dial.behavior {
      let (link, opening) = open(device, to: nil, attempt: dial.attempt, now: now, radio: radio)
      let loss = Loss(
        central: losses.link(.connectionFailedToBeEstablished), peer: .connectionFailedToBeEstablished)
      effects += opening
      effects.append(endLater(link, loss, at: now.advanced(by: delay)))
    } else {
      let peer = devices[device]?.peer
      effects += open(device, to: peer, attempt: dial.attempt, now: now, radio: radio).effects
    }
    return effects
  }

  mutating func failDial(
    _ device: DeviceID, dial number: Int, _ loss: LinkLoss, now: MonotonicInstant
  ) -> [Effect] {
    guard let dial = devices[device]?.dial, dial.number == number else { return [] }
    return takeDial(device) + [refuse(device, dial.attempt, loss, now: now)]
  }

  mutating func cancelDial(_ device: DeviceID, dial number: Int?, now: MonotonicInstant) -> [Effect] {
    devices[device]?.statistics.cancels += 1
    trace.note(now, "cancel dial \(device)")
    guard let number else { return [] }
    return failDial(device, dial: number, LinkLoss(.requested), now: now)
  }

  /// A dial that a fault plan made hang goes on as if it began now.
  mutating func resumeFaultyDial(_ device: DeviceID, now: MonotonicInstant) -> [Effect] {
    guard let dial = devices[device]?.dial, dial.isFault, dial.behavior == .hang else { return [] }
    devices[device]?.dial?.behavior = .normal
    return dial.isWaiting ? [] : begin(device, now: now)
  }

  private mutating func takeDial(_ device: DeviceID) -> [Effect] {
    guard let dial = devices[device]?.dial else { return [] }
    devices[device]?.dial = nil
    pendingDials -= 1
    return [dial.limitTimer, dial.connectTimer].compactMap { $0.map(Effect.cancelTimer) }
  }

  private mutating func refuse(
    _ device: DeviceID, _ attempt: AttemptID, _ loss: LinkLoss, now: MonotonicInstant
  ) -> Effect {
    devices[device]?.statistics.failedDials += 1
    trace.note(now, "attempt \(attempt.rawValue) failed: \(loss.cause)")
    return .post(.word(.attemptFailed(device, attempt, loss)))
  }
}
