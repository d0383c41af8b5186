public import RelinkCore
internal import Synchronization

/// The lasting relation with one device, across any number of links.
///
/// A session keeps the link up, or brings it back, as long as the app wants it; it arms subscriptions anew on each
/// link, keeps a journal of what was asked of the device, and after a loss offers again only what may be repeated.
///
/// There is one session per device and process. It runs on its transport's executor. It lives as long as somebody
/// holds it, one of its streams, or waits in one of its calls; when the last reference goes, the link is ended as by
/// ``close()``. One that was closed also lives until its store has answered what it was asked about its operations.
public actor DeviceSession {
  /// The device.
  public nonisolated let device: DeviceID

  nonisolated let executor: any SessionExecutor
  nonisolated let publisher: EventPublisher
  private nonisolated let lastConsumer = Atomic<UInt64>(0)

  let transport: any Transport
  let configuration: Configuration

  // The machines that decide, and what the shell keeps for them.
  var machine: SessionStateMachine
  var operations: OperationJournal
  var subscriptions = SubscriptionsStateMachine()
  var scope: ScopedRequests

  /// The name under which the device is dialled: the one the session was made with, until the app says that it has
  /// another.
  var peer: DeviceID
  /// The names under which the transport knows the session.
  var names: [DeviceID]

  var attempts = KeyedList<AttemptID, any Attempt>()
  var links = KeyedList<LinkID, any Link>()
  var link: (any Link)?
  var linkCapabilities = LinkCapabilities()
  /// Requests that the link in use has accepted and not answered, those without response apart.
  var outstanding = 0
  /// The step of the preparation that the link could not take at once, or that it works on.
  var step: PreparationStep?
  var isOfferPosted = false
  var setup: AppTask?
  /// The question of a pairing that the user is being asked.
  var pairing: AskedQuestion?
  var services: [DiscoveredService] = []

  var waiters = KeyedList<OperationNumber, OperationWaiters>()
  /// Calls that wait for an operation that an earlier call began with.
  var joinedCalls: [OperationNumber: OperationNumber] = [:]
  /// Who waits until a durable operation is recorded.
  var recordings: [OperationNumber: [CheckedContinuation<Void, Never>]] = [:]
  var exclusive = ExclusiveTurns()
  var probe: RunningProbe?
  var claim: JournalClaim?
  /// How often in a row the claim was refused.
  var claimFailures = 0
  /// The session itself, while it has ended and its store owes an answer: that is still to be told, and audited.
  var lingering: DeviceSession?
  /// What the IDs of durable operations are drawn from.
  private var nameGenerator: SplitMix
  nonisolated let journalFeed = JournalFeed()
  nonisolated let recovery = RecoveryFeed()
  var connectWaiters = KeyedList<
    ConnectWaiterID, CheckedContinuation<SessionStateMachine.ConnectResult, Never>
  >()
  var bondRemovals = KeyedList<RequestID, CheckedContinuation<RelinkError?, Never>>()
  var lastBondRemoval: UInt64 = 0
  var consumers = KeyedList<ConsumerID, ValueBuffer>()

  var lastOperation: Int64 = 0
  var lastConnectWaiter: UInt64 = 0
  var lastRequest: UInt64 = 0
  /// Behind a lock only because it refers to the session, which a nonisolated initializer makes it for.
  nonisolated let receiver = Locked<LinkReceiver?>(nil)

  /// The executor of the transport: the session runs where its radio's callbacks arrive.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Makes the session for a device.
  ///
  /// Nothing is dialled before something is asked for.
  ///
  /// - Throws: `sessionExists` while another session for the device lives in this process.
  public init(
    with device: DeviceID, over transport: any Transport, configuration: Configuration = Configuration()
  ) throws(RelinkError) {
    self.device = device
    peer = device
    names = [device]
    self.transport = transport
    self.configuration = configuration
    executor = transport.executor
    var generator = SystemRandomNumberGenerator()
    let seed = configuration.seed ?? generator.next()
    let now = transport.executor.timestamp()
    let machine = SessionStateMachine(
      policy: configuration.reconnection, security: configuration.security, table: configuration.diagnosis,
      hasSetup: configuration.setup != nil, seed: seed, now: now.monotonic)
    // A later session with the same seed must not give the same names.
    nameGenerator = SplitMix(seed: seed ^ UInt64(bitPattern: now.wall))
    self.machine = machine
    var operations = OperationJournal(
      policy: configuration.journal, hasStore: configuration.store != nil, bootID: transport.executor.bootID,
      now: now)
    operations.isObserved = configuration.audit != nil
    self.operations = operations
    scope = ScopedRequests(rejections: configuration.journal.rejections)
    publisher = EventPublisher(machine.snapshot)
    let receiver = LinkReceiver(self)
    try transport.register(receiver, for: device)
    self.receiver.withLock { $0 = receiver }
    guard configuration.store != nil else { return }
    // What an earlier process left goes on by itself.
    executor.post { [weak self] in
      self?.assumeIsolated { $0.openStore() }
    }
  }

  isolated deinit {
    guard receiver.withLock({ $0 != nil }) else {
      // It was closed, and let go of before the store had answered.
      journalFeed.finish()
      recovery.finish()
      return cancelJournalTimers()
    }
    perform(machine.endRequested(.released, inDoubt: 0, now: executor.now))
    end()
    // Nobody is left who could be told more.
    journalFeed.finish()
    recovery.finish()
    cancelJournalTimers()
  }

  // MARK: Connecting

  /// Asks for a link, and waits until the session is ready.
  ///
  /// The wish lasts: a lost link is brought back until ``disconnect()`` or ``close()``. Calls that overlap share the
  /// attempts, and each gets its result. Calling it is optional, since any operation asks for a link too.
  ///
  /// It ends within `limit`, by default ``Deadlines/connect``; with `.never` only as below. The deadline ends the wait,
  /// not the wish. Cancelling the only caller before the session was ever ready takes the wish back.
  /// - Throws: `deadlineExceeded`; `cancelled`; `adapterUnavailable` at once while the adapter is off or missing (the
  ///   session goes on by itself when it is back); `attemptsExhausted`; `disconnected`; `ended`; `invalidArgument`
  ///   inside the session's setup, which comes before ready.
  @discardableResult
  public func connect(within limit: Deadline = .default) async throws(RelinkError) -> Readiness {
    guard machine.isOffering || !ExclusiveTurn.isHeld(of: self) else { throw RelinkError.insideTurn }
    lastConnectWaiter += 1
    let id = ConnectWaiterID(rawValue: lastConnectWaiter)
    let now = executor.timestamp()
    let deadline = limit.bootTime(from: now, default: configuration.deadlines.connect)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // The way here may leave the executor; a cancellation of that time found nothing to cancel.
        guard !Task.isCancelled else {
          return continuation.resume(returning: SessionStateMachine.ConnectResult.cancelled)
        }
        connectWaiters[id] = continuation
        perform(machine.connectRequested(id, deadline: deadline, now: now.monotonic))
      }
    } onCancel: {
      executor.post { self.assumeIsolated { $0.connectCancelled(id) } }
    }
    return try readiness(from: result)
  }

  /// Lets go of the link and of the wish for one.
  ///
  /// It wins over everything: nothing is dialled until it is asked for.
  ///
  /// Operations settle at once: what was never offered as not sent, what was offered as indeterminate. Subscriptions
  /// stay declared for a later ``connect(within:)``. It returns without waiting for the radio; a link that lingers is
  /// waited for before the next dial. What a transport has to keep of a dial that was called off it lets go of by
  /// itself: see ``Attempt/cancel()``.
  public func disconnect() async {
    callOffEverything()
    perform(
      machine.disconnectRequested(inDoubt: OpenOffers(inDoubt: outstandingOperations), now: executor.now))
  }

  /// Ends the session: the last event is `ended`, and every call and stream ends.
  ///
  /// It returns without waiting for the radio; operations settle as by ``disconnect()``. The device may have another
  /// session from then on.
  public func close() async {
    callOffEverything()
    perform(
      machine.endRequested(.closed, inDoubt: OpenOffers(inDoubt: outstandingOperations), now: executor.now))
    end()
    linger()
  }

  /// Where the session stands at the moment.
  ///
  /// Can be read on any thread, and waits for nothing.
  public nonisolated func snapshot() -> Snapshot {
    publisher.snapshot
  }

  /// The events of the session: first a snapshot, then each later event, in order.
  ///
  /// Each call makes a new, independent stream; it begins with the moment of the call, lives through any number of
  /// reconnections, and ends once, after `ended`. A consumer that falls `buffering` events behind gets `missed` with
  /// their number and a fresh snapshot. Waiting for the next event has no bound; cancelling the task ends it.
  public nonisolated func events(buffering: Buffering = .newest(256)) -> AsyncStream<ConnectionEvent> {
    publisher.subscribe(limit: buffering.limit, keeping: self)
  }

  /// The values that the device notifies or indicates for a characteristic.
  ///
  /// The subscription is declared by this call and armed on each link, for any number of consumers with one write of
  /// the descriptor. It asks for a link like an operation does; after ``disconnect()`` it is only declared, and armed
  /// once the app connects again. The stream ends with the session.
  public nonisolated func notifications(
    from characteristic: Characteristic, buffering: Buffering = .newest(64)
  ) -> ValueStream {
    let id = ConsumerID(rawValue: lastConsumer.wrappingAdd(1, ordering: .relaxed).newValue)
    let buffer = ValueBuffer(buffering)
    executor.post {
      self.assumeIsolated { $0.consumerCame(id, of: characteristic, buffer) }
    }
    return ValueStream(ValueSubscription(buffer: buffer, id: id, session: self))
  }

  nonisolated func consumerGone(_ id: ConsumerID) {
    executor.post { [weak self] in
      self?.assumeIsolated { $0.consumerLeft(id) }
    }
  }

  // MARK: Parts

  /// A name for a durable operation that was given none.
  func newLastingID() -> OperationID? {
    let text = (0..<2).map { _ in
      let digits = String(nameGenerator.next(), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
    return OperationID(text.joined())
  }

  /// Stops what the link in use can still stop, before the link is closed.
  private func callOffEverything() {
    for request in operations.outstandingRequests() { callOff(request) }
  }

  /// Takes the session out of its transport, once.
  private func end() {
    guard let receiver = receiver.withLock({ $0.take() }) else { return }
    // A receiver that is gone could be followed by another session's, which would then be the one to be taken out.
    withExtendedLifetime(receiver) {
      for name in names { transport.unregister(name) }
    }
    // Their last words will not be heard any more.
    links.removeAll()
    attempts.removeAll()
    for timer in SessionStateMachine.Timer.allCases { executor.cancelTimer(timerID(timer.rawValue)) }
    executor.cancelTimer(timerID(Self.clockTimer))
    executor.cancelTimer(timerID(Self.refusalTimer))
    if operations.isEmpty { executor.cancelTimer(timerID(Self.journalTimer)) }
    let error = RelinkError(
      .ended, "The session has ended; make a new one to go on.", disconnect: machine.lastDisconnect)
    finishFeeds()
    for id in subscriptions.sessionEnded() { consumers.removeValue(forKey: id)?.finish(error) }
  }

  private func connectCancelled(_ id: ConnectWaiterID) {
    let hasOtherWork = !operations.entries.isEmpty || subscriptions.hasConsumers || exclusive.hasWaiting
    perform(machine.connectCancelled(id, hasOtherWork: hasOtherWork, now: executor.now))
  }

  private func readiness(
    from result: SessionStateMachine.ConnectResult
  ) throws(RelinkError) -> Readiness {
    let last = machine.lastDisconnect
    switch result {
    case .ready(let readiness):
      return readiness
    case .disconnected:
      throw RelinkError(.disconnected, "disconnect() was called while connect() waited.", disconnect: last)
    case .ended:
      throw RelinkError(.ended, "The session has ended; make a new one to go on.", disconnect: last)
    case .cancelled:
      throw RelinkError(.cancelled, "The task that waited in connect() was cancelled.", disconnect: last)
    case .deadlineExceeded:
      throw RelinkError(
        .deadlineExceeded, "Not ready in time; the session keeps trying. Is the device near and powered?",
        disconnect: last)
    case .adapterUnavailable(let state):
      throw RelinkError(
        .adapterUnavailable,
        state.advice,
        disconnect: last)
    case .userActionNeeded(let action):
      throw RelinkError(.userActionNeeded, action.advice, disconnect: last)
    case .attemptsExhausted:
      throw RelinkError(
        .attemptsExhausted, "All the attempts that the policy allows have failed.", disconnect: last)
    }
  }
}

/// Runs `body` with a session that is closed afterwards, however `body` ends.
///
/// It takes as long as `body` does.
/// - Throws: what `body` throws; `sessionExists` as a ``RelinkError`` while there is a session for the device.
nonisolated(nonsending) public func withDeviceSession<Value: Sendable>(
  with device: DeviceID, over transport: any Transport, configuration: Configuration = Configuration(),
  _ body: @Sendable (DeviceSession) async throws -> Value
) async throws -> Value {
  let session = try DeviceSession(with: device, over: transport, configuration: configuration)
  do {
    let value = try await body(session)
    await session.close()
    return value
  } catch {
    await session.close()
    throw error
  }
}

extension AdapterState {
  /// What a caller of `connect()` is told.
  fileprivate var advice: String {
    switch self {
    case .on: "The Bluetooth adapter went away for a moment; ask again."
    case .off: "The Bluetooth adapter is off; the session goes on by itself once it is on."
    case .blocked:
      "The Bluetooth adapter is blocked by a switch of this machine (rfkill unblock bluetooth); the session goes on by "
        + "itself once it is not."
    case .suspended: "The host is about to sleep; the session goes on by itself after that."
    case .missing: "There is no Bluetooth adapter; the session goes on by itself once there is one."
    case .notPermitted:
      "This process may not use the Bluetooth adapter; the evidence says what the system refused. The session keeps "
        + "trying."
    }
  }
}
