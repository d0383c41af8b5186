import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B02: a call that is made while the disconnect is under way gets its answer at once: never sent.
@Suite struct CallDuringDisconnectTests {
  enum Place: CaseIterable {
    case neverAsked, dialling, preparing, backingOff, withoutAdapter, ready, readyAndBusy, lingering
  }

  enum Variant: CaseIterable {
    case plain, lostBefore, lostBetween, lostBehind, cancelledBeforeItRan, cancelledBehind
  }

  enum Call: CaseIterable {
    case read, write, nonIdempotentWrite, longWrite, command, discovery
    case verifiedWrite, appVerifiedWrite, reliableWrite, namedWrite, submitted, exclusive

    /// What a call is told that nobody is going to bring a link for.
    var code: RelinkError.Code { self == .exclusive ? .disconnected : .notSent }

    func make(_ session: DeviceSession) async throws {
      switch self {
      case .read: _ = try await session.read(Scene.first)
      case .write: try await session.write([1], to: Scene.first, idempotency: .idempotent)
      case .nonIdempotentWrite: try await session.write([1], to: Scene.first, idempotency: .nonIdempotent)
      case .longWrite:
        try await session.write(
          [UInt8](repeating: 1, count: 600), to: Scene.first, idempotency: .idempotent,
          options: WriteOptions(allowsLong: true))
      case .command: try await session.writeWithoutResponse([1], to: Scene.first, idempotency: .idempotent)
      case .discovery: _ = try await session.discoverServices()
      case .verifiedWrite:
        try await session.write([1], to: Scene.first, idempotency: .verified(by: Probe { _ in .notApplied }))
      case .appVerifiedWrite:
        try await session.write([1], to: Scene.first, idempotency: .verified(by: .app))
      case .reliableWrite:
        try await session.writeReliably(
          [ReliableWrite(Scene.first, [1]), ReliableWrite(Scene.second, [2])], idempotency: .nonIdempotent)
      case .namedWrite:
        try await session.write(
          [1], to: Scene.first, idempotency: .nonIdempotent, id: OperationID("command 1"))
      case .submitted:
        _ = try await session.submit(WriteRequest([1], to: Scene.first, idempotency: .nonIdempotent))
      case .exclusive: try await session.withLink { try await $0.write([1], to: Scene.first) }
      }
    }
  }

  let peripheral = VirtualPeripheral.twoValues()

  private func bring(_ scene: Scene, to place: Place) throws {
    switch place {
    case .neverAsked: break
    case .dialling:
      scene.radio.setAdvertising(false, of: scene.device)
      wish(scene)
    case .preparing:
      peripheral.react(to: .exchangeMTU, with: .swallow)
      wish(scene)
    case .backingOff:
      scene.radio.setDialBehavior(.refuse(after: .zero), of: scene.device)
      wish(scene)
      guard case .waiting(.backoff, _) = scene.session.snapshot().state else {
        Issue.record("the session does not wait between attempts")
        return
      }
    case .withoutAdapter:
      scene.radio.setAdapter(.off)
      wish(scene)
    case .ready: try scene.connect()
    case .readyAndBusy:
      try scene.connect()
      peripheral.react(to: .read(Scene.second), with: .swallow)
      _ = scene.spawn("busy") { session in try await session.read(Scene.second) }
      scene.executor.run()
    case .lingering:
      try scene.connect()
      try scene.drive("disconnect") { await $0.disconnect() }
      wish(scene)
    }
  }

  private func wish(_ scene: Scene) {
    _ = scene.spawn("wish") { session in try await session.connect(within: .never) }
    scene.executor.run()
  }

  @Test("B02: whatever the session is doing", arguments: Place.allCases, Call.allCases)
  func aCallBehindADisconnectEndsAtOnceAsNeverSent(_ place: Place, _ call: Call) throws {
    for variant in Variant.allCases {
      let before = (peripheral.counters.reads, peripheral.counters.applied.count)
      try Scene.play(peripheral) { scene in
        try bring(scene, to: place)
        let reads = peripheral.counters.reads
        let searches = peripheral.counters.received[.readByGroupTypeRequest]
        if variant == .lostBefore { scene.radio.lose(scene.device, .connectionTimeout) }
        let disconnect = scene.spawn("disconnect") { await $0.disconnect() }
        if variant == .lostBetween {
          while !disconnect.hasEnded, scene.executor.step() {}
          scene.radio.lose(scene.device, .remoteUserTerminatedConnection)
        }
        let caller = scene.spawn("\(call)") { try await call.make($0) }
        if variant == .cancelledBeforeItRan { caller.cancel() }
        if variant == .lostBehind { scene.radio.lose(scene.device, .connectionTimeout) }
        while !disconnect.hasEnded, scene.executor.step() {}
        if variant == .cancelledBehind { caller.cancel() }
        scene.executor.run()
        #expect(disconnect.hasEnded)
        // A cancellation that comes before the call was admitted is what ends it.
        let isCancelled = variant == .cancelledBeforeItRan || variant == .cancelledBehind
        let code = caller.relinkError?.code
        #expect(
          code == call.code || isCancelled && call == .exclusive && code == .cancelled,
          "\(variant): \(String(describing: caller.result))")
        let reason = caller.relinkError?.notSentReason
        #expect(
          call == .exclusive || reason == .disconnected || isCancelled && reason == .cancelled, "\(variant)")
        #expect(peripheral.counters.reads == reads)
        #expect(peripheral.counters.received[.readByGroupTypeRequest] == searches)
        scene.executor.advance(by: .seconds(60))
        #expect(scene.outline.hasSuffix("idle(disconnected)"))
        #expect(scene.radio.pendingDials == 0)
      }
      peripheral.reactProperly()
      #expect(peripheral.counters.applied.count == before.1, "\(variant)")
      #expect(peripheral.counters.reads[0x0010] == before.0[0x0010], "\(variant)")
    }
  }
}
