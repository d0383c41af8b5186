import Relink
import Testing

@testable import RelinkBlueZ

/// Calls of tasks that do not prefer the session's executor: they leave it and come back at every `await`, also inside
/// the session.
@Suite(.timeLimit(.minutes(1))) struct ArrivalTests {
  private static let name = Characteristic(BluetoothUUID(0x2A19 as UInt16))

  private func withSession(
    _ body: @Sendable (DeviceSession, PromptStore) async throws -> Void
  ) async throws {
    try await withLoop { loop in
      let store = PromptStore()
      let device = try #require(UnixTransport.device(at: UnixListener.freshPath()))
      let session = try DeviceSession(
        with: device, over: UnixTransport(on: loop), configuration: Configuration(store: store))
      try await body(session, store)
      await session.close()
    }
  }

  private func request(_ number: Int) -> WriteRequest {
    WriteRequest(
      [UInt8(truncatingIfNeeded: number)], to: Self.name, idempotency: .nonIdempotent,
      id: OperationID("call-\(number)"), options: WriteOptions(within: .never, durability: .durable))
  }

  @Test func aRecordThatIsCommittedBeforeItsCallerWaitsForThatIsNoticed() async throws {
    try await withSession { session, store in
      for number in 0..<50 {
        let pending = try await session.submit(request(number))
        #expect(pending.id == OperationID("call-\(number)"))
      }
      #expect(store.admitted.all.count == 50)
    }
  }

  @Test func theStoreHasTheOrderOfTheJournal() async throws {
    try await withSession { session, store in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<200 {
          group.addTask {
            guard number.isMultiple(of: 2) else {
              _ = try await session.submit(request(number))
              return
            }
            // Not sent, when the session is closed.
            try? await session.write(
              [UInt8(truncatingIfNeeded: number)], to: Self.name, idempotency: .nonIdempotent,
              id: OperationID("call-\(number)"), options: WriteOptions(within: .never, durability: .durable))
          }
        }
        let stored = await store.admitted.first(200).sorted { $0.place < $1.place }.map(\.id)
        #expect(await session.journal.map(\.id.description) == stored)
        await session.close()
        try await group.waitForAll()
      }
    }
  }

  @Test func aCallThatIsCancelledBeforeItArrivesEnds() async throws {
    try await withSession { session, _ in
      for _ in 0..<20 {
        let calls: [Task<RelinkError.Code?, Never>] = [
          Task {
            do throws(RelinkError) { try await session.connect(within: .never) } catch { return error.code }
            return nil
          },
          Task {
            do throws(RelinkError) {
              try await session.write(
                [1], to: Self.name, idempotency: .nonIdempotent, options: WriteOptions(within: .never))
            } catch { return error.code }
            return nil
          },
          Task {
            do { try await session.withLink(within: .never) { _ in } } catch {
              return (error as? RelinkError)?.code
            }
            return nil
          },
        ]
        for call in calls { call.cancel() }
        #expect(await calls[0].value == .cancelled)
        #expect(await calls[1].value == .notSent)
        #expect(await calls[2].value == .cancelled)
      }
      #expect(await session.journal.isEmpty)
    }
  }

  /// Whoever gave a name and was cancelled is not told that its operation was not sent: it may be another caller's.
  @Test func aCancelledCallSaysNothingOfAnOperationThatIsAnothers() async throws {
    try await withSession { session, _ in
      let first = try await session.submit(request(1))
      for _ in 0..<20 {
        let call = Task { () -> RelinkError? in
          do throws(RelinkError) {
            try await session.write(
              [1], to: Self.name, idempotency: .nonIdempotent, id: OperationID("call-1"),
              options: WriteOptions(within: .never, durability: .durable))
            return nil
          } catch { return error }
        }
        call.cancel()
        let error = await call.value
        #expect(error?.code == .cancelled && error?.outcome == nil)
      }
      #expect(first.outcomeIfSettled == nil)
    }
  }
}

/// A store that has answered before the call of it returns.
private final class PromptStore: JournalStore {
  let admitted = Facts<JournalRow>()

  func claim(
    _ device: DeviceID, owner: String, epoch: UInt64?,
    _ done: @escaping @Sendable (Result<ClaimedJournal, JournalStoreError>) -> Void
  ) {
    let claim = JournalClaim(device: device, epoch: 1)
    done(.success(ClaimedJournal(claim: claim, rows: [], lastPlace: 0)))
  }

  func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync,
    _ done: @escaping @Sendable (Result<[JournalRow], JournalStoreError>) -> Void
  ) {
    for case .admitted(let row) in records { admitted.add(row) }
    done(.success([]))
  }
}
