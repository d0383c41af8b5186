import BluetoothWire
import Relink
import Testing

/// Several values written together over an ATT link: 3 bytes at 0x0010 and 2 at 0x0020, one part each.
@Suite struct ATTLinkReliableWriteTests {
  private static let writes = [ReliableWrite(.level, [1, 2, 3]), ReliableWrite(.beat, [4, 5])]
  private static let prepares: [[UInt8]] = [
    [0x16, 0x10, 0, 0, 0, 1, 2, 3], [0x16, 0x20, 0, 0, 0, 4, 5],
  ]
  private static let echoes: [[UInt8]] = prepares.map { [0x17] + $0.dropFirst() }

  private var bench = ATTBench(to: .standard())

  @Test mutating func valuesAreQueuedAndExecutedTogether() {
    #expect(bench.perform(.writeReliably(Self.writes)) == .accepted)
    for echo in Self.echoes { bench.receive(echo) }
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 1]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.done))])
  }

  @Test mutating func whatCannotBeWrittenIsRefusedBeforeAnythingLeaves() {
    #expect(bench.perform(.writeReliably([])) == .refused(.noValues))
    let beyond = ReliableWrite(.beat, [UInt8](repeating: 1, count: 513))
    #expect(bench.perform(.writeReliably([Self.writes[0], beyond])) == .refused(.valueTooLong(limit: 512)))
    #expect(bench.channel.takeSent() == [])
    let longest = ReliableWrite(.beat, [UInt8](repeating: 1, count: 512))
    #expect(bench.perform(.writeReliably([Self.writes[0], longest])) == .accepted)
  }

  @Test func valuesWaitUntilTheTableIsKnownOnThisLink() {
    var fresh = ATTBench(tables: bench.tables)
    #expect(fresh.perform(.writeReliably(Self.writes)) == .later)
    #expect(fresh.channel.takeSent() == [])
  }

  @Test mutating func aSecondValueThatComesBackChangedClearsTheQueue() {
    _ = bench.perform(.writeReliably(Self.writes))
    bench.receive(Self.echoes[0])
    bench.receive([0x17, 0x20, 0, 0, 0, 4, 6])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 0]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.refused(.prepareMismatch)))])
  }

  @Test mutating func aFullQueueIsClearedAndIsTheAnswer() {
    _ = bench.perform(.writeReliably(Self.writes))
    bench.receive(Self.echoes[0])
    bench.receive([0x01, 0x16, 0x20, 0, 0x09])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 0]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.rejected(.prepareQueueFull)))])
  }

  /// The link is lost after so many answers; only Execute Write that has left can take effect.
  @Test(arguments: [(0, false), (1, false), (2, true)])
  mutating func valuesAreInDoubtOnlyOnceExecuteHasLeft(_ answers: Int, _ isInDoubt: Bool) {
    _ = bench.perform(.writeReliably(Self.writes))
    for echo in Self.echoes[..<answers] { bench.receive(echo) }
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: isInDoubt ? [bench.latest] : [])])
  }

  @Test mutating func calledOffBetweenTwoValuesClearsTheQueue() {
    _ = bench.perform(.writeReliably(Self.writes))
    bench.receive(Self.echoes[0])
    bench.abandon(bench.latest)
    bench.receive(Self.echoes[1])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 0]])
    bench.receive([0x19])
    #expect(bench.recorder.take() == [.answered(bench.latest, .failure(.refused(.calledOff)))])
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  @Test mutating func calledOffAfterExecuteLeftIsAnsweredAsItTurnsOut() {
    _ = bench.perform(.writeReliably(Self.writes))
    for echo in Self.echoes { bench.receive(echo) }
    bench.abandon(bench.latest)
    bench.receive([0x19])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x18, 1]])
    #expect(bench.recorder.take() == [.answered(bench.latest, .success(.done))])
  }

  @Test mutating func anAnnouncedChangeOfTheTableCallsThemOff() {
    _ = bench.perform(.writeReliably(Self.writes))
    bench.receive(Self.echoes[0])
    bench.receive([0x1D, 0x03, 0x00, 0x01, 0x00, 0xFF, 0xFF])
    bench.receive(Self.echoes[1])
    #expect(bench.channel.takeSent() == Self.prepares + [[0x1E], [0x18, 0]])
    bench.receive([0x19])
    #expect(
      bench.recorder.take() == [.tableChanged, .answered(bench.latest, .failure(.refused(.calledOff)))])
  }
}
