import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Pairing asks the user what it has to ask, once, and nothing that the user did not agree to is used.
@Suite struct PairingTests {
  /// A way to pair, and what is asked for it.
  struct Dialogue: CustomTestStringConvertible {
    var device: PairingBehavior
    var abilities: PairingAbilities
    var question: PairingQuestion
    var answer: PairingAnswer
    /// What the link is worth then; nil where nothing comes of it.
    var level: SecurityLevel?
    var testDescription: String { "\(device), \(abilities), \(answer)" }

    init(
      _ device: PairingBehavior, _ abilities: PairingAbilities, _ question: PairingQuestion,
      _ answer: PairingAnswer, _ level: SecurityLevel?
    ) {
      (self.device, self.abilities, self.question) = (device, abilities, question)
      (self.answer, self.level) = (answer, level)
    }
  }

  static let dialogues: [Dialogue] = [
    Dialogue(.justWorks, .none, .consent, .accept, .encrypted),
    Dialogue(.justWorks, .none, .consent, .refuse, nil),
    Dialogue(.justWorks, .keyboardDisplay, .consent, .accept, .encrypted),
    // Without a way to compare there is nothing to ask but whether.
    Dialogue(.comparison(123_456), .none, .consent, .accept, .encrypted),
    Dialogue(.comparison(123_456), .displayYesNo, .comparison(123_456), .accept, .secureConnections),
    Dialogue(.comparison(0), .keyboardDisplay, .comparison(0), .accept, .secureConnections),
    Dialogue(.comparison(123_456), .displayYesNo, .comparison(123_456), .refuse, nil),
    Dialogue(.comparison(123_456, agrees: false), .displayYesNo, .comparison(123_456), .accept, nil),
    Dialogue(.passkeyShown(42), .keyboard, .passkeyEntry, .passkey(42), .secureConnections),
    Dialogue(.passkeyShown(42), .keyboard, .passkeyEntry, .passkey(43), nil),
    Dialogue(.passkeyShown(42), .keyboard, .passkeyEntry, .passkey(4_000_000_000), nil),
    Dialogue(.passkeyShown(42), .keyboard, .passkeyEntry, .accept, nil),
    Dialogue(.passkeyShown(42), .keyboard, .passkeyEntry, .refuse, nil),
    Dialogue(.passkeyTyped(999_999), .display, .passkeyDisplay(999_999), .accept, .secureConnections),
    Dialogue(.passkeyTyped(999_999, correctly: false), .display, .passkeyDisplay(999_999), .accept, nil),
    Dialogue(.passkeyTyped(999_999), .display, .passkeyDisplay(999_999), .refuse, nil),
  ]

  let peripheral = VirtualPeripheral.halfProtected()

  private func configuration(
    _ policy: SecurityPolicy, _ user: AskedUser?, attempts: Int? = nil
  ) -> Configuration {
    Configuration(
      reconnection: ReconnectionPolicy(attemptsPerOutage: attempts), security: policy,
      pairing: user?.closure, seed: 1)
  }

  @Test("Each dialogue ends in a bond, or in its own reason", arguments: dialogues)
  func theUserIsAskedOnceAndTheAnswerCounts(_ one: Dialogue) throws {
    let user = AskedUser { _ in one.answer }
    let policy = SecurityPolicy.pairing(with: one.abilities)
    try Scene.play(peripheral, configuration(policy, user)) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect() }
      scene.executor.run()
      #expect(user.asked == [one.question])
      #expect(peripheral.pairingRequests == 1)
      guard let level = one.level else {
        #expect(connect.relinkError?.code == .userActionNeeded)
        #expect(scene.recorder.failures.map(\.reason) == [.pairingFailed])
        #expect(scene.recorder.failures.first?.recovery == .retryPairing)
        #expect(scene.recorder.failures.first?.evidence == [.pairing(0x05)])
        scene.executor.advance(by: .seconds(3600))
        #expect(scene.session.snapshot().userAction == .retryPairing)
        #expect(peripheral.pairingRequests == 1)
        let bond = try scene.drive("bond") { await $0.bond }
        #expect(bond == BondKnowledge.none)
        return
      }
      #expect(connect.value?.security == level)
      let bond = try scene.drive("bond") { await $0.bond }
      #expect(bond == .bonded(BondRecord(device: scene.device, id: 1, level: level, keySize: 16)))
      let value = try scene.drive("read") { try await $0.read(Scene.first) }
      #expect(value == [0x0A])
      // The next link uses the bond and asks nobody.
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.advance(by: .seconds(5))
      #expect(scene.session.snapshot().isReady)
      #expect(user.asked.count == 1)
      #expect(peripheral.pairingRequests == 1)
      #expect(peripheral.encryptions == 2)
    }
  }

  @Test(
    "After a refusal the app asks for another try, and the user changes his mind", arguments: [true, false])
  func connectingAgainPairsAgain(_ saysSo: Bool) throws {
    let tries = Locked(0)
    let user = AskedUser { _ in
      tries.withLock { count in
        count += 1
        return count == 1 ? .refuse : .accept
      }
    }
    try Scene.play(peripheral, configuration(.pairing(), user)) { scene in
      let read = scene.spawn("read") { try await $0.read(Scene.first, within: .never) }
      scene.executor.advance(by: .seconds(60))
      #expect(scene.session.snapshot().userAction == .retryPairing)
      #expect(!read.hasEnded)
      if saysSo {
        try scene.drive("acted") { await $0.pairingWasRemoved() }
      } else {
        try scene.connect()
      }
      scene.executor.run()
      #expect(read.value == [0x0A])
      #expect(peripheral.pairingRequests == 2)
    }
  }

  @Test(
    "Without a closure only what asks nothing is agreed to", arguments: dialogues.filter { $0.level != nil })
  func nobodyToAskAgreesToNothingThatHasToBeCompared(_ one: Dialogue) throws {
    try Scene.play(peripheral, configuration(.pairing(with: one.abilities), nil)) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect() }
      scene.executor.run()
      #expect(peripheral.pairingRequests == 1)
      #expect((connect.error == nil) == (one.question == .consent))
      #expect(connect.hasEnded)
    }
  }

  @Test(
    "A level that this way of pairing cannot reach is not asked for",
    arguments: dialogues.filter { $0.level == .encrypted })
  func aLevelThatCannotBeReachedAsksNobody(_ one: Dialogue) throws {
    let user = AskedUser { _ in .accept }
    try Scene.play(
      peripheral, configuration(.pairing(to: .authenticated, with: one.abilities), user)
    ) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect() }
      scene.executor.run()
      #expect(connect.relinkError?.code == .userActionNeeded)
      #expect(scene.recorder.failures.map(\.reason) == [.pairingFailed])
      #expect(user.asked.isEmpty)
    }
  }

  @Test("A device that refuses, or says nothing", arguments: [PairingBehavior.refuses, .silent])
  func aDeviceThatDoesNotPairIsNotAskedAgainAndAgain(_ behavior: PairingBehavior) throws {
    let user = AskedUser { _ in .accept }
    try Scene.play(peripheral, configuration(.pairing(), user)) { scene in
      scene.radio.setPairing(behavior, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(3600))
      #expect(connect.relinkError?.code == .userActionNeeded)
      #expect(scene.recorder.failures.map(\.reason) == [.pairingFailed])
      #expect(scene.recorder.failures.first?.evidence == [.pairing(behavior == .silent ? 0x08 : 0x05)])
      #expect(scene.session.snapshot().userAction == .retryPairing)
      #expect(user.asked.isEmpty)
      #expect(peripheral.pairingRequests == 1)
    }
  }

  // MARK: Questions that are not answered

  /// A dialogue of each kind that the user leaves open.
  static let open = dialogues.filter { $0.level != nil }

  @Test("The policy's limit ends an unanswered question", arguments: open)
  func anUnansweredQuestionEndsAtTheLimit(_ one: Dialogue) throws {
    let user = AskedUser { _ in nil }
    var policy = SecurityPolicy.pairing(with: one.abilities)
    policy.limit = .seconds(10)
    try Scene.play(peripheral, configuration(policy, user, attempts: 1)) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .milliseconds(9_999))
      #expect(user.asked == [one.question])
      #expect(user.cancelled == 0)
      #expect(!connect.hasEnded)
      scene.executor.advance(by: .milliseconds(1))
      #expect(user.cancelled == 1)
      #expect(connect.relinkError?.code == .attemptsExhausted)
      #expect(scene.recorder.failures.map(\.reason) == [.securityTimeout])
      // The answer comes all the same, and changes nothing.
      scene.executor.advance(by: .seconds(60))
      #expect(scene.radio.bond(with: scene.device) == .none)
      #expect(peripheral.encryptions == 0)
    }
  }

  @Test("The host's own time ends an unanswered question", arguments: open)
  func anUnansweredQuestionEndsWithTheHost(_ one: Dialogue) throws {
    let user = AskedUser { _ in nil }
    try Scene.play(peripheral, configuration(.pairing(with: one.abilities), user)) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(31))
      #expect(user.cancelled == 1)
      #expect(connect.relinkError?.code == .userActionNeeded)
      #expect(scene.recorder.failures.map(\.reason) == [.pairingFailed])
      #expect(scene.radio.bond(with: scene.device) == .none)
    }
  }

  @Test("The link is lost in the middle of each question", arguments: open)
  func aLossInTheMiddleCallsTheQuestionOffAndTheNextLinkAsksAgain(_ one: Dialogue) throws {
    let count = Locked(0)
    let user = AskedUser { _ in
      count.withLock { count in
        count += 1
        return count == 1 ? nil : one.answer
      }
    }
    try Scene.play(peripheral, configuration(.pairing(with: one.abilities), user)) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(5))
      #expect(user.asked.count == 1)
      scene.radio.lose(scene.device, .connectionTimeout)
      scene.executor.run()
      #expect(user.cancelled == 1)
      #expect(scene.recorder.failures.map(\.reason) == [.supervisionTimeout])
      #expect(scene.recorder.failures.first?.recovery == .retryConnection)
      #expect(scene.radio.bond(with: scene.device) == .none)
      scene.executor.advance(by: .seconds(5))
      #expect(user.asked == [one.question, one.question])
      #expect(connect.value?.security == one.level)
      #expect(peripheral.pairingRequests == 2)
    }
  }

  /// What ends the wait for an answer from here.
  enum CallOff: CaseIterable { case disconnect, close, cancel, adapterOff }

  @Test("The app gives up in the middle of each question", arguments: open, CallOff.allCases)
  func theClosureIsCancelledWhenNobodyWantsToKnow(_ one: Dialogue, _ way: CallOff) throws {
    let user = AskedUser { _ in nil }
    try Scene.play(peripheral, configuration(.pairing(with: one.abilities), user)) { scene in
      scene.radio.setPairing(one.device, of: scene.device)
      let connect = scene.spawn("connect") { try await $0.connect(within: .never) }
      scene.executor.advance(by: .seconds(5))
      #expect(user.asked == [one.question])
      switch way {
      case .disconnect: try scene.drive("disconnect") { await $0.disconnect() }
      case .close: try scene.drive("close") { await $0.close() }
      case .cancel: connect.cancel()
      case .adapterOff: scene.radio.setAdapter(.off)
      }
      scene.executor.run()
      #expect(user.cancelled == 1)
      #expect(connect.hasEnded && connect.error != nil)
      scene.executor.advance(by: .seconds(60))
      #expect(scene.radio.bond(with: scene.device) == .none)
      #expect(peripheral.encryptions == 0)
      scene.radio.setAdapter(.on)
    }
  }

  @Test("A bond is removed here while its link is up")
  func removingABondEndsItsLinkAndTheNextOnePairs() throws {
    let user = AskedUser { _ in .accept }
    try Scene.play(peripheral, configuration(.pairing(), user)) { scene in
      try scene.connect()
      try scene.drive("remove") { try await $0.removeBond() }
      scene.executor.advance(by: .seconds(5))
      #expect(scene.recorder.disconnections.map(\.reason) == [.localHostTerminated])
      #expect(scene.session.snapshot().isReady)
      #expect(user.asked.count == 2)
      #expect(peripheral.pairingRequests == 2)
      guard case .bonded(let record) = scene.radio.bond(with: scene.device) else {
        Issue.record("there is no bond")
        return
      }
      #expect(record.id == 2)
    }
  }
}
