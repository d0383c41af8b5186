import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// One session with one device over a virtual radio, played by hand.
final class Scene: Sendable {
  let executor = ManualExecutor()
  let radio: VirtualRadio
  let device: DeviceID
  let session: DeviceSession
  let recorder = EventRecorder()
  /// Where durable operations are recorded; nil where the case has none.
  let store: VirtualJournalStore?

  /// The value at handle 0x0010 of the peers in these cases; its configuration stands at 0x0011.
  static let first = Characteristic(BluetoothUUID(0xFF01))
  /// The value at handle 0x0020; its configuration stands at 0x0021.
  static let second = Characteristic(BluetoothUUID(0xFF02))

  init(
    _ peer: any VirtualPeer, _ configuration: Configuration = Configuration(seed: 1),
    air: VirtualRadio.Configuration = VirtualRadio.Configuration(), isDurable: Bool = false
  ) throws {
    store = isDurable ? VirtualJournalStore(on: executor) : nil
    var configuration = configuration
    configuration.store = store
    radio = VirtualRadio(on: executor, configuration: air)
    device = try deviceID(1)
    radio.add(peer, as: device)
    session = try DeviceSession(with: device, over: radio, configuration: configuration)
    let events = session.events(buffering: .newest(100_000))
    executor.spawn("recorder") { [recorder] in await recorder.record(from: events) }
    executor.run()
  }

  /// Plays a case, and checks what must hold at the end of each: nobody waits, the history is legal, nothing is left.
  ///
  /// `adoptions` is how many dials get a link that was there before; nil for any number.
  static func play(
    _ peer: any VirtualPeer, _ configuration: Configuration = Configuration(seed: 1),
    air: VirtualRadio.Configuration = VirtualRadio.Configuration(), isDurable: Bool = false,
    adoptions: Int? = 0, at place: SourceLocation = #_sourceLocation, _ script: (Scene) throws -> Void
  ) throws {
    weak var session: DeviceSession?
    weak var radio: VirtualRadio?
    let executor: ManualExecutor
    do {
      let scene = try Scene(peer, configuration, air: air, isDurable: isDurable)
      executor = scene.executor
      session = scene.session
      radio = scene.radio
      try script(scene)
      scene.end(adoptions: adoptions, at: place)
    }
    executor.run()
    #expect(session == nil, "somebody still holds the session", sourceLocation: place)
    #expect(radio == nil, "somebody still holds the radio", sourceLocation: place)
  }

  // MARK: Playing

  func connect(_ limit: Deadline = .default) throws {
    try executor.drive("connect") { [session] in _ = try await session.connect(within: limit) }
    executor.run()
  }

  func spawn<Value: Sendable>(
    _ name: String, _ body: @escaping @Sendable (DeviceSession) async throws -> Value
  ) -> SpawnedTask<Value> {
    executor.spawn(name) { [session] in try await body(session) }
  }

  func drive<Value: Sendable>(
    _ name: String, _ body: @escaping @Sendable (DeviceSession) async throws -> Value
  ) throws -> Value {
    try executor.drive(name) { [session] in try await body(session) }
  }

  /// Goes on job by job until a condition holds, without letting time pass beyond the limit.
  func run(until condition: () -> Bool, within limit: Duration = .seconds(60)) -> Bool {
    executor.run(until: condition, within: limit).end == .conditionMet
  }

  var statistics: VirtualRadio.Statistics { radio.statistics(of: device) }

  /// The events without their phases and without the snapshot at the beginning.
  var outline: String {
    recorder.events.dropFirst().compactMap { event in
      if case .phase = event { nil } else { event.outline }
    }.joined(separator: " ")
  }

  // MARK: Looking inside

  /// How much the session keeps for those who wait and for what is under way.
  struct Belongings: Hashable {
    var operations = 0
    var waiters = 0
    var connectWaiters = 0
    var consumers = 0
    var links = 0
    var attempts = 0
    var outstanding = 0
    var joinedCalls = 0
    var recordings = 0
    var hasLink = false
    var hasStep = false
    var hasSetup = false
    var hasProbe = false
    var hasTurns = false
  }

  var belongings: Belongings {
    session.assumeIsolated { session in
      Belongings(
        operations: session.operations.entries.count, waiters: session.waiters.count,
        connectWaiters: session.connectWaiters.count, consumers: session.consumers.count,
        links: session.links.count, attempts: session.attempts.count, outstanding: session.outstanding,
        joinedCalls: session.joinedCalls.count, recordings: session.recordings.count,
        hasLink: session.link != nil, hasStep: session.step != nil, hasSetup: session.setup != nil,
        hasProbe: session.probe != nil,
        hasTurns: session.exclusive.hasWaiting || session.exclusive.holder != nil)
    }
  }

  // MARK: The end

  private func end(adoptions: Int?, at place: SourceLocation) {
    let closing = executor.spawn("close") { [session] in await session.close() }
    executor.run()
    #expect(closing.hasEnded, sourceLocation: place)
    let report = executor.runUntilIdle(within: .seconds(120))
    #expect(report.end == .nothingLeft, "\(report)", sourceLocation: place)
    #expect(report.waitingTasks.isEmpty, sourceLocation: place)
    #expect(executor.problems.isEmpty, sourceLocation: place)
    #expect(executor.timerCount == 0, sourceLocation: place)
    #expect(executor.pendingJobs == 0, sourceLocation: place)
    #expect(recorder.violationOfComplete == nil, "\(recorder.outline)", sourceLocation: place)
    #expect(recorder.finishedStreams == 1, sourceLocation: place)
    #expect(belongings == Belongings(), sourceLocation: place)
    #expect(radio.existingLinks().isEmpty, sourceLocation: place)
    #expect(radio.pendingDials == 0, sourceLocation: place)
    #expect(statistics.overlappingDials == 0, sourceLocation: place)
    if let adoptions { #expect(statistics.adoptions == adoptions, sourceLocation: place) }
    #expect(statistics.earlySecuring == 0, sourceLocation: place)
  }
}

extension SpawnedTask {
  /// What the task threw, where it is one of ours.
  var relinkError: RelinkError? { error as? RelinkError }
}

extension RelinkError {
  /// Why the operation was not sent, where that is its outcome.
  var notSentReason: NotSentReason? {
    if case .notSent(let reason) = outcome { reason } else { nil }
  }

  /// What is in doubt, where that is its outcome.
  var doubt: Doubt? {
    if case .indeterminate(let doubt) = outcome { doubt } else { nil }
  }
}
