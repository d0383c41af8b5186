internal import BluetoothWire
internal import Relink

/// What a virtual radio knows: a machine that says what to do and does nothing.
struct RadioState {
  /// Something that is to happen in a job of its own.
  enum Event: Sendable {
    case arrival(link: Int, towardsPeer: Bool)
    case word(Word)
    case peerOpened(any VirtualPeer, PeerLink)
    case peerClosed(any VirtualPeer, PeerLink, HCIErrorCode)
    case dialDue(DeviceID, dial: Int)
    case dialFails(DeviceID, dial: Int, LinkLoss)
    case linkDies(link: Int, Loss)
    case adapterReturns(outage: Int)
    case deviceReturns(DeviceID, outage: Int)
    case unblocked(VirtualChannel)
    case securing(link: Int, number: Int, SecuringStep)
    case peerSecurity(any VirtualPeer, PeerSecurity)
  }

  /// What the host's side is told; it can be held.
  enum Word: Sendable {
    case linkUp(DeviceID, VirtualChannel, AttemptID?)
    case attemptFailed(DeviceID, AttemptID, LinkLoss)
    case adapterChanged(DeviceID, AdapterState)
    case received(DeviceID, VirtualChannel, [UInt8])
    case writable(DeviceID, VirtualChannel)
    case closed(DeviceID, VirtualChannel, LinkLoss)
    case secured(DeviceID, VirtualChannel, SecurityLevel)
    case notSecured(DeviceID, VirtualChannel, LinkLoss)
    case asks(DeviceID, VirtualChannel, PairingQuestion, securing: Int)
    case seen(DeviceID, as: DeviceID, [Evidence])
  }

  /// Why an ACL link ends, as each side is told.
  struct Loss: Sendable {
    var central: LinkLoss
    var peer: HCIErrorCode
  }

  /// What to do, outside the lock, in order.
  enum Effect: Sendable {
    case post(Event)
    case timer(Int, at: MonotonicInstant, Event)
    case cancelTimer(Int)
    /// Happens in this job, behind the effects before it.
    case now(Event)
    case tell(Word)
    case tellPeer(any VirtualPeer, PeerLink, [UInt8])
  }

  struct WeakHandler {
    weak var handler: (any LinkHandler)?
  }

  struct Device {
    var peer: (any VirtualPeer)?
    var isAdvertising = true
    var interval: Duration = .zero
    /// The instant of one of its advertisements.
    var anchor = MonotonicInstant.zero
    /// The outage that keeps it out of range.
    var outage: Int?
    var behavior = DialBehavior.normal
    var script: [DialBehavior] = []
    var handler = WeakHandler()
    var dial: Dial?
    var link: Int?
    var linkIDs: [LinkID] = []
    var statistics = Statistics()
    /// How far its links are secured from their start; nil for what the configuration says.
    var security: SecurityLevel?
    var bond = Bond()
    var pairing = PairingBehavior.justWorks
    /// How long it takes to encrypt its links; nil for what the configuration says.
    var encryptionTime: Duration?

    typealias Statistics = VirtualRadio.Statistics

    var isAudible: Bool { peer != nil && isAdvertising && outage == nil }
  }

  struct Dial {
    var number: Int
    var attempt: AttemptID
    var behavior: DialBehavior
    var limit: Duration
    /// Whether a fault plan, and not a script, made it what it is.
    var isFault: Bool
    /// Whether it waits for an old link to be gone.
    var isWaiting = false
    /// The timer of its limit, or of its failure.
    var limitTimer: Int?
    /// The timer of the link that is coming up.
    var connectTimer: Int?
  }

  struct ACLLink {
    var device: DeviceID
    var upSince: MonotonicInstant
    /// Nil for a link that the peer never heard of.
    var peer: (any VirtualPeer)?
    var peerLink: PeerLink?
    /// Whether everything vanishes on it, both ways, and nobody is told.
    var isSilent = false
    /// The channel in use; nil once it was closed from here.
    var open: VirtualChannel?
    /// Every channel that waits for the link to be gone.
    var channels: [VirtualChannel] = []
    /// The timer that ends it, and when.
    var ending: (timer: Int, due: MonotonicInstant)?
    var towardsPeer = Lane()
    var towardsCentral = Lane()
    /// The timer of the channel's being full; zero where the test decides.
    var blocked: Int?
    /// Whether somebody was told to wait for `channelWritable`.
    var isAwaited = false
    var isPeerDone = false
    /// Whether the central has received anything on it.
    var hasSpoken = false
    /// How far it is encrypted.
    var security = SecurityLevel.none
    var securing: Securing?
  }

  /// One direction of a link: what is in the air, in order.
  struct Lane {
    enum Item {
      case pdu([UInt8], FaultPlan.PDUFault, timer: Int?)
      case termination(HCIErrorCode, timer: Int?)
    }
    var items: [Item] = []
    var lastDue = MonotonicInstant.zero
  }

  let configuration: VirtualRadio.Configuration
  let losses: RadioLosses
  var waitsForOldLinks: Bool
  var adapter = AdapterState.on
  /// The outage that keeps the adapter off; nil where a test switched it off.
  var adapterOutage: Int?
  var devices: [DeviceID: Device] = [:]
  var links: [Int: ACLLink] = [:]
  var plan = FaultPlan.none
  var trace: RadioTrace
  var holding: Set<VirtualRadio.DeliveryKind> = []
  var held: [Held] = []
  var pendingDials = 0
  var maximumPendingDials = 0

  private var lastNumber = 0
  private var lastLink = 0
  private var lastChannel = 0
  private var lastKey: UInt64 = 0

  init(configuration: VirtualRadio.Configuration) {
    self.configuration = configuration
    losses = RadioLosses(isExact: configuration.knowsExactReason)
    waitsForOldLinks = configuration.waitsForOldLinks
    trace = RadioTrace(limit: configuration.traceLimit)
  }

  // MARK: - Names

  /// A number for a timer, a dial, an outage or a held delivery: never used twice.
  mutating func newNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  mutating func newLinkNumber() -> Int {
    lastLink += 1
    return lastLink
  }

  mutating func newChannelNumber() -> Int {
    lastChannel += 1
    return lastChannel
  }

  mutating func newKeyNumber() -> UInt64 {
    lastKey += 1
    return lastKey
  }

  /// Devices in an order that is the same each time.
  var orderedDevices: [DeviceID] { devices.keys.sorted { $0.description < $1.description } }

  // MARK: - Events

  mutating func handle(_ event: Event, now: MonotonicInstant, radio: VirtualRadio) -> [Effect] {
    switch event {
    case .arrival(let link, let towardsPeer): return arrived(link, towardsPeer: towardsPeer, now: now)
    case .word(let word): return hold(word) ? [] : [.tell(word)]
    case .peerOpened, .peerClosed, .peerSecurity: return []
    case .dialDue(let device, let dial): return dialDue(device, dial: dial, now: now, radio: radio)
    case .dialFails(let device, let dial, let loss): return failDial(device, dial: dial, loss, now: now)
    case .linkDies(let link, let loss): return end(link, loss, now: now)
    case .adapterReturns(let outage):
      guard adapterOutage == outage else { return [] }
      return setAdapter(.on, now: now)
    case .deviceReturns(let device, let outage):
      guard devices[device]?.outage == outage else { return [] }
      return comeBack(device, now: now)
    case .unblocked(let channel): return unblock(channel.linkNumber)
    case .securing(let link, let number, let step): return securing(link, number, step, now: now)
    }
  }

  // MARK: - The adapter

  mutating func setAdapter(_ new: AdapterState, for outage: Duration? = nil, now: MonotonicInstant)
    -> [Effect]
  {
    guard new != adapter else {
      // A test's word takes the place of a fault's.
      if outage == nil { adapterOutage = nil }
      return []
    }
    adapter = new
    adapterOutage = nil
    trace.note(now, "adapter \(new)")
    var effects: [Effect] = []
    if new != .on {
      for device in orderedDevices {
        if let dial = devices[device]?.dial {
          effects += failDial(device, dial: dial.number, losses.dial(without: new), now: now)
        }
      }
      // A host that powers off takes leave of its devices; one that is pulled out does not.
      let peer: HCIErrorCode =
        new == .missing ? .connectionTimeout : .remoteDeviceTerminatedPowerOff
      for link in links.keys.sorted() {
        effects += end(link, Loss(central: losses.link(without: new), peer: peer), now: now)
      }
      if let outage {
        let number = newNumber()
        adapterOutage = number
        effects.append(.timer(newNumber(), at: now.advanced(by: outage), .adapterReturns(outage: number)))
      }
    }
    for device in orderedDevices where devices[device]?.handler.handler != nil {
      effects.append(.post(.word(.adapterChanged(device, new))))
    }
    return effects
  }

  // MARK: - Devices

  mutating func advertise(
    _ isAdvertising: Bool, _ device: DeviceID, interval: Duration?, now: MonotonicInstant
  ) -> [Effect] {
    devices[device, default: Device()].isAdvertising = isAdvertising
    if let interval { devices[device]?.interval = interval }
    devices[device]?.anchor = now
    trace.note(now, "\(device) \(isAdvertising ? "advertises" : "is mute")")
    return audibilityChanged(device, now: now)
  }

  mutating func leave(_ device: DeviceID, for span: Duration?, now: MonotonicInstant) -> [Effect] {
    let outage = newNumber()
    devices[device, default: Device()].outage = outage
    trace.note(now, "\(device) leaves")
    var effects = audibilityChanged(device, now: now)
    if let link = devices[device]?.link {
      let loss = Loss(central: losses.link(.connectionTimeout), peer: .connectionTimeout)
      if configuration.supervisionTimeout > .zero {
        links[link]?.isSilent = true
        effects.append(endLater(link, loss, at: now.advanced(by: configuration.supervisionTimeout)))
      } else {
        effects += end(link, loss, now: now)
      }
    }
    if let span {
      effects.append(
        .timer(newNumber(), at: now.advanced(by: span), .deviceReturns(device, outage: outage)))
    }
    return effects
  }

  mutating func comeBack(_ device: DeviceID, now: MonotonicInstant) -> [Effect] {
    guard devices[device]?.outage != nil else { return [] }
    devices[device]?.outage = nil
    devices[device]?.anchor = now
    trace.note(now, "\(device) is back")
    return audibilityChanged(device, now: now)
  }

  // MARK: - Healing

  /// Ends the fault plan and everything that it began.
  mutating func heal(now: MonotonicInstant) -> [Effect] {
    plan.heal()
    trace.note(now, "healed")
    var effects: [Effect] = []
    if adapterOutage != nil { effects += setAdapter(.on, now: now) }
    for device in orderedDevices {
      effects += comeBack(device, now: now)
      effects += resumeFaultyDial(device, now: now)
    }
    for link in links.keys.sorted() where (links[link]?.blocked ?? 0) > 0 { effects += unblock(link) }
    return effects
  }
}
