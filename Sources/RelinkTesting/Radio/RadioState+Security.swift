internal import BluetoothWire
internal import Relink

// Keys, encryption and pairing.
extension RadioState {
  /// A key that one side keeps.
  struct Key: Hashable {
    /// The same on both sides, or it is of no use.
    var number: UInt64
    var level: SecurityLevel
  }

  /// What each side keeps of a bond; either may forget.
  struct Bond {
    var atHost: Key?
    var atPeripheral: Key?
    /// How many there have been at the host.
    var count: UInt64 = 0
  }

  /// A try to secure a link.
  struct Securing {
    /// Its name; what comes later of an earlier one changes nothing.
    var number: Int
    var level: SecurityLevel
    var channel: VirtualChannel
    /// What the user here is asked, and the level that comes of it.
    var method: (question: PairingQuestion, level: SecurityLevel)?
    /// The timer that it waits for.
    var timer: Int?
  }

  enum SecuringStep: Sendable {
    /// The device has the request to encrypt the link.
    case encryptionArrived
    /// The device has the request to pair.
    case pairingArrived(PairingAbilities)
    case answered(PairingAnswer)
    /// The pairing has made its keys.
    case paired
    /// Nothing was heard of the device, or of the user, for too long.
    case timedOut
    /// What was encrypted with a wrong key cannot be read.
    case unreadable
  }

  /// What the peer is told, in a job of its own.
  enum PeerSecurity: Sendable {
    case pairingRequested(PeerLink)
    case encrypted(PeerLink, SecurityLevel)
    case bondMade(String)
    case bondForgotten(String)

    func tell(_ peer: any VirtualPeer) {
      switch self {
      case .pairingRequested(let link): peer.pairingRequested(on: link)
      case .encrypted(let link, let level): peer.linkEncrypted(link, to: level)
      case .bondMade(let client): peer.bondMade(with: client)
      case .bondForgotten(let client): peer.bondForgotten(with: client)
      }
    }
  }

  /// How long a pairing waits for the other side (Core Specification Vol 3 Part H 3.4).
  private static let pairingTimeout = Duration.seconds(30)
  /// How long it takes until a packet fails its check that was encrypted with another key.
  private static let wrongKeyTime = Duration.milliseconds(30)
  /// Authentication Failed, which is what Linux says of every pairing that the two sides did not agree on.
  private static let pairingRefused: UInt8 = 0x05
  /// Timeout, in the same numbering.
  private static let pairingTimedOut: UInt8 = 0x08

  /// How far a link is secured.
  func security(of number: Int) -> SecurityLevel {
    guard let link = links[number] else { return .none }
    return max(link.security, devices[link.device]?.security ?? configuration.security)
  }

  // MARK: - The host's side

  mutating func secure(
    _ channel: VirtualChannel, to level: SecurityLevel, _ keys: SecurityPolicy.KeySource,
    now: MonotonicInstant
  ) -> [Effect] {
    let number = channel.linkNumber
    guard let link = links[number], link.open === channel, link.securing == nil else { return [] }
    let device = link.device
    if !link.hasSpoken { devices[device]?.statistics.earlySecuring += 1 }
    let present = security(of: number)
    trace.note(now, "#\(number) secure to \(level)")
    guard present < level else { return [.post(.word(.secured(device, channel, present)))] }
    let key = devices[device]?.bond.atHost
    if case .bondOrPairing(let abilities) = keys, key.map({ $0.level < level }) ?? true {
      begin(level, on: number, channel)
      return goOn(number, .pairingArrived(abilities), after: configuration.latency, now: now)
    }
    guard key != nil else {
      let seen = Evidence.observation("this host has no bond with the device")
      return [.post(.word(.notSecured(device, channel, LinkLoss(.bondMissing, evidence: [seen]))))]
    }
    begin(level, on: number, channel)
    return goOn(number, .encryptionArrived, after: encryptionTime(of: device), now: now)
  }

  private mutating func begin(_ level: SecurityLevel, on number: Int, _ channel: VirtualChannel) {
    let name = newNumber()
    links[number]?.securing = Securing(number: name, level: level, channel: channel)
  }

  private func encryptionTime(of device: DeviceID) -> Duration {
    devices[device]?.encryptionTime ?? configuration.encryptionTime
  }

  /// Lets the next step of a try come after a while, in place of what it waited for before.
  private mutating func goOn(
    _ number: Int, _ step: SecuringStep, after span: Duration, now: MonotonicInstant
  ) -> [Effect] {
    guard let securing = links[number]?.securing else { return [] }
    let event = Event.securing(link: number, number: securing.number, step)
    let before: [Effect] = securing.timer.map { [.cancelTimer($0)] } ?? []
    links[number]?.securing?.timer = nil
    guard span > .zero else { return before + [.post(event)] }
    let timer = newNumber()
    links[number]?.securing?.timer = timer
    return before + [.timer(timer, at: now.advanced(by: span), event)]
  }

  // MARK: - What happens then

  mutating func securing(
    _ number: Int, _ name: Int, _ step: SecuringStep, now: MonotonicInstant
  ) -> [Effect] {
    guard let link = links[number], let securing = link.securing, securing.number == name else { return [] }
    switch step {
    case .encryptionArrived: return encryptionArrived(number, link, securing, now: now)
    case .pairingArrived(let abilities): return pairingArrived(number, link, securing, abilities, now: now)
    case .answered(let answer): return answered(number, link, securing, answer, now: now)
    case .paired: return paired(number, link, securing, now: now)
    case .timedOut:
      let failed = fail(number, link, securing, [.pairing(Self.pairingTimedOut)], now: now)
      return failed + [.now(.linkDies(link: number, loss(.connectionTerminatedByLocalHost)))]
    case .unreadable: return end(number, loss(.connectionTerminatedMICFailure), now: now)
    }
  }

  private mutating func encryptionArrived(
    _ number: Int, _ link: ACLLink, _ securing: Securing, now: MonotonicInstant
  ) -> [Effect] {
    guard !link.isSilent, let bond = devices[link.device]?.bond, let key = bond.atHost else { return [] }
    guard let other = bond.atPeripheral else {
      return end(
        number, Loss(central: losses.keyMissing, peer: .connectionTerminatedByLocalHost), now: now)
    }
    guard other.number == key.number else {
      trace.note(now, "#\(number) encrypted with two keys")
      links[number]?.security = key.level
      // Nothing that either side sends is understood from now on.
      links[number]?.isSilent = true
      return [.post(.word(.secured(link.device, securing.channel, key.level)))]
        + goOn(number, .unreadable, after: Self.wrongKeyTime, now: now)
    }
    return encrypted(number, link, securing, key.level, now: now)
  }

  private mutating func encrypted(
    _ number: Int, _ link: ACLLink, _ securing: Securing, _ level: SecurityLevel, now: MonotonicInstant
  ) -> [Effect] {
    trace.note(now, "#\(number) encrypted: \(level)")
    links[number]?.security = level
    links[number]?.securing = nil
    var effects: [Effect] = []
    if let peer = link.peer, let peerLink = link.peerLink {
      effects.append(.post(.peerSecurity(peer, .encrypted(peerLink, level))))
    }
    guard level < securing.level else {
      return effects + [.post(.word(.secured(link.device, securing.channel, level)))]
    }
    let seen = Evidence.observation("the bond is worth \(level), and \(securing.level) is asked for")
    let loss = LinkLoss(.bondMissing, evidence: [seen])
    return effects + [.post(.word(.notSecured(link.device, securing.channel, loss)))]
  }

  private mutating func pairingArrived(
    _ number: Int, _ link: ACLLink, _ securing: Securing, _ abilities: PairingAbilities, now: MonotonicInstant
  ) -> [Effect] {
    let waiting = goOn(number, .timedOut, after: Self.pairingTimeout, now: now)
    guard !link.isSilent, let peer = link.peer, let peerLink = link.peerLink else { return waiting }
    trace.note(now, "#\(number) pairing requested")
    let told: [Effect] = [.post(.peerSecurity(peer, .pairingRequested(peerLink)))]
    let behavior = devices[link.device]?.pairing ?? .justWorks
    if behavior == .silent { return told + waiting }
    guard let method = behavior.method(with: abilities), method.level >= securing.level else {
      return told + waiting + fail(number, link, securing, [.pairing(Self.pairingRefused)], now: now)
    }
    links[number]?.securing?.method = method
    let question = Word.asks(link.device, securing.channel, method.question, securing: securing.number)
    return told + waiting + [.post(.word(question))]
  }

  private mutating func answered(
    _ number: Int, _ link: ACLLink, _ securing: Securing, _ answer: PairingAnswer, now: MonotonicInstant
  ) -> [Effect] {
    guard let question = securing.method?.question, !link.isSilent else { return [] }
    trace.note(now, "#\(number) pairing answered")
    guard devices[link.device]?.pairing.accepts(answer, to: question) ?? false else {
      return fail(number, link, securing, [.pairing(Self.pairingRefused)], now: now)
    }
    return goOn(number, .paired, after: encryptionTime(of: link.device), now: now)
  }

  private mutating func paired(
    _ number: Int, _ link: ACLLink, _ securing: Securing, now: MonotonicInstant
  ) -> [Effect] {
    guard !link.isSilent, let level = securing.method?.level else { return [] }
    return makeBond(link.device, level) + encrypted(number, link, securing, level, now: now)
  }

  private mutating func fail(
    _ number: Int, _ link: ACLLink, _ securing: Securing, _ evidence: [Evidence], now: MonotonicInstant
  ) -> [Effect] {
    trace.note(now, "#\(number) not secured")
    let timer = links[number]?.securing?.timer
    links[number]?.securing = nil
    let loss = LinkLoss(.unknown, evidence: evidence)
    return (timer.map { [.cancelTimer($0)] } ?? [])
      + [.post(.word(.notSecured(link.device, securing.channel, loss)))]
  }

  // MARK: - Bonds

  /// Gives both sides the same new key.
  mutating func makeBond(_ device: DeviceID, _ level: SecurityLevel) -> [Effect] {
    let key = Key(number: newKeyNumber(), level: level)
    devices[device, default: Device()].bond.atHost = key
    devices[device]?.bond.atPeripheral = key
    devices[device]?.bond.count += 1
    guard let peer = devices[device]?.peer else { return [] }
    return [.post(.peerSecurity(peer, .bondMade(configuration.clientName)))]
  }

  /// Lets the peripheral forget its key.
  mutating func forgetAtPeripheral(_ device: DeviceID) -> [Effect] {
    devices[device]?.bond.atPeripheral = nil
    guard let peer = devices[device]?.peer else { return [] }
    return [.post(.peerSecurity(peer, .bondForgotten(configuration.clientName)))]
  }

  /// Gives the host a key that is not the peripheral's.
  mutating func spoilKey(_ device: DeviceID) {
    let level = devices[device]?.bond.atHost?.level ?? .encrypted
    let (wrong, other) = (newKeyNumber(), newKeyNumber())
    devices[device, default: Device()].bond.atHost = Key(number: wrong, level: level)
    if devices[device]?.bond.atPeripheral == nil {
      devices[device]?.bond.atPeripheral = Key(number: other, level: level)
    }
  }

  /// Removes the host's key, and ends the link that it encrypts.
  mutating func removeBond(_ device: DeviceID, now: MonotonicInstant) -> [Effect] {
    guard devices[device]?.bond.atHost != nil else { return [] }
    devices[device]?.bond.atHost = nil
    trace.note(now, "bond with \(device) removed")
    guard let number = devices[device]?.link, let link = links[number],
      link.security > .none || link.securing != nil
    else { return [] }
    return end(number, loss(.connectionTerminatedByLocalHost), now: now)
  }

  func knowledge(of device: DeviceID) -> BondKnowledge {
    guard let bond = devices[device]?.bond, let key = bond.atHost else { return .none }
    return .bonded(BondRecord(device: device, id: bond.count, level: key.level, keySize: 16))
  }

  // MARK: - Identity

  /// A device is heard under another name from now on.
  mutating func rename(
    _ device: DeviceID, to other: DeviceID, _ evidence: [Evidence], now: MonotonicInstant
  ) -> [Effect] {
    guard let peer = devices[device]?.peer, device != other else { return [] }
    trace.note(now, "\(device) is \(other) from now on")
    var effects = leave(device, for: nil, now: now)
    devices[device]?.outage = nil
    devices[device]?.peer = nil
    devices[other, default: Device()].peer = peer
    let interval = devices[device]?.interval
    effects += advertise(true, other, interval: interval, now: now)
    return effects + [.post(.word(.seen(device, as: other, evidence)))]
  }
}
