import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// What a peripheral does wrong on purpose, and that its counters tell the truth all the while.
@Suite struct ServerReactionTests {
  let client = ScriptedClient(.twoValues(value: [9]))
  var peripheral: VirtualPeripheral { client.peripheral }
  var applied: Int { peripheral.counters.applied(at: 0x10) }

  @Test(arguments: [0x80, 0x9F, 0x0E, 0xFF] as [UInt8])
  func applyAndFail(code: UInt8) {
    peripheral.react(to: .write(0x10), with: .applyAndFail(ATTErrorCode(rawValue: code)))
    #expect(client.send("12 1000 01") == ["01121000" + hex([code])])
    #expect(applied == 1)
  }

  @Test func refuseChangesNothing() {
    peripheral.react(to: .write(Characteristic(.first)), with: .refuse(.unlikelyError), times: 2)
    #expect(client.send("12 1000 01") == ["0112 1000 0e".packed])
    #expect(client.send("12 1000 01") == ["0112 1000 0e".packed])
    #expect(applied == 0)
    #expect(client.send("12 1000 01") == ["13"])
    #expect(applied == 1)
  }

  @Test func swallowSaysNothingAndDoesNothing() {
    peripheral.react(to: .write(0x10), with: .swallow, times: 1)
    #expect(client.send("12 1000 01") == [])
    #expect(applied == 0)
  }

  @Test func applyAndSayNothing() {
    peripheral.react(to: .write(0x10), with: .applyAndSayNothing, times: 1)
    #expect(client.send("12 1000 01") == [])
    #expect(applied == 1)
  }

  @Test func answerTwice() {
    peripheral.react(to: .write(0x10), with: .answerTwice, times: 1)
    #expect(client.send("12 1000 01") == ["13", "13"])
    #expect(applied == 1)
  }

  @Test func answerLate() {
    peripheral.react(to: .write(0x10), with: .answerLate(.seconds(2)), times: 1)
    #expect(client.send("12 1000 01") == [])
    #expect(applied == 1)
    client.executor.advance(by: .milliseconds(1999))
    #expect(client.taken() == [])
    client.executor.advance(by: .milliseconds(1))
    #expect(client.taken() == ["13"])
  }

  @Test func aLateAnswerDiesWithItsLink() {
    peripheral.react(to: .read(0x10), with: .answerLate(.seconds(2)), times: 1)
    client.send("0a 1000")
    client.close()
    client.executor.advance(by: .seconds(3))
    #expect(client.taken() == [])
  }

  @Test func applyLateAlsoWhenTheLinkIsGone() {
    peripheral.react(to: .write(0x10), with: .applyLate(.seconds(2)), times: 1)
    client.send("12 1000 01")
    #expect(applied == 0)
    client.close()
    client.executor.advance(by: .seconds(2))
    #expect(applied == 1)
    #expect(client.taken() == [])
    #expect(peripheral.counters.applied.first?.link == 1)
    #expect(peripheral.openLinks.isEmpty)
  }

  @Test func applyAndDrop() {
    peripheral.react(to: .write(0x10), with: .applyAndDrop(.connectionTimeout), times: 1)
    #expect(client.send("12 1000 01") == ["terminated 08"])
    #expect(applied == 1)
    #expect(client.send("12 1000 02") == [])
    #expect(applied == 1)
  }

  @Test func dropBeforeApplying() {
    peripheral.react(to: .write(0x10), with: .drop(), times: 1)
    #expect(client.send("12 1000 01") == ["terminated 13"])
    #expect(applied == 0)
  }

  @Test func answerAndDrop() {
    peripheral.react(to: .write(0x10), with: .answerAndDrop(), times: 1)
    #expect(client.send("12 1000 01") == ["13", "terminated 13"])
  }

  @Test func commandsCanBeDroppedToo() {
    peripheral.react(to: .write(0x10), with: .drop(), times: 1)
    #expect(client.send("52 1000 01") == ["terminated 13"])
    #expect(applied == 0)
  }

  @Test func theFirstValueComesBeforeTheAnswerToTheSubscription() {
    let reaction = ServerReaction(notifiesFirst: [[0x41]])
    peripheral.react(to: .subscription(Characteristic(.first)), with: reaction, times: 1)
    #expect(client.send("12 1100 0100") == ["1b100041", "13"])
    peripheral.update([0x42], of: Characteristic(.first))
    #expect(client.taken() == ["1b100042"])
  }

  @Test func aSubscriptionCanBeRefusedBehindItsFirstValue() {
    let reaction = ServerReaction(
      notifiesFirst: [[0x41]], applies: false, answer: .error(.insufficientAuthentication))
    peripheral.react(to: .subscription(Characteristic(.first)), with: reaction, times: 1)
    #expect(client.send("12 1100 0100") == ["1b100041", "0112 1100 05".packed])
    #expect(peripheral.update([0x42], of: Characteristic(.first)) == 0)
  }

  @Test func theExchangeOfTheMTUCanGoWrongInEachWay() {
    peripheral.react(to: .exchangeMTU, with: .swallow, times: 1)
    peripheral.react(to: .exchangeMTU, with: .refuse(.requestNotSupported), times: 1)
    #expect(client.send("02 cb00") == [])
    #expect(client.send("02 cb00") == ["0102 0000 06".packed])
    #expect(client.send("0c 1000 0000") == ["0d09"])
  }

  @Test func discoveryCanBeSwallowed() {
    peripheral.react(to: .discovery, with: .swallow)
    for request in ["10 0100 ffff 0028", "08 0100 ffff 0328", "04 1100 1100", "06 0100 ffff 0028 00ff"] {
      #expect(client.send(request) == [])
    }
    #expect(client.send("0a 1000") == ["0b09"])
    peripheral.reactProperly()
    #expect(client.send("04 1100 1100") == ["0501 1100 0229".packed])
  }

  @Test func anExecutionBelongsToTheHandlesOfItsQueue() {
    peripheral.react(to: .write(0x10), with: .applyAndDrop(), times: 1)
    client.send("16 2000 0000 01")
    #expect(client.send("18 01") == ["19"])
    #expect(client.send("16 1000 0000 01") == ["17 1000 0000 01".packed])
    #expect(client.send("18 01") == ["terminated 13"])
    #expect(applied == 1)
  }

  @Test func anyOctetsCanBeTheAnswer() {
    peripheral.react(to: .read(0x10), with: ServerReaction(answer: .octets([0x13])), times: 1)
    #expect(client.send("0a 1000") == ["13"])
  }

  @Test func aReactionByNameFollowsItsCharacteristic() {
    peripheral.react(to: .write(Characteristic(.first)), with: .swallow)
    peripheral.insertInFront(VirtualService(.battery, characteristics: []))
    #expect(client.send("12 1100 01") == [])
    #expect(peripheral.counters.applied.isEmpty)
  }

  @Test func aHookRunsBehindTheAnswer() {
    peripheral.whenApplied(Characteristic(.first)) { peripheral, write in
      peripheral.push(write.value, handle: 0x20)
    }
    #expect(client.send("12 1000 4c") == ["13", "1b20004c"])
    #expect(client.send("12 2000 01") == ["13"])
  }
}
