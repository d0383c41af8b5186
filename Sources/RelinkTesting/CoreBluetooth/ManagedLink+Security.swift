internal import BluetoothWire
public import Relink

// The platform secures its links by itself: a request that the device refuses for want of security makes it encrypt the
// link, or pair, and ask again. Nobody above it is asked, or told.
extension ManagedLink {
  /// Whether a job that was refused is kept, to be asked for again on a link that is more secure than now.
  func setAside(_ job: Job, in lane: Lane, for code: ATTErrorCode) -> Bool {
    guard code == .insufficientEncryption || code == .insufficientAuthentication else { return false }
    let hasBond = radio.withState { $0.devices[device]?.bond != nil }
    let isKept = state.withLock { state in
      // A bond that is in use already has no more to give; without one there is pairing.
      guard state.security > job.askedAt || state.security == .none || !hasBond else { return false }
      state.lanes[lane]?[0].refusal = code
      state.lanes[lane]?[0].kind = job.asked
      state.lanes[lane]?[0].hasStarted = false
      return true
    }
    if isKept { cancelDeadline(job.bearer) }
    return isKept
  }

  /// Encrypts the link; a try that is under way serves those that come meanwhile.
  func secure(for job: Job) {
    let (isSecured, isFirst) = state.withLock { state in
      let isSecured = state.security > job.askedAt
      defer { state.isSecuring = !isSecured || state.isSecuring }
      return (isSecured, !isSecured && !state.isSecuring)
    }
    if isSecured { return askAgain() }
    guard isFirst else { return }
    let (bond, isKept, pairing) = radio.withState { state in
      let known = state.devices[device]
      return (known?.bond, known?.isBondKept ?? false, known?.pairing ?? .justWorks)
    }
    after(configuration.encryptionTime) { link in
      guard link.state.withLock({ $0.isUp && !$0.isClosing && !$0.isSilent }) else { return }
      if let bond {
        guard isKept else {
          return link.lost(
            .platform(.keyMissing, "the platform says that the peer removed its pairing information"))
        }
        return link.secured(bond)
      }
      link.pair(pairing)
    }
  }

  /// The platform asks its user in a window of its own, who agrees to whatever it shows.
  private func pair(_ behavior: PairingBehavior) {
    peripheral.pairingRequested()
    if behavior == .silent {
      return after(.seconds(30)) { $0.lost(.platform(.unknown, "the platform says that pairing timed out")) }
    }
    guard let method = behavior.method(with: .keyboardDisplay) else { return notSecured() }
    let answer: PairingAnswer =
      if case .passkeyShown(let digits) = behavior { .passkey(digits) } else { .accept }
    guard behavior.accepts(answer, to: method.question) else { return notSecured() }
    radio.withState { state in
      state.devices[device]?.bond = method.level
      state.devices[device]?.isBondKept = true
    }
    peripheral.bondMade(with: client)
    secured(method.level)
  }

  private func secured(_ level: SecurityLevel) {
    peripheral.encrypted(self, to: level)
    state.withLock { state in
      state.security = level
      state.isSecuring = false
    }
    askAgain()
  }

  private func askAgain() {
    for (lane, _) in refused() {
      // On a bearer of its own, as if it had never been asked.
      state.withLock { state in
        state.lanes[lane]?[0].refusal = nil
        state.lanes[lane]?[0].bearer = state.nextBearer
        state.nextBearer += 1
      }
      advance(lane)
    }
  }

  /// Each request that waits gets the device's answer.
  private func notSecured() {
    state.withLock { $0.isSecuring = false }
    for (lane, job) in refused() {
      guard let code = job.refusal else { continue }
      finish(job, in: lane, .failure(.rejected(code)))
    }
  }

  private func refused() -> [(Lane, Job)] {
    let lanes = state.withLock { state in
      state.lanes.compactMap { lane, jobs in jobs.first.flatMap { $0.refusal == nil ? nil : (lane, $0) } }
    }
    return lanes.sorted { $0.1.bearer < $1.1.bearer }
  }
}

extension ManagedRadio {
  /// Bonds the platform with a device.
  ///
  /// - Parameters:
  ///   - device: The device, which has to be known.
  ///   - level: What links are worth with the keys.
  public func bond(_ device: DeviceID, level: SecurityLevel = .encrypted) {
    let peripheral = withState { state in
      state.devices[device]?.bond = level
      state.devices[device]?.isBondKept = true
      return state.devices[device]?.peripheral
    }
    peripheral?.bondMade(with: configuration.client)
  }

  /// Lets the device forget its half of a bond: the next encryption ends the link, and the platform says why.
  ///
  /// - Parameter device: The device.
  public func forgetBond(atPeripheral device: DeviceID) {
    let peripheral = withState { state in
      state.devices[device]?.isBondKept = false
      return state.devices[device]?.peripheral
    }
    peripheral?.bondForgotten(with: configuration.client)
  }

  /// Lets the platform forget its half of a bond, as its user does in the settings.
  ///
  /// - Parameter device: The device.
  public func forgetBond(atHost device: DeviceID) {
    withState { $0.devices[device]?.bond = nil }
  }

  /// Says how a device takes it to be paired with, from now on; the platform's user agrees to everything.
  ///
  /// - Parameters:
  ///   - behavior: How.
  ///   - device: The device.
  public func setPairing(_ behavior: PairingBehavior, of device: DeviceID) {
    withState { $0.devices[device]?.pairing = behavior }
  }
}
