import BluetoothWire
import Relink
import Testing

@testable import RelinkBlueZ

struct SecuringStateMachineTests {
  private typealias Machine = SecuringStateMachine

  private static let device = ManagementAddress(BluetoothAddress(0xF0_F0_F0_F0_F0_02), .leRandom)
  private static let other = ManagementAddress(BluetoothAddress(0xC0_DE_00_00_00_09), .leRandom)
  private static let identity = ManagementAddress(BluetoothAddress(0xC0_DE_00_00_00_01), .leRandom)

  private static func machine() -> Machine { Machine(device, name: "F0:F0:F0:F0:F0:02/random") }

  private static func facts(
    level: SecurityLevel = .none, _ bond: BondReading = .missing, daemon: Bool = false, manage: Bool = true
  ) -> Machine.Facts {
    Machine.Facts(level: level, bond: bond, isDaemonRunning: daemon, mayManage: manage)
  }

  private static func key(_ device: ManagementAddress = device) throws -> ManagementLongTermKey {
    ManagementLongTermKey(
      device: device, type: .authenticatedP256, isCentral: true, encryptionSize: 16, encryptedDiversifier: 0,
      randomNumber: 0, value: try #require(SecurityKey([UInt8](repeating: 7, count: 16))))
  }

  /// A machine whose pairing is under way.
  private static func pairing(
    _ level: SecurityLevel = .encrypted, _ abilities: PairingAbilities = .keyboardDisplay
  ) -> Machine {
    var machine = machine()
    _ = machine.asked(for: level, keys: .bondOrPairing(abilities), facts())
    _ = machine.keysLoaded(.success)
    _ = machine.controllerRead([], [.bondable])
    #expect(machine.isPairing)
    return machine
  }

  private static func reason(_ actions: [Machine.Action]) -> DisconnectReason? {
    guard actions.count == 1, case .notSecured(let loss) = actions[0] else { return nil }
    return loss.reason
  }

  // MARK: With a bond

  @Test func theKeysGoToTheKernelRightBeforeTheRaise() {
    var machine = Self.machine()
    let facts = Self.facts(.kept(.encrypted, isElsewhere: false))
    #expect(machine.asked(for: .encrypted, keys: .bond, facts) == [.loadKeys(includesDevice: true)])
    #expect(machine.keysLoaded(.success) == [.raise(.encrypted)])
    #expect(machine.becameWritable(level: .encrypted) == [.secured(.encrypted)])
    #expect(machine.becameWritable(level: .encrypted) == [])
  }

  @Test func besideBluetoothdNoKeysAreLoaded() {
    var machine = Self.machine()
    let facts = Self.facts(.kept(.authenticated, isElsewhere: true), daemon: true)
    #expect(machine.asked(for: .encrypted, keys: .bond, facts) == [.raise(.encrypted)])
  }

  @Test func aLinkThatIsSecureEnoughIsLeftAlone() {
    var machine = Self.machine()
    let facts = Self.facts(level: .authenticated)
    #expect(machine.asked(for: .encrypted, keys: .bond, facts) == [.secured(.authenticated)])
  }

  /// Raising the security would pair in each of these cases.
  @Test(arguments: [
    (BondReading.missing, false, true), (.unreadable, false, true), (.unreadable, true, true),
    (.missing, true, false), (.kept(.encrypted, isElsewhere: false), false, false),
    (.kept(.encrypted, isElsewhere: false), true, true), (.kept(.encrypted, isElsewhere: true), false, true),
  ])
  func withoutKeysInTheKernelNothingIsRaised(_ bond: BondReading, daemon: Bool, manage: Bool) {
    var machine = Self.machine()
    let actions = machine.asked(
      for: .encrypted, keys: .bond, Self.facts(bond, daemon: daemon, manage: manage))
    #expect(Self.reason(actions) == .bondMissing)
  }

  @Test func aBondThatIsTooWeakIsNoneForThisLevel() {
    var machine = Self.machine()
    let facts = Self.facts(.kept(.encrypted, isElsewhere: false))
    #expect(Self.reason(machine.asked(for: .authenticated, keys: .bond, facts)) == .bondMissing)
    let actions = machine.asked(for: .authenticated, keys: .bondOrPairing(.displayYesNo), facts)
    #expect(actions == [.loadKeys(includesDevice: false)], "the old key would stand in the way")
  }

  @Test func keysThatTheKernelRefusesRaiseNothing() {
    var machine = Self.machine()
    _ = machine.asked(for: .encrypted, keys: .bond, Self.facts(.kept(.encrypted, isElsewhere: false)))
    #expect(Self.reason(machine.keysLoaded(.permissionDenied)) == .bondMissing)
  }

  /// The key was gone after all, and the kernel began to pair.
  @Test func aPairingThatTheRaiseBeganIsRefusedAndTheLinkEnded() {
    var machine = Self.machine()
    _ = machine.asked(for: .encrypted, keys: .bond, Self.facts(.kept(.encrypted, isElsewhere: false)))
    _ = machine.keysLoaded(.success)
    let actions = machine.confirmationRequested(Self.device, isYesNoOnly: true, value: 0)
    #expect(actions.first == .confirm(false))
    #expect(actions.last == .endLink)
    #expect(Self.reason(Array(actions.dropFirst().dropLast())) == .bondMissing)
    #expect(machine.becameWritable(level: .encrypted) == [])
  }

  // MARK: Pairing is refused

  @Test func besideBluetoothdNothingPairs() {
    var machine = Self.machine()
    for bond in [BondReading.missing, .unreadable] {
      let actions = machine.asked(
        for: .encrypted, keys: .bondOrPairing(.none), Self.facts(bond, daemon: true))
      #expect(Self.reason(actions) == .pairingFailed)
      guard case .notSecured(let loss)? = actions.first else { continue }
      #expect(loss.evidence.first?.description.contains("bluetoothctl pair F0:F0:F0:F0:F0:02") == true)
    }
  }

  @Test func aPolicyWithoutAbilitiesCannotReachMoreThanEncryption() {
    var machine = Self.machine()
    let actions = machine.asked(for: .authenticated, keys: .bondOrPairing(.none), Self.facts())
    #expect(Self.reason(actions) == .pairingFailed)
  }

  @Test func withoutPrivilegesOnlyJustWorksIsTried() {
    var machine = Self.machine()
    let facts = Self.facts(.unreadable, manage: false)
    #expect(
      Self.reason(machine.asked(for: .encrypted, keys: .bondOrPairing(.keyboard), facts)) == .pairingFailed)
    #expect(machine.asked(for: .encrypted, keys: .bondOrPairing(.none), facts) == [.raise(.encrypted)])
  }

  @Test func aPairingThatTheDeviceBeginsIsRefused() {
    var machine = Self.machine()
    #expect(machine.confirmationRequested(Self.device, isYesNoOnly: true, value: 0) == [.confirm(false)])
    #expect(machine.passkeyRequested(Self.device) == [.enter(nil)])
    #expect(machine.passkeyNotified(Self.device, 1) == [])
  }

  @Test func pairingsOfOtherDevicesAreLeftAlone() throws {
    var machine = Self.pairing()
    #expect(machine.confirmationRequested(Self.other, isYesNoOnly: true, value: 0) == [])
    #expect(machine.passkeyRequested(Self.other) == [])
    #expect(machine.passkeyNotified(Self.other, 1) == [])
    #expect(machine.keyMade(try Self.key(Self.other), shouldStore: true) == [])
    #expect(machine.authenticationFailed(Self.other, .authenticationFailed) == [])
    #expect(machine.pairingEnded(.success, level: .encrypted) == [.secured(.encrypted)])
  }

  // MARK: Pairing

  @Test func theAdapterIsReadiedFirst() {
    var machine = Self.machine()
    _ = machine.asked(for: .encrypted, keys: .bondOrPairing(.none), Self.facts())
    #expect(machine.keysLoaded(.success) == [.readController])
    #expect(machine.controllerRead([.secureConnections, .bondable], []) == [.setBondable])
    #expect(machine.settingMade(.secureConnections) == [], "an answer to somebody else")
    #expect(machine.settingMade(.bondable) == [.setSecureConnections])
    #expect(machine.settingMade(.secureConnections) == [.pair(.none)])
  }

  @Test func whatPairingMadeIsKeptBeforeTheLinkCountsAsSecured() throws {
    var machine = Self.pairing()
    let key = try Self.key()
    #expect(machine.keyMade(key, shouldStore: true) == [])
    #expect(
      machine.pairingEnded(.success, level: .secureConnections)
        == [.keep([key], nil), .secured(.secureConnections)])
  }

  @Test func aKeyThatIsNotToBeStoredIsNot() throws {
    var machine = Self.pairing()
    _ = machine.keyMade(try Self.key(), shouldStore: false)
    #expect(machine.pairingEnded(.success, level: .encrypted) == [.secured(.encrypted)])
  }

  @Test func theIdentityIsTheNameFromThenOn() throws {
    var machine = Self.pairing()
    let resolving = ManagementIdentityResolvingKey(device: Self.identity, value: try Self.key().value)
    let key = try Self.key(Self.identity)
    #expect(
      machine.identityMade(resolving, from: Self.device.address, shouldStore: true) == [
        .seen(as: Self.identity)
      ])
    #expect(machine.keyMade(key, shouldStore: true) == [])
    #expect(
      machine.pairingEnded(.success, level: .encrypted) == [.keep([key], resolving), .secured(.encrypted)])
  }

  @Test(arguments: [
    (PairingQuestion.consent, PairingAnswer.accept, [SecuringStateMachine.Action.confirm(true)]),
    (.consent, .refuse, [.confirm(false)]), (.comparison(5), .accept, [.confirm(true)]),
    (.comparison(5), .passkey(5), [.confirm(false)]), (.passkeyEntry, .passkey(123), [.enter(123)]),
    (.passkeyEntry, .passkey(1_000_000), [.enter(nil)]), (.passkeyEntry, .accept, [.enter(nil)]),
    (.passkeyDisplay(9), .accept, []), (.passkeyDisplay(9), .refuse, [.cancelPairing]),
  ])
  func anAnswerGoesToTheKernelOnce(
    _ question: PairingQuestion, _ answer: PairingAnswer, _ actions: [SecuringStateMachine.Action]
  ) {
    var machine = Self.pairing()
    let asked =
      switch question {
      case .consent: machine.confirmationRequested(Self.device, isYesNoOnly: true, value: 0)
      case .comparison(let digits):
        machine.confirmationRequested(Self.device, isYesNoOnly: false, value: digits)
      case .passkeyEntry: machine.passkeyRequested(Self.device)
      case .passkeyDisplay(let digits): machine.passkeyNotified(Self.device, digits)
      @unknown default: [SecuringStateMachine.Action]()
      }
    #expect(asked == [.ask(question, number: 1)])
    #expect(machine.answered(2, answer) == [])
    #expect(machine.answered(1, answer) == actions)
    #expect(machine.answered(1, answer) == [])
  }

  @Test func theAnswerToAnEarlierQuestionCountsForNothing() {
    var machine = Self.pairing()
    _ = machine.passkeyNotified(Self.device, 1)
    _ = machine.confirmationRequested(Self.device, isYesNoOnly: true, value: 0)
    #expect(machine.answered(1, .refuse) == [])
    #expect(machine.answered(2, .accept) == [.confirm(true)])
  }

  @Test(arguments: [
    ManagementStatus.authenticationFailed, .rejected, .timeout, .busy, .cancelled, .alreadyPaired,
  ])
  func aFailureIsToldWithItsStatus(_ status: ManagementStatus) {
    var machine = Self.pairing()
    let loss = LinkLoss(.unknown, evidence: [.pairing(status.rawValue)])
    #expect(machine.pairingEnded(status, level: .none) == [.notSecured(loss)])
    #expect(machine.pairingEnded(status, level: .none) == [])
    machine = Self.pairing()
    #expect(machine.authenticationFailed(Self.device, status) == [.notSecured(loss)])
    #expect(machine.pairingEnded(status, level: .none) == [], "it was told already")
  }

  /// The socket says why.
  @Test(arguments: [ManagementStatus.disconnected, .notConnected, .notPowered, .invalidIndex])
  func aLinkThatWentIsNotTold(_ status: ManagementStatus) {
    var machine = Self.pairing()
    #expect(machine.pairingEnded(status, level: .none) == [])
    #expect(machine.asked(for: .encrypted, keys: .bond, Self.facts()) == [])
  }

  @Test func afterTheLossOfTheLinkNothingChangesAnything() throws {
    var machine = Self.pairing()
    _ = machine.confirmationRequested(Self.device, isYesNoOnly: true, value: 0)
    machine.linkClosed()
    #expect(machine.answered(1, .accept) == [])
    #expect(machine.keyMade(try Self.key(), shouldStore: true) == [])
    #expect(machine.pairingEnded(.success, level: .encrypted) == [])
    #expect(machine.becameWritable(level: .encrypted) == [])
    #expect(machine.managementClosed() == [])
  }

  // MARK: More than pairing gives

  /// Pair Device is content with a link that is encrypted, so the socket asks for the rest.
  @Test func anEncryptedLinkIsPairedAnewByRaisingItsSocket() throws {
    var machine = Self.pairing(.authenticated)
    #expect(machine.pairingEnded(.success, level: .encrypted) == [.raise(.authenticated)])
    #expect(
      machine.confirmationRequested(Self.device, isYesNoOnly: false, value: 7)
        == [.ask(.comparison(7), number: 1)])
    #expect(machine.becameWritable(level: .secureConnections) == [.secured(.secureConnections)])
    let key = try Self.key()
    #expect(machine.keyMade(key, shouldStore: true) == [.keep([key], nil)])
    #expect(machine.keyMade(key, shouldStore: true) == [])
  }

  @Test func aRaisedSocketDoesNotComeBackFromAFailure() {
    var machine = Self.pairing(.authenticated)
    _ = machine.pairingEnded(.success, level: .encrypted)
    let loss = LinkLoss(.unknown, evidence: [.pairing(5)])
    #expect(
      machine.authenticationFailed(Self.device, .authenticationFailed) == [.notSecured(loss), .endLink])
  }

  @Test func aPairingThatGivesLessThanWasAskedForIsNotTriedAgain() throws {
    var machine = Self.pairing(.authenticated)
    _ = machine.keyMade(try Self.key(), shouldStore: false)
    #expect(machine.pairingEnded(.success, level: .encrypted) == [.secured(.encrypted)])
  }

  @Test func aRaiseThatTheKernelRefusesIsToldUnlessTheLinkIsSecured() {
    for (level, isSecured) in [(SecurityLevel.none, false), (.encrypted, true)] {
      var machine = Self.machine()
      _ = machine.asked(for: .encrypted, keys: .bond, Self.facts(.kept(.encrypted, isElsewhere: false)))
      _ = machine.keysLoaded(.success)
      let actions = machine.raiseFailed(22, level: level)
      #expect((actions == [.secured(.encrypted)]) == isSecured)
    }
  }

  @Test func withoutTheManagementInterfaceNothingIsAwaited() {
    var machine = Self.pairing()
    #expect(Self.reason(machine.managementClosed()) == .pairingFailed)
    machine = Self.machine()
    _ = machine.asked(for: .encrypted, keys: .bond, Self.facts(.kept(.encrypted, isElsewhere: false)))
    #expect(Self.reason(machine.managementClosed()) == .pairingFailed)
  }
}
