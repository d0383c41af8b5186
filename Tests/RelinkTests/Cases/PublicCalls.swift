import BluetoothWire
import RelinkTesting

@testable import Relink

/// A public call that waits, with the longest time that its documentation states.
///
/// ``all`` and ``scoped`` name every one that may wait for a radio, ``apart`` and ``ofTests`` the others; a test compares
/// the names with the sources, so that a new one has to be added here.
struct PublicCall: Sendable, CustomStringConvertible {
  /// The file that declares it, without its extension, and its name.
  var declaration: String
  /// What is special about the call; empty for the plain one.
  var variant = ""
  /// The longest time that is stated; nil where it waits without a bound and only cancelling ends it.
  var limit: Duration?
  /// How soon it ends after its task was cancelled.
  var timeAfterCancelling = Duration.milliseconds(100)
  var make: @Sendable (Scene) async throws -> Void

  var description: String { variant.isEmpty ? declaration : "\(declaration) \(variant)" }

  /// The calls on a session, and those that a body of `withLink` makes.
  static let all: [PublicCall] = session + turns

  /// A turn ends within the wait for it and the time of what its body asks for: 30 s for a request without an answer, and
  /// 2 s until its link is gone.
  private static let turns: [PublicCall] = scoped.map { call in
    PublicCall(
      declaration: "DeviceSession+Exclusive.withLink", variant: "around \(call)", limit: .seconds(62)
    ) { scene in
      try await scene.session.withLink { try await call.make($0) }
    }
  }

  private static let session: [PublicCall] = [
    PublicCall(declaration: "DeviceSession.connect", limit: .seconds(30)) { try await $0.session.connect() },
    PublicCall(declaration: "DeviceSession.connect", variant: "within 3 s", limit: .seconds(3)) {
      try await $0.session.connect(within: .seconds(3))
    },
    PublicCall(declaration: "DeviceSession.connect", variant: "without a bound", limit: nil) {
      try await $0.session.connect(within: .never)
    },
    PublicCall(declaration: "DeviceSession.disconnect", limit: .zero) { await $0.session.disconnect() },
    PublicCall(declaration: "DeviceSession.close", limit: .zero) { await $0.session.close() },
    PublicCall(declaration: "DeviceSession+Operations.read", limit: .seconds(30)) {
      _ = try await $0.session.read(Scene.first)
    },
    PublicCall(declaration: "DeviceSession+Operations.read", variant: "within 3 s", limit: .seconds(3)) {
      _ = try await $0.session.read(Scene.first, within: .seconds(3))
    },
    PublicCall(declaration: "DeviceSession+Operations.read", variant: "without a bound", limit: nil) {
      _ = try await $0.session.read(Scene.first, within: .never)
    },
    PublicCall(declaration: "DeviceSession+Operations.write", limit: .seconds(30)) {
      try await $0.session.write([1], to: Scene.first, idempotency: .idempotent)
    },
    PublicCall(
      declaration: "DeviceSession+Operations.write", variant: "of 500 bytes within 3 s", limit: .seconds(3)
    ) {
      try await $0.session.write(
        [UInt8](repeating: 1, count: 500), to: Scene.first, idempotency: .nonIdempotent,
        options: WriteOptions(within: .seconds(3), allowsLong: true))
    },
    PublicCall(declaration: "DeviceSession+Operations.writeWithoutResponse", limit: .seconds(30)) {
      try await $0.session.writeWithoutResponse([1], to: Scene.first, idempotency: .idempotent)
    },
    PublicCall(declaration: "DeviceSession+Operations.discoverServices", limit: .seconds(30)) {
      _ = try await $0.session.discoverServices()
    },
    PublicCall(declaration: "DeviceSession+Operations.writeReliably", limit: .seconds(30)) {
      try await $0.session.writeReliably([ReliableWrite(Scene.first, [1])], idempotency: .idempotent)
    },
    PublicCall(declaration: "DeviceSession+Journal.submit", limit: .zero) {
      _ = try await $0.session.submit(WriteRequest([1], to: Scene.first, idempotency: .idempotent))
    },
    PublicCall(declaration: "DeviceSession+Security.removeBond", limit: .seconds(10)) {
      try await $0.session.removeBond()
    },
    PublicCall(declaration: "DeviceSession+Journal.resolve", limit: .zero) {
      guard let id = OperationID("unknown") else { return }
      try await $0.session.resolve(id, as: .applied, by: "nobody")
    },
    // It says that cancelling the task changes nothing: the operation ends it.
    PublicCall(
      declaration: "WriteRequest.outcome", limit: .seconds(30), timeAfterCancelling: .seconds(30)
    ) { scene in
      let request = WriteRequest([1], to: Scene.first, idempotency: .idempotent)
      _ = await (try scene.session.submit(request)).outcome
    },
    PublicCall(
      declaration: "WriteRequest.outcome", variant: "cancelled by its handle", limit: nil
    ) { scene in
      let request = WriteRequest(
        [1], to: Scene.first, idempotency: .nonIdempotent, options: WriteOptions(within: .never))
      let handle = try await scene.session.submit(request)
      await withTaskCancellationHandler {
        _ = await handle.outcome
      } onCancel: {
        handle.cancel()
      }
    },
    PublicCall(declaration: "DeviceSession+Exclusive.withLink", limit: .seconds(30)) {
      try await $0.session.withLink { _ in }
    },
    PublicCall(declaration: "DeviceSession.withDeviceSession", limit: .seconds(3)) { scene in
      try await withDeviceSession(with: try deviceID(2), over: scene.radio) { session in
        _ = try await session.connect(within: .seconds(3))
      }
    },
    PublicCall(declaration: "ValueStream.next", limit: nil) { scene in
      var iterator = scene.session.notifications(from: Scene.first).makeAsyncIterator()
      _ = try await iterator.next()
    },
    PublicCall(declaration: "ValueStream.next", variant: "isolated", limit: nil) { scene in
      var iterator = scene.session.notifications(from: Scene.first).makeAsyncIterator()
      _ = try await iterator.next(isolation: nil)
    },
    PublicCall(declaration: "ValueStream.next", variant: "after close()", limit: .zero) { scene in
      let stream = scene.session.notifications(from: Scene.first)
      await scene.session.close()
      for try await _ in stream {}
    },
    PublicCall(declaration: "ValueStream.next", variant: "made after close()", limit: .zero) { scene in
      await scene.session.close()
      for try await _ in scene.session.notifications(from: Scene.first) {}
    },
  ]

  /// Public calls that wait, and for no radio: what each waits for, by module and name.
  static let apart: [String: [String: String]] = [
    "RelinkSQLite": [
      "AuditLog.flush": "waits for the disk, for its `limit` at most, on a thread of its own",
      "AuditLog.close": "waits for the disk, for its `limit` at most, on a thread of its own",
    ]
  ]

  /// The files of `RelinkTesting` with public calls that wait: why none is made here.
  static let ofTests: [String: String] = [
    "BondStoreContract": "waits through its driver",
    "ContractDriver": "lets an executor go on, for the limit that the driver was made with",
    "EventRecorder": "waits in `events()`, which is made here",
    "JournalStoreContract": "waits through its driver",
    "JournalStoreContractEnvironment": "does nothing, where an environment says no more",
    "LinkContract": "waits through its driver",
    "PDUChannelContract": "waits through its driver",
    "SecurityContract": "waits through its driver",
    "TransportContract": "waits through its driver",
    "VirtualContractEnvironment": "posts to the executor of the world that it is",
  ]

  /// What is no call of ours and is waited in all the same: the iteration of events.
  static let iterations: [PublicCall] = [
    PublicCall(declaration: "journalEvents", limit: nil) { scene in
      for await _ in await scene.session.journalEvents() {}
    },
    PublicCall(declaration: "journalEvents", variant: "after close()", limit: .zero) { scene in
      let events = await scene.session.journalEvents()
      await scene.session.close()
      for await _ in events {}
    },
    PublicCall(declaration: "recoveredOperations", limit: nil) { scene in
      for await _ in scene.session.recoveredOperations() {}
    },
    PublicCall(declaration: "recoveredOperations", variant: "made after close()", limit: .zero) { scene in
      await scene.session.close()
      for await _ in scene.session.recoveredOperations() {}
    },
    PublicCall(declaration: "events", limit: nil) { scene in
      for await _ in scene.session.events() {}
    },
    PublicCall(declaration: "events", variant: "after close()", limit: .zero) { scene in
      let events = scene.session.events()
      await scene.session.close()
      for await _ in events {}
    },
    PublicCall(declaration: "events", variant: "made after close()", limit: .zero) { scene in
      await scene.session.close()
      for await _ in scene.session.events() {}
    },
  ]

  /// A call on a link in a setup closure.
  struct Scoped: Sendable, CustomStringConvertible {
    var declaration: String
    var make: @Sendable (LinkScope) async throws -> Void
    var description: String { declaration }
  }

  /// The calls on a link.
  static let scoped: [Scoped] = [
    Scoped(declaration: "LinkScope.read") { _ = try await $0.read(Scene.first) },
    Scoped(declaration: "LinkScope.write") { try await $0.write([1], to: Scene.first) },
    Scoped(declaration: "LinkScope.writeWithoutResponse") {
      try await $0.writeWithoutResponse([1], to: Scene.first)
    },
  ]
}
