internal import BluetoothWire
internal import Relink

/// Decides how the link to one device is secured: with the keys of a bond, by pairing, or not at all.
///
/// ```
///            bond, keys may be handed over
/// resting ──────────▶ loadingKeys ──────────────────────────────▶ raising ── encrypted ──▶ resting
///    │ ▲                  ▲  │ pairing                              ▲
///    │ └─ refused         │  ▼                                      │ too low
///    ├────────────────────┘  lookingAtController ─▶ settingUp ─▶ pairing ── ended ──▶ resting
///    └── bond of somebody else ─────────────────────────────────▶ raising
/// ```
///
/// From every state the loss of the link leads to `over`, where answers that come late change nothing. Raising the
/// security of a socket pairs silently where the kernel has no key, so it is done only when there is one, or when
/// pairing is allowed.
struct SecuringStateMachine {
  /// What is known when security is asked for.
  struct Facts: Equatable, Sendable {
    /// How far the link is secured already.
    var level: SecurityLevel
    var bond: BondReading
    /// Whether bluetoothd answers the questions of pairings.
    var isDaemonRunning: Bool
    /// Whether the kernel takes keys, and commands to pair, from this process.
    var mayManage: Bool
  }

  /// What to do, in this order.
  enum Action: Equatable {
    /// Hand all bonds over to the kernel, those with this device only if `includesDevice`; then `keysLoaded`.
    case loadKeys(includesDevice: Bool)
    /// Ask which settings the adapter has.
    case readController
    case setBondable
    case setSecureConnections
    /// Raise the security of the socket; then `raiseFailed` or `becameWritable`.
    case raise(SecurityLevel)
    case pair(PairingAbilities)
    case cancelPairing
    /// Ask the user; the number comes back with `answered`.
    case ask(PairingQuestion, number: Int)
    case confirm(Bool)
    /// Nil refuses.
    case enter(UInt32?)
    /// Keep what pairing made.
    case keep([ManagementLongTermKey], ManagementIdentityResolvingKey?)
    case seen(as: ManagementAddress)
    /// The link is secured to this level. Nothing follows but a bond that is kept.
    case secured(SecurityLevel)
    /// It is not. Nothing follows.
    case notSecured(LinkLoss)
    /// The socket takes nothing any more: the link is of no use.
    case endLink
  }

  private struct Goal: Equatable {
    var level: SecurityLevel
    /// Nil where nothing pairs.
    var abilities: PairingAbilities?
  }

  private struct Pairing: Equatable {
    var goal: Goal
    /// The socket was raised too, since pairing alone did not reach the level.
    var isRaised = false
    var isSecured = false
    /// The kernel has made a key, to be kept or not.
    var isPaired = false
    var question: Question?
    var identity: ManagementIdentityResolvingKey?
    var keys: [ManagementLongTermKey] = []
  }

  private struct Question: Equatable {
    var number: Int
    var asked: PairingQuestion
  }

  /// What the adapter has to have on before it pairs.
  enum Setting: Equatable {
    case bondable
    case secureConnections
  }

  private enum State: Equatable {
    /// Exits: every state but `pairing`, or none where the answer is clear.
    case resting
    /// Exits: `raising`, `lookingAtController`, `resting`.
    case loadingKeys(Goal, pairs: Bool)
    /// Exits: `resting`.
    case raising(Goal)
    /// Exits: `settingUp`, `pairing`, `resting`.
    case lookingAtController(Goal)
    /// Exits: `pairing`.
    case settingUp(Goal, [Setting])
    /// Exits: `resting`.
    case pairing(Pairing)
    /// The link is gone, or about to be said so.
    case over
  }

  /// Each side makes one for either role at most.
  private static let mostKeys = 4

  private let device: ManagementAddress
  /// The device as people are to name it.
  private let name: String
  private var state = State.resting
  private var questions = 0

  init(_ device: ManagementAddress, name: String) {
    self.device = device
    self.name = name
  }

  /// Whether a pairing that was asked for here is under way.
  var isPairing: Bool {
    if case .pairing = state { true } else { false }
  }

  // MARK: What is asked for

  mutating func asked(
    for level: SecurityLevel, keys: SecurityPolicy.KeySource, _ facts: Facts
  ) -> [Action] {
    guard state == .resting else { return [] }
    guard facts.level < level else { return [.secured(facts.level)] }
    let abilities: PairingAbilities? =
      switch keys {
      case .bondOrPairing(let abilities): abilities
      case .bond: nil
      @unknown default: nil
      }
    let goal = Goal(level: level, abilities: abilities)
    switch facts.bond {
    case .kept(let bondLevel, isElsewhere: true) where bondLevel >= level && facts.isDaemonRunning:
      state = .raising(goal)
      return [.raise(level)]
    case .kept(let bondLevel, isElsewhere: false) where bondLevel >= level && !facts.isDaemonRunning:
      guard facts.mayManage else {
        return [
          .notSecured(
            LinkLoss(.bondMissing, evidence: [.observation(Words.mayNotLoad(name))]))
        ]
      }
      state = .loadingKeys(goal, pairs: false)
      return [.loadKeys(includesDevice: true)]
    case .kept, .missing, .unreadable:
      return withoutBond(goal, facts)
    }
  }

  private mutating func withoutBond(_ goal: Goal, _ facts: Facts) -> [Action] {
    guard let abilities = goal.abilities else {
      let words = Words.noBond(name, goal.level, facts)
      return [.notSecured(LinkLoss(.bondMissing, evidence: [.observation(words)]))]
    }
    let refusal: String? =
      if facts.isDaemonRunning {
        Words.daemonPairs(device.address.description)
      } else if abilities == .none, goal.level > .encrypted {
        Words.abilitiesMissing(goal.level)
      } else if !facts.mayManage, abilities != .none {
        Words.mayNotPair
      } else {
        nil
      }
    if let refusal {
      return [.notSecured(LinkLoss(.pairingFailed, evidence: [.observation(refusal)]))]
    }
    guard facts.mayManage else {
      state = .raising(goal)
      return [.raise(goal.level)]
    }
    state = .loadingKeys(goal, pairs: true)
    return [.loadKeys(includesDevice: false)]
  }

  // MARK: What follows

  /// The kernel has taken the keys, or refused them with this status.
  mutating func keysLoaded(_ status: ManagementStatus) -> [Action] {
    guard case .loadingKeys(let goal, let pairs) = state else { return [] }
    guard status == .success else {
      state = .resting
      let seen = Evidence.observation("the kernel did not take the keys: \(status)")
      return [.notSecured(LinkLoss(.bondMissing, evidence: [seen]))]
    }
    if pairs {
      state = .lookingAtController(goal)
      return [.readController]
    }
    state = .raising(goal)
    return [.raise(goal.level)]
  }

  /// The settings of the adapter are known; empty ones where it did not say.
  mutating func controllerRead(_ supported: ManagementSettings, _ current: ManagementSettings) -> [Action] {
    guard case .lookingAtController(let goal) = state else { return [] }
    var settings: [Setting] = []
    if !current.contains(.bondable) { settings.append(.bondable) }
    if supported.contains(.secureConnections), !current.contains(.secureConnections) {
      settings.append(.secureConnections)
    }
    return goOn(goal, settings)
  }

  /// One setting is made, or refused: pairing then says what is missing.
  mutating func settingMade(_ setting: Setting) -> [Action] {
    guard case .settingUp(let goal, let settings) = state, settings.first == setting else { return [] }
    return goOn(goal, Array(settings.dropFirst()))
  }

  private mutating func goOn(_ goal: Goal, _ settings: [Setting]) -> [Action] {
    switch settings.first {
    case .bondable:
      state = .settingUp(goal, settings)
      return [.setBondable]
    case .secureConnections:
      state = .settingUp(goal, settings)
      return [.setSecureConnections]
    case nil:
      state = .pairing(Pairing(goal: goal))
      return [.pair(goal.abilities ?? .none)]
    }
  }

  /// The kernel would not raise the socket's security; the level is what the link has.
  mutating func raiseFailed(_ error: Int32, level: SecurityLevel) -> [Action] {
    switch state {
    case .raising(let goal):
      state = .resting
      return level >= goal.level ? [.secured(level)] : [.notSecured(Self.loss(ofRaise: error))]
    case .pairing(let pairing) where pairing.isRaised:
      state = .resting
      return level >= pairing.goal.level
        ? [.secured(level)] : [.notSecured(Self.loss(ofRaise: error))]
    case .resting, .loadingKeys, .lookingAtController, .settingUp, .pairing, .over:
      return []
    }
  }

  private static func loss(ofRaise error: Int32) -> LinkLoss {
    LinkLoss(.unknown, evidence: [.observation("the kernel refused to raise the security: errno \(error)")])
  }

  /// The socket takes data again: the link is encrypted, and this is its level.
  mutating func becameWritable(level: SecurityLevel) -> [Action] {
    switch state {
    case .raising:
      state = .resting
    case .pairing(var pairing) where pairing.isRaised:
      pairing.isSecured = true
      // The keys are told when both sides have distributed theirs, which may be a moment later.
      state = pairing.isPaired ? .resting : .pairing(pairing)
      guard level > .none else { break }
      return (pairing.keys.isEmpty ? [] : [.keep(pairing.keys, pairing.identity)]) + [.secured(level)]
    case .resting, .loadingKeys, .lookingAtController, .settingUp, .pairing, .over:
      return []
    }
    guard level > .none else {
      state = .resting
      return [.notSecured(LinkLoss(.unknown, evidence: [.observation("the link is not encrypted")]))]
    }
    return [.secured(level)]
  }

  /// The link is gone: whatever was under way is over.
  mutating func linkClosed() {
    state = .over
  }

  /// The management interface is gone, and with it the answers that were awaited.
  mutating func managementClosed() -> [Action] {
    switch state {
    case .loadingKeys, .lookingAtController, .settingUp:
      state = .resting
    case .pairing(let pairing):
      state = .resting
      if pairing.isSecured { return [] }
      let loss = LinkLoss(.pairingFailed, evidence: [.observation(Words.managementGone)])
      return pairing.isRaised ? [.notSecured(loss), .endLink] : [.notSecured(loss)]
    case .resting, .raising, .over:
      return []
    }
    return [.notSecured(LinkLoss(.pairingFailed, evidence: [.observation(Words.managementGone)]))]
  }

  // MARK: What pairing brings

  /// Pair Device has ended with this status; the level is what the link has.
  mutating func pairingEnded(_ status: ManagementStatus, level: SecurityLevel) -> [Action] {
    guard case .pairing(var pairing) = state, !pairing.isRaised else { return [] }
    switch status {
    case .success where level < pairing.goal.level && !pairing.isPaired:
      // The link was encrypted before, which is all that the command asks for.
      pairing.isRaised = true
      state = .pairing(pairing)
      return [.raise(pairing.goal.level)]
    case .success:
      state = .resting
      return (pairing.keys.isEmpty ? [] : [.keep(pairing.keys, pairing.identity)]) + [.secured(level)]
    case .disconnected, .notConnected, .connectFailed, .notPowered, .invalidIndex, .blockedByRFKill:
      // The socket says why the link is gone.
      state = .over
      return []
    default:
      return failed(pairing, status)
    }
  }

  /// The kernel says that pairing or encryption with a device failed.
  mutating func authenticationFailed(_ other: ManagementAddress, _ status: ManagementStatus) -> [Action] {
    guard case .pairing(let pairing) = state, isOurs(other) else { return [] }
    if pairing.isSecured {
      // It had all that was asked for, but for keys to keep.
      state = .resting
      return []
    }
    return failed(pairing, status)
  }

  private mutating func failed(_ pairing: Pairing, _ status: ManagementStatus) -> [Action] {
    state = .resting
    let loss = LinkLoss(.unknown, evidence: [.pairing(status.rawValue)])
    return pairing.isRaised ? [.notSecured(loss), .endLink] : [.notSecured(loss)]
  }

  /// The kernel asks whether to go on with a pairing.
  ///
  /// One that nobody asked for here is refused at once: the device wants to pair, and the policy does not.
  mutating func confirmationRequested(
    _ other: ManagementAddress, isYesNoOnly: Bool, value: UInt32
  ) -> [Action] {
    guard isOurs(other) else { return [] }
    return ask(isYesNoOnly ? .consent : .comparison(value)) ?? [.confirm(false)] + unaskedPairingRefused()
  }

  /// The kernel asks for the digits that the device shows.
  mutating func passkeyRequested(_ other: ManagementAddress) -> [Action] {
    guard isOurs(other) else { return [] }
    return ask(.passkeyEntry) ?? [.enter(nil)] + unaskedPairingRefused()
  }

  /// The kernel has digits to show.
  mutating func passkeyNotified(_ other: ManagementAddress, _ passkey: UInt32) -> [Action] {
    guard isOurs(other) else { return [] }
    return ask(.passkeyDisplay(passkey)) ?? unaskedPairingRefused()
  }

  /// Nil where nobody asked for a pairing here: it is to be refused.
  private mutating func ask(_ question: PairingQuestion) -> [Action]? {
    guard case .pairing(var pairing) = state else { return nil }
    questions += 1
    pairing.question = Question(number: questions, asked: question)
    state = .pairing(pairing)
    return [.ask(question, number: questions)]
  }

  /// A pairing that nobody asked for here was refused.
  private mutating func unaskedPairingRefused() -> [Action] {
    guard case .raising = state else { return [] }
    // The kernel did not have the key after all; its socket does not come back from that.
    state = .resting
    let seen = Evidence.observation("the kernel had no key for \(name) and began to pair, which was refused")
    return [.notSecured(LinkLoss(.bondMissing, evidence: [seen])), .endLink]
  }

  /// The user has answered; only the answer to the latest question counts, and that once.
  mutating func answered(_ number: Int, _ answer: PairingAnswer) -> [Action] {
    guard case .pairing(var pairing) = state, let question = pairing.question, question.number == number
    else { return [] }
    pairing.question = nil
    state = .pairing(pairing)
    switch (question.asked, answer) {
    case (.consent, .accept), (.comparison, .accept): return [.confirm(true)]
    case (.consent, _), (.comparison, _): return [.confirm(false)]
    case (.passkeyEntry, .passkey(let digits)) where digits <= 999_999: return [.enter(digits)]
    case (.passkeyEntry, _): return [.enter(nil)]
    case (.passkeyDisplay, .refuse): return [.cancelPairing]
    case (.passkeyDisplay, _): return []
    @unknown default: return [.cancelPairing]
    }
  }

  /// Pairing made a key that encrypts links.
  mutating func keyMade(_ key: ManagementLongTermKey, shouldStore: Bool) -> [Action] {
    guard case .pairing(var pairing) = state, isOurs(key.device) else { return [] }
    pairing.isPaired = true
    if shouldStore, pairing.keys.count < Self.mostKeys { pairing.keys.append(key) }
    state = pairing.isSecured ? .resting : .pairing(pairing)
    return pairing.isSecured && !pairing.keys.isEmpty ? [.keep(pairing.keys, pairing.identity)] : []
  }

  /// A device told its identity, and the address that it had used until then.
  mutating func identityMade(
    _ key: ManagementIdentityResolvingKey, from address: BluetoothAddress?, shouldStore: Bool
  ) -> [Action] {
    guard case .pairing(var pairing) = state, isOurs(key.device) || address == device.address else {
      return []
    }
    if shouldStore { pairing.identity = key }
    identity = key.device
    state = .pairing(pairing)
    return key.device == device ? [] : [.seen(as: key.device)]
  }

  /// What the device turned out to be called; the kernel names it so from then on.
  private(set) var identity: ManagementAddress?

  private func isOurs(_ other: ManagementAddress) -> Bool { other == device || other == identity }
}
