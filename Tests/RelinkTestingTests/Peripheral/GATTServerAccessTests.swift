import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// Reads and writes as Core Specification Vol 3 Part F 3.4.4 to 3.4.6 ask, with what the peripheral counts.
@Suite struct GATTServerAccessTests {
  @Test func aValueIsReadAndCounted() {
    let client = ScriptedClient(.twoValues(value: [0x41, 0x42]))
    #expect(client.send("0a 1000") == ["0b4142"])
    #expect(client.peripheral.counters.reads[0x10] == 1)
    #expect(client.peripheral.counters.received[.readRequest] == 1)
  }

  @Test func aLongValueComesInParts() {
    let client = ScriptedClient(.twoValues(value: Array(0..<30)))
    #expect(client.send("0a 1000") == ["0b" + hex(Array(0..<22))])
    #expect(client.send("0c 1000 1600") == ["0d" + hex(Array(22..<30))])
    #expect(client.send("0c 1000 1e00") == ["0d"])
    #expect(client.send("0c 1000 1f00") == ["010c 1000 07".packed])
  }

  @Test func severalValuesComeAtOnce() {
    let client = ScriptedClient(.twoValues(value: [0x41]))
    client.peripheral.setValue([0x42, 0x43], of: Characteristic(.second))
    #expect(client.send("0e 1000 2000") == ["0f414243"])
    #expect(client.send("20 1000 2000") == ["21 0100 41 0200 4243".packed])
    #expect(client.send("0e 1000 3000") == ["010e 3000 01".packed])
  }

  @Test func aListOfValuesIsCutAtTheEndOfThePDU() {
    let client = ScriptedClient(.twoValues(value: Array(repeating: 1, count: 19)))
    client.peripheral.setValue([2], of: Characteristic(.second))
    #expect(client.send("20 1000 2000") == ["211300" + String(repeating: "01", count: 19) + "01"])
  }

  @Test func whatIsNotAllowedIsRefusedByItsOwnCode() {
    let client = ScriptedClient(.twoValues(properties: .notify))
    #expect(client.send("0a 1000") == ["010a 1000 02".packed])
    #expect(client.send("12 1000 01") == ["0112 1000 03".packed])
    #expect(client.send("16 1000 0000 01") == ["0116 1000 03".packed])
    #expect(client.send("0a ff00") == ["010a ff00 01".packed])
    #expect(client.send("12 0f00 01") == ["0112 0f00 03".packed])
    #expect(client.send("52 1000 01") == [])
    #expect(client.peripheral.counters.applied.isEmpty)
  }

  /// How far the link is secured, whether there is a key for it, and what the client is told then.
  static let shortfalls: [(VirtualSecurity, VirtualSecurity, Bool, String)] = [
    (.encrypted, .none, false, "05"), (.encrypted, .none, true, "0f"),
    (.authenticated, .none, false, "05"), (.authenticated, .none, true, "0f"),
    (.authenticated, .encrypted, true, "05"), (.authorized, .none, true, "0f"),
    (.authorized, .encrypted, true, "05"), (.authorized, .authenticated, true, "08"),
  ]

  @Test(arguments: shortfalls)
  func aLinkThatIsNotSecuredIsToldSo(
    level: VirtualSecurity, present: VirtualSecurity, hasKey: Bool, code: String
  ) {
    let client = ScriptedClient(.twoValues(value: [1], security: level))
    if hasKey { client.peripheral.bondMade(with: "central") }
    client.peripheral.secure("central", present)
    #expect(client.send("0a 1000") == ["010a1000" + code])
    #expect(client.send("12 1000 01") == ["01121000" + code])
    #expect(client.peripheral.counters.securityRefusals == (code == "08" ? 0 : 2))
    client.peripheral.secure("central", level)
    #expect(client.send("0a 1000") == ["0b01"])
    #expect(client.send("12 1000 02") == ["13"])
  }

  @Test func aWriteIsAppliedOnceAndRemembered() {
    let client = ScriptedClient(.twoValues())
    client.executor.advance(by: .seconds(3))
    #expect(client.send("12 1000 0807060504030201") == ["13"])
    let writes = client.peripheral.counters.writes(at: 0x10)
    #expect(writes.count == 1)
    #expect(writes.first?.link == 1)
    #expect(writes.first?.way == .request)
    #expect(writes.first?.at == MonotonicInstant(nanoseconds: 3_000_000_000))
    #expect(client.peripheral.counters.applied(tag: 0x0102_0304_0506_0708) == 1)
    #expect(client.peripheral.counters.appliedByTag == [0x0102_0304_0506_0708: 1])
    #expect(client.peripheral.value(of: Characteristic(.first)) == [8, 7, 6, 5, 4, 3, 2, 1])
  }

  @Test func aCommandIsAppliedWithoutAnAnswer() {
    let client = ScriptedClient(.twoValues())
    #expect(client.send("52 1000 01") == [])
    #expect(client.peripheral.counters.applied.map(\.way) == [.command])
  }

  @Test func aValueOfAWrongLengthChangesNothing() {
    let client = ScriptedClient(.twoValues(lengths: 1...2))
    #expect(client.send("12 1000") == ["0112 1000 0d".packed])
    #expect(client.send("12 1000 010203") == ["0112 1000 0d".packed])
    #expect(client.send("12 1000 0102") == ["13"])
    #expect(client.peripheral.counters.applied(at: 0x10) == 1)
  }

  @Test func partsAreEchoedAndWrittenTogether() {
    let client = ScriptedClient(.twoValues(value: [9, 9, 9, 9, 9]))
    #expect(client.send("16 1000 0000 0102") == ["17 1000 0000 0102".packed])
    #expect(client.send("16 1000 0200 03") == ["17 1000 0200 03".packed])
    #expect(client.peripheral.value(of: Characteristic(.first)) == [9, 9, 9, 9, 9])
    #expect(client.peripheral.preparedParts == 2)
    #expect(client.send("18 01") == ["19"])
    #expect(client.peripheral.value(of: Characteristic(.first)) == [1, 2, 3])
    #expect(client.peripheral.counters.writes(at: 0x10).map(\.way) == [.prepared])
    #expect(client.peripheral.preparedParts == 0)
  }

  @Test func partsOverlayThoseBeforeThem() {
    let client = ScriptedClient(.twoValues())
    client.send("16 1000 0000 01020304")
    client.send("16 1000 0000 0909")
    #expect(client.send("18 01") == ["19"])
    #expect(client.peripheral.value(of: Characteristic(.first)) == [9, 9, 3, 4])
    #expect(client.peripheral.counters.writes(at: 0x10).map(\.value) == [[1, 2, 3, 4], [9, 9, 3, 4]])
  }

  @Test func valuesOfSeveralHandlesAreWrittenTogetherInTheirOrder() {
    let client = ScriptedClient(.twoValues())
    #expect(client.send("16 2000 0000 0a") == ["17 2000 0000 0a".packed])
    #expect(client.send("16 1000 0000 0102") == ["17 1000 0000 0102".packed])
    #expect(client.send("16 1000 0200 03") == ["17 1000 0200 03".packed])
    #expect(client.peripheral.counters.executions == 0)
    #expect(client.send("18 01") == ["19"])
    let counters = client.peripheral.counters
    #expect(counters.applied.map(\.handle) == [0x20, 0x10])
    #expect(counters.applied.map(\.value) == [[10], [1, 2, 3]])
    #expect(counters.executions == 1)
    #expect(client.send("18 01") == ["19"])
    #expect(client.peripheral.counters.executions == 1)
  }

  @Test func aFullQueueSaysSoForWhicheverHandleComes() {
    let client = ScriptedClient(.twoValues(prepareLimit: 2))
    client.send("16 1000 0000 01")
    client.send("16 2000 0000 02")
    #expect(client.send("16 2000 0100 03") == ["0116 2000 09".packed])
    #expect(client.send("18 00") == ["19"])
    #expect(client.peripheral.counters.applied.isEmpty)
    #expect(client.peripheral.counters.executions == 0)
  }

  @Test func aSwallowedExecutionLeavesThePartsWhereTheyAre() {
    let client = ScriptedClient(.twoValues())
    client.peripheral.react(to: .opcode(.executeWriteRequest), with: .swallow, times: 1)
    client.send("16 1000 0000 01020304")
    #expect(client.send("18 01") == [])
    #expect(client.peripheral.preparedParts == 1)
    #expect(client.send("18 01") == ["19"])
    #expect(client.peripheral.value(of: Characteristic(.first)) == [1, 2, 3, 4])
  }

  @Test func partsAreDroppedOnRequest() {
    let client = ScriptedClient(.twoValues(value: [9]))
    client.send("16 1000 0000 0102")
    #expect(client.send("18 00") == ["19"])
    #expect(client.send("18 01") == ["19"])
    #expect(client.peripheral.counters.applied.isEmpty)
  }

  @Test func aBadPartSpoilsThemAll() {
    let client = ScriptedClient(.twoValues(lengths: 0...4))
    client.send("16 2000 0000 01")
    client.send("16 1000 0100 01")
    #expect(client.send("18 01") == ["0118 1000 07".packed])
    #expect(client.peripheral.value(of: Characteristic(.second)) == [])
    client.send("16 1000 0000 0102030405")
    #expect(client.send("18 01") == ["0118 1000 0d".packed])
    #expect(client.peripheral.counters.applied.isEmpty)
    #expect(client.peripheral.counters.executions == 0)
    #expect(client.peripheral.preparedParts == 0)
  }

  @Test func aFullQueueSaysSo() {
    let client = ScriptedClient(.twoValues(prepareLimit: 2))
    client.send("16 1000 0000 01")
    client.send("16 1000 0100 02")
    #expect(client.send("16 1000 0200 03") == ["0116 1000 09".packed])
    client.send("18 01")
    #expect(client.peripheral.value(of: Characteristic(.first)) == [1, 2])
  }

  @Test func partsDieWithTheirLinkAndBelongToItAlone() {
    let peripheral = VirtualPeripheral.twoValues(value: [9])
    let first = ScriptedClient(peripheral, number: 1)
    first.send("16 1000 0000 01")
    let second = ScriptedClient(peripheral, number: 2)
    #expect(second.send("18 01") == ["19"])
    #expect(peripheral.preparedParts == 1)
    first.close()
    #expect(peripheral.preparedParts == 0)
    #expect(first.send("18 01") == [])
    #expect(peripheral.counters.applied.isEmpty)
  }

  @Test func whatCannotBeReadIsAnsweredWhereAnAnswerIsOwed() {
    let client = ScriptedClient(.twoValues())
    #expect(client.send("0a 10") == ["010a 0000 04".packed])
    #expect(client.send("52 10") == [])
    #expect(client.send("3f") == ["013f 0000 06".packed])
    #expect(client.send("7f 00") == [])
    #expect(client.send("") == [])
    #expect(client.send("0b 41") == [])
    let violations = client.peripheral.counters.violations
    #expect(violations == [.malformedPDU: 3, .unexpectedPDU: 2])
  }

  @Test func aPDUBeyondTheMTUIsCountedAndRefused() {
    let client = ScriptedClient(.twoValues())
    #expect(client.send("12 1000" + String(repeating: "01", count: 21)) == ["0112 0000 04".packed])
    #expect(client.peripheral.counters.violations[.oversizedPDU] == 1)
    #expect(client.peripheral.counters.applied.isEmpty)
  }

  @Test func aRequestOverAnotherIsCounted() {
    let client = ScriptedClient(.twoValues(value: [1]))
    client.peripheral.react(to: .read(0x10), with: .swallow, times: 1)
    #expect(client.send("0a 1000") == [])
    #expect(client.peripheral.counters.violations.isEmpty)
    #expect(client.send("0a 1000") == ["0b01"])
    #expect(client.peripheral.counters.violations == [.overlappingRequest: 1])
    client.send("0a 1000")
    #expect(client.peripheral.counters.violations == [.overlappingRequest: 1])
  }
}
