import BluetoothWire
import Relink
import RelinkTesting
import Testing

@Suite struct ManagedLinkTests {
  @Test func theMTUIsThePlatformsOwn() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    #expect(link.capabilities.needsMTUExchange == false)
    #expect(link.capabilities.mtu == 185)
    #expect(rig.answer(.exchangeMTU, on: link) == .success(.mtu(185)))
    #expect(rig.peripheral.counters.received[.exchangeMTURequest] == nil)
  }

  @Test func discoveryShowsNamesAndSaysWhetherTheyChanged() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    guard case .success(.table(let services, let changed)) = rig.answer(.discover, on: link) else {
      Issue.record("no table")
      return
    }
    #expect(changed == false)
    #expect(services.map(\.uuid) == [.genericAccess, .genericAttribute, .testService])
    #expect(services.last?.characteristics.first?.name == Characteristic(.first, in: .testService))
    #expect(services.last?.characteristics.first?.descriptors == [.clientCharacteristicConfiguration])
    rig.peripheral.append(.battery(level: 1))
    guard case .success(.table(let more, true)) = rig.answer(.discover, on: link) else {
      Issue.record("no changed table")
      return
    }
    #expect(more.last?.uuid == .battery)
  }

  @Test func whatWasNotDiscoveredIsRefused() throws {
    let rig = try ManagedRig()
    rig.dial()
    rig.executor.run(until: { rig.recorder.link != nil })
    let link = try #require(rig.recorder.link)
    #expect(rig.perform(.read(firstValue), on: link).1 == .refused(.characteristicNotFound))
    #expect(rig.peripheral.counters.reads.isEmpty)
  }

  @Test func aLongValueIsReadWhole() throws {
    let value = (0..<500).map { UInt8(truncatingIfNeeded: $0) }
    let rig = try ManagedRig(.twoValues(value: value))
    let link = try rig.connect()
    #expect(rig.answer(.read(firstValue), on: link) == .success(.value(value)))
    #expect(rig.peripheral.counters.reads == [0x10: 1])
  }

  @Test func aWriteIsCountedByTheSamePeripheral() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    #expect(rig.answer(.write(firstValue, [1, 2]), on: link) == .success(.done))
    #expect(rig.peripheral.counters.writes(at: 0x10).map(\.value) == [[1, 2]])
    #expect(rig.peripheral.counters.writes(at: 0x10).map(\.client) == ["platform"])
    rig.peripheral.react(to: .write(firstValue), with: .applyAndFail(ATTErrorCode(rawValue: 0x80)), times: 1)
    #expect(
      rig.answer(.write(firstValue, [3]), on: link) == .failure(.rejected(ATTErrorCode(rawValue: 0x80))))
    #expect(rig.peripheral.counters.applied(at: 0x10) == 2)
  }

  @Test func whatDoesNotFitIsRefusedBeforeItLeaves() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    let long = [UInt8](repeating: 1, count: 183)
    #expect(rig.perform(.write(firstValue, long), on: link).1 == .refused(.valueTooLong(limit: 182)))
    #expect(
      rig.perform(.writeWithoutResponse(firstValue, long), on: link).1 == .refused(.valueTooLong(limit: 182)))
    let tooLong = [UInt8](repeating: 1, count: 513)
    #expect(rig.perform(.writeLong(firstValue, tooLong), on: link).1 == .refused(.valueTooLong(limit: 512)))
    let together = [ReliableWrite(firstValue, [1])]
    #expect(rig.perform(.writeReliably(together), on: link).1 == .refused(.notSupported))
    rig.executor.runUntilIdle()
    #expect(rig.peripheral.counters.applied.isEmpty)
  }

  @Test(arguments: [0, 1, 180, 181, 512])
  func aLongWriteIsOneWrite(count: Int) throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    let value = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    #expect(rig.answer(.writeLong(firstValue, value), on: link) == .success(.done))
    #expect(rig.peripheral.counters.writes(at: 0x10).map(\.value) == [value])
  }

  @Test func aLongWriteThatTheDeviceRefusesLeavesNothingBehind() throws {
    let rig = try ManagedRig(.twoValues(prepareLimit: 1))
    let link = try rig.connect()
    let value = [UInt8](repeating: 7, count: 200)
    #expect(rig.answer(.writeLong(firstValue, value), on: link) == .failure(.rejected(.prepareQueueFull)))
    #expect(rig.peripheral.preparedParts == 0)
    #expect(rig.peripheral.counters.applied.isEmpty)
  }

  @Test func aLongWriteCanBeCalledOffUntilItIsExecuted() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    let (id, _) = rig.perform(.writeLong(firstValue, [UInt8](repeating: 7, count: 400)), on: link)
    rig.executor.advance(by: .milliseconds(20))
    #expect(rig.peripheral.preparedParts == 1)
    link.abandon(id)
    rig.executor.advance(by: .seconds(1))
    #expect(rig.recorder.answers(to: id, on: link.id) == [.failure(.refused(.calledOff))])
    #expect(rig.peripheral.preparedParts == 0)
    #expect(rig.peripheral.counters.applied.isEmpty)
  }

  @Test func requestsOnOneCharacteristicAreAnsweredInOrderAndOthersBesideThem() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.react(to: .write(firstValue), with: .answerLate(.seconds(5)), times: 1)
    let slow = rig.perform(.write(firstValue, [1]), on: link).0
    let behind = rig.perform(.write(firstValue, [2]), on: link).0
    let beside = rig.perform(.read(secondValue), on: link).0
    rig.executor.runUntilIdle()
    let order = rig.recorder.deliveries(of: link.id).compactMap { delivery -> RequestID? in
      if case .answered(_, let id, _) = delivery { id } else { nil }
    }
    #expect(order.suffix(3) == [beside, slow, behind])
    #expect(rig.peripheral.counters.writes(at: 0x10).map(\.value) == [[1], [2]])
  }

  @Test func tooManyRequestsWaitUntilOneIsAnswered() throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(maximumOutstanding: 2))
    let link = try rig.connect()
    #expect(rig.perform(.read(firstValue), on: link).1 == .accepted)
    #expect(rig.perform(.read(firstValue), on: link).1 == .accepted)
    #expect(rig.perform(.read(firstValue), on: link).1 == .later)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.deliveries(of: link.id).contains(.writable(link.id)))
    #expect(rig.peripheral.counters.reads == [0x10: 2])
    #expect(rig.perform(.read(firstValue), on: link).1 == .accepted)
  }

  @Test func commandsHaveTheirOwnFlowControl() throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(commandBuffer: 2))
    let link = try rig.connect()
    let ids = (0..<2).map { rig.perform(.writeWithoutResponse(firstValue, [UInt8($0)]), on: link).0 }
    #expect(rig.perform(.writeWithoutResponse(firstValue, [9]), on: link).1 == .later)
    #expect(rig.perform(.read(secondValue), on: link).1 == .accepted)
    rig.executor.runUntilIdle()
    for id in ids { #expect(rig.recorder.answers(to: id, on: link.id) == [.success(.done)]) }
    #expect(rig.recorder.deliveries(of: link.id).contains(.writable(link.id)))
    #expect(rig.peripheral.counters.writes(at: 0x10).map(\.value) == [[0], [1]])
  }

  @Test func valuesComeToThoseWhoAskedForThem() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.push([1], handle: 0x10)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.values(of: link.id) == [])
    rig.peripheral.react(
      to: .subscription(firstValue), with: ServerReaction(notifiesFirst: [[0x41]]), times: 1)
    #expect(rig.answer(.setNotifying(firstValue, true), on: link) == .success(.done))
    rig.peripheral.update([0x42], of: firstValue)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.values(of: link.id) == [[0x41], [0x42]])
    #expect(rig.answer(.setNotifying(firstValue, false), on: link) == .success(.done))
    rig.peripheral.push([3], handle: 0x10)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.values(of: link.id).count == 2)
  }

  @Test func aRefusedSubscriptionDeliversNothingLater() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.react(to: .subscription(firstValue), with: .refuse(.insufficientAuthorization), times: 1)
    #expect(
      rig.answer(.setNotifying(firstValue, true), on: link)
        == .failure(.rejected(.insufficientAuthorization)))
    rig.peripheral.push([1], handle: 0x10)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.values(of: link.id) == [])
  }

  @Test func indicationsAreConfirmedByThePlatform() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    #expect(rig.answer(.setNotifying(secondValue, true), on: link) == .success(.done))
    rig.peripheral.update([1], of: secondValue)
    rig.peripheral.update([2], of: secondValue)
    rig.executor.runUntilIdle()
    #expect(rig.recorder.values(of: link.id) == [[1], [2]])
    #expect(rig.peripheral.counters.confirmations == 2)
  }

  @Test func aCharacteristicWithoutValuesToSendCannotNotify() throws {
    let rig = try ManagedRig(.battery())
    let link = try rig.connect()
    #expect(
      rig.perform(.setNotifying(Characteristic(.deviceName), true), on: link).1 == .refused(.cannotNotify))
  }

  @Test func aChangedTableIsSaid() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.insertInFront(.battery(level: 3))
    rig.executor.runUntilIdle()
    #expect(rig.recorder.deliveries(of: link.id).last == .tableChanged(link.id))
    #expect(rig.answer(.write(firstValue, [5]), on: link) == .success(.done))
    let handle = try #require(rig.peripheral.valueHandle(of: firstValue))
    #expect(handle != 0x10)
    #expect(rig.peripheral.counters.applied(at: handle) == 1)
  }

  @Test func aSecondAnswerReachesNobody() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.react(to: .read(firstValue), with: .answerTwice, times: 1)
    let first = rig.perform(.read(firstValue), on: link).0
    let second = rig.perform(.read(secondValue), on: link).0
    rig.executor.runUntilIdle()
    #expect(rig.recorder.answers(to: first, on: link.id) == [.success(.value([0x41]))])
    #expect(rig.recorder.answers(to: second, on: link.id) == [.success(.value([]))])
  }

  @Test func anAnswerThatCannotBeEndsTheLink() throws {
    let rig = try ManagedRig()
    let link = try rig.connect()
    rig.peripheral.react(to: .read(firstValue), with: ServerReaction(answer: .octets([0x13])), times: 1)
    let id = rig.perform(.read(firstValue), on: link).0
    rig.executor.runUntilIdle()
    #expect(rig.recorder.closings(of: link.id).map(\.loss.reason) == [.protocolViolation])
    #expect(rig.recorder.closings(of: link.id).map(\.inDoubt) == [[id]])
  }

  @Test func nothingWasDeliveredInsideACall() throws {
    let rig = try ManagedRig(configuration: ManagedConfiguration(latency: .zero, connectDelay: .zero))
    let link = try rig.connect()
    for request in [.exchangeMTU, .read(firstValue), .writeWithoutResponse(firstValue, [1])] as [GATTRequest]
    {
      rig.perform(request, on: link)
    }
    rig.recorder.calling { link.close() }
    rig.executor.runUntilIdle()
    #expect(rig.recorder.deliveriesInsideCalls == 0)
    #expect(rig.recorder.closings(of: link.id).count == 1)
  }
}
