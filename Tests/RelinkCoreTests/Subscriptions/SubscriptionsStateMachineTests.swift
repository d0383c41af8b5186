import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct SubscriptionsStateMachineTests {
  private let heart = Characteristic.subscribed(0x2A37)
  private let level = Characteristic.subscribed(0x2A19)
  private var machine = SubscriptionsStateMachine()

  // MARK: Consumers before and on a link

  @Test mutating func consumersWaitForATable() {
    add(1, of: heart)
    #expect(machine.hasConsumers)
    #expect(machine.nextRequest() == nil)
    #expect(machine.isRestored)
    #expect(machine.valueReceived(of: heart) == [])
  }

  @Test mutating func aConsumerIsArmedOnTheLink() {
    add(1, of: heart)
    #expect(learn([heart]) == [])
    #expect(!machine.isRestored)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
    take(heart, true, as: 10)
    #expect(machine.nextRequest() == nil)
    #expect(!machine.isRestored)
    #expect(answer(10) == [])
    #expect(machine.isRestored)
    #expect(machine.nextRequest() == nil)
    #expect(machine.valueReceived(of: heart) == [to(1)])
  }

  @Test mutating func aConsumerThatComesLaterIsArmedOnTheSameLink() {
    learn([heart])
    #expect(machine.consumerAdded(consumer(1), of: heart) == .kept)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
  }

  @Test mutating func aCharacteristicThatTheDeviceDoesNotHaveIsNotFound() {
    learn([heart])
    #expect(machine.consumerAdded(consumer(1), of: level) == .notFound)
    #expect(!machine.hasConsumers)
    #expect(machine.nextRequest() == nil)
  }

  @Test mutating func aCharacteristicThatTheTableDoesNotHaveFailsItsConsumersOnly() {
    add(1, of: level)
    add(2, of: heart)
    add(3, of: level)
    #expect(learn([heart]) == [consumer(1), consumer(3)])
    #expect(machine.nextRequest() == .setNotifying(heart, true))
    #expect(machine.valueReceived(of: level) == [])
  }

  @Test mutating func twoConsumersCostOneWrite() {
    add(1, of: heart)
    add(2, of: Characteristic(heart.uuid))
    learn([heart])
    arm(heart, as: 10)
    #expect(machine.nextRequest() == nil)
    add(3, of: heart)
    #expect(machine.nextRequest() == nil)
    #expect(machine.valueReceived(of: heart) == [to(1), to(2), to(3)])
    machine.consumerRemoved(consumer(1))
    machine.consumerRemoved(consumer(3))
    #expect(machine.nextRequest() == nil)
    machine.consumerRemoved(consumer(2))
    #expect(machine.nextRequest() == .setNotifying(heart, false))
  }

  @Test mutating func aSecondConsumerWhileArmingCostsNoSecondWrite() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    add(2, of: heart)
    #expect(machine.nextRequest() == nil)
    #expect(answer(10) == [])
    #expect(machine.nextRequest() == nil)
  }

  // MARK: Start and stop

  @Test mutating func aStopWaitsForTheStartUnderWay() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    machine.consumerRemoved(consumer(1))
    #expect(machine.nextRequest() == nil)
    #expect(machine.isRestored)
    #expect(answer(10) == [])
    #expect(machine.nextRequest() == .setNotifying(heart, false))
    take(heart, false, as: 11)
    #expect(machine.nextRequest() == nil)
    #expect(answer(11) == [])
    #expect(machine.nextRequest() == nil)
    add(2, of: heart)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
  }

  @Test mutating func aStartWaitsForTheStopUnderWay() {
    add(1, of: heart)
    learn([heart])
    arm(heart, as: 10)
    machine.consumerRemoved(consumer(1))
    take(heart, false, as: 11)
    add(2, of: heart)
    #expect(machine.nextRequest() == nil)
    #expect(!machine.isRestored)
    #expect(answer(11) == [])
    #expect(machine.nextRequest() == .setNotifying(heart, true))
    arm(heart, as: 12)
    #expect(machine.isRestored)
  }

  @Test mutating func aConsumerThatGoesBeforeItsRequestCostsNone() {
    add(1, of: heart)
    add(2, of: level)
    learn([heart, level])
    machine.consumerRemoved(consumer(1))
    #expect(machine.nextRequest() == .setNotifying(level, true))
  }

  @Test(arguments: [SubscriptionsStateMachine.Answer.done, .refused, .undecided])
  mutating func aStopIsOverWithAnyAnswer(_ answered: SubscriptionsStateMachine.Answer) {
    add(1, of: heart)
    learn([heart])
    arm(heart, as: 10)
    machine.consumerRemoved(consumer(1))
    take(heart, false, as: 11)
    #expect(answer(11, answered) == [])
    #expect(machine.nextRequest() == nil)
  }

  // MARK: Failures

  @Test mutating func aDescriptorThatIsRefusedConcernsItsConsumersOnly() {
    add(1, of: heart)
    add(2, of: level)
    add(3, of: heart)
    learn([heart, level])
    take(heart, true, as: 10)
    #expect(answer(10, .refused) == [consumer(1), consumer(3)])
    #expect(machine.nextRequest() == .setNotifying(level, true))
    arm(level, as: 11)
    #expect(machine.isRestored)
    #expect(machine.valueReceived(of: heart) == [])
    #expect(machine.valueReceived(of: level) == [to(2)])
  }

  @Test mutating func aDescriptorThatIsRefusedForNobodyLeavesNothing() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    machine.consumerRemoved(consumer(1))
    #expect(answer(10, .refused) == [])
    #expect(machine.nextRequest() == nil)
  }

  @Test mutating func aRequestThatNoLinkWouldTakeFailsItsConsumers() {
    add(1, of: heart)
    add(2, of: level)
    learn([heart, level])
    #expect(machine.requestRefused(.setNotifying(heart, true)) == [consumer(1)])
    #expect(machine.nextRequest() == .setNotifying(level, true))
    #expect(machine.requestRefused(.discover) == [])
  }

  @Test mutating func aLinkThatGaveUpDoesNotEndTheSubscription() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    #expect(answer(10, .undecided) == [])
    #expect(!machine.isRestored)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
  }

  @Test mutating func aLinkThatGaveUpOnNobodysSubscriptionLeavesNothing() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    machine.consumerRemoved(consumer(1))
    #expect(answer(10, .undecided) == [])
    #expect(machine.nextRequest() == nil)
  }

  @Test mutating func anAnswerToAnotherRequestIsNotThisMachines() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    #expect(answer(9) == nil)
    #expect(answer(10) == [])
    #expect(answer(10) == nil)
  }

  // MARK: Values and gaps

  @Test mutating func aValueBeforeTheAnswerReachesItsConsumers() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    #expect(machine.valueReceived(of: heart) == [to(1)])
  }

  @Test mutating func theFirstValueAfterALossComesAfterAGap() {
    add(1, of: heart)
    learn([heart])
    arm(heart, as: 10)
    machine.linkLost()
    #expect(machine.valueReceived(of: heart) == [])
    #expect(machine.nextRequest() == nil)
    add(2, of: heart)
    learn([heart])
    #expect(machine.nextRequest() == .setNotifying(heart, true))
    arm(heart, as: 20)
    #expect(machine.valueReceived(of: heart) == [to(1, gap: true), to(2)])
    #expect(machine.valueReceived(of: heart) == [to(1), to(2)])
  }

  @Test mutating func aSubscriptionThatNeverStartedHasNoGap() {
    add(1, of: heart)
    learn([heart])
    machine.linkLost()
    learn([heart])
    arm(heart, as: 10)
    #expect(machine.valueReceived(of: heart) == [to(1)])
  }

  @Test mutating func aGapLastsThroughLinksOnWhichNothingCame() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    machine.linkLost()
    learn([heart])
    machine.linkLost()
    learn([heart])
    arm(heart, as: 20)
    #expect(machine.valueReceived(of: heart) == [to(1, gap: true)])
  }

  @Test mutating func anAnswerOfTheLinkBeforeChangesNothing() {
    add(1, of: heart)
    learn([heart])
    take(heart, true, as: 10)
    machine.linkLost()
    learn([heart])
    #expect(answer(10) == nil)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
  }

  // MARK: Platforms that keep subscriptions

  @Test mutating func whatThePlatformKeepsIsNotArmedAgain() {
    add(1, of: heart)
    learn([heart, level], restoring: false)
    arm(heart, as: 10)
    machine.linkLost()
    add(2, of: level)
    learn([heart, level], restoring: false)
    #expect(machine.nextRequest() == .setNotifying(level, true))
    arm(level, as: 11)
    #expect(machine.isRestored)
    #expect(machine.valueReceived(of: heart) == [to(1, gap: true)])
  }

  @Test mutating func whatThePlatformKeepsForNobodyIsDisarmed() {
    add(1, of: heart)
    learn([heart], restoring: false)
    arm(heart, as: 10)
    machine.linkLost()
    machine.consumerRemoved(consumer(1))
    learn([heart], restoring: false)
    #expect(machine.isRestored)
    #expect(machine.nextRequest() == .setNotifying(heart, false))
    take(heart, false, as: 11)
    #expect(answer(11) == [])
    machine.linkLost()
    learn([heart], restoring: false)
    #expect(machine.nextRequest() == nil)
  }

  @Test mutating func aLinkThatKeepsNothingIsArmedWhateverWasArmedBefore() {
    add(1, of: heart)
    learn([heart])
    arm(heart, as: 10)
    machine.linkLost()
    machine.consumerRemoved(consumer(1))
    learn([heart])
    #expect(machine.nextRequest() == nil)
  }

  // MARK: A table that changes

  @Test mutating func aTableThatChangesOnTheLinkIsArmedAnew() {
    add(1, of: heart)
    add(2, of: level)
    learn([heart, level])
    arm(heart, as: 10)
    arm(level, as: 11)
    #expect(learn([heart]) == [consumer(2)])
    #expect(!machine.isRestored)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
    arm(heart, as: 12)
    #expect(machine.valueReceived(of: heart) == [to(1, gap: true)])
    #expect(machine.valueReceived(of: heart) == [to(1)])
  }

  @Test mutating func whatWasArmedForNobodyIsDisarmedAfterTheTableChanged() {
    add(1, of: heart)
    add(2, of: level)
    learn([heart, level])
    arm(heart, as: 10)
    arm(level, as: 11)
    machine.consumerRemoved(consumer(1))
    machine.consumerRemoved(consumer(2))
    learn([heart])
    #expect(machine.nextRequest() == .setNotifying(heart, false))
    take(heart, false, as: 12)
    #expect(answer(12) == [])
    #expect(machine.nextRequest() == nil)
  }

  @Test mutating func aConsumerThatGoesAfterTheTableChangedIsDisarmed() {
    // The group is unarmed for the machine, but the device may still have it armed from before.
    add(1, of: heart)
    learn([heart])
    arm(heart, as: 10)
    learn([heart])
    machine.consumerRemoved(consumer(1))
    take(heart, false, as: 11)
    #expect(answer(11) == [])
    #expect(machine.nextRequest() == nil)
  }

  @Test mutating func aStopThatTheLossLeftInDoubtIsArmedAgainWhereItIsWanted() {
    add(1, of: heart)
    learn([heart], restoring: false)
    arm(heart, as: 10)
    machine.consumerRemoved(consumer(1))
    take(heart, false, as: 11)
    machine.linkLost()
    add(2, of: heart)
    learn([heart], restoring: false)
    #expect(machine.nextRequest() == .setNotifying(heart, true))
  }

  @Test mutating func aStartThatTheLossLeftInDoubtIsDisarmedWhereNobodyWantsIt() {
    add(1, of: heart)
    learn([heart], restoring: false)
    take(heart, true, as: 10)
    machine.linkLost()
    machine.consumerRemoved(consumer(1))
    learn([heart], restoring: false)
    #expect(machine.nextRequest() == .setNotifying(heart, false))
  }

  @Test mutating func aNameWithoutServiceFollowsItsCharacteristic() {
    let other = Characteristic(heart.uuid, in: BluetoothUUID(0x1234 as UInt16))
    add(1, of: Characteristic(heart.uuid))
    learn([heart])
    arm(heart, as: 10)
    learn([other])
    #expect(machine.nextRequest() == .setNotifying(other, true))
    arm(other, as: 11)
    #expect(machine.valueReceived(of: other) == [to(1, gap: true)])
    #expect(machine.valueReceived(of: heart) == [])
  }

  // MARK: The end

  @Test mutating func theEndNamesEveryConsumerOnce() {
    add(1, of: heart)
    add(2, of: level)
    learn([heart, level])
    #expect(machine.sessionEnded() == [consumer(1), consumer(2)])
    #expect(machine.sessionEnded() == [])
    #expect(!machine.hasConsumers)
    #expect(machine.nextRequest() == nil)
  }

  // MARK: Parts

  private func consumer(_ number: UInt64) -> ConsumerID { ConsumerID(rawValue: number) }

  private func to(_ number: UInt64, gap: Bool = false) -> SubscriptionsStateMachine.Recipient {
    SubscriptionsStateMachine.Recipient(id: consumer(number), isAfterGap: gap)
  }

  private mutating func add(_ number: UInt64, of name: Characteristic) {
    #expect(machine.consumerAdded(consumer(number), of: name) == .kept)
  }

  @discardableResult
  private mutating func learn(_ names: [Characteristic], restoring: Bool = true) -> [ConsumerID] {
    machine.tableLearnt([DiscoveredService].holding(names), restoring: restoring)
  }

  private mutating func take(_ name: Characteristic, _ isOn: Bool, as id: UInt64) {
    #expect(machine.nextRequest() == .setNotifying(name, isOn))
    machine.requestTaken(.setNotifying(name, isOn), as: RequestID(rawValue: id))
  }

  private mutating func answer(
    _ id: UInt64, _ answer: SubscriptionsStateMachine.Answer = .done
  ) -> [ConsumerID]? {
    machine.answered(RequestID(rawValue: id), answer)
  }

  private mutating func arm(_ name: Characteristic, as id: UInt64) {
    take(name, true, as: id)
    #expect(answer(id) == [])
  }
}

extension Characteristic {
  /// A characteristic with its unambiguous name, in a service of its own.
  static func subscribed(_ uuid: UInt16) -> Characteristic {
    Characteristic(BluetoothUUID(uuid), in: BluetoothUUID(0x1800 | uuid & 0xFF))
  }
}

extension [DiscoveredService] {
  /// A table with these characteristics, each in the service that its name says.
  static func holding(_ names: [Characteristic]) -> [DiscoveredService] {
    names.compactMap { name in
      guard let service = name.service else { return nil }
      let found = DiscoveredCharacteristic(name: name, properties: .notify, descriptors: [])
      return DiscoveredService(uuid: service, characteristics: [found])
    }
  }
}
