internal import BluetoothWire
internal import Relink
internal import RelinkTesting

// What the app does, and what is done to it.
extension Simulation {
  func start(_ call: Scenario.Call) {
    say("step \(call.text)")
    if !call.isTogether { ledger.withLock { $0.beginTurn() } }
    switch call.step {
    case .notify: beat()
    case .changeTable: changeTable()
    case .stale: sayStale(call)
    case .cut(let reason): radio.lose(device, reason)
    case .suspend(let span): executor.suspend(for: span)
    case .setClock(let span): executor.jumpWall(by: span)
    case .keys(let change): changeKeys(change)
    case .crash(let crash):
      if let life = current { start(crash, in: life) }
    case .read, .write, .again, .discover, .connect, .disconnect, .subscribe, .listen, .watchJournal,
      .exclusive,
      .resolve:
      // While there is no process nobody calls.
      if let life = current, let task = start(call, in: life) { cancelLater(task, call) }
    }
  }

  private func cancelLater(_ task: SpawnedTask<Void>, _ call: Scenario.Call) {
    guard let after = call.cancelledAfter else { return }
    if after == .zero { return task.cancel() }
    executor.setTimer(TimerID(owner: task, number: 0), at: executor.now.advanced(by: after)) {
      task.cancel()
    }
  }

  private func start(_ call: Scenario.Call, in life: Life) -> SpawnedTask<Void>? {
    let session = life.session
    switch call.step {
    case .read(let characteristic):
      return ask(call, in: life) { within in _ = try await session.read(characteristic, within: within) }
    case .discover:
      return ask(call, in: life) { within in _ = try await session.discoverServices(within: within) }
    case .write(let write):
      return submit(call.number, write, call, in: life)
    case .again(let number):
      guard let write = writes[number], mayAskAgain(for: number, write, in: life) else { return nil }
      return submit(number, write, call, in: life)
    case .connect:
      return executor.spawn("connect \(call.number)", isElsewhere: call.isElsewhere) {
        try await session.connect(within: .after(call.within))
      }
    case .disconnect:
      return executor.spawn("disconnect \(call.number)", isElsewhere: call.isElsewhere) {
        await session.disconnect()
        // The app changes its mind; operations that are refused until then were told so.
        try await session.connect(within: .after(call.within))
      }
    case .subscribe:
      return executor.spawn("subscribe \(call.number)", isElsewhere: call.isElsewhere) { [self] in
        await takeOneValue(life)
      }
    case .listen:
      return executor.spawn("listen \(call.number)", isElsewhere: call.isElsewhere) { [self] in
        let recorder = EventRecorder()
        views.withLock { $0.append((call, life, recorder)) }
        // Some keep up, and some have room for two events.
        await recorder.record(from: session.events(buffering: .newest(call.number % 2 == 0 ? 1000 : 2)))
      }
    case .watchJournal:
      return executor.spawn("watch \(call.number)", isElsewhere: call.isElsewhere) {
        var taken = 0
        for await _ in await session.journalEvents(buffering: .newest(call.number % 2 == 0 ? 100 : 2)) {
          taken += 1
          if taken == 10 { break }
        }
      }
    case .exclusive:
      return executor.spawn("exclusive \(call.number)", isElsewhere: call.isElsewhere) {
        try await session.withLink(within: .after(call.within)) { scope in
          _ = try await scope.read(Scenario.setting)
          _ = try await scope.read(Scenario.vault)
        }
      }
    case .resolve:
      return executor.spawn("resolve \(call.number)", isElsewhere: call.isElsewhere) { [self] in
        await resolve(in: life)
      }
    case .notify, .changeTable, .stale, .cut, .crash, .suspend, .setClock, .keys: return nil
    }
  }

  // MARK: Operations

  /// A request that changes nothing: it only has to end, once and in time.
  private func ask(
    _ call: Scenario.Call, in life: Life, _ body: @escaping @Sendable (Deadline) async throws -> Void
  ) -> SpawnedTask<Void> {
    let task = executor.spawn("call \(call.number)", isElsewhere: call.isElsewhere) { [self] in
      let limit = executor.now.advanced(by: call.within)
      do {
        try await body(.after(call.within))
      } catch let error as RelinkError where error.outcome == nil {
        note("call \(call.number) has no outcome: \(error)")
      } catch { say("call \(call.number): \(error)") }
      if !life.isOver, executor.now > limit { note("call \(call.number) ended too late") }
    }
    cancellations.withLock { $0.append(task) }
    return task
  }

  /// Whether there is no operation of a write: the journal said nothing of it, and the store has none.
  private func isUnknown(_ number: UInt64, in life: Life) -> Bool {
    guard case .unknown = life.watch.fate(of: number), let id = Scenario.id(of: number)?.description,
      ledger.withLock({ $0.entries[number]?.waiting ?? 0 }) == 0
    else { return false }
    return !store.rows(of: device).contains { $0.id == id }
  }

  /// Whether the app may ask for a write once more: only under its ID, and after a crash only for what is recorded.
  private func mayAskAgain(for number: UInt64, _ write: Scenario.Write, in life: Life) -> Bool {
    guard write.hasID, let entry = ledger.withLock({ $0.entries[number] }) else { return false }
    return write.isDurable || entry.submissions.allSatisfy { $0 == life.number }
  }

  @discardableResult
  func submit(
    _ number: UInt64, _ write: Scenario.Write, _ call: Scenario.Call, in life: Life
  ) -> SpawnedTask<Void> {
    let cameToNothing = life.watch.cameToNothing(number) || isUnknown(number, in: life)
    let (isNew, isFirst) = ledger.withLock { ledger in
      let isNew = ledger.submitted(number, write, in: life.number, cameToNothing: cameToNothing)
      return (isNew, ledger.entries[number]?.submissions.count == 1)
    }
    if isNew {
      var generation: Generation?
      if scenario.isAlone(call.number), case .ready(let readiness) = life.session.snapshot().state {
        generation = readiness.generation
      }
      life.births.withLock { $0[number] = generation }
    }
    // One that joins waits for the first one's deadline. A commit may take a second longer.
    let grace: Duration = write.isDurable ? .seconds(1) : .zero
    let isBounded = isFirst && (!write.hasID || scenario.isAlone(call.number))
    let limit = isBounded ? executor.now.advanced(by: call.within + grace) : nil
    let isEarly = call.cancelledAfter == .zero
    let handle = Locked<PendingOperation?>(nil)
    let task = executor.spawn("write \(number)", isElsewhere: call.isElsewhere) { [self] in
      await withTaskCancellationHandler {
        do {
          let outcome = try await outcome(number, write, call, in: life, handle)
          told(number, outcome, in: life, by: "call", beforeArrival: isEarly)
        } catch let error as RelinkError {
          if let outcome = error.outcome {
            told(number, outcome.map { _ in nil }, in: life, by: "call", beforeArrival: isEarly)
          } else if !write.hasID || (error.code != .cancelled && error.code != .deadlineExceeded) {
            // Only a caller who waited together with others may go without an outcome.
            note("write \(number) has no outcome: \(error)")
          }
        } catch { note("write \(number) threw \(error)") }
      } onCancel: {
        handle.withLock { $0 }?.cancel()
      }
      if !life.isOver {
        ledger.withLock { $0.entries[number]?.waiting -= 1 }
        if let limit, executor.now > limit {
          note("write \(number) ended \(limit.duration(to: executor.now)) too late")
        }
      }
    }
    cancellations.withLock { $0.append(task) }
    return task
  }

  private func outcome(
    _ number: UInt64, _ write: Scenario.Write, _ call: Scenario.Call, in life: Life,
    _ handle: Locked<PendingOperation?>
  ) async throws -> Outcome<Confirmation?> {
    let (session, options) = (life.session, write.options(within: call.within))
    let tag = tags[number] ?? .nonIdempotent
    let id = write.hasID ? Scenario.id(of: number) : nil
    let (value, name) = (write.value(number), write.attribute)
    let parts = [ReliableWrite(name, value), ReliableWrite(write.second, write.secondValue(number))]
    if write.isSubmitted {
      let request: WriteRequest =
        switch write.way {
        case .request, .long: WriteRequest(value, to: name, idempotency: tag, id: id, options: options)
        case .command: .withoutResponse(value, to: name, idempotency: tag, id: id, options: options)
        case .reliable: .reliably(parts, idempotency: tag, id: id, options: options)
        }
      let pending = try await session.submit(request)
      handle.withLock { $0 = pending }
      return await pending.outcome.map { $0 }
    }
    switch write.way {
    case .request, .long:
      try await session.write(value, to: name, idempotency: tag, id: id, options: options)
    case .command:
      try await session.writeWithoutResponse(value, to: name, idempotency: tag, id: id, options: options)
    case .reliable:
      try await session.writeReliably(parts, idempotency: tag, id: id, options: options)
    }
    return .succeeded(nil)
  }

  /// Somebody in a living process hears what became of a write.
  /// Somebody is told what became of a write; `beforeArrival` says that he was cancelled before his call arrived.
  func told(
    _ number: UInt64, _ outcome: Outcome<Confirmation?>, in life: Life, by way: String,
    beforeArrival: Bool = false
  ) {
    guard !life.isOver else { return }
    say("write \(number) told by \(way): \(outcome)")
    var telling = Ledger.Telling(
      outcome: outcome, life: life.number, submissions: 0,
      applied: peripheral.counters.applied(tag: number),
      isOfNoOperation: isOfNoOperation(number, outcome, in: life, beforeArrival: beforeArrival))
    let mayBeMisjudged = mayBeMisjudged(number)
    ledger.withLock { ledger in
      ledger.entries[number]?.mayBeMisjudged = mayBeMisjudged
      telling.submissions = ledger.entries[number]?.submissions.count ?? 0
      ledger.told(number, telling)
    }
    if !telling.standsAlone { checkFate(of: number, outcome, in: life) }
  }

  /// Whether somebody is told of a call that became no operation: nothing was recorded, or it was turned away.
  private func isOfNoOperation(
    _ number: UInt64, _ outcome: Outcome<Confirmation?>, in life: Life, beforeArrival: Bool
  ) -> Bool {
    if life.watch.cameToNothing(number) { return true }
    guard case .notSent(let reason) = outcome, beforeArrival || reason.isRefusal else { return false }
    // An operation may have ended in the same way.
    if case .settled(.notSent(reason)) = life.watch.fate(of: number) { return false }
    return true
  }

  /// Whether a write in memory may have gone to the attribute of one that an earlier process left in doubt.
  ///
  /// While the claim on the journal fails nothing is held up for what the store has, as documented: an app that writes one
  /// attribute both ways asks for trouble.
  private func mayBeMisjudged(_ number: UInt64) -> Bool {
    let lives = ended.withLock { $0 } + (life.withLock { $0 }.map { [$0] } ?? [])
    guard let write = writes[number], write.isDurable, write.tag.isVerified,
      lives.contains(where: { $0.store?.hasClaimFailed == true })
    else { return false }
    return writes.values.contains { !$0.isDurable && $0.keys.contains(where: write.keys.contains) }
  }

  /// Nobody is told anything but what the journal has settled and committed.
  private func checkFate(of number: UInt64, _ outcome: Outcome<Confirmation?>, in life: Life) {
    if case .indeterminate(let doubt) = outcome, doubt.isUnrecorded { return }
    switch life.watch.fate(of: number) {
    case .unknown: break
    case .open: note("write \(number) was told \(outcome) before it was settled")
    case .settled(let settled):
      let isSame =
        switch (settled, outcome) {
        case (.succeeded(let one), .succeeded(let other)): other == nil || one == other
        case (.indeterminate(let one), .indeterminate(let other)): one.cause == other.cause
        case (.notSent, .notSent), (.rejected, .rejected): true
        case (.succeeded, _), (.rejected, _), (.notSent, _), (.indeterminate, _): false
        }
      if !isSame { note("write \(number) was told \(outcome), and has settled as \(settled)") }
    }
  }

  // MARK: Resolving

  /// The app looks at the device for each operation that waits for that, and says what it found.
  func resolve(in life: Life) async {
    let session = life.session
    for operation in await session.journal where operation.state == .unresolved {
      guard let number = Scenario.number(of: operation.id), let write = writes[number] else { continue }
      do {
        let value = try await session.withLink(within: .seconds(10)) { scope in
          try await scope.read(write.attribute)
        }
        // Now and then the app cannot tell either.
        let verdict: Verdict =
          value == write.value(number) ? .applied : number % 8 == 0 ? .unknown : .notApplied
        try await session.resolve(operation.id, as: verdict, by: "app")
      } catch {
        say("resolving write \(number): \(error)")
      }
    }
  }

  // MARK: The device

  func beat() {
    let beat = beats.withLock { beat in
      beat += 1
      return beat
    }
    peripheral.update((0..<4).map { UInt8(truncatingIfNeeded: beat >> ($0 * 8)) }, of: Scenario.stream)
    executor.run()
  }

  func watchBeats(_ life: Life) async {
    var last: UInt32 = 0
    var generation: Generation?
    do {
      for try await update in life.session.notifications(from: Scenario.stream) where !life.isOver {
        let beat = update.value.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        if beat <= last { note("beat \(beat) came after beat \(last)") }
        if let generation, update.generation < generation { note("beat \(beat) is of an older link") }
        if let generation, update.generation > generation, update.gap?.isAfterLoss != true {
          note("beat \(beat) has no gap although a link was lost before it")
        }
        (last, generation) = (beat, update.generation)
      }
    } catch {
      if error.code != .ended { note("the subscription failed: \(error)") }
    }
  }

  private func takeOneValue(_ life: Life) async {
    var values = life.session.notifications(from: Scenario.stream).makeAsyncIterator()
    do {
      _ = try await values.next()
    } catch {
      if error.code != .ended { note("a second subscription failed: \(error)") }
    }
  }

  /// As after an update of its firmware: the device starts again, and only then is another one.
  private func changeTable() {
    peripheral.terminate(.remoteDeviceTerminatedPowerOff)
    peripheral.insertInFront(
      VirtualService(
        BluetoothUUID(0xFE00),
        characteristics: [VirtualCharacteristic(BluetoothUUID(0xFE01), .read, value: [1])]))
  }

  /// Says something of a link that is over, or of one that never was.
  private func sayStale(_ call: Scenario.Call) {
    let past = radio.linkIDs(of: device).dropLast().last ?? LinkID(rawValue: 1 << 40)
    let loss = LinkLoss(.localHostTerminated)
    switch call.number % 4 {
    case 0: radio.deliverStale(.closed(past, loss, inDoubt: [RequestID(rawValue: 2)]), to: device)
    case 1:
      for number in 1...80 {
        let request = RequestID(rawValue: UInt64(number))
        radio.deliverStale(.answered(past, request, .success(.value([0xEE]))), to: device)
      }
    case 2: radio.deliverStale(.value(past, [0xEE, 0xEE, 0xEE, 0xEE], of: Scenario.stream), to: device)
    default: radio.deliverStale(.attemptFailed(AttemptID(rawValue: 1 << 40), loss), to: device)
    }
  }
}
