import BluetoothWire
import Relink
import Testing

/// Long reads, long writes and the table, over a link.
@Suite struct ATTLinkProcedureTests {
  private var bench = ATTBench(to: .standard())
  private static let part = [UInt8](repeating: 7, count: 22)
  private static let value = (0..<30).map { UInt8($0) }
  private static let prepares: [[UInt8]] = [
    [0x16, 0x10, 0, 0, 0] + value[..<18], [0x16, 0x10, 0, 18, 0] + value[18...],
  ]
  private static let echoes: [[UInt8]] = [
    [0x17, 0x10, 0, 0, 0] + value[..<18], [0x17, 0x10, 0, 18, 0] + value[18...],
  ]

  // MARK: Long reads

  @Test mutating func longReadGoesOnUntilAShortPart() {
    _ = bench.perform(.read(.level))
    bench.receive([0x0B] + Self.part)
    bench.receive([0x0D] + Self.part)
    #expect(bench.recorder.take() == [])
    bench.receive([0x0D, 9])
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0], [0x0C, 0x10, 0, 22, 0], [0x0C, 0x10, 0, 44, 0]])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.value(Self.part + Self.part + [9])))])
  }

  @Test mutating func answerThatComesTwiceIsNotThatToTheNextPart() {
    _ = bench.perform(.read(.level))
    bench.arrive([0x0B] + Self.part)
    bench.receive([0x0D] + Self.part)
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0]])
    #expect(bench.channel.closes == 1)
    #expect(bench.recorder.take() == [])
  }

  @Test mutating func indicationBehindAnAnswerIsConfirmedBeforeTheNextPart() {
    _ = bench.perform(.read(.level))
    bench.arrive([0x0B] + Self.part)
    bench.receive([0x1D, 0x20, 0, 1])
    #expect(bench.channel.takeSent() == [[0x0A, 0x10, 0], [0x1E], [0x0C, 0x10, 0, 22, 0]])
  }

  @Test mutating func longWriteThatIsAbandonedBehindAnAnswerIsCalledOff() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.receive(Self.echoes[0])
    bench.arrive(Self.echoes[1])
    bench.abandon(bench.latest)
    bench.executor.run()
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 0]])
  }

  @Test mutating func nextPartWaitsForAFullChannelBeforeEverythingElse() {
    _ = bench.perform(.read(.level))
    _ = bench.channel.takeSent()
    bench.channel.answerSends(with: .later)
    bench.receive([0x0B] + Self.part)
    #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .later)
    bench.becomeWritable()
    #expect(bench.channel.takeSent() == [[0x0C, 0x10, 0, 22, 0]])
    bench.receive([0x0D])
    #expect(
      bench.recorder.take() == [.writable, .answered(bench.latest.before, .success(.value(Self.part)))])
  }

  @Test mutating func nextPartThatTheSystemRefusesIsSentWithTheNextEvent() {
    _ = bench.perform(.read(.level))
    _ = bench.channel.takeSent()
    bench.channel.answerNextSends(with: [.failed(107)])
    bench.receive([0x0B] + Self.part)
    #expect(bench.channel.takeSent() == [])
    bench.receive([0x1B, 0x10, 0, 1])
    #expect(bench.channel.takeSent() == [[0x0C, 0x10, 0, 22, 0]])
  }

  @Test mutating func nextPartThatNeverFindsRoomEndsTheLink() {
    _ = bench.perform(.read(.level))
    bench.channel.answerSends(with: .later)
    bench.executor.advance(by: .seconds(10))
    bench.receive([0x0B] + Self.part)
    bench.executor.advance(by: .seconds(30))
    #expect(bench.channel.closes == 1)
  }

  // MARK: Long writes

  @Test mutating func longWriteIsQueuedAndExecuted() {
    #expect(bench.perform(.writeLong(.level, Self.value)) == .accepted)
    bench.receive(Self.echoes[0])
    bench.receive(Self.echoes[1])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 1]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.done))])
  }

  @Test mutating func eachRequestOfAProcedureIsARoundTrip() {
    let before = bench.link.roundTrips
    _ = bench.perform(.writeLong(.level, Self.value))
    for echo in Self.echoes { bench.receive(echo) }
    _ = bench.perform(.writeWithoutResponse(.level, [1]))
    #expect(bench.link.roundTrips == before + 3)
  }

  /// The link is lost after so many answers; only Execute Write that has left can take effect.
  @Test(arguments: [(0, false), (1, false), (2, true)])
  mutating func longWriteIsInDoubtOnlyOnceExecuteHasLeft(_ answers: Int, _ isInDoubt: Bool) {
    _ = bench.perform(.writeLong(.level, Self.value))
    for echo in Self.echoes[..<answers] { bench.receive(echo) }
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: isInDoubt ? [bench.latest] : [])])
  }

  @Test mutating func executeThatFoundNoRoomIsNotInDoubt() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.receive(Self.echoes[0])
    bench.channel.answerSends(with: .later)
    bench.receive(Self.echoes[1])
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [])])
  }

  @Test mutating func changedPartClearsTheQueue() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.receive([0x17, 0x10, 0, 0, 0, 0xFF])
    #expect(bench.channel.takeSent() == [Self.prepares[0], [0x18, 0]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.refused(.prepareMismatch)))])
  }

  @Test mutating func errorForAPartClearsTheQueue() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.receive(Self.echoes[0])
    bench.receive([0x01, 0x16, 0x10, 0, 0x09])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 0]])
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [])])
  }

  @Test mutating func abandonedLongWriteIsCalledOffAndAnswered() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.abandon(bench.latest)
    #expect(bench.perform(.read(.level)) == .later)
    bench.receive(Self.echoes[0])
    #expect(bench.channel.takeSent() == [Self.prepares[0], [0x18, 0]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest.before, .failure(.refused(.calledOff)))])
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  @Test mutating func abandonedBeforeExecuteFoundRoomIsCalledOff() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.receive(Self.echoes[0])
    bench.channel.answerSends(with: .later)
    bench.receive(Self.echoes[1])
    bench.abandon(bench.latest)
    _ = bench.channel.takeSent()
    bench.becomeWritable()
    #expect(bench.channel.takeSent() == [[0x18, 0]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.refused(.calledOff)))])
  }

  @Test mutating func abandonedAfterExecuteLeftIsAnsweredAsItTurnsOut() {
    _ = bench.perform(.writeLong(.level, Self.value))
    for echo in Self.echoes { bench.receive(echo) }
    bench.abandon(bench.latest)
    bench.receive([0x19])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 1]])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.done))])
  }

  // MARK: The table

  @Test func tableIsLearntAndRemembered() {
    var bench = ATTBench()
    bench.discover(.standard())
    guard
      case .answered(bench.latest, .success(.table(let services, changed: false)))? = bench.recorder.take()
        .first
    else {
      Issue.record("no table")
      return
    }
    #expect(services.map(\.uuid) == [.genericAttribute, .battery])
    #expect(services.resolve(Characteristic(.batteryLevel))?.name == .level)
    #expect(bench.tables.table?.discovered == services)
  }

  @Test func nothingPartialIsKept() {
    let whole = ATTBench(to: .standard()).tables.table
    for answers in 0..<30 {
      let tables = AttributeTableMemory()
      if let whole { tables.store(whole) }
      var bench = ATTBench(tables: tables)
      let device = ScriptedDevice.standard(shift: 8)
      #expect(bench.perform(.discover) == .accepted)
      for _ in 0..<answers {
        guard let request = bench.channel.takeSent().first else { return }
        bench.receive(device.answer(request))
      }
      guard bench.recorder.take() == [] else { return }
      bench.lose()
      #expect(tables.table == whole)
    }
    Issue.record("discovery never ended")
  }

  @Test func equalHashKeepsTheTableAfterOneRoundTrip() {
    let hash = [UInt8](1...16)
    let before = ATTBench(to: .standard(hash: hash))
    var bench = ATTBench(tables: before.tables)
    #expect(bench.discover(.standard(hash: hash)) == 1)
    let services = before.tables.table?.discovered ?? []
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.table(services, changed: false)))])
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  /// B12, by hash and without one.
  @Test(arguments: [true, false]) func movedTableIsLearntAnew(_ hasHash: Bool) {
    let before = ATTBench(to: .standard(hash: hasHash ? [UInt8](1...16) : nil))
    var bench = ATTBench(tables: before.tables)
    bench.discover(.standard(hash: hasHash ? [UInt8](2...17) : nil, shift: 8))
    guard case .answered(_, .success(.table(_, changed: true)))? = bench.recorder.take().first else {
      Issue.record("no changed table")
      return
    }
    #expect(bench.perform(.write(.level, [1])) == .accepted)
    #expect(bench.channel.takeSent() == [[0x12, 0x18, 0x00, 1]])
  }

  /// B12, by Service Changed.
  @Test mutating func announcedChangeStopsRequestsUntilTheTableIsLearntAnew() {
    let now = bench.executor.timestamp()
    bench.receive([0x1D, 0x03, 0x00, 0x0F, 0x00, 0xFF, 0xFF])
    #expect(bench.channel.takeSent() == [[0x1E]])
    #expect(bench.recorder.take() == [.tableChanged])
    #expect(bench.perform(.write(.level, [1])) == .later)
    #expect(bench.channel.takeSent() == [])
    // A value from a handle that may mean something else by now belongs to nobody.
    bench.receive([0x1B, 0x10, 0x00, 1])
    #expect(bench.recorder.take() == [])
    #expect(bench.discover(.standard(shift: 8)) > 5)
    guard case .answered(_, .success(.table(_, changed: true)))? = bench.recorder.take().first else {
      Issue.record("no changed table")
      return
    }
    #expect(bench.perform(.write(.level, [1])) == .accepted)
    #expect(bench.channel.takeSent() == [[0x12, 0x18, 0x00, 1]])
    bench.receive([0x1B, 0x18, 0x00, 2])
    #expect(bench.recorder.take() == [.value([2], .level, now)])
  }

  @Test mutating func valuesOutsideTheChangedRangeAreDelivered() {
    bench.receive([0x1D, 0x03, 0x00, 0x1F, 0x00, 0x30, 0x00])
    bench.receive([0x1B, 0x10, 0x00, 1])
    bench.receive([0x1B, 0x20, 0x00, 2])
    let now = bench.executor.timestamp()
    #expect(bench.recorder.take() == [.tableChanged, .value([1], .level, now)])
  }

  @Test mutating func announcedChangeLearnsTheTableInSpiteOfItsHash() {
    let device = ScriptedDevice.standard(hash: [UInt8](1...16))
    var bench = ATTBench(to: device)
    bench.receive([0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF])
    _ = bench.channel.takeSent()
    #expect(bench.discover(device) > 5)
  }

  @Test mutating func changeDuringDiscoveryBeginsItAgain() {
    #expect(bench.perform(.discover) == .accepted)
    bench.receive([0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF])
    let sent = bench.channel.takeSent()
    #expect(sent.count == 2 && sent[1] == [0x1E])
    bench.receive(ScriptedDevice.standard().answer(sent[0]))
    let count = bench.serve(.standard())
    #expect(count > 15)
    let deliveries = bench.recorder.take()
    #expect(deliveries.count == 2 && deliveries.first == .tableChanged)
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  @Test mutating func changeDuringADiscoveryThatFailedDoesNotBurdenTheNext() {
    #expect(bench.perform(.discover) == .accepted)
    bench.receive([0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF])
    bench.receive([0x01, 0x10, 0x01, 0x00, 0x0E])
    #expect(
      bench.recorder.take() == [.tableChanged, .answered(bench.latest, .failure(.rejected(.unlikelyError)))])
    _ = bench.channel.takeSent()
    let alone = ATTBench(to: .standard(), tables: bench.tables)
    let before = bench.link.roundTrips
    bench.discover(.standard())
    #expect(bench.link.roundTrips - before == alone.link.roundTrips)
  }

  @Test mutating func tableThatNeverSettlesEndsTheLink() {
    #expect(bench.perform(.discover) == .accepted)
    var discoveries = 0
    while bench.channel.closes == 0, let request = bench.channel.takeSent().first(where: { $0 != [0x1E] }) {
      if request[0] == 0x10, request[1] == 1 {
        discoveries += 1
        bench.receive([0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF])
      }
      bench.receive(ScriptedDevice.standard().answer(request))
    }
    #expect(discoveries == 5)
    #expect(bench.recorder.take().last == .answered(bench.latest, .failure(.malformedAnswer)))
  }

  @Test mutating func announcedChangeCallsOffALongWrite() {
    _ = bench.perform(.writeLong(.level, Self.value))
    bench.receive([0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF])
    bench.receive(Self.echoes[0])
    #expect(bench.channel.takeSent() == [Self.prepares[0], [0x1E], [0x18, 0]])
    bench.receive([0x19])
    #expect(
      bench.recorder.take()
        == [.tableChanged, .answered(bench.latest, .failure(.refused(.calledOff)))])
  }

  @Test mutating func outOfSyncAnswerIsAnAnnouncedChange() {
    _ = bench.perform(.read(.level))
    bench.receive([0x01, 0x0A, 0x10, 0x00, 0x12])
    #expect(
      bench.recorder.take()
        == [.answered(bench.latest, .failure(.rejected(.databaseOutOfSync))), .tableChanged])
    #expect(bench.perform(.read(.level)) == .later)
  }

  @Test mutating func hostileTableIsSaidAndEndsTheLink() {
    #expect(bench.perform(.discover) == .accepted)
    _ = bench.channel.takeSent()
    bench.receive(
      ATTPDU.readByGroupTypeResponse([ATTGroupValue(start: 9, end: 1, value: [0x0F, 0x18])]))
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.malformedAnswer))])
    #expect(bench.channel.closes == 1)
    bench.lose()
    let evidence: [Evidence] = [
      .observation("handle 9 out of order in response 0x11"), .system(110, call: .receive),
    ]
    #expect(bench.recorder.take() == [.closed(LinkLoss(.protocolViolation, evidence: evidence), inDoubt: [])])
  }

  @Test mutating func valuesBeforeTheTableIsKnownAreDropped() {
    let fresh = ATTBench(tables: bench.tables)
    fresh.receive([0x1B, 0x10, 0x00, 1])
    #expect(fresh.recorder.take() == [])
    #expect(fresh.link.droppedValueCount == 1)
  }
}

extension RequestID {
  /// The one before it.
  fileprivate var before: RequestID { RequestID(rawValue: rawValue - 1) }
}
